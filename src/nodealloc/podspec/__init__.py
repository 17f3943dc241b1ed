"""What a workload asks for: pods, containers, quantities, QoS class."""

from nodealloc.podspec._model import Container, Json, Pod, Resources, Volume, VolumeUse
from nodealloc.podspec._qos import QosClass, qos_class
from nodealloc.podspec._quantity import Quantity, QuantityFormat

__all__ = [
    "Container",
    "Json",
    "Pod",
    "QosClass",
    "Quantity",
    "QuantityFormat",
    "Resources",
    "Volume",
    "VolumeUse",
    "qos_class",
]
