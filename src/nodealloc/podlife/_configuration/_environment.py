"""The variables of a container: from objects, from the pod itself, from what it asks for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from nodealloc._typed import typed
from nodealloc.podfacts import metadata_field, resource_value
from nodealloc.podlife._configuration._errors import ContainerConfigError
from nodealloc.podspec import Container, EnvFrom, KeyRef, Pod, ResourceFieldRef, ValueFrom
from nodealloc.podspec._expansion import expand

if TYPE_CHECKING:
    from nodealloc.podlife._configuration._node import EnvironmentSource, NodeSettings, PodAddresses

__all__ = ["field_value", "variables_of"]

_OF_THE_API: Final = re.compile(
    r"KUBERNETES_(SERVICE_(HOST|PORT(_[A-Z0-9_]+)?)|PORT(_[0-9]+_[A-Z]+(_PROTO|_PORT|_ADDR)?)?)"
)
"""Variables of the service `kubernetes`, which pods that ask for none get all the same."""


@typed
def variables_of(
    pod: Pod,
    container: Container,
    /,
    *,
    node: NodeSettings,
    addresses: PodAddresses,
    source: EnvironmentSource | None,
) -> dict[str, str]:
    """All variables of a container: services', then whole objects, then its own; the last one counts.

    A value may name variables that stand before it.

    Raises:
        ContainerConfigError: An object or a key that may not be missing is, or a field that
            there is none of is asked for.

    Source: kubelet ``kubelet_pods.go``.
    """
    reader = _Reader(pod, container, node, addresses, source)
    services = {
        name: value
        for name, value in node.services.items()
        if pod.enable_service_links or _OF_THE_API.fullmatch(name)
    }
    found: dict[str, str] = {}
    for one in container.env_from:
        found |= reader.whole(one)
    for variable in container.variables:
        if variable.value_from is not None:
            value = reader.value(variable.value_from)
            if value is None:
                continue
        else:
            value = expand(variable.value, {**services, **found}) if "$" in variable.value else variable.value
        found[variable.name] = value
    return {**services, **found}


@typed
def field_value(path: str, pod: Pod, node: NodeSettings, addresses: PodAddresses, /) -> str | None:
    """What a field of the pod says to a variable; None for one that cannot be told.

    Source: kubelet ``kubelet_pods.go``.
    """
    plain = {
        "spec.nodeName": pod.node_name or node.name,
        "spec.host": pod.node_name or node.name,  # as it was called first; an API server takes it still
        "spec.serviceAccountName": pod.service_account_name,
        "status.hostIP": next(iter(addresses.host_ips), ""),
        "status.hostIPs": ",".join(addresses.host_ips),
        "status.podIP": next(iter(addresses.pod_ips), ""),
        "status.podIPs": ",".join(addresses.pod_ips),
    }
    return plain[path] if path in plain else metadata_field(path, pod)


class _Reader:
    """Looks values up; each object is asked for once."""

    __slots__ = ("_addresses", "_container", "_maps", "_node", "_pod", "_secrets", "_source")

    def __init__(
        self,
        pod: Pod,
        container: Container,
        node: NodeSettings,
        addresses: PodAddresses,
        source: EnvironmentSource | None,
    ) -> None:
        self._pod = pod
        self._container = container
        self._node = node
        self._addresses = addresses
        self._source = source
        self._maps: dict[str, Mapping[str, str] | None] = {}
        self._secrets: dict[str, Mapping[str, str] | None] = {}

    def whole(self, one: EnvFrom) -> dict[str, str]:
        ref = one.config_map_ref or one.secret_ref
        if ref is None:
            return {}
        data = self._config_map(ref.name) if one.config_map_ref else self._secret(ref.name)
        if data is None:
            if ref.optional:
                return {}
            raise self._missing("configmap" if one.config_map_ref else "secret", ref.name)
        named = {one.prefix + key: value for key, value in data.items()}
        # What no environment can hold is left out: the kernel would cut it, or refuse the program.
        return {key: value for key, value in named.items() if key and "=" not in key and "\0" not in key}

    def value(self, of: ValueFrom) -> str | None:
        """None for one that is missing and may be."""
        if of.field_ref is not None:
            path = of.field_ref.field_path
            value = field_value(path, self._pod, self._node, self._addresses)
            if value is None or path in {"metadata.labels", "metadata.annotations"}:
                raise self._error(f"no field {path} can be told in a variable; name another one")
            return value
        if of.resource_field_ref is not None:
            return self._resource(of.resource_field_ref)
        if of.config_map_key_ref is not None:
            key = of.config_map_key_ref
            return self._key(key, self._config_map(key.name), "configmap", "ConfigMap")
        if of.secret_key_ref is not None:
            key = of.secret_key_ref
            return self._key(key, self._secret(key.name), "secret", "Secret")
        return ""

    def _key(self, ref: KeyRef, data: Mapping[str, str] | None, kind: str, title: str) -> str | None:
        if data is None:
            if ref.optional:
                return None
            raise self._missing(kind, ref.name)
        if ref.key not in data:
            if ref.optional:
                return None
            raise self._error(f"couldn't find key {ref.key} in {title} {self._pod.namespace}/{ref.name}")
        return data[ref.key]

    def _resource(self, ref: ResourceFieldRef) -> str:
        of = self._container
        if ref.container_name and ref.container_name != of.name:
            others = (*self._pod.all_containers, *self._pod.ephemeral_containers)
            found = next((one for one in others if one.name == ref.container_name), None)
            if found is None:
                raise self._error(f"the pod has no container {ref.container_name} to tell {ref.resource} of")
            of = found
        # Asked for by name, a kubelet fills in limits of main containers alone.
        is_bare = self._node.as_kubelet and ref.container_name and of not in self._pod.containers
        value = resource_value(ref, of, {} if is_bare else self._node.allocatable)
        if value is None:
            raise self._error(f"no resource {ref.resource} can be told in units of {ref.divisor or 1}")
        return value

    def _config_map(self, name: str) -> Mapping[str, str] | None:
        if name not in self._maps:
            self._maps[name] = self._asked("configMap", name).config_map(self._pod.namespace, name)
        return self._maps[name]

    def _secret(self, name: str) -> Mapping[str, str] | None:
        if name not in self._secrets:
            data = self._asked("secret", name).secret(self._pod.namespace, name)
            # Bytes that are no text reach the program as they are, where the runtime can be told them.
            self._secrets[name] = (
                None if data is None else {k: v.decode("utf-8", "surrogateescape") for k, v in data.items()}
            )
        return self._secrets[name]

    def _asked(self, kind: str, name: str) -> EnvironmentSource:
        if self._source is None:
            raise self._error(f"couldn't get {kind} {self._pod.namespace}/{name}, no kubeClient defined")
        return self._source

    def _missing(self, kind: str, name: str) -> ContainerConfigError:
        return self._error(f'{kind} "{name}" not found')

    def _error(self, message: str) -> ContainerConfigError:
        return ContainerConfigError(self._container.name, message)
