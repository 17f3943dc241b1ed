"""Values that a kubelet has and nothing here follows, which may be left out with a word; pure."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Final, cast

from nodealloc import _attrs as attrs
from nodealloc._wire import camel, wire_of
from nodealloc.errors import Fault
from nodealloc.kubeconfig._configuration import UNFOLLOWED, KubeletConfig, unfollowed_features

__all__ = ["without_unfollowed"]

_GATES: Final = "featureGates"


def without_unfollowed(fields: Mapping[str, object], unread: Callable[[Fault], None], /) -> dict[str, object]:
    """The fields of a document without such values, each of which is told of.

    What is no value of a kubelet's stays, and is a fault where it is read.
    """
    kept = dict(fields)
    for name, value in fields.items():
        values = _whole().get(name, ())
        if values and type(value) is type(values[0]) and value in values:  # 1 is no truth
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


@functools.cache
def _whole() -> Mapping[str, tuple[object, ...]]:
    """Fields of a document to values that nothing here follows."""
    fields = [one for one in attrs.fields(KubeletConfig) if UNFOLLOWED in one.metadata]
    return {wire_of(one.metadata).key or camel(one.name): one.metadata[UNFOLLOWED] for one in fields}
