"""A kubelet's state files as records, so that a node can be taken over as it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from nodealloc import _attrs as attrs
from nodealloc.checkpoint import CPU_STATE, KUBELET_FORMATS, Checkpoint, Contents, CpuManagerState, row_key
from nodealloc.errors import ConfigurationError, DecodeError
from nodealloc.idset import CPUSet
from nodealloc.node._ports import KubeletFile
from nodealloc.node._record import ROW, WorkloadRecord
from nodealloc.podspec import Json
from nodealloc.topology import Allocator, Recalled, TopologyHint, Workload

__all__ = ["Kubelet", "read_kubelet"]

_ANY = TopologyHint(affinity=None, preferred=False)


@attrs.frozen(kw_only=True)
class Kubelet:
    """What the state files of a kubelet say.

    Attributes:
        said: Name of an allocator to what its file says of each workload.
        unreadable: Key of a file that is sound and makes no sense, or none
            without the runtime's help, to the reason.
        unread: Keys of files that no allocator of the node reads.
        doubts: What a file says and cannot be, though it is read, in words.
    """

    said: Mapping[str, Mapping[str, Recalled]]
    unreadable: Mapping[str, str]
    unread: tuple[str, ...]
    doubts: tuple[str, ...] = ()

    def records(self) -> dict[str, WorkloadRecord]:
        """What a kubelet had granted when it was stopped, by pod uid; claims are not in its files."""
        grants: dict[str, dict[str, Json]] = {}
        members: dict[str, dict[str, TopologyHint]] = {}
        for name, workloads in self.said.items():
            for workload, recalled in workloads.items():
                grants.setdefault(workload, {})[name] = recalled.grants
                members.setdefault(workload, {}).update(dict.fromkeys(recalled.members, _ANY))
        return {
            key: WorkloadRecord(
                workload=Workload(key=key, claims=()), order=order, affinity=members[key], grants=grants[key]
            )
            for order, key in enumerate(sorted(grants), 1)
        }


def read_kubelet(contents: Contents, allocators: Iterable[Allocator], /) -> Kubelet:
    """Have each allocator read the file that it keeps for a kubelet; of two with one file the first."""
    said: dict[str, Mapping[str, Recalled]] = {}
    unreadable: dict[str, str] = {}
    readers: dict[str, KubeletFile] = {}
    names: dict[str, str] = {}
    for one in allocators:
        if isinstance(one, KubeletFile) and one.kubelet_key() in contents.values:
            # Two that read one file would hold everything in it twice.
            readers.setdefault(one.kubelet_key(), one)
            names.setdefault(one.kubelet_key(), one.name)
    for key, reader in readers.items():
        try:
            found = reader.from_kubelet(contents.values[key])
            for workload in found:
                row_key(ROW, workload)
            said[names[key]] = found
        except DecodeError as error:
            unreadable[key] = str(error)
        except ConfigurationError as error:
            # Taken over, it would have every commit refused from then on.
            unreadable[key] = f"a pod in it has a uid that nothing can be kept under: {error}"
    unread = tuple(key for key in contents.values if key in KUBELET_FORMATS and key not in readers)
    doubts = tuple(line for key in readers if key not in unreadable for line in _doubts(contents.values[key]))
    return Kubelet(said=said, unreadable=unreadable, unread=unread, doubts=doubts)


def _doubts(file: Checkpoint) -> Iterator[str]:
    """CPUs of somebody that are everybody's as well; the pool is worked out anew, without them.

    Source: kubelet v1.32 ``cm/cpumanager/policy_static.go`` (``validateState``), which does not start.
    """
    if not isinstance(file, CpuManagerState):
        return
    held = {f"{pod}/{name}": cpus for pod, one in file.entries.items() for name, cpus in one.items()}
    shared = _parsed(file.default_cpuset)
    for owner, cpus in {**held, **file.pod_entries}.items():
        both = shared & _parsed(cpus)
        if both:
            yield (
                f"{CPU_STATE}: CPUs {both} of {owner} stand in defaultCpuSet, too, on which a kubelet does "
                "not start: they are its own and not in the shared pool"
            )


def _parsed(text: str) -> CPUSet:
    try:
        return CPUSet.parse(text)
    except DecodeError:
        return CPUSet()  # whoever read the file knows better than to believe this list
