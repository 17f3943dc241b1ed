"""Values that a kubelet has and nothing here follows, which may be left out with a word; pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, cast

from nodealloc.errors import Fault
from nodealloc.kubeconfig._configuration import unfollowed_features

__all__ = ["without_unfollowed"]

_GATES: Final = "featureGates"
_WHOLE: Final[Mapping[str, tuple[object, ...]]] = {
    "failSwapOn": (True,),
    "registerNode": (True,),
    "imageGCHighThresholdPercent": tuple(range(100)),
}
"""Field to values without which a node decides the same of pods: what the machine is asked for before the
start, who tells an API server, when images go. `cgroupsPerQOS: false` is none: pods would be confined."""


def without_unfollowed(fields: Mapping[str, object], unread: Callable[[Fault], None], /) -> dict[str, object]:
    """The fields of a document without such values, each of which is told of.

    What is no value of a kubelet's stays, and is a fault where it is read.
    """
    kept = dict(fields)
    for name, values in _WHOLE.items():
        value = kept.get(name)
        if type(value) is type(values[0]) and value in values:  # 1 is no truth
            unread(Fault(f"$.{name}", f"is {value}, which nothing here acts upon; leave it out"))
            del kept[name]
    given = kept.get(_GATES)
    gates: Mapping[str, object] = cast("Mapping[str, object]", given) if isinstance(given, Mapping) else {}
    if gates and all(type(is_on) is bool for is_on in gates.values()):
        left = unfollowed_features(cast("Mapping[str, bool]", gates))
        for name in left:
            unread(Fault(f"$.{_GATES}.{name}", "is true, which nothing here acts upon; leave it out"))
        kept[_GATES] = {name: is_on for name, is_on in gates.items() if name not in left}
    return kept
