"""The CPU manager's state file, `cpu_manager_state`, in the four layouts that kubelets write."""

from __future__ import annotations

import enum
from collections.abc import Mapping

from nodealloc import _attrs as attrs
from nodealloc._frozen import freeze
from nodealloc._reading import short
from nodealloc._typed import typed_fields
from nodealloc.checkpoint._errors import CorruptCheckpointError
from nodealloc.checkpoint._fnv import fnv1a32
from nodealloc.checkpoint._framing import Framed, check, frame, print_entries, read_entries, unframe
from nodealloc.checkpoint._json import Json, Shape, go_json, read_json
from nodealloc.errors import ConfigurationError, DecodeError
from nodealloc.idset import bits, format_list, parse_list

__all__ = ["CPU_STATE", "CpuLayout", "CpuManagerState", "CpuManagerStateV1", "read_cpu_manager_state"]

CPU_STATE = "cpu_manager_state"
"""Name of the file, and its key in a store."""

_Entries = Mapping[str, Mapping[str, str]]


def _elements(cpus: str) -> str:
    return " ".join([f"{number}:{{}}" for number in bits(parse_list(cpus))])


def _normal(pods: Mapping[str, str]) -> Mapping[str, str]:
    """The same CPUs as the kubelet writes them; it hashes the set, not the text."""
    return {pod: format_list(parse_list(cpus, source=f"CPUs of pod {pod}")) for pod, cpus in pods.items()}


class CpuLayout(enum.Enum):
    """How the file is laid out; a file is written back as it was read."""

    V2 = 2
    """Kubelet 1.18 to 1.34: containers by pod."""
    V3 = 3
    """Beside them `podEntries`, for CPUs that belong to a whole pod."""
    V4 = 4
    """The same once more as text in `data`, whose checksum alone counts."""


@typed_fields
@attrs.frozen(kw_only=True)
class CpuManagerState:
    """What the CPU manager remembers. CPU sets are Linux lists (`0-3,8`), not parsed here.

    Attributes:
        policy_name: `none` or `static`.
        default_cpuset: The shared pool.
        entries: Pod uid to container name to the container's exclusive CPUs.
        pod_entries: Pod uid to the CPUs of the pod as a whole, in normal form; needs
            `CpuLayout.V3` or later.
        layout: Which layout `marshal` writes.
        checksum: As it was read; None for a state made here, 0 for "not checked".

    Source: kubelet v1.32 ``cm/cpumanager/state/checkpoint.go``; V3 and V4 as on
    its main branch in 2026.
    """

    policy_name: str
    default_cpuset: str
    entries: _Entries = attrs.field(factory=dict[str, Mapping[str, str]], validator=freeze)
    pod_entries: Mapping[str, str] = attrs.field(factory=dict[str, str], converter=_normal, validator=freeze)
    layout: CpuLayout = CpuLayout.V2
    checksum: int | None = attrs.field(default=None, eq=False)
    _data: str | None = attrs.field(default=None, eq=False, repr=False, alias="data")

    def __attrs_post_init__(self) -> None:
        """Refuse pod entries that the layout could not carry."""
        if self.pod_entries and self.layout is CpuLayout.V2:
            raise ConfigurationError("pod_entries do not fit into CpuLayout.V2: choose V3 or V4")

    def marshal(self) -> bytes:
        """The file as the kubelet writes it."""
        body = self._body()
        if self.layout is CpuLayout.V4:
            return frame(body, body)
        return go_json({**body, "checksum": fnv1a32(self._printed("CPUManagerCheckpoint"))}).encode()

    @classmethod
    def unmarshal(cls, data: bytes, /) -> CpuManagerState:
        """Read a file of any layout but the first (see `read_cpu_manager_state`)."""
        shape = Shape(CPU_STATE)
        framed = unframe(shape, CPU_STATE, data, ("policyName", "defaultCpuSet"))
        layout = CpuLayout.V3 if "podEntries" in framed.body else CpuLayout.V2
        return cls._from_body(shape, framed, CpuLayout.V4 if framed.data is not None else layout)

    def verify(self) -> None:
        """Raise `CorruptCheckpointError` when content and checksum disagree; 0 is accepted.

        Source: kubelet v1.32, which takes 0 for a file of before checksums.
        """
        if self.checksum is None or (self.checksum == 0 and self._data is None):
            return
        prints = (self._printed(name) for name in _TYPE_NAMES[self.layout])
        check(CPU_STATE, self.checksum, self._data, prints)

    @classmethod
    def _from_body(cls, shape: Shape, framed: Framed, layout: CpuLayout) -> CpuManagerState:
        body = framed.body
        entries = read_entries(shape, body, shape.text)
        pods: dict[str, str] = {}
        for pod, entry in shape.mapping(body.get("podEntries", {}), "$.podEntries").items():
            path = f"$.podEntries[{short(pod)}]"
            pods[pod] = shape.text(shape.fields(entry, path, ("cpuSet",)).get("cpuSet"), path)
            try:
                parse_list(pods[pod])
            except DecodeError as error:
                shape.fault(path, str(error.faults[0]))
        policy = shape.text(body.get("policyName"), "$.policyName")
        shared = shape.text(body.get("defaultCpuSet"), "$.defaultCpuSet")
        number = shape.number(framed.checksum, "$.checksum", bits=64)
        shape.check()
        return cls(
            policy_name=policy,
            default_cpuset=shared,
            entries=entries,
            pod_entries=pods,
            layout=layout,
            checksum=number,
            data=framed.data,
        )

    def _body(self) -> dict[str, Json]:
        body: dict[str, Json] = {"policyName": self.policy_name, "defaultCpuSet": self.default_cpuset}
        if self.entries:
            body["entries"] = {pod: dict(sorted(held.items())) for pod, held in sorted(self.entries.items())}
        if self.pod_entries:
            body["podEntries"] = {pod: {"cpuSet": cpus} for pod, cpus in sorted(self.pod_entries.items())}
        return body

    def _printed(self, name: str) -> bytes:
        whole_pods = ""
        if self.layout is not CpuLayout.V2:
            listed = " ".join(
                f"{pod}:{{CPUSet:(cpuset.CPUSet){{elems:(map[int]struct {{}})map[{_elements(cpus)}]}}}}"
                for pod, cpus in sorted(self.pod_entries.items())
            )
            whole_pods = f" PodEntries:(state.PodCPUAssignments)map[{listed}]"
        return (
            f"(*state.{name}){{PolicyName:(string){self.policy_name} "
            f"DefaultCPUSet:(string){self.default_cpuset} "
            f"Entries:(map[string]map[string]string){print_entries(self.entries, str)}{whole_pods} "
            "Checksum:(checksum.Checksum)0}"
        ).encode()


_TYPE_NAMES = {
    CpuLayout.V2: ("CPUManagerCheckpoint", "CPUManagerCheckpointV2"),
    CpuLayout.V3: ("CPUManagerCheckpoint", "CPUManagerCheckpointV3"),
    CpuLayout.V4: ("CPUManagerCheckpoint",),
}
"""Names that the hashed text may carry: kubelets hashed the name of their own type, and renamed it."""


@typed_fields
@attrs.frozen(kw_only=True)
class CpuManagerStateV1:
    """What the CPU manager of kubelets before 1.18 remembers: CPUs by container id.

    Attributes:
        policy_name: `none` or `static`.
        default_cpuset: The shared pool, a Linux list.
        entries: Container id to exclusive CPUs.
        checksum: As it was read; None for a state made here.

    Source: kubelet v1.32 ``cm/cpumanager/state/checkpoint.go``.
    """

    policy_name: str
    default_cpuset: str
    entries: Mapping[str, str] = attrs.field(factory=dict[str, str], validator=freeze)
    checksum: int | None = attrs.field(default=None, eq=False)

    def migrate(
        self, containers: Mapping[str, tuple[str, str]], /
    ) -> tuple[CpuManagerState, Mapping[str, str]]:
        """The same in today's layout, and what could not be moved.

        Args:
            containers: Container id to (pod uid, container name), as the runtime tells.

        Returns:
            The new state, and the entries whose container the runtime does not
            know: their CPUs are in no pool, so put them back into one, or refuse.

        Source: kubelet v1.32, which refuses to start when one is unknown.
        """
        entries: dict[str, dict[str, str]] = {}
        unknown: dict[str, str] = {}
        for container, cpus in self.entries.items():
            if container in containers:
                pod, name = containers[container]
                entries.setdefault(pod, {})[name] = cpus
            else:
                unknown[container] = cpus
        moved = CpuManagerState(
            policy_name=self.policy_name, default_cpuset=self.default_cpuset, entries=entries
        )
        return moved, unknown

    def marshal(self) -> bytes:
        """The file as an old kubelet wrote it."""
        body: dict[str, Json] = {"policyName": self.policy_name, "defaultCpuSet": self.default_cpuset}
        if self.entries:
            body["entries"] = dict(sorted(self.entries.items()))
        return go_json({**body, "checksum": fnv1a32(self._printed())}).encode()

    @classmethod
    def unmarshal(cls, data: bytes, /) -> CpuManagerStateV1:
        """Read a file of the first layout."""
        shape = Shape(CPU_STATE)
        required = ("policyName", "defaultCpuSet", "checksum")
        found = shape.fields(read_json(CPU_STATE, data), "$", required, ("entries",))
        entries = {
            container: shape.text(cpus, f"$.entries[{short(container)}]")
            for container, cpus in shape.mapping(found.get("entries", {}), "$.entries").items()
        }
        policy = shape.text(found.get("policyName"), "$.policyName")
        shared = shape.text(found.get("defaultCpuSet"), "$.defaultCpuSet")
        number = shape.number(found.get("checksum"), "$.checksum", bits=64)
        shape.check()
        return cls(policy_name=policy, default_cpuset=shared, entries=entries, checksum=number)

    def verify(self) -> None:
        """Raise `CorruptCheckpointError` when content and checksum disagree; 0 is accepted."""
        if self.checksum:
            check(CPU_STATE, self.checksum, None, [self._printed()])

    def _printed(self) -> bytes:
        listed = " ".join(f"{container}:{cpus}" for container, cpus in sorted(self.entries.items()))
        return (
            f"(*state.CPUManagerCheckpoint){{PolicyName:(string){self.policy_name} "
            f"DefaultCPUSet:(string){self.default_cpuset} "
            f"Entries:(map[string]string)map[{listed}] Checksum:(checksum.Checksum)0}}"
        ).encode()


def read_cpu_manager_state(data: bytes, /) -> CpuManagerState | CpuManagerStateV1:
    """Read a `cpu_manager_state` file of any version.

    The two oldest layouts look alike while nothing is assigned; the checksum
    tells them apart, and a state without assignments is the same in both.

    Raises:
        DecodeError: It is of no version.
    """
    try:
        state = CpuManagerState.unmarshal(data)
    except DecodeError as newer:
        try:
            return CpuManagerStateV1.unmarshal(data)
        except DecodeError:
            raise newer from None
    if state.layout is CpuLayout.V2 and not state.entries:
        old = CpuManagerStateV1.unmarshal(data)
        try:
            state.verify()
        except CorruptCheckpointError:
            try:
                old.verify()
            except CorruptCheckpointError:
                return state
            return old.migrate({})[0]
    return state
