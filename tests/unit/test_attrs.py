"""Classes of values say, compare and hash what attrs itself would have them."""

from __future__ import annotations

import copy
import pickle
import types
from collections.abc import Callable, Hashable

import attrs
import pytest

from nodealloc import _attrs


def _folded(text: str) -> str:
    return text.casefold()


def _starred(value: object) -> str:
    return "*" * len(str(value))


def declared(by: types.ModuleType) -> dict[str, Callable[..., object]]:
    """The same classes, declared by attrs and by ours."""

    @by.frozen
    class Nothing:
        pass

    @by.frozen
    class Fields:
        plain: object
        hidden: object = by.field(default=1, repr=False, eq=False)
        starred: object = by.field(default="word", repr=_starred)
        folded: str = by.field(default="A", eq=_folded)
        unhashed: object = by.field(factory=list, hash=False)
        late: object = by.field(init=False, eq=False)

    @by.frozen(kw_only=True, slots=False)
    class WithDict:
        plain: object
        _private: int = 2

    @by.frozen
    class Below(Fields):
        more: object = 0

    @by.frozen(order=True)
    class Ordered:
        plain: int

    @by.frozen(cache_hash=True)
    class Cached:
        plain: object

    @by.frozen
    class Own:
        plain: object

        def __repr__(self) -> str:
            return "own"

        def __hash__(self) -> int:
            return 7

    @by.frozen
    class OwnEq:  # noqa: PLW1641 - what that means for a hash is looked at
        plain: object

        def __eq__(self, other: object) -> bool:
            return True

    @by.frozen(eq=False)
    class Itself:
        plain: object

    @by.define
    class Changing:
        plain: object

    @by.define
    class Error(Exception):
        plain: object

    return {name: made for name, made in locals().items() if isinstance(made, type)}


def values(by: types.ModuleType) -> list[tuple[str, object]]:
    """Some of each class, made in the same order."""
    made = declared(by)
    found = [("Nothing", made["Nothing"]())]
    for plain in (1, "one", (1, 2), [1]):
        found += [(name, make(plain)) for name, make in made.items() if name not in ("Nothing", "WithDict")]
        found.append(("WithDict", made["WithDict"](plain=plain, private=3)))
    fields = made["Fields"]
    found += [("Fields", fields(1, hidden=2)), ("Fields", fields(1, folded="a"))]
    found += [("Fields", fields(1, folded="b")), ("Fields", fields(1, starred="x"))]
    return found


def test_values_say_what_attrs_says() -> None:
    """The same text, of fields that are hidden, are shown by a function of their own, or are not set."""
    ours, theirs = values(_attrs), values(attrs)
    assert [repr(one) for _, one in ours] == [repr(one) for _, one in theirs]


def test_values_are_equal_where_those_of_attrs_are() -> None:
    """Each with each, also across classes; what may not be hashed still may not, and equals hash alike."""
    ours, theirs = values(_attrs), values(attrs)
    for (_, mine), (_, other) in zip(ours, theirs, strict=True):
        assert [mine == one for _, one in ours] == [other == one for _, one in theirs]
        assert [mine != one for _, one in ours] == [other != one for _, one in theirs]
        assert isinstance(mine, Hashable) == isinstance(other, Hashable)
        assert _hashes(mine) == _hashes(other)
        assert not _hashes(mine) or all(
            hash(mine) == hash(one) for _, one in ours if mine == one and _hashes(one)
        )


def _hashes(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def test_a_value_that_holds_itself_is_shown() -> None:
    """Where it comes again stand three dots."""
    held: list[object] = []
    value = declared(_attrs)["WithDict"](plain=held)
    held.append(value)
    assert repr(value) == "WithDict(plain=[...], _private=2)"


@_attrs.frozen
class Above:
    """Has methods that nobody asked for yet."""

    plain: object


class Inherits(Above):
    """Declares nothing."""


@_attrs.frozen
class Adds(Above):
    """Declares more, and asks for what stands above."""

    more: object = 0

    def is_alike(self, other: Adds) -> bool:
        """By the class above alone."""
        return super().__eq__(other) is True


@pytest.mark.parametrize("name", ["__repr__", "__eq__", "__hash__"])
def test_a_method_is_written_once_for_the_class_that_has_it(name: str) -> None:
    """Also where a class below is asked first; from then on the class has a plain function."""
    below = getattr(Inherits, name)
    assert below is vars(Above)[name] is getattr(Above, name)
    assert isinstance(below, types.FunctionType)
    assert (below.__qualname__, below.__module__) == (f"Above.{name}", __name__)
    assert name not in vars(Inherits)


def test_each_class_compares_its_own_fields() -> None:
    """A class above does not look at what one below adds."""
    assert Adds(1, 2) != Adds(1, 3)
    assert Adds(1, 2).is_alike(Adds(1, 3))
    assert not Adds(1, 2).is_alike(Adds(2, 2))


def test_values_are_copied_and_pickled() -> None:
    """Whether or not methods were written."""
    value = Adds(plain=(1,), more=2)
    assert copy.deepcopy(value) == pickle.loads(pickle.dumps(value)) == value  # noqa: S301 - our own bytes


@_attrs.frozen(cache_hash=True)
class Cached:
    """Pickled by attrs' own rules, which leave the hash out."""

    plain: object


@_attrs.define
class Kept:
    """Says itself what is pickled."""

    plain: object
    told: object = None

    def __getstate__(self) -> object:
        return {"plain": self.plain}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.plain, self.told = state["plain"], "by itself"


def test_a_class_says_itself_what_is_pickled() -> None:
    """Whether it does, caches its hash, or is left to what all share."""
    cached = Cached((1, 2))
    assert hash(cached) == hash(pickle.loads(pickle.dumps(cached)))  # noqa: S301 - our own bytes
    kept = pickle.loads(pickle.dumps(Kept(1)))  # noqa: S301 - the same
    assert (kept.plain, kept.told) == (1, "by itself")
    assert Adds(1, 2).__getstate__() == {"plain": 1, "more": 2}
    made = Adds(1, 2)
    made.__setstate__({"more": 3})  # type: ignore[attr-defined]
    assert made == Adds(1, 3)


def test_fields_are_found_by_name() -> None:
    """As in attrs; a name that no field has is an error of Python's own."""
    fields = attrs.fields(Adds)
    assert [one.name for one in fields] == ["plain", "more"]
    assert fields.more is fields[1] is attrs.fields_dict(Adds)["more"]
    assert isinstance(fields, tuple)
    with pytest.raises(AttributeError, match="no attribute 'fewer'"):
        _ = fields.fewer  # type: ignore[attr-defined]
    assert attrs.evolve(Adds(1, 2), more=3) == Adds(1, 3)
    assert attrs.asdict(Adds(1, 2)) == {"plain": 1, "more": 2}
