"""Changed copies of mappings against copies of plain dicts."""

from __future__ import annotations

import pickle
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodealloc._entries import with_entry, without_entry

CHANGES = st.lists(st.tuples(st.booleans(), st.integers(0, 400), st.integers()), max_size=60)


@given(size=st.sampled_from([0, 3, 255, 256, 257, 300]), changes=CHANGES)
def test_it_is_the_dict_that_the_same_changes_make(size: int, changes: list[tuple[bool, int, int]]) -> None:
    """Entries, their order and number, and what is absent; the mappings before stay as they were."""
    entries: Mapping[int, int] = {key: key for key in range(size)}
    plain = dict(entries)
    passed = [(entries, dict(plain))]
    for add, key, value in changes:
        if add:
            entries = with_entry(entries, key, value)
            plain[key] = value
        elif key in plain:
            entries = without_entry(entries, key)
            del plain[key]
        passed.append((entries, dict(plain)))
    for mapping, expected in passed:
        assert list(mapping.items()) == list(expected.items())
        assert len(mapping) == len(expected)
        assert mapping == expected
        assert expected == mapping
        assert [mapping.get(key) for key in range(401)] == [expected.get(key) for key in range(401)]


def test_a_large_one_is_pickled_as_one_mapping() -> None:
    """What comes back has all entries in one dict, which nobody can change either."""
    large = with_entry({key: key for key in range(1000)}, -1, 1)
    copy = pickle.loads(pickle.dumps(large))  # noqa: S301 - our own bytes
    assert isinstance(copy, dict)
    with pytest.raises(TypeError, match="does not change"):
        copy[0] = 1
    assert copy == large
    assert repr(large) == repr(copy)


@pytest.mark.parametrize("size", [10, 1000])
def test_what_was_taken_out_cannot_be_read(size: int) -> None:
    """As with a dict."""
    entries = without_entry({key: key for key in range(size)}, 5)
    with pytest.raises(KeyError):
        entries[5]
    assert 5 not in entries
