"""What a workload asks for: pods, containers, quantities, QoS class.

- A *quantity* is an exact amount (`500m`, `2Gi`), whatever its size.
- A *request* is what a container is sure to get, a *limit* what it may use at
  most; a request that is missing follows the limit.
- A *sidecar* is an init container that keeps running (`restartPolicy: Always`).

    >>> pod = Pod.from_manifest({
    ...     "metadata": {"name": "web"},
    ...     "spec": {"containers": [{"name": "app", "resources": {"limits": {"cpu": 2, "memory": "1Gi"}}}]},
    ... })
    >>> qos_class(pod).value, str(effective_requests(pod)["memory"])
    ('Guaranteed', '1Gi')
"""

from nodealloc.podspec._amounts import Amounts, Resources, resources
from nodealloc.podspec._effective import effective_limits, effective_requests
from nodealloc.podspec._manifest import pod_from_manifest
from nodealloc.podspec._model import Container, Json, Pod, Volume, VolumeUse
from nodealloc.podspec._names import is_extended_resource
from nodealloc.podspec._qos import QosClass, qos_class
from nodealloc.podspec._quantity import Quantity, QuantityFormat
from nodealloc.podspec._resources import page_bytes

__all__ = [
    "Amounts",
    "Container",
    "Json",
    "Pod",
    "QosClass",
    "Quantity",
    "QuantityFormat",
    "Resources",
    "Volume",
    "VolumeUse",
    "effective_limits",
    "effective_requests",
    "is_extended_resource",
    "page_bytes",
    "pod_from_manifest",
    "qos_class",
    "resources",
]
