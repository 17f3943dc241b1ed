"""Calls to allocators, with whatever goes wrong in one turned into an error that names it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, cast

from nodealloc import _attrs as attrs
from nodealloc.topology._claims import Claim
from nodealloc.topology._errors import ProviderError, WorkLimitError
from nodealloc.topology._hints import Hints, TopologyHint
from nodealloc.topology._ports import Allocator, Availability, Reports, Shortfall
from nodealloc.verdicts import NotYet

__all__ = ["Stopped", "allocated", "hints_of", "nonsense", "released", "reports_of"]


_NO_GRANT = (Shortfall, NotYet)
_all_of: Final = cast("Callable[[Iterable[object]], tuple[Allocator, ...]]", tuple)


@attrs.frozen
class Stopped:
    """An allocator that does not grant, and what it said."""

    provider: str
    answer: Shortfall | NotYet


def hints_of(allocators: Sequence[Allocator], claims: Sequence[Claim]) -> list[Hints] | NotYet:
    """Every allocator's hints for the claims, in order; stops at one that is not ready.

    Raises:
        ProviderError: An allocator raised.
        WorkLimitError: An allocator gave up.
    """
    answers: list[Hints] = []
    for allocator in allocators:
        try:
            answer = allocator.hints(claims)
        except WorkLimitError:
            raise
        except Exception as error:
            raise _failed(allocator, "hints", claims, f"raised {error!r}") from error
        if not isinstance(answer, dict) and isinstance(answer, NotYet):
            return answer
        answers.append(answer)
    return answers


def allocated(
    allocators: tuple[Allocator, ...], claim: Claim, affinity: TopologyHint
) -> tuple[Allocator, ...] | Stopped:
    """The allocators with the claim granted by all of them, or who did not grant it.

    Raises:
        ProviderError: An allocator raised, or answered with no allocator.
        WorkLimitError: An allocator gave up.
    """
    granted: list[Allocator | Shortfall | NotYet] = []
    for allocator in allocators:
        try:
            answer = allocator.allocate(claim, affinity)
        except WorkLimitError:
            raise
        except Exception as error:
            raise _failed(allocator, "allocate", (claim,), f"raised {error!r}") from error
        if type(answer) is not type(allocator):
            if isinstance(answer, _NO_GRANT):
                return Stopped(allocator.name, answer)
            _check_allocator(allocator, answer, (claim,))
        granted.append(answer)
    return _all_of(granted)


def released(allocators: tuple[Allocator, ...], workload: str, member: str | None) -> tuple[Allocator, ...]:
    """The allocators without what the member, or the whole workload, holds.

    Raises:
        ProviderError: An allocator raised, or answered with no allocator.
    """
    left: list[Allocator] = []
    for allocator in allocators:
        try:
            answer = allocator.release(workload, member)
        except Exception as error:
            owner = f"{workload}/{member or '*'}"
            raise ProviderError(allocator.name, "release", "", owner, f"raised {error!r}") from error
        if type(answer) is not type(allocator):
            _check_allocator(allocator, answer, ())
        left.append(answer)
    return tuple(left)


def reports_of(allocators: Sequence[Allocator], claims: Sequence[Claim]) -> list[tuple[str, Availability]]:
    """What allocators with `Reports` say about the claims, each with the allocator's name.

    Raises:
        ProviderError: An allocator raised.
    """
    found: list[tuple[str, Availability]] = []
    for allocator in allocators:
        if isinstance(allocator, Reports):
            try:
                reports = allocator.availability(claims)
            except Exception as error:
                raise _failed(allocator, "availability", claims, f"raised {error!r}") from error
            found += [(allocator.name, report) for report in reports]
    return found


def _check_allocator(before: Allocator, answer: object, claims: Sequence[Claim]) -> None:
    if not (hasattr(answer, "allocate") and hasattr(answer, "release")):
        what = f"answered with a {type(answer).__name__} where an allocator, Shortfall or NotYet belongs"
        raise _failed(before, "allocate" if claims else "release", claims, what)


def nonsense(provider: str, claim: Claim, answer: Shortfall, error: Exception) -> ProviderError:
    """For a shortfall that no refusal can be made of: no reason, or amounts that are no numbers."""
    return _error(provider, "allocate", (claim,), f"answered {answer}: {error}")


def _failed(allocator: Allocator, call: str, claims: Sequence[Claim], reason: str) -> ProviderError:
    return _error(allocator.name, call, claims, reason)


def _error(provider: str, call: str, claims: Sequence[Claim], reason: str) -> ProviderError:
    resources = ", ".join(sorted({name for claim in claims for name in claim.amounts}))
    owners = ", ".join(f"{claim.owner.workload}/{claim.owner.member}" for claim in claims)
    return ProviderError(provider, call, resources, owners, reason)
