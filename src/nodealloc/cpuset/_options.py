"""Options of the static policy, by their kubelet names."""

from __future__ import annotations

from collections.abc import Mapping

from nodealloc import _attrs as attrs
from nodealloc._reading import go_bool
from nodealloc._typed import typed, typed_fields
from nodealloc.errors import ConfigurationError, DecodeError, Fault

__all__ = ["StaticOptions"]

_CONTRADICTIONS = (
    ("full_pcpus_only", "distribute_cpus_across_cores"),
    ("distribute_cpus_across_numa", "distribute_cpus_across_cores"),
    ("prefer_align_cpus_by_uncorecache", "distribute_cpus_across_cores"),
    ("prefer_align_cpus_by_uncorecache", "distribute_cpus_across_numa"),
)


def _kubelet_name(field: str) -> str:
    return field.replace("_", "-")


@typed_fields
@attrs.frozen(kw_only=True)
class StaticOptions:
    """How the static policy chooses; all off is the kubelet's default.

    Two options that contradict each other are a `ConfigurationError`.

    Attributes:
        full_pcpus_only: Grant whole cores, or refuse (`SMTAlignmentError`).
        distribute_cpus_across_numa: Where one NUMA node cannot serve, take the
            same number from each of as few as can.
        distribute_cpus_across_cores: Take CPUs of different cores first.
        align_by_socket: Treat the NUMA nodes of one socket as one.
        strict_cpu_reservation: Keep reserved CPUs out of the shared pool as well.
        prefer_align_cpus_by_uncorecache: Fill, or fit into, last-level caches.

    Source: kubelet ``cm/cpumanager/policy_options.go``.
    """

    full_pcpus_only: bool = False
    distribute_cpus_across_numa: bool = False
    distribute_cpus_across_cores: bool = False
    align_by_socket: bool = False
    strict_cpu_reservation: bool = False
    prefer_align_cpus_by_uncorecache: bool = False

    def __attrs_post_init__(self) -> None:
        on = self._on()
        for one, other in _CONTRADICTIONS:
            if one in on and other in on:
                raise ConfigurationError(
                    f"options {_kubelet_name(one)} and {_kubelet_name(other)} contradict each other; "
                    "switch one off"
                )

    @classmethod
    @typed
    def from_kubelet(cls, options: Mapping[str, str], /) -> StaticOptions:
        """Read `cpuManagerPolicyOptions` of a kubelet configuration.

        Raises:
            DecodeError: Unknown names and values that are no bool; all of them.
            ConfigurationError: Options that contradict each other.
        """
        fields = {_kubelet_name(field): field for field in attrs.fields_dict(cls)}
        chosen: dict[str, bool] = {}
        faults: list[Fault] = []
        for name, value in options.items():
            if name not in fields:
                known = ", ".join(fields)
                faults.append(Fault(f"$.{name}", f"unknown option; known are {known}"))
            elif (flag := go_bool(value)) is None:
                faults.append(Fault(f"$.{name}", f"expected true or false, found {value!r}"))
            else:
                chosen[fields[name]] = flag
        if faults:
            raise DecodeError("CPU policy options", faults)
        return cls(**chosen)

    def to_kubelet(self) -> dict[str, str]:
        """The options that are on, as a kubelet configuration has them."""
        return {_kubelet_name(field): "true" for field in sorted(self._on())}

    def _on(self) -> frozenset[str]:
        return frozenset(field for field in attrs.fields_dict(type(self)) if getattr(self, field) is True)
