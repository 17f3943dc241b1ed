"""Every public function, constructor and method with one wrong argument: nothing raw comes from inside.

The other arguments are made from their annotations, and so is the object that a method belongs to. A
value of the library's own whose parts are nonsense, or a function for which nothing fitting can be
made, is left out; so are methods of values that only the library makes, which are called by the million.
"""

from __future__ import annotations

import enum
import inspect
import itertools
import math
import pkgutil
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any, cast, get_args, get_origin

import pytest

import nodealloc
from nodealloc._annotations import GENERIC, evaluated
from nodealloc.errors import ConfigurationError, NodeallocError
from nodealloc.memblocks import hugepages

RAW = (
    TypeError,
    AttributeError,
    LookupError,
    OverflowError,
    RecursionError,
    AssertionError,
    ZeroDivisionError,
)
DEEPEST = 6
# What was made and thrown away may have had files open.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


class Odd:
    """What belongs nowhere."""


WRONG: tuple[object, ...] = (
    None, "", "no such word", 5, -1, 1.5, math.nan, math.inf, True, 10**400, b"bytes", {}, {"a": 1}, [],
    [None], ("a", "b"), {1, 2}, Odd(), Odd,
)  # fmt: skip


class Unmade(Exception):  # noqa: N818 - a reason to leave something out
    """Nothing fitting can be made."""


def of_annotation(annotation: object, depth: int = 0) -> Any:
    """Something that an annotation allows."""
    if depth > DEEPEST:
        raise Unmade
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation in (object, Any) or isinstance(annotation, typing.TypeVar):
        return "x"
    if origin in (typing.Union, types.UnionType):
        return None if type(None) in arguments else of_annotation(arguments[0], depth)
    if origin is typing.Literal:
        return arguments[0]
    if origin is Callable or origin is typing.get_origin(Callable[[], None]):
        return lambda *_, **__: None
    kind: Any = origin or annotation
    if not inspect.isclass(kind):
        raise Unmade
    if kind is tuple and arguments and arguments[-1] is not Ellipsis:
        return tuple(of_annotation(one, depth + 1) for one in arguments)
    if issubclass(kind, enum.Enum):
        return next(iter(kind))
    simple = {str: "a", int: 1, float: 1.0, bool: False, bytes: b"a", Path: Path("a"), type(None): None}
    if kind in simple:
        return simple[kind]
    if issubclass(kind, Mapping) or kind is dict:
        return {}
    if kind.__module__ in ("collections.abc", "builtins", "typing"):
        return frozenset() if "et" in kind.__name__[-3:] else ()
    if getattr(kind, "_is_protocol", False):
        methods = [name for name in dir(kind) if not name.startswith("_")]
        return type(f"Some{kind.__name__}", (), dict.fromkeys(methods, lambda *_, **__: None))()
    return made(kind, depth + 1)


def made(call: Callable[..., Any], depth: int = 0) -> Any:
    """What a constructor or a function makes of fitting arguments."""
    places, names = fitting(call, depth)
    try:
        return call(*places.values(), **names)
    except Exception as error:
        raise Unmade from error


def fitting(call: Callable[..., Any], depth: int = 0) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arguments for whatever has no default, by place and by name."""
    places, names = dict[str, Any](), dict[str, Any]()
    for name, annotation, by_place, has_default in parameters(call):
        if not has_default:
            (places if by_place else names)[name] = of_annotation(annotation, depth + 1)
    return places, names


@cache
def parameters(call: Callable[..., Any]) -> tuple[tuple[str, object, bool, bool], ...]:
    """Name, annotation, whether it is given by place alone, whether it has a default."""
    function: Any = call.__init__ if inspect.isclass(call) else call
    while inspect.ismethod(function) or hasattr(function, "__wrapped__"):
        function = getattr(function, "__wrapped__", None) or function.__func__
    home = import_module(call.__module__ if inspect.isclass(call) else function.__module__)
    scope = {**GENERIC, **vars(home)}
    rows = []
    try:
        signature = inspect.signature(call)
    except ValueError as error:  # of a built-in class
        raise Unmade from error
    for one in signature.parameters.values():
        if one.kind in (one.VAR_KEYWORD, one.VAR_POSITIONAL):
            continue
        annotation = evaluated(one.annotation, scope)
        rows.append((one.name, annotation, one.kind is one.POSITIONAL_ONLY, one.default is not one.empty))
    return tuple(rows)


def public() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Functions, classes of values, and class methods that make them."""
    for package in pkgutil.walk_packages(nodealloc.__path__, "nodealloc."):
        place = package.name.removeprefix("nodealloc.")
        if place.startswith("testing") or any(part.startswith("_") for part in place.split(".")):
            continue
        module = import_module(package.name)
        for name in module.__all__:
            one: Any = getattr(module, name)
            if inspect.isfunction(one):
                yield f"{place}.{name}", one
            elif inspect.isclass(one) and not issubclass(one, (BaseException, enum.Enum)):
                if not getattr(one, "_is_protocol", False) and one.__init__ is not object.__init__:
                    yield f"{place}.{name}", one
                for method, held in vars(one).items():
                    if isinstance(held, classmethod) and not method.startswith("_"):
                        yield f"{place}.{name}.{method}", getattr(one, method)


LEFT_OUT = {"checkpoint.FileStore", "checkpoint.SqliteStore", "cgroups.launch", "cri.follow_log"}
"""They lock what they are given and wait, run it, or follow it without end."""
PUBLIC = {name: call for name, call in public() if name not in LEFT_OUT}


def methods(made_by: type[object]) -> Iterator[str]:
    """Public methods of a class that take an argument and wait for nobody."""
    for name in dir(made_by):
        held = inspect.getattr_static(made_by, name)
        own = inspect.isfunction(held) and held.__module__.startswith("nodealloc")
        if (
            own
            and not name.startswith(("_", "wait", "result"))
            and len(inspect.signature(held).parameters) > 1
        ):
            yield name


OWN_VALUES = {
    "agent.Remembered", "dsw_asw.World", "podlife.PodRecord", "podlife.PodWanted", "podlife.Restarts",
    "pluginreg.Registrations", "pluginreg.Sightings", "podsources.Editions", "podsources.MergedUpdates",
    "probes.ContainerVerdicts", "probes.PodVerdicts", "runtime.PodKnown", "topology.CountedHints",
    "topology.NodeSets", "topology.NumaTopology",
}  # fmt: skip
"""Their methods are called by the million, by the library; or take any key, as a dict does."""
WAITING = {"dirwatch.InotifyWatcher", "node.WatchedRuntime"}
"""Made once a class, they keep threads or descriptors."""


def is_right(annotation: object, value: object) -> bool:
    """Whether it is only Python that can tell: a key of any type, a class where something is called."""
    if isinstance(annotation, typing.TypeVar):
        return value.__hash__ is None
    return value is Odd and get_origin(annotation) is Callable


def wrongly(call: Callable[..., Any]) -> Iterator[tuple[str, Any, BaseException]]:
    """Raw errors of a call: argument, what was given, and the error."""
    places, names = fitting(call)
    try:
        call(*places.values(), **names)
    except NodeallocError:
        pass  # what fits by its kind may mean nothing
    except Exception as error:
        raise Unmade from error
    for (name, annotation, by_place, _), value in itertools.product(parameters(call), WRONG):
        if (by_place and name not in places) or is_right(annotation, value):
            continue
        with_it = {**places, name: value} if name in places else places
        by_name = names if name in places else {**names, name: value}
        try:
            answer = call(*with_it.values(), **by_name)
            if inspect.isgenerator(answer):
                next(answer, None)
        except NodeallocError:
            continue
        except RAW as error:
            yield name, value, error
        except (ValueError, OSError):
            continue


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where what is made of invented paths does no harm."""
    monkeypatch.chdir(tmp_path)


def swept(calls: Iterable[tuple[str, Callable[[], Callable[..., Any]]]]) -> tuple[int, list[str]]:
    """How many callables were swept, and what ended raw."""
    count, raw = 0, list[str]()
    for name, get in calls:
        try:
            for argument, value, error in wrongly(get()):
                raw.append(f"{name}({argument}={value!r:.40}): {error!r:.80}")
            count += 1
        except Unmade:
            continue
    return count, raw


def bound_methods() -> Iterator[tuple[str, Callable[[], Callable[..., Any]]]]:
    """Methods of whatever can be made, each of an object of its own."""
    for name, kind in PUBLIC.items():
        if inspect.isclass(kind) and name not in OWN_VALUES | WAITING:
            for method in methods(kind):
                yield f"{name}.{method}", partial(method_of, kind, method)


def method_of(kind: Callable[..., Any], method: str) -> Callable[..., Any]:
    """Of a new one."""
    return cast("Callable[..., Any]", getattr(made(kind), method))


def _itself(call: Callable[..., Any]) -> Callable[..., Any]:
    return call


def test_no_wrong_argument_ends_in_anything_raw() -> None:
    """Each of nineteen wrong values for each argument of each callable."""
    count, raw = swept((name, partial(_itself, call)) for name, call in PUBLIC.items())
    assert count > 450, "fewer callables could be swept than there were; did a value become hard to make?"
    assert raw == []


def test_no_wrong_argument_of_a_method_ends_in_anything_raw() -> None:
    """The same for methods of what can be made."""
    count, raw = swept(bound_methods())
    assert count > 150, "fewer methods could be swept than there were; did a value become hard to make?"
    assert raw == []


def test_a_name_of_huge_pages_of_text_is_refused_at_once() -> None:
    """Text times a thousand million would be gigabytes."""
    wrong: Any = "2Mi"
    with pytest.raises(ConfigurationError, match="hugepages: page: expected a whole number, found '2Mi'"):
        hugepages(wrong)
