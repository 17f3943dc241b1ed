"""One chain of handlers: a pod comes in when each of them lets it in."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType
from typing import Final, Protocol, TypeAlias, cast

from nodealloc import _attrs as attrs
from nodealloc._arguments import check, wrong
from nodealloc._typed import typed, typed_fields
from nodealloc.admission._fit import node_fit
from nodealloc.admission._host_ports import host_ports
from nodealloc.admission._node_state import pressure, shutdown
from nodealloc.admission._placement import node_affinity, node_name, operating_system, taints
from nodealloc.admission._preemption import victims
from nodealloc.admission._rules import Rules
from nodealloc.admission._sysctls import SysctlAllowList
from nodealloc.admission._verdicts import ADMITTED, MakingRoom, RoomMade
from nodealloc.errors import NodeallocError, RetryableError, UncertainError
from nodealloc.podfacts import NodeView
from nodealloc.podspec import Pod, is_critical
from nodealloc.topology import Snapshot, admit, release, workload_of
from nodealloc.verdicts import Admitted, NotYet, Refused, Verdict

__all__ = ["Chain", "Handler", "allocation", "chain_of"]

Handler: TypeAlias = Callable[[Pod, NodeView], Verdict]
"""Judges a pod before a view of a node: a pure function, or a value that is called like one."""


@attrs.frozen
class _Allocation:
    """What `allocation` makes; a class, so that a chain can tell whether it has one."""

    snapshot: Snapshot

    def __call__(self, pod: Pod, view: NodeView, /) -> Verdict:
        verdict = admit(self.snapshot, workload_of(pod))
        return (
            verdict
            if isinstance(verdict, Admitted | NotYet)
            else self._when_they_have_ended(pod, view, verdict)
        )

    def _when_they_have_ended(self, pod: Pod, view: NodeView, refused: Refused) -> Refused | NotYet:
        """The refusal, unless it is only pods that are ending who hold what is lacking."""
        admitted = self.snapshot.admitted
        ending = [one for uid, one in view.pods.items() if one.state.is_ending and uid in admitted]
        if not ending:
            return refused
        later = functools.reduce(release, (one.pod.uid for one in ending), self.snapshot)
        if not isinstance(admit(later, workload_of(pod)), Admitted):
            return refused
        who = ending[0].pod.full_name
        more = f" and {len(ending) - 1} more" if len(ending) > 1 else ""
        return NotYet(blocker=who, message=f"{who}{more} still holds what it needs, and is ending")


@typed
def allocation(snapshot: Snapshot, /) -> Handler:
    """A handler: whether CPUs, memory and devices can be given out as the topology policy wants.

    Answers with `topology.Placed`, which has the snapshot to commit. What only a
    pod that is ending holds is *not yet*: it names that pod.
    """
    return _Allocation(snapshot)


@typed_fields
@attrs.frozen
class Chain:
    """Handlers one after the other; the first who does not admit has the last word.

    It is a handler itself. What the last handler with something to say admitted
    with is the answer (`topology.Placed`, `RoomMade`). A handler that fails is
    answered for: retryable errors are *not yet*, others refuse.

    Attributes:
        before: Asked first: whether the node takes anybody in, and what the pod is.
        fit: Whether there is enough; a critical pod that has all else may have room made.
        after_fit: What is also looked at when room is to be made: affinity, name, ports, taints.
        after: Asked last, with the pod as good as in; an `allocation` before `fit` where rules say so.
        rules: What is right, or as recorded.
    """

    before: tuple[Handler, ...]
    fit: Handler
    after_fit: tuple[Handler, ...]
    after: tuple[Handler, ...]
    rules: Rules
    _early: tuple[Handler, ...] = attrs.field(init=False, eq=False, repr=False)
    _late: tuple[Handler, ...] = attrs.field(init=False, eq=False, repr=False)
    _order: tuple[Handler, ...] = attrs.field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        last = self.rules.allocates_last
        first = [] if last else [one for one in self.after if isinstance(one, _Allocation)]
        early = (*map(_bare, self.before), *first)
        late = self.after if last else tuple([one for one in self.after if one not in first])
        object.__setattr__(self, "_early", early)
        object.__setattr__(self, "_late", late)
        object.__setattr__(self, "_order", (*early, *map(_bare, (self.fit, *self.after_fit)), *late))

    def __call__(self, pod: Pod, view: NodeView | None, /) -> Verdict:
        """Whether a pod may come in. None is a node of which nothing is known yet."""
        if view is None:
            if self.rules.waits_for_node:
                return NotYet(blocker="node", message="nothing is known of the node yet")
            return Refused(reason="InvalidNodeInfo", message="Kubelet cannot get node info.")
        if type(pod) is not Pod or type(view) is not NodeView:
            check("Chain, pod", pod, Pod, "a Pod; Pod.from_manifest makes one")
            check("Chain, view", view, NodeView, "a NodeView of the node, or None")
        verdict = _ask(self._order, pod, view)
        if not isinstance(verdict, Refused) or not is_critical(pod):
            return verdict
        early = _ask(self._early, pod, view)
        if not isinstance(early, Admitted) or not isinstance(_ask((self.fit,), pod, view), Refused):
            return verdict
        # It is too little that stands in its way, and others can be had to make room if nothing else does.
        others = _ask(self.after_fit, pod, view)
        return self._made_room(pod, view) if isinstance(others, Admitted) else others

    def _made_room(self, pod: Pod, view: NodeView) -> Verdict:
        found = victims(pod, view, rules=self.rules)
        if isinstance(found, Refused):
            return found
        uids = tuple(one.pod.uid for one in found)
        if self.rules.waits_for_victims:
            names = ", ".join(one.pod.full_name for one in found)
            return MakingRoom(
                blocker="preemption", message=f"room is made when these have ended: {names}", victims=uids
            )
        after = _ask(self._late, pod, view)
        return RoomMade(victims=uids) if isinstance(after, Admitted) else after

    @property
    def allocates(self) -> bool:
        """Whether it has a snapshot of its own to give out from."""
        return any(isinstance(one, _Allocation) for one in self.after)

    def before_allocation(self) -> Chain:
        """The chain with an allocation asked behind it, which counts devices and refuses what nobody has.

        Of extended resources that a view leaves out, fit says nothing then.
        """
        rules = _before_allocation(self.rules)
        fit = self.fit if self.fit != _fit_by(self.rules) else _fit_by(rules)
        return attrs.evolve(self, fit=fit, rules=rules)

    def without(self, *handlers: object) -> Chain:
        """The chain without some of its handlers, those that ship by their names, such as `taints`.

        Raises:
            ConfigurationError: It has no such handler, or it is the one for resources (`fit`).
        """
        here = (*self.before, *self.after_fit, *self.after)
        for one in handlers:
            if not any(one in {each, _unbound(each)} for each in here):
                names = ", ".join(getattr(_unbound(each), "__name__", type(each).__name__) for each in here)
                raise wrong("Chain.without", one, f"a handler of this chain, which has {names}")

        def left(some: tuple[Handler, ...]) -> tuple[Handler, ...]:
            return tuple(one for one in some if one not in handlers and _unbound(one) not in handlers)

        return attrs.evolve(
            self, before=left(self.before), after_fit=left(self.after_fit), after=left(self.after)
        )


def _unbound(handler: Handler) -> object:
    """The function that was bound to the rules of the chain, if it is one; else the handler."""
    return handler.func if isinstance(handler, functools.partial) else handler


@typed
def chain_of(
    *handlers: Handler,
    rules: Rules | None = None,
    snapshot: Snapshot | None = None,
) -> Chain:
    """The chain of a node, in the order in which a kubelet asks.

    Args:
        handlers: More handlers, asked behind the ones that ship: `AppArmor`, your own. A `SysctlAllowList`
            is asked before room is looked for, or made.
        rules: What is right where nothing is given; `KUBELET` for what a kubelet does.
        snapshot: Whose CPUs, memory and devices are given out, asked last; None to leave that
            out. What of extended resources a view does not name, its allocators count.

    Raises:
        ConfigurationError: Among the handlers is a class, or something that cannot be called.
    """
    for one in handlers:
        if isinstance(one, type):
            raise wrong("chain_of, handlers", one, f"a handler, such as {one.__name__}(…)")
    chosen = rules or _RIGHT
    if snapshot is not None:
        chosen = _before_allocation(chosen)
    sysctls = tuple([one for one in handlers if isinstance(one, SysctlAllowList)])
    others = tuple([one for one in handlers if one not in sysctls])
    return Chain(
        before=(shutdown, pressure, *sysctls, functools.partial(operating_system, rules=chosen)),
        fit=_fit_by(chosen),
        after_fit=(
            functools.partial(node_affinity, rules=chosen),
            node_name,
            functools.partial(host_ports, rules=chosen),
            taints,
        ),
        after=(*others, *([allocation(snapshot)] if snapshot is not None else [])),
        rules=chosen,
    )


class _Ruled(Protocol):
    def __call__(self, pod: Pod, view: NodeView, /, *, rules: Rules) -> Verdict: ...


@attrs.frozen
class _Fit:
    """`node_fit` by some rules; a class, so that a chain can tell whether it has the one that ships."""

    rules: Rules

    def __call__(self, pod: Pod, view: NodeView, /) -> Verdict:
        return _BARE_FIT(pod, view, rules=self.rules)


@functools.cache
def _fit_by(rules: Rules) -> Handler:
    return _Fit(rules)


_RIGHT: Final = Rules()
_ANSWERS: Final = "a verdict: Admitted(), Refused(…) or NotYet(…)"

_BARE_FIT: Final[_Ruled] = inspect.unwrap(node_fit)
_BARE: Final[Mapping[object, object]] = {
    one: inspect.unwrap(one)
    for one in (shutdown, pressure, operating_system, node_affinity, node_name, host_ports, taints)
}
"""The handlers that ship, without a look at their arguments: a chain looks once for all of them."""


def _bare(handler: Handler) -> Handler:
    if isinstance(handler, FunctionType):
        return cast("Handler", _BARE.get(handler, handler))
    if isinstance(handler, _Fit):
        return _by(_BARE_FIT, handler.rules)
    if isinstance(handler, functools.partial) and not handler.args and {*handler.keywords} == {"rules"}:
        judge = _BARE.get(cast("object", handler.func))
        if judge is not None:
            return _by(cast("_Ruled", judge), cast("Rules", handler.keywords["rules"]))
    return cast("Handler", handler)


def _by(judge: _Ruled, rules: Rules) -> Handler:
    """A handler that goes by some rules; a call of it is quicker than one of a partial."""

    def judged(pod: Pod, view: NodeView, /) -> Verdict:
        return judge(pod, view, rules=rules)

    judged.__name__ = str(getattr(judge, "__name__", ""))  # an error says whose it is
    return judged


@functools.cache
def _before_allocation(rules: Rules) -> Rules:
    return attrs.evolve(rules, needs_every_resource=False)


def _ask(handlers: Iterable[Handler], pod: Pod, view: NodeView) -> Verdict:
    told: Admitted = ADMITTED
    for handler in handlers:
        try:
            verdict = handler(pod, view)
        except (RetryableError, UncertainError) as error:
            return NotYet(blocker=_name(handler), message=str(error), after_s=error.after_s or 1.0)
        except NodeallocError as error:
            return Refused(
                reason="UnexpectedAdmissionError",
                message=f"Update plugin resources failed due to {error}, which is unexpected.",
                figures={"handler": _name(handler)},
            )
        if verdict is ADMITTED:
            continue
        if not isinstance(verdict, Admitted):
            return check(f"handler {_name(handler)}", verdict, (Refused, NotYet), _ANSWERS)
        if type(verdict) is not Admitted:
            told = verdict
    return told


def _name(handler: Handler) -> str:
    inner = handler.func if isinstance(handler, functools.partial) else handler
    return str(getattr(inner, "__name__", type(inner).__name__))
