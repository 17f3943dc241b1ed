"""Whatever is public refuses what cannot be meant, in the library's own words."""

from __future__ import annotations

import contextlib
import inspect
import math
import pkgutil
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, Literal, Protocol
from unittest.mock import patch

import attrs
import pytest

import nodealloc
from nodealloc._annotations import evaluated
from nodealloc._typed import typed, typed_fields, typed_on_error
from nodealloc.admission import KUBELET, Chain, SysctlAllowList, host_ports, node_fit, taints
from nodealloc.allocatable import Reservation
from nodealloc.cgroups import TreeOptions
from nodealloc.cpuset import KubeletPicker, StaticPolicy
from nodealloc.cri import CriDeadlines
from nodealloc.errors import ConfigurationError, NodeallocError
from nodealloc.podfacts import NodeView, PodStatus, Taint
from nodealloc.podlife import (
    ImageFacts,
    LifePolicy,
    NodeSettings,
    PodFolders,
    RestartBackOff,
    container_config,
    plan_pod,
)
from nodealloc.podsources import FolderSource, PodUpdate, Polling, merge_update
from nodealloc.podspec import Container, Pod, Quantity, RestartPolicy, effective_requests, qos_class
from nodealloc.podstatus import FolderSink, TellingOptions, merge_status, status_of
from nodealloc.probes import ContainerVerdicts, ProbeKind, ProbeOptions, Schedule, hear
from nodealloc.runtime import ImageGcPolicy, Pace, plan_image_gc
from nodealloc.topology import Claim, NumaTopology, Owner, Policy, TopologyHint, merge
from nodealloc.verdicts import Refused

POD = Pod(uid="u", name="web")
MANIFEST = {"metadata": {"name": "web"}}


class Odd:
    """What belongs nowhere."""


def wrong(value: object) -> Any:
    """A value of a type that does not belong there."""
    return value


class _Teller(Protocol):
    name: str

    def tell(self, words: str, /) -> None: ...


class _Told:
    name = "told"

    def tell(self, words: str, /) -> None: ...


@typed
def takes(
    pod: Pod,
    /,
    *names: str,
    count: int = 1,
    after_s: float = 0.0,
    is_quick: bool = False,
    words: Sequence[str] = (),
    by_name: Mapping[str, int] | None = None,
    policy: RestartPolicy = RestartPolicy.ALWAYS,
    teller: _Teller | None = None,
    call: Callable[[], None] | None = None,
    place: tuple[str, int] = ("a", 1),
    kind: Literal["one", "two"] = "one",
) -> tuple[str, ...]:
    """The names; nothing is done with the rest."""
    return names


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"count": True}, "count: expected a whole number, found True (bool)"),
        ({"count": 1.5}, "count: expected a whole number"),
        ({"count": None}, "count: expected a whole number, found None"),
        ({"after_s": math.nan}, "after_s: expected a number of seconds, 0 or more, found nan"),
        ({"after_s": "1"}, "after_s: expected a number of seconds, 0 or more, found '1'"),
        ({"after_s": 10**400}, "after_s: expected a number"),
        ({"after_s": -0.5}, "after_s: expected a number of seconds, 0 or more, found -0.5"),
        ({"is_quick": "false"}, "is_quick: expected True or False"),
        ({"words": "ab"}, "words: expected a list or tuple of text, found 'ab'"),
        ({"words": (1,)}, "words: expected a list or tuple of text"),
        ({"by_name": {"a": "1"}}, "by_name: expected a mapping of text to whole number or None"),
        ({"by_name": [("a", 1)]}, "by_name: expected a mapping"),
        ({"policy": "Always"}, "RestartPolicy.ALWAYS ('Always')"),
        ({"teller": Odd()}, "a _Teller, which has name, tell or None, found an Odd"),
        ({"teller": _Told}, "a _Teller, which has name, tell"),
        ({"call": "x"}, "something to call"),
        ({"place": ("a",)}, "a tuple of 2"),
        ({"place": ("a", "b")}, "a tuple of 2"),
        ({"kind": "three"}, "one of 'one', 'two'"),
    ],
)
def test_an_argument_of_another_kind_is_refused(arguments: Mapping[str, object], said: str) -> None:
    """The sentence says which argument, what is expected, and what came."""
    with pytest.raises(ConfigurationError) as refused:
        takes(POD, **wrong(arguments))
    assert str(refused.value).startswith("takes: ")
    assert said in str(refused.value)


def test_what_comes_by_place_is_looked_at_too() -> None:
    """A manifest in place of a pod is told how to become one."""
    with pytest.raises(
        ConfigurationError, match=r"expected a Pod; Pod.from_manifest makes one, found {'metadata'"
    ):
        takes(wrong(MANIFEST))


def test_no_name_is_taken_for_another() -> None:
    """A pod's container that a module names for type checkers alone is none of Python's own containers."""
    node = NodeSettings(name="n", memory_capacity_bytes=1)
    image = ImageFacts(id="sha256:1")
    config = container_config(POD, Container(name="app", image="app"), attempt=0, image=image, node=node)
    assert config.name == "app"
    with pytest.raises(ConfigurationError, match="container: expected a Container"):
        container_config(POD, wrong({"name": "app"}), attempt=0, image=image, node=node)


def test_what_fits_passes() -> None:
    """A list for a tuple, a whole number for a number, a subclass, None where it is allowed."""
    fine = {
        "count": 2,
        "after_s": 3,
        "words": ["a"],
        "by_name": None,
        "teller": _Told(),
        "call": test_what_fits_passes,
        "kind": "two",
    }
    assert takes(POD, "a", "b", **wrong(fine)) == ("a", "b")


def test_what_is_broken_in_a_function_that_looks_late_is_told_in_the_same_words() -> None:
    """A mistake of the function's own goes on as it is."""

    @typed_on_error
    def length(text: str, /) -> int:
        return len(text) // (len(text) - 1)

    assert length("ab") == 2
    with pytest.raises(ConfigurationError, match="text: expected a text, found 5"):
        length(wrong(5))
    with pytest.raises(ZeroDivisionError):
        length("a")


def test_what_a_call_lacks_is_told_by_its_name() -> None:
    """Arguments that are given by place alone have names for whoever reads the error."""
    verdicts: Any = ContainerVerdicts()
    with pytest.raises(
        TypeError, match=r"with_verdict\(\) missing 1 required positional argument: 'verdict'"
    ):
        verdicts.with_verdict(ProbeKind.LIVENESS)


def test_a_function_that_looks_late_keeps_its_defaults() -> None:
    """Given or not, they are looked at like the others once something broke."""

    @typed_on_error
    def cut(text: str, first: int = 1, last: int | None = None, /) -> str:
        return text[first:last]

    assert (cut("abc"), cut("abc", 0), cut("abc", 0, 2)) == ("bc", "abc", "ab")
    with pytest.raises(ConfigurationError, match="last: expected a whole number or None, found 'c'"):
        cut("abc", 0, wrong("c"))
    with pytest.raises(ConfigurationError, match="text: expected a text, found 5"):
        cut(wrong(5))


def test_fields_are_looked_at_as_well() -> None:
    """Of a field that is made a tuple everything passes that can be made one."""

    @typed_fields
    @attrs.frozen(kw_only=True)
    class Row:
        names: tuple[str, ...] = attrs.field(default=(), converter=tuple[str, ...])
        count: int = 0

    assert Row(names=wrong(name for name in "ab")) == Row(names=("a", "b"))
    for bad in ({"names": None}, {"names": (1,)}, {"names": "ab"}, {"count": "1"}):
        with pytest.raises(ConfigurationError, match="Row: "):
            Row(**wrong(bad))


def public_functions() -> Iterator[tuple[str, Callable[..., object]]]:
    """Every public function, and every class method that makes a value, by name."""
    for package in pkgutil.iter_modules(nodealloc.__path__):
        if package.name.startswith("_") or package.name == "testing":
            continue
        module = import_module(f"nodealloc.{package.name}")
        for name in module.__all__:
            one: object = getattr(module, name)
            if inspect.isfunction(one):
                yield f"{package.name}.{name}", one
            elif inspect.isclass(one) and not issubclass(one, BaseException):
                for method, held in vars(one).items():
                    if isinstance(held, classmethod) and not method.startswith("_"):
                        yield f"{package.name}.{name}.{method}", getattr(one, method)


FUNCTIONS = dict(public_functions())


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of what has another name now
@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_public_function_breaks_on_what_belongs_nowhere(name: str) -> None:
    """It refuses it in the library's own words, or does without; nothing raw comes from inside."""
    function = FUNCTIONS[name]
    required = [
        one
        for one in inspect.signature(function).parameters.values()
        if one.default is one.empty and one.kind not in {one.VAR_POSITIONAL, one.VAR_KEYWORD}
    ]
    odd = Odd()
    places = [odd for one in required if one.kind is not one.KEYWORD_ONLY]
    names = {one.name: odd for one in required if one.kind is one.KEYWORD_ONLY}
    with contextlib.suppress(NodeallocError):
        answer = function(*places, **names)
        if inspect.isgenerator(answer):
            next(answer, None)


BAD: Mapping[str, Callable[[], object]] = {
    "a manifest has no class of service": lambda: qos_class(wrong(MANIFEST)),
    "a manifest asks for nothing": lambda: effective_requests(wrong(MANIFEST)),
    "the wrong way round": lambda: host_ports(wrong(NodeView(name="n")), wrong(POD), rules=KUBELET),
    "no node": lambda: node_fit(POD, wrong(None), rules=KUBELET),
    "a node's own document": lambda: taints(POD, wrong({"spec": {"taints": []}})),
    "handlers as one": lambda: Chain(wrong(taints), taints, (), (), KUBELET),
    "sysctls as one text": lambda: SysctlAllowList.of(wrong("kernel.msgmax")),
    "a plan of nothing": lambda: plan_pod(POD, wrong(None)),
    "a delay of text": lambda: RestartBackOff(base_s=wrong("10")),
    "a delay that is no number": lambda: RestartBackOff(base_s=math.nan),
    "a time in words": lambda: LifePolicy(term_s=wrong("30")),
    "addresses in one text": lambda: NodeSettings(
        name="n", memory_capacity_bytes=1, resolver=wrong("10.0.0.1")
    ),
    "no folder": lambda: PodFolders(wrong(None)),
    "pods as one": lambda: PodUpdate(source="file", pods=wrong(POD)),
    "pods of nothing": lambda: PodUpdate(source="file", pods=wrong((None,))),
    "an interval of text": lambda: Polling(period_s=wrong("20")),
    "an interval below 0": lambda: Polling(period_s=-1.0),
    "a folder that is None": lambda: FolderSource(wrong(None)),
    "an update that is a pod": lambda: merge_update(wrong({}), wrong(POD)),
    "a sink nowhere": lambda: FolderSink(wrong(None)),
    "statuses as documents": lambda: merge_status(wrong({}), wrong({}), could_run=False, now_unix_s=None),
    "a status of a document": lambda: status_of(wrong(MANIFEST), wrong(None)),
    "an interval that is no number": lambda: TellingOptions(deadline_s=math.nan),
    "no probes at once": lambda: ProbeOptions(sockets=0),
    "probes at once as text": lambda: ProbeOptions(sockets=wrong("8")),
    "a period of text": lambda: Schedule(period_s=wrong("10")),
    "a truth for a threshold": lambda: Schedule(failure_threshold=wrong(True)),
    "an answer in words": lambda: hear(wrong(None), wrong(None), wrong("ok")),
    "a share in percent of text": lambda: ImageGcPolicy(high_percent=wrong("85")),
    "images that are too old before they are there": lambda: ImageGcPolicy(max_age_s=-1.0),
    "more than all": lambda: ImageGcPolicy(high_percent=101),
    "a pace of None": lambda: Pace(period_s=wrong(None)),
    "images of text": lambda: plan_image_gc(
        wrong("images"), wrong(None), wrong(None), now_s=0.0, since_s=0.0
    ),
    "a deadline below 0": lambda: CriDeadlines(look_s=-1.0),
    "containers as one text": lambda: PodStatus(containers=wrong("app")),
}


@pytest.mark.parametrize("name", BAD)
def test_what_people_get_wrong_about_pods_is_refused(name: str) -> None:
    """Configurations, decisions and values about whole pods refuse it as a configuration."""
    with pytest.raises(ConfigurationError, match=r"."):
        BAD[name]()


CPU = {"cpu": Quantity.parse("1")}

SILENT: Mapping[str, Callable[[], object]] = {
    "a selector of text": lambda: Pod(uid="u", name="web", node_selector=wrong("zone=a")),
    "a truth in words": lambda: Pod(uid="u", name="web", host_network=wrong("false")),
    "labels as pairs": lambda: Pod(uid="u", name="web", labels=wrong([("a", "b")])),
    "a policy in words": lambda: Pod(uid="u", name="web", restart_policy=wrong("Never")),
    "tolerations as documents": lambda: Pod(uid="u", name="web", tolerations=wrong(({"key": "a"},))),
    "an image that is a number": lambda: Container(name="app", image=wrong(5)),
    "a command as one text": lambda: Container(name="app", entrypoint=wrong("sleep 5")),
    "an owner of numbers": lambda: Owner(wrong(5), "app"),
    "settings of a claim as text": lambda: Claim(owner=Owner("w", "app"), amounts=CPU, settings=wrong("a=b")),
    "a claim that is exclusive in words": lambda: Claim(
        owner=Owner("w", "app"), amounts=CPU, exclusive=wrong("yes")
    ),
    "a search in words": lambda: Policy(search=wrong("deep")),
    "a comparison that is a class": lambda: Policy(comparison=wrong(Odd)),
    "a strategy of nothing": lambda: KubeletPicker(strategy=wrong("packed as it may be")),
    "a picker that is a number": lambda: StaticPolicy(picker=wrong(5), layout=wrong(None)),
    "a taint of numbers": lambda: Taint(key=wrong(5), effect=wrong(None)),
    "limits of text": lambda: TreeOptions(root_limits=wrong("1Gi")),
    "a reservation of a list": lambda: Reservation(kube_reserved=wrong(["cpu"])),
    "a rule in words": lambda: attrs.evolve(KUBELET, **{_a_rule(): wrong("yes")}),
    "a policy that is a class": lambda: merge(
        wrong(Policy),
        [{"cpu": [TopologyHint(1, preferred=True)]}],
        NumaTopology(nodes=(0, 1)),
    ),
    "providers that are a number": lambda: merge(
        Policy.parse("restricted"), wrong(5), NumaTopology(nodes=(0, 1))
    ),
    "figures of None": lambda: Refused(reason="A", message="b", figures=wrong(None)),
}


def _a_rule() -> str:
    return str(attrs.fields(type(KUBELET))[0].name)


@pytest.mark.parametrize("name", SILENT)
def test_what_was_taken_in_silence_is_refused(name: str) -> None:
    """Nothing broke on it at once: it meant something else later, or nothing at all."""
    with pytest.raises(ConfigurationError, match=r"."):
        SILENT[name]()


def test_what_a_value_has_by_itself_is_not_looked_at() -> None:
    """An empty mapping that was made anew counts as such, None in its place does not."""

    @typed_fields
    @attrs.frozen(kw_only=True)
    class Row:
        by_name: Mapping[str, int] = attrs.field(factory=dict[str, int])

    assert Row() == Row(by_name={})
    for bad in (None, 0, (), ""):
        with pytest.raises(ConfigurationError, match="by_name: expected a mapping"):
            Row(by_name=wrong(bad))


def test_annotations_are_read_while_another_thread_imports() -> None:
    """An agent's threads import for the first time as another makes its first pod."""
    is_over = threading.Event()

    def imports() -> None:
        count = 0
        while not is_over.is_set():
            count += 1
            sys.modules[f"nowhere_{count % 5000}"] = sys
            sys.modules.pop(f"nowhere_{(count + 2500) % 5000}", None)

    with patch.dict(sys.modules):
        thread = threading.Thread(target=imports)
        thread.start()
        try:
            found = {evaluated("NoSuchName", {"__package__": "nodealloc.podspec"}) for _ in range(500)}
        finally:
            is_over.set()
            thread.join()
    assert found == {object}


@pytest.mark.parametrize("others", [0, 8])
def test_fields_may_have_any_name(others: int) -> None:
    """Few fields are handed on by name and many packed; either way each is looked at under its own name."""
    more = {f"other_{number}": attrs.field(type=int, default=0) for number in range(others)}
    named = {"type": attrs.field(type=str), "value": attrs.field(type=int, default=1)}
    row: Any = typed_fields(attrs.make_class("Row", {**named, **more}, kw_only=True, frozen=True))
    assert (row(type="a").type, row(type="a", value=2).value) == ("a", 2)
    with pytest.raises(ConfigurationError, match=r"Row: type: expected a text, found 5"):
        row(type=5)
    with pytest.raises(ConfigurationError, match=r"Row: value: expected a whole number, found 'b'"):
        row(type="a", value="b")
    with pytest.raises(TypeError, match="type"):
        row()
    with pytest.raises(TypeError, match="kind"):
        row(kind="a")
