"""A `CpusetWriter` over CRI: the runtime itself confines its containers, and knows about it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Protocol

from nodealloc._not_now import NOT_NOW
from nodealloc._typed import typed
from nodealloc.cpuset import CpusetBusyError, CpusetWriteError, TargetGoneError
from nodealloc.cri._codec import Confined
from nodealloc.errors import DecodeError
from nodealloc.idset import CPUSet, NodeSet
from nodealloc.runtime import LinuxResources, NoSuchRecordError, RuntimeRefusedError

__all__ = ["CriCpusetWriter"]


class _Runtime(Protocol):
    def confined(self, container_id: str, /) -> Confined: ...

    def update_container(self, container_id: str, resources: LinuxResources, /) -> None: ...


class CriCpusetWriter:
    """Confines containers through `UpdateContainerResources`; targets are the runtime's ids.

    What is written this way the runtime keeps in its own notes, so that it does
    not undo it. What is read is what it wrote down; for a container that was
    never confined, what its first process may run on.

    Args:
        runtime: A `CriRuntime`.
        proc: Where the kernel shows processes.
    """

    @typed
    def __init__(self, runtime: _Runtime, /, *, proc: str | Path = "/proc") -> None:
        self._runtime = runtime
        self._proc = Path(proc)

    def read(self, target: str, /) -> tuple[CPUSet, NodeSet | None]:
        """See `CpusetWriter.read`."""
        try:
            known = self._runtime.confined(target)
        except NoSuchRecordError as error:
            raise TargetGoneError(target) from error
        except (RuntimeRefusedError, DecodeError) as error:
            raise CpusetWriteError(target, "", str(error)) from error
        if known.cpus is not None:
            return known.cpus, known.mems
        file = self._proc / str(known.pid) / "status"
        try:
            status = file.read_text(encoding="ascii", errors="replace")
        except OSError as error:
            if error.errno in NOT_NOW:
                why = f"{file}: {error.strerror}; it may run: try again"
                raise CpusetBusyError(target, why) from error
            raise TargetGoneError(target) from error
        found = dict(re.findall(r"^(Cpus|Mems)_allowed_list:\s*(\S+)$", status, re.MULTILINE))
        return CPUSet.parse(found.get("Cpus", "")), known.mems

    def write(self, target: str, cpus: CPUSet, mems: NodeSet | None, /) -> None:
        """See `CpusetWriter.write`."""
        if not cpus:
            raise CpusetWriteError(target, "", "an empty set of CPUs; a runtime would take it for no change")
        try:
            self._runtime.update_container(target, LinuxResources(cpus=cpus, mems=mems))
        except NoSuchRecordError as error:
            raise TargetGoneError(target) from error
        except RuntimeRefusedError as error:
            raise CpusetWriteError(target, str(cpus), error.reason) from error
