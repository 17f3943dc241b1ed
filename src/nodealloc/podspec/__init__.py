"""What a workload asks for: pods, containers, quantities, QoS class.

- A *quantity* is an exact amount (`500m`, `2Gi`), whatever its size.
- A *request* is what a container is sure to get, a *limit* what it may use at
  most; a request that is missing in a manifest follows the limit.
- A *sidecar* is an init container that keeps running (`restartPolicy: Always`).

    >>> pod = Pod.from_manifest({
    ...     "metadata": {"name": "web"},
    ...     "spec": {"containers": [{"name": "app", "resources": {"limits": {"cpu": 2, "memory": "1Gi"}}}]},
    ... })
    >>> qos_class(pod).value, str(effective_requests(pod)["memory"])
    ('Guaranteed', '1Gi')
"""

from nodealloc.podspec._amounts import Amounts, Resources, resources
from nodealloc.podspec._app_armor import app_armor_profile
from nodealloc.podspec._effective import effective_limits, effective_requests, qos_class
from nodealloc.podspec._hashes import HASH_ANNOTATION, container_hash, kubelet_hash
from nodealloc.podspec._model import (
    Container,
    DnsPolicy,
    Json,
    MessagePolicy,
    PullPolicy,
    ReadinessGate,
    RestartPolicy,
    Volume,
    VolumeUse,
)
from nodealloc.podspec._names import is_extended_resource
from nodealloc.podspec._network import ContainerPort, DnsOption
from nodealloc.podspec._origin import is_critical, is_mirror, is_static
from nodealloc.podspec._placement import (
    NodeAffinity,
    NodeSelectorOperator,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Toleration,
)
from nodealloc.podspec._pod import Pod
from nodealloc.podspec._probes import (
    ExecAction,
    GrpcAction,
    HttpGetAction,
    HttpHeader,
    Lifecycle,
    LifecycleHandler,
    Probe,
    SleepAction,
    TcpSocketAction,
)
from nodealloc.podspec._qos import QosClass
from nodealloc.podspec._quantity import Quantity, QuantityFormat
from nodealloc.podspec._resources import page_bytes
from nodealloc.podspec._security import (
    AppArmorProfile,
    PodSecurityContext,
    ProfileType,
    SeccompProfile,
    SecurityContext,
    SeLinuxOptions,
    Sysctl,
)
from nodealloc.podspec._validity import api_faults
from nodealloc.podspec._variables import EnvFrom, KeyRef, ResourceFieldRef, ValueFrom, Variable

__all__ = [
    "HASH_ANNOTATION",
    "Amounts",
    "AppArmorProfile",
    "Container",
    "ContainerPort",
    "DnsOption",
    "DnsPolicy",
    "EnvFrom",
    "ExecAction",
    "GrpcAction",
    "HttpGetAction",
    "HttpHeader",
    "Json",
    "KeyRef",
    "Lifecycle",
    "LifecycleHandler",
    "MessagePolicy",
    "NodeAffinity",
    "NodeSelectorOperator",
    "NodeSelectorRequirement",
    "NodeSelectorTerm",
    "Pod",
    "PodSecurityContext",
    "Probe",
    "ProfileType",
    "PullPolicy",
    "QosClass",
    "Quantity",
    "QuantityFormat",
    "ReadinessGate",
    "ResourceFieldRef",
    "Resources",
    "RestartPolicy",
    "SeLinuxOptions",
    "SeccompProfile",
    "SecurityContext",
    "SleepAction",
    "Sysctl",
    "TcpSocketAction",
    "Toleration",
    "ValueFrom",
    "Variable",
    "Volume",
    "VolumeUse",
    "api_faults",
    "app_armor_profile",
    "container_hash",
    "effective_limits",
    "effective_requests",
    "is_critical",
    "is_extended_resource",
    "is_mirror",
    "is_static",
    "kubelet_hash",
    "page_bytes",
    "qos_class",
    "resources",
]
