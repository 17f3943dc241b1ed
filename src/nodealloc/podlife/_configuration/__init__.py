"""What a pod's sandbox and containers are made from: pure functions of the pod and of what it was given."""

from nodealloc.podlife._configuration._configuring import NodeConfiguration, PodRunOptions
from nodealloc.podlife._configuration._container import (
    container_config,
    linux_resources,
    message_path,
    sub_paths_of,
)
from nodealloc.podlife._configuration._dns import PodDns, hostname_of, hosts_file, pod_dns
from nodealloc.podlife._configuration._environment import field_value, variables_of
from nodealloc.podlife._configuration._errors import ContainerConfigError, SandboxConfigError
from nodealloc.podlife._configuration._files import PodFiles
from nodealloc.podlife._configuration._messages import (
    LOG_LINES,
    LOG_TAIL_BYTES,
    MESSAGE_BYTES,
    PATH_ANNOTATION,
    POLICY_ANNOTATION,
    termination_message,
)
from nodealloc.podlife._configuration._node import (
    ContainerRunOptions,
    EnvironmentSource,
    ImageFacts,
    NodeSettings,
    PodAddresses,
)
from nodealloc.podlife._configuration._sandbox_config import sandbox_config
from nodealloc.podspec._expansion import expand

__all__ = [
    "LOG_LINES",
    "LOG_TAIL_BYTES",
    "MESSAGE_BYTES",
    "PATH_ANNOTATION",
    "POLICY_ANNOTATION",
    "ContainerConfigError",
    "ContainerRunOptions",
    "EnvironmentSource",
    "ImageFacts",
    "NodeConfiguration",
    "NodeSettings",
    "PodAddresses",
    "PodDns",
    "PodFiles",
    "PodRunOptions",
    "SandboxConfigError",
    "container_config",
    "expand",
    "field_value",
    "hostname_of",
    "hosts_file",
    "linux_resources",
    "message_path",
    "pod_dns",
    "sandbox_config",
    "sub_paths_of",
    "termination_message",
    "variables_of",
]
