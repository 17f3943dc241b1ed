"""Configures pods' sandboxes and containers from what preparations gave."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from nodealloc import _attrs as attrs
from nodealloc._addresses import told_addresses
from nodealloc._arguments import check
from nodealloc._frozen import Frozen, freeze
from nodealloc._typed import typed, typed_fields, typed_methods
from nodealloc.errors import NodeallocError
from nodealloc.podlife._configuration._container import container_config, linux_resources, sub_paths_of
from nodealloc.podlife._configuration._dns import hosts_file, pod_dns
from nodealloc.podlife._configuration._environment import variables_of
from nodealloc.podlife._configuration._errors import (
    ContainerConfigError,
    RootForbiddenError,
    SandboxConfigError,
)
from nodealloc.podlife._configuration._node import (
    ContainerRunOptions,
    ImageFacts,
    NodeSettings,
    PodAddresses,
)
from nodealloc.podlife._configuration._sandbox_config import sandbox_config
from nodealloc.podspec import is_static

if TYPE_CHECKING:
    from nodealloc.podlife._configuration._files import PodFiles
    from nodealloc.podlife._configuration._node import EnvironmentSource
    from nodealloc.podlife._record import PodRecord
    from nodealloc.podspec import Container, Pod
    from nodealloc.runtime import ContainerConfig, LinuxResources, PodReport, SandboxConfig
    from nodealloc.volumes import SubPaths

__all__ = ["NodeConfiguration", "PodRunOptions"]

_log = logging.getLogger("nodealloc.podlife")

_NOTHING: Final = ContainerRunOptions()
_MOST_IMAGES: Final = 1000


@typed_fields
@attrs.frozen(kw_only=True)
class PodRunOptions:
    """What one preparation gives to a pod.

    Attributes:
        cgroup_parent: The pod's cgroup as its driver names it, or "".
        handler: Of the pod's runtime class, or "".
        groups: Further groups of all its processes, of its volumes.
        everywhere: For each of its containers.
        containers: Container name to what it alone gets.
    """

    cgroup_parent: str = ""
    handler: str = ""
    groups: tuple[int, ...] = ()
    everywhere: ContainerRunOptions = _NOTHING
    containers: Mapping[str, ContainerRunOptions] = attrs.field(
        factory=Frozen[str, ContainerRunOptions], validator=freeze
    )


@typed_methods
class NodeConfiguration:
    """The `Configures` of a node: says what sandboxes and containers are made from.

    Of what preparations gave it takes each `PodRunOptions`, in their order; the last
    word on what only one can give counts. Anything else is for others.

    Args:
        node: What all pods get.
        image: From the runtime's id of an image to what is known of it. That of an id never
            changes, so that it is asked once for each.
        source: Config maps and secrets; None where there are none to ask for.
        files: Makes the files that containers mount; None where somebody else does.
        host_ips: The node's addresses.
        sub_paths: Binds parts of volumes; None where a preparation gives them, or nobody does.
        fresh: Says `node` anew as a sandbox or a container is made: its resolver and hosts count, which
            change on a machine, and nothing else of it. Where it raises, a sandbox waits. None where
            they stay.
    """

    @typed
    def __init__(
        self,
        node: NodeSettings,
        /,
        *,
        image: Callable[[str], ImageFacts] | None = None,
        source: EnvironmentSource | None = None,
        files: PodFiles | None = None,
        host_ips: tuple[str, ...] = (),
        sub_paths: SubPaths | None = None,
        fresh: Callable[[], NodeSettings] | None = None,
    ) -> None:
        self._node = node
        self._image = image or _bare
        self._images: dict[str, ImageFacts] = {}
        self._source = source
        self._files = files
        self._host_ips = host_ips
        self._sub_paths = sub_paths
        self._fresh = fresh

    def sandbox(self, pod: Pod, attempt: int, provided: Mapping[str, object], /) -> SandboxConfig:
        """What a pod's sandbox is made from; raises `SandboxConfigError`."""
        given = _options_given(provided)
        try:
            self._renew()
        except (NodeallocError, OSError) as error:
            raise SandboxConfigError(str(error)) from error
        for one in pod_dns(pod, self._node, host_ips=self._host_ips).left_out:
            _log.warning("pod %s: %s does not fit into its resolv.conf, and is left out", pod.full_name, one)
        return sandbox_config(
            pod,
            attempt=attempt,
            node=self._node,
            cgroup_parent=next((one.cgroup_parent for one in reversed(given) if one.cgroup_parent), ""),
            handler=next((one.handler for one in reversed(given) if one.handler), ""),
            groups=tuple(group for one in given for group in one.groups),
            host_ips=self._host_ips,
        )

    def container(
        self, record: PodRecord, container: Container, attempt: int, image_id: str, report: PodReport, /
    ) -> ContainerConfig:
        """What a container is made from; raises `ContainerConfigError`. The files that it mounts are made."""
        pod, given = record.pod, _options_given(record.provided)
        # Its pod has name servers by now: a container does not wait for those of the next one.
        with contextlib.suppress(NodeallocError, OSError):
            self._renew()
        own_ips = told_addresses(self._ips_of(pod, report), self._host_ips)
        hosts = hosts_file(pod, own_ips, self._node)
        addresses = PodAddresses(pod_ips=own_ips, host_ips=self._host_ips)
        options = _options_of(given, container)
        try:
            config = container_config(
                pod,
                container,
                attempt=attempt,
                image=self._facts_of(image_id),
                node=self._node,
                addresses=addresses,
                options=self._with_sub_paths(pod, container, addresses, options),
                source=self._source,
                groups=tuple(group for one in given for group in one.groups),
                target_id=_target(container, report),
            )
        except RootForbiddenError:
            if self._files is not None:
                # As whom it runs is looked at last: by then its folder is there.
                self._files.make(pod, container, None, node=self._node, hosts=hosts)
            raise
        if self._files is not None:
            self._files.make(pod, container, attempt, node=self._node, hosts=hosts)
        return config

    def resources(self, record: PodRecord, container: Container, /) -> LinuxResources:
        """What a container that runs may use; nothing else that it was made from has to be there still."""
        return linux_resources(
            record.pod, container, self._node, _options_of(_options_given(record.provided), container)
        )

    def _renew(self) -> None:
        if self._fresh is not None:
            now = check("NodeConfiguration: fresh", self._fresh(), NodeSettings, "a NodeSettings")
            self._node = attrs.evolve(self._node, resolver=now.resolver, hosts=now.hosts)

    def _ips_of(self, pod: Pod, report: PodReport) -> tuple[str, ...]:
        """Its own or its node's; a kubelet without an API server tells those of the node to nobody."""
        if not pod.host_network:
            return report.ips
        return () if self._node.as_kubelet and is_static(pod) else self._host_ips

    def _with_sub_paths(
        self, pod: Pod, container: Container, addresses: PodAddresses, options: ContainerRunOptions
    ) -> ContainerRunOptions:
        """With the parts of volumes that it mounts."""
        if self._sub_paths is None or not any(one.sub_path or one.sub_path_expr for one in container.volumes):
            return options
        own = variables_of(pod, container, node=self._node, addresses=addresses, source=self._source)
        found = dict(options.sub_paths)
        for number, volume, path in sub_paths_of(container, {**options.env, **own}):
            if volume in options.volumes and (volume, path) not in found:
                try:
                    found[volume, path] = self._sub_paths.bind(
                        pod.uid,
                        container.name,
                        number,
                        volume=volume,
                        folder=options.volumes[volume],
                        path=path,
                    )
                except (NodeallocError, OSError) as error:
                    _log.warning("pod %s, path %r of volume %s: %s", pod.uid, path, volume, error)
                    raise _not_prepared(container.name, volume) from error
        return attrs.evolve(options, sub_paths=found)

    def _facts_of(self, image_id: str) -> ImageFacts:
        found = self._images.get(image_id)
        if found is None:
            found = self._image(image_id)
            if found.is_listed:
                if len(self._images) >= _MOST_IMAGES:
                    self._images.clear()
                self._images[image_id] = found
        return found


def _bare(image_id: str) -> ImageFacts:
    """Nobody knows as whom it runs: that is left to the runtime."""
    return ImageFacts(id=image_id, is_listed=False)


def _options_given(provided: Mapping[str, object]) -> list[PodRunOptions]:
    return [one for one in provided.values() if isinstance(one, PodRunOptions)]


def _options_of(given: Sequence[PodRunOptions], container: Container) -> ContainerRunOptions:
    return ContainerRunOptions.joined(
        [each for one in given for each in (one.everywhere, one.containers.get(container.name, _NOTHING))]
    )


def _not_prepared(container: str, volume: str) -> ContainerConfigError:
    """Without why, which may say what lies on the node: that is for who runs it."""
    words = f'failed to prepare subPath for volumeMount "{volume}" of container "{container}"'
    return ContainerConfigError(container, words)


def _target(container: Container, report: PodReport) -> str:
    """The instance whose processes an ephemeral container sees, "" where it names none."""
    name = container.target_container_name
    if not name:
        return ""
    found = report.newest(name)
    if found is None:
        raise ContainerConfigError(container.name, f"unable to find target container {name}")
    return found.record.id
