"""An allocator with all four abilities, and the checks that any allocator's can be held to.

>>> from nodealloc.podspec import Quantity
>>> from nodealloc.topology import TopologyHint
>>> cpus = FakeCpuAllocator.of({0: 4, 1: 4})
>>> job = Claim(owner=Owner("job", "rank-0"), amounts={"cpu": Quantity.parse("2500m")})
>>> after = cpus.allocate(job, TopologyHint(0b10, preferred=True))
>>> after.confinement(job.owner).exclusive, after.remembered("job")
(CPUSet('4-5'), {'rank-0': {'cpus': '4-5', 'sharedMilliCpu': 500}})
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

import attrs

from nodealloc.checkpoint import JsonCheckpoint
from nodealloc.errors import NodeallocError
from nodealloc.idset import CPUSet, NodeSet
from nodealloc.podspec import Json
from nodealloc.testing._account_checks import check_accounts, check_apart, filled
from nodealloc.testing._allocator_calls import ANYWHERE, stranger
from nodealloc.testing._fake_cpus import FakeCpuAllocator
from nodealloc.testing._wording import in_words
from nodealloc.topology import (
    Accounts,
    Adopts,
    Allocator,
    Claim,
    Confinement,
    Confines,
    Holding,
    NotYet,
    Owner,
    Remembers,
    Restored,
    Shortfall,
    Workload,
)

__all__ = [
    "FakeCpuAllocator",
    "check_accounts",
    "check_adopts",
    "check_confines",
    "check_remembers",
    "filled",
]

T = TypeVar("T")
_FITTING = 24
"""So many strangers are tried beside what was restored."""


@in_words
def check_remembers(allocator: Allocator, asked: Sequence[Workload], /, *, exact: bool = True) -> None:
    """Hold an allocator to what a restart relies on: what is remembered comes back, all of it.

    Args:
        allocator: Holds nothing, and `Remembers`.
        asked: Workloads that fit it together, and of which one holds something; what
            goes wrong with many members only shows where one has many.
        exact: Whether what came back has to be equal to what was there; pass
            False where others have to tell a part again, such as device plugins
            their devices.

    Raises:
        AssertionError: Says which promise is broken.
    """
    assert isinstance(allocator, Remembers), f"{allocator.name} has no `remembered` and `restored`"
    full = filled(allocator, asked)
    rows = _rows(full, asked)
    holding = [one.key for one in asked if full.release(one.key) != full]
    assert holding, "give a workload that holds something"
    assert list(rows) == holding, f"{holding} hold something, {list(rows)} are remembered"
    before = _pickled(allocator)
    assert _rows(full, asked) == rows, "asked again, it remembers something else"
    _check_own_rows(full, asked)
    given = _through_json(rows)
    restored = allocator.restored(given)
    assert given == rows, "restoring changed the rows that it was given"
    assert allocator == before, "restoring changed the allocator that was asked"
    assert not restored.evicted, f"on the same machine nothing has to go: {restored.evicted}"
    assert not restored.moved, f"on the same machine nothing moves: {restored.moved}"
    back = restored.allocator
    assert back.name == allocator.name, f"{allocator.name} came back as {back.name}"
    assert _rows(back, asked) == rows, "what came back is remembered in other words"
    _check_same(full, back, asked)
    if exact:  # who has to be told a part again grants nothing of it before
        _check_room(full, back, asked)
    assert not exact or back == full, f"what came back is not what was there: {back} instead of {full}"
    _check_forgotten(back, asked)
    _check_odd_rows(allocator, rows, exact=exact)


def _check_same(full: Allocator, back: Allocator, asked: Sequence[Workload]) -> None:
    """What each owner held it holds again, as far as its abilities tell."""
    for claim in _claims(asked):
        key, member = claim.owner.workload, claim.owner.member
        held = full.release(key, member) != full
        assert held == (back.release(key, member) != back), f"{key}/{member} lost what it held"
        assert not held or back.allocate(claim, ANYWHERE) == back, f"{key}/{member} is granted anew"
        if isinstance(full, Confines) and isinstance(back, Confines):
            was, now = full.confinement(claim.owner), back.confinement(claim.owner)
            assert now == was, f"{key}/{member} was confined to {was}, and is to {now}"
    if isinstance(full, Accounts) and isinstance(back, Accounts):
        was_held, is_held = _sorted(full.holdings()), _sorted(back.holdings())
        assert is_held == was_held, f"held was {was_held}, and is {is_held}"


def _check_room(full: Allocator, back: Allocator, asked: Sequence[Workload]) -> None:
    """As many strangers as before find room beside what is held."""
    for claim in _claims(asked):
        fitted, fits = _fitting(full, claim), _fitting(back, claim)
        assert fits == fitted, (
            f"{fitted} more like {claim.owner} fitted beside what was there, and {fits} beside what came back"
        )


def _fitting(allocator: Allocator, claim: Claim) -> int:
    """How many strangers who ask for the same are granted it, one after another, as far as anybody counts."""
    for number in range(_FITTING):
        after = allocator.allocate(stranger(claim, key=f"check-fits-{number}"), ANYWHERE)
        if isinstance(after, Shortfall | NotYet) or after == allocator:
            return number
        allocator = after
    return _FITTING


def _check_odd_rows(allocator: Allocator, rows: Mapping[str, Json], *, exact: bool) -> None:
    """Nothing is no trouble; of two that hold the same, one comes back and the other is told of."""
    none = _restored(allocator, {}, "no rows at all")
    assert not exact or none.allocator == allocator, "nothing was remembered, and something came back"
    for key, row in rows.items() if exact else ():
        alone = _restored(allocator, {key: row}, f"the row of {key} alone")
        _check_told(alone, [key])
        if alone.allocator == allocator:
            continue
        twin = f"{key}-check-twin"
        both = _restored(allocator, {key: row, twin: row}, f"{key} and another that holds the same")
        _check_told(both, [key, twin])
        back = both.allocator
        two = back.release(key) != back and back.release(twin) != back
        assert not (two and isinstance(back, Accounts)) or not _overlaps(back.holdings()), (
            f"{key} and {twin} are remembered with the same, and both hold it now"
        )


def _check_told(back: Restored, keys: Sequence[str]) -> None:
    """Whoever holds nothing any more is said to be evicted, and nobody else."""
    for key in keys:
        holds = back.allocator.release(key) != back.allocator
        assert holds or key in back.evicted, f"{key} is not restored, and nobody is told: it is not evicted"
        assert not holds or key not in back.evicted, (
            f"{key} is said to be evicted ({back.evicted[key]}), and holds something"
        )


def _overlaps(held: Sequence[Holding]) -> bool:
    try:
        check_apart(held)
    except AssertionError:
        return True
    return False


def _restored(allocator: Allocator, rows: Mapping[str, Json], what: str) -> Restored:
    assert isinstance(allocator, Remembers), f"{allocator.name} cannot be restored any more"
    try:
        return allocator.restored(rows)
    except Exception as error:
        raise AssertionError(f"restoring {what} raised {error!r}; give up what does not fit") from error


def _check_forgotten(full: Allocator, asked: Sequence[Workload]) -> None:
    for workload in asked:
        full = full.release(workload.key)
        assert isinstance(full, Remembers), "what is left cannot be remembered any more"
        assert full.remembered(workload.key) is None, f"{workload.key} holds nothing and is still remembered"
    assert _remembered(full, "nobody") is None, "an unknown workload holds something"


def _check_own_rows(full: Allocator, asked: Sequence[Workload]) -> None:
    """Names that begin or end alike are somebody else's."""
    keys = {one.key for one in asked}
    for key in sorted(keys):
        for other in sorted({key[1:], key[:-1], f"{key}-", ""} - keys):
            assert _remembered(full, other) is None, f"{key} holds something, and {other!r} is remembered"


@in_words
def check_confines(allocator: Allocator, asked: Sequence[Workload], /) -> None:
    """Hold an allocator to what confining containers relies on.

    Args:
        allocator: Holds nothing, and `Confines`.
        asked: Workloads that fit it together.

    Raises:
        AssertionError: Says which promise is broken.
    """
    owners = [claim.owner for claim in _claims(asked)]
    for owner in owners:
        _check_nothing_own(allocator, owner, "before it was granted anything")
        where = _confines(allocator, owner)
        nowhere = [
            name for name, ids in (("CPUs", where.cpus), ("nodes", where.mems)) if ids is not None and not ids
        ]
        assert not nowhere, f"nobody holds anything, and {owner} is confined to no {nowhere[0]} at all"
    full = filled(allocator, asked)
    stranger = Owner("check-confines", "stranger")
    _check_nothing_own(full, stranger, "and nobody knows it")
    told = {owner: _confines(full, owner) for owner in [*owners, stranger]}
    assert any(one != Confinement() for one in told.values()), "it says nothing of anybody"
    for owner, where in told.items():
        assert _confines(full, owner) == where, f"{owner}: answered differently the second time"
        assert not where.exclusive or (where.cpus is not None and where.exclusive <= where.cpus), (
            f"{owner}: its own CPUs {where.exclusive} are not among {where.cpus}"
        )
        if isinstance(full, Accounts):
            _check_granted(full.holdings(), owner, where)
        for other, there in told.items():
            both = (where.cpus or CPUSet()) & there.exclusive
            assert owner.workload == other.workload or not both, f"{owner} may run on CPUs {both} of {other}"
    for owner in owners:
        full = full.release(owner.workload)
        _check_nothing_own(full, owner, "after it was released")


def _check_granted(held: Sequence[Holding], owner: Owner, where: Confinement) -> None:
    """Whether what is an owner's own was granted to it."""
    own = [one for one in held if one.owner == owner]
    cpus = CPUSet(cpu for one in own for cpu in one.cpus)
    assert where.exclusive == cpus, f"{owner} was granted CPUs {cpus}, and is told {where.exclusive}"
    for resource, ids in where.devices.items():
        granted = sorted(name for one in own if one.resource == resource for name in one.ids)
        assert sorted(ids) == granted, f"{owner} was granted {resource} {granted}, and is told {ids}"
    if where.mems is not None:
        # Memory is what has neither numbers nor names.
        nodes = NodeSet(node for one in own if not one.cpus and not one.ids for node in one.nodes)
        assert nodes <= where.mems, f"{owner} holds memory on nodes {nodes}, and is told {where.mems}"


@in_words
def check_adopts(allocator: Allocator, asked: Sequence[Workload], /) -> None:
    """Hold an allocator to what taking over running containers relies on.

    Args:
        allocator: Holds nothing, `Adopts`, and `Confines` to say where.
        asked: Workloads that fit it together.

    Raises:
        AssertionError: Says which promise is broken.
    """
    full = filled(allocator, asked)
    again = allocator
    for claim in _claims(asked):
        nothing = Claim(owner=claim.owner, amounts={})
        assert _adopted(again, nothing, Confinement()) == again, (
            f"{claim.owner} asks for nothing and holds it"
        )
        where, before = _confines(full, claim.owner), _pickled(again)
        answer = _adopted(again, claim, where)
        assert again == before, "adopting changed the allocator that was asked"
        assert not isinstance(answer, Shortfall | NotYet), f"{claim.owner} runs where nobody is: {answer}"
        now = _confines(answer, claim.owner)
        assert now.exclusive == where.exclusive, (
            f"{claim.owner} runs on CPUs {where.exclusive} of its own, and holds {now.exclusive}"
        )
        assert now.devices == where.devices, f"{claim.owner} uses {where.devices}, and holds {now.devices}"
        assert where.mems is None or (now.mems is not None and now.mems <= where.mems), (
            f"{claim.owner} has its memory on nodes {where.mems}, and holds it on {now.mems}"
        )
        again = answer
    if isinstance(full, Accounts) and isinstance(again, Accounts):
        assert _sorted(again.holdings()) == _sorted(full.holdings()), "what is adopted is held otherwise"
    for claim in _claims(asked):
        where, now = _confines(full, claim.owner), _confines(again, claim.owner)
        assert now.cpus == where.cpus, f"{claim.owner} ran on CPUs {where.cpus}, and is to on {now.cpus}"
        if where.exclusive:
            _check_absent(allocator, claim, where)
        if where.exclusive or any(where.devices.values()):
            other = attrs.evolve(claim, owner=Owner("check-adopts", claim.owner.member), reuse=())
            taken = _adopted(full, other, where)
            assert isinstance(taken, Shortfall | NotYet), f"{other.owner} holds what {claim.owner} holds"


def _check_absent(allocator: Allocator, claim: Claim, where: Confinement) -> None:
    """Nobody holds CPUs that the machine has not."""
    absent = CPUSet(cpu + 4096 for cpu in where.exclusive)
    nowhere = attrs.evolve(where, cpus=absent, exclusive=absent)
    answer = _adopted(allocator, claim, nowhere)
    assert isinstance(answer, Shortfall | NotYet), f"{claim.owner} holds CPUs {absent}, which are not there"


def _adopted(allocator: Allocator, claim: Claim, where: Confinement) -> Allocator | Shortfall | NotYet:
    assert isinstance(allocator, Adopts), f"{allocator.name} has no `adopted`"
    return allocator.adopted(claim, where)


def _check_nothing_own(allocator: Allocator, owner: Owner, when: str) -> None:
    where = _confines(allocator, owner)
    assert not where.exclusive, f"{owner} has CPUs {where.exclusive} of its own, {when}"
    assert not any(where.devices.values()), f"{owner} has {where.devices}, {when}"


def _confines(allocator: Allocator, owner: Owner) -> Confinement:
    assert isinstance(allocator, Confines), f"{allocator.name} has no `confinement`"
    return allocator.confinement(owner)


def _rows(allocator: Allocator, asked: Iterable[Workload]) -> dict[str, Json]:
    rows = {one.key: _remembered(allocator, one.key) for one in asked}
    return {key: row for key, row in rows.items() if row is not None}


def _remembered(allocator: Allocator, workload: str) -> Json:
    assert isinstance(allocator, Remembers), f"{allocator.name} cannot be remembered any more"
    return allocator.remembered(workload)


def _through_json(rows: Mapping[str, Json]) -> dict[str, Json]:
    try:
        again = JsonCheckpoint.unmarshal(JsonCheckpoint(kind="check", version=1, value=rows).marshal()).value
    except (NodeallocError, TypeError) as error:
        raise AssertionError(f"what is remembered cannot be written as JSON: {error}") from error
    assert isinstance(again, Mapping), "a mapping was stored"
    return {key: again[key] for key in rows}


def _claims(asked: Iterable[Workload]) -> list[Claim]:
    return [claim for workload in asked for claim in workload.claims]


def _sorted(held: Iterable[Holding]) -> list[Holding]:
    return sorted(held, key=lambda one: (one.owner, one.resource, one.nodes.mask, one.amount))


def _pickled(value: T) -> T:
    copy: T = pickle.loads(pickle.dumps(value))  # noqa: S301
    return copy
