"""A `CpusetWriter` over processes: where containers run, by the runtime's ids."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from nodealloc.cpuset import CpusetWriteError, TargetGoneError
from nodealloc.errors import NodeallocError
from nodealloc.idset import CPUSet, NodeSet
from nodealloc.runtime import LinuxResources, NoSuchRecordError

if TYPE_CHECKING:
    from examples.processes._runtime import ProcessRuntime

__all__ = ["ProcessCpusets"]


class ProcessCpusets:
    """Confines containers by their cgroups, or by the affinity of their processes where there are none.

    Args:
        runtime: Whose containers.
    """

    def __init__(self, runtime: ProcessRuntime, /) -> None:
        self._runtime = runtime

    def read(self, target: str, /) -> tuple[CPUSet, NodeSet | None]:
        """See `CpusetWriter.read`: what its first process may run on."""
        pid = self._runtime.pid_of(target)
        if pid and (told := self._runtime.confined(target)) is not None:
            return told, None
        try:
            status = Path(f"/proc/{pid}/status").read_text(errors="replace") if pid else ""
        except OSError:
            status = ""
        found = dict(re.findall(r"^(Cpus|Mems)_allowed_list:\s*(\S+)$", status, re.MULTILINE))
        if "Cpus" not in found:
            raise TargetGoneError(target)
        mems = NodeSet.parse(found["Mems"]) if self._runtime.confines and "Mems" in found else None
        return CPUSet.parse(found["Cpus"]), mems

    def write(self, target: str, cpus: CPUSet, mems: NodeSet | None, /) -> None:
        """See `CpusetWriter.write`."""
        if not cpus:
            raise CpusetWriteError(target, "", "an empty set of CPUs")
        try:
            self._runtime.update_container(target, LinuxResources(cpus=cpus, mems=mems))
        except NoSuchRecordError as error:
            raise TargetGoneError(target) from error
        except NodeallocError as error:
            raise CpusetWriteError(target, str(cpus), str(error)) from error
