"""Every order in which a pod is added, edited, removed and fails, to a depth of eight.

It finishes at any time, which takes nothing of the depth.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import pytest

from nodealloc.podsources import Editions, Rules
from nodealloc.podspec import Container, Pod

DEPTH = 8
ACTS = ("add", "edit", "remove", "fail")
BASE = Pod(uid="u", name="web", containers=(Container(name="app"),))


@attrs.frozen
class Life:
    """One name: what its manifest says, what is on the node, which uids are gone for good."""

    editions: Editions = attrs.field(factory=Editions, eq=False)
    known: tuple[object, ...] = ()
    manifest: int | None = None
    newest: int = 0
    stays_ended: bool = False
    left: tuple[tuple[str, int, bool], ...] = ()
    gone: frozenset[str] = frozenset()


FORMS = {one: attrs.evolve(BASE, labels={"edition": str(one)}) for one in range(DEPTH + 1)}


def after(life: Life, act: str, rules: Rules) -> Life | None:
    """What an act leads to, with whatever the node then does; None where it is not possible."""
    manifest, newest, left, editions = life.manifest, life.newest, life.left, life.editions
    gone, stays_ended = life.gone, life.stays_ended
    if (act == "add") != (manifest is None) and act in {"add", "edit", "remove"}:
        return None
    if act == "add":
        manifest, stays_ended = newest, False
    elif act == "edit":
        newest, stays_ended = newest + 1, False
        manifest = newest
    elif act == "remove":
        manifest = None
    elif act == "fail":
        if not any(not ending for _, _, ending in left):
            return None
        left = tuple((uid, form, True) for uid, form, _ in left)
        editions, stays_ended = editions.ended(BASE.full_name), manifest is not None
    else:
        ending = [one for one in left if one[2]]
        if not ending:
            return None
        left = tuple(one for one in left if one != ending[0])
        gone |= {ending[0][0]}
    editions, listed = editions.read(() if manifest is None else (FORMS[manifest],), rules=rules)
    wanted = listed[0] if listed else None
    left = _of_one_name(wanted, manifest, left, gone)
    known = tuple((name, one) for name, one in editions.by_name.items())
    return Life(editions, known, manifest, newest, stays_ended, left, gone)


def _of_one_name(
    wanted: Pod | None, manifest: int | None, left: tuple[tuple[str, int, bool], ...], gone: frozenset[str]
) -> tuple[tuple[str, int, bool], ...]:
    """What an agent does with a name: one pod of it at a time, and none whose uid is gone."""
    uid = None if wanted is None else wanted.uid
    if any(ending or one != uid for one, _, ending in left):
        return tuple((one, form, ending or one != uid) for one, form, ending in left)
    return left if uid is None or uid in gone or manifest is None else ((uid, manifest, False),)


def lives(rules: Rules) -> Iterator[tuple[tuple[str, ...], Life]]:
    """Every life that eight acts can lead to, once, with a way that leads to it."""
    seen: dict[Life, tuple[str, ...]] = {Life(): ()}
    newest = dict(seen)
    for _ in range(DEPTH):
        found: dict[Life, tuple[str, ...]] = {}
        for life, way in newest.items():
            for act in ACTS:
                then, how = after(life, act, rules), (*way, act)
                # Finishing is the node's, at any time, and takes nothing of the depth.
                while then is not None and then not in seen:
                    found[then] = seen[then] = how
                    then, how = after(then, "finish", rules), (*how, "finish")
        newest = found
    for life, way in seen.items():
        yield way, life


def at_rest(life: Life, rules: Rules) -> Life:
    """The same once everything that ends has finished."""
    while (then := after(life, "finish", rules)) is not None:
        life = then
    return life


def test_what_a_file_said_last_is_what_runs() -> None:
    """In any order of acts its newest form runs, alone, and uids that ended stay ended."""
    count = 0
    for way, life in lives(Rules()):
        count += 1
        running = [one for one in life.left if not one[2]]
        assert len(life.left) <= 1, way
        assert not {uid for uid, _, _ in life.left} & life.gone, way
        end = at_rest(life, Rules())
        wanted = [] if end.manifest is None or end.stays_ended else [end.manifest]
        assert [form for _, form, _ in end.left] == wanted, (way, running)
    assert count > 200


@pytest.mark.parametrize("without", ["renews_uid"])
def test_the_search_finds_a_rule_that_is_missing(without: str) -> None:
    """With the kubelet's rule a pod that was put back never runs; the same search says so."""
    rules = attrs.evolve(Rules(), **{without: False})
    ends = [at_rest(life, rules) for _, life in lives(rules)]
    assert any(end.manifest is not None and not end.stays_ended and not end.left for end in ends)
