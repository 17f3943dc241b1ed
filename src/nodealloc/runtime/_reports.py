"""Values only: what an inspection tells of one pod, beyond the listing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias, Union

from nodealloc import _attrs as attrs
from nodealloc._arguments import check, checked, is_other, several, unix_time, wrong
from nodealloc._typed import typed_on_error
from nodealloc.errors import ConfigurationError
from nodealloc.podfacts import Exited, ExitUnknown
from nodealloc.runtime._records import ContainerRecord, RunState, SandboxRecord

__all__ = ["OOM_KILLED", "ContainerReport", "Exit", "PodReport", "SandboxReport", "inspected"]

Exit: TypeAlias = Union[Exited, ExitUnknown]
"""How a container ended, or that it ended and nobody can say how."""
OOM_KILLED: Final = "OOMKilled"
"""The runtime's word for an end for want of memory, whatever the exit status was."""


_ADDRESSES: Final = several(str, "addresses, each a text")


def _addresses_or_none(instance: object, attribute: object, value: tuple[str, ...] | None) -> None:
    if value is not None:
        _ADDRESSES(instance, attribute, value)


@attrs.frozen(kw_only=True)
class SandboxReport:
    """A sandbox, inspected.

    Attributes:
        record: What the listing would say of it.
        uses_host_network: Whether it has the node's network and no addresses of its own.
        ips: Its addresses, the first is the pod's; None where the runtime gave no
            report of the network, empty where it reported no address.

    Raises:
        ConfigurationError: A field is of another kind, such as one text for addresses.
    """

    record: SandboxRecord = attrs.field(
        validator=checked(SandboxRecord, "a SandboxRecord, as the listing has it")
    )
    uses_host_network: bool = attrs.field(default=False, validator=checked(bool, "True or False"))
    ips: tuple[str, ...] | None = attrs.field(default=None, validator=_addresses_or_none)


@attrs.frozen(kw_only=True)
class ContainerReport:
    """A container, inspected.

    Attributes:
        record: What the listing would say of it.
        exit: How it ended; None for one that has not ended.
        reason: The runtime's word (`Completed`, `Error`, `OOMKilled`, `StartError`), or "".
        message: For people, or "".
        started_unix_s: When it began, in Unix seconds; None where it did not, or nobody knows.
        finished_unix_s: When it ended, likewise.
        log_path: Where its output is kept; "" where it is not.

    Raises:
        ConfigurationError: It has exited without an exit, or has an exit and has not exited; its
            exit is a number, or a moment no Unix seconds.
    """

    record: ContainerRecord
    exit: Exit | None = None
    reason: str = ""
    message: str = ""
    started_unix_s: float | None = attrs.field(default=None, validator=unix_time)
    finished_unix_s: float | None = attrs.field(default=None, validator=unix_time)
    log_path: str = ""

    def __attrs_post_init__(self) -> None:
        if is_other(self.record, ContainerRecord):
            raise wrong("ContainerReport.record", self.record, "a ContainerRecord")
        if self.exit is not None and is_other(self.exit, (Exited, ExitUnknown)):
            expected = "Exited(code=...), ExitUnknown() where nobody can say, or None"
            raise wrong("ContainerReport.exit", self.exit, expected)
        if (self.exit is not None) != (self.record.state is RunState.EXITED):
            raise ConfigurationError(
                f"container {self.record.id} is {self.record.state.value} and its exit is {self.exit}; "
                "one that has exited has an exit, ExitUnknown() where nobody can say, and no other has one"
            )


@attrs.frozen(kw_only=True)
class PodReport:
    """All that the runtime says of one pod at one moment.

    Attributes:
        uid: The pod's.
        sandboxes: Its sandboxes, the newest first.
        containers: Its containers, the newest first.
        ips: Its addresses, the first is the pod's; none where no sandbox has any.

    Raises:
        ConfigurationError: A field is of another kind; `of` takes any iterable.
    """

    uid: str = attrs.field(validator=checked(str, "the pod's uid"))
    sandboxes: tuple[SandboxReport, ...] = attrs.field(
        default=(), validator=several(SandboxReport, "SandboxReport")
    )
    containers: tuple[ContainerReport, ...] = attrs.field(
        default=(), validator=several(ContainerReport, "ContainerReport")
    )
    ips: tuple[str, ...] = attrs.field(default=(), validator=_ADDRESSES)

    @classmethod
    @typed_on_error
    def of(
        cls, uid: str, sandboxes: Iterable[SandboxReport], containers: Iterable[ContainerReport], /
    ) -> PodReport:
        """Put in order, with the addresses of the newest sandbox that is ready."""
        boxes = sorted(sandboxes, key=lambda one: (one.record.attempt, one.record.id), reverse=True)
        runs = sorted(containers, key=lambda one: one.record.newest_last, reverse=True)
        ips = next((one.ips for one in boxes if one.record.is_ready), None)
        return cls(uid=uid, sandboxes=tuple(boxes), containers=tuple(runs), ips=ips or ())

    @property
    def sandbox(self) -> SandboxReport | None:
        """The newest sandbox."""
        return self.sandboxes[0] if self.sandboxes else None

    def why_no_sandbox(self, *, host_network: bool) -> str:
        """Why no container can be made in the newest sandbox, in words; "" where one can.

        Args:
            host_network: Whether the pod is to have the node's network.

        Source: kubelet ``kuberuntime/util/util.go``.
        """
        newest = self.sandbox
        if newest is None:
            return "it has none yet"
        record = newest.record
        if len(self.sandboxes) > 1 and sum([one.record.is_ready for one in self.sandboxes]) > 1:
            return "several sandboxes of it are ready"
        if not record.is_ready:
            return f"sandbox {record.id} is not ready"
        if newest.uses_host_network is not host_network:
            has = "the node's network" if newest.uses_host_network else "a network of its own"
            return f"sandbox {record.id} has {has}, which the pod does not want"
        if not host_network and newest.ips is not None and not newest.ips:
            return f"sandbox {record.id} has no address"
        return ""

    def newest(self, name: str, /) -> ContainerReport | None:
        """The newest instance of a container; by attempt, then creation, then id."""
        mine = [one for one in self.containers if one.record.name == name]
        return max(mine, key=lambda one: one.record.newest_last, default=None)


def inspected(uid: str, answer: PodReport, /) -> PodReport:
    """What an inspection answered: a report, of the pod that was asked about.

    Raises:
        ConfigurationError: It is none, or another pod's.
    """
    report = check("inspect", answer, PodReport, "a PodReport; PodReport.of makes one")
    if report.uid != uid:
        raise ConfigurationError(f"inspect of pod {uid}: the report is of pod {report.uid}; report by uid")
    return report
