"""What others know of a pod as what is told of it; from their values, by shape alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from nodealloc._typed import typed_on_error
from nodealloc.podfacts import status_from_manifest
from nodealloc.podspec import Pod, is_static
from nodealloc.podstatus._observed import Health, Observed, StartFailure, ToldEnding, with_runtime
from nodealloc.podstatus._ports import LifeFacts, ProbeResults

if TYPE_CHECKING:
    from nodealloc.errors import Fault

__all__ = ["observed_of", "with_source", "with_verdicts"]

_FINAL: Final = frozenset({"Succeeded", "Failed"})


@typed_on_error
def observed_of(facts: LifeFacts, /) -> Observed | None:
    """What is to be told of follows from this; for `StatusManager` beside `podlife.PodLives`.

    Args:
        facts: What is known of its life, such as a `podlife.PodFacts`.

    Returns:
        None for an orphan: nobody asked for it, and its uid may have been told as gone.
    """
    if facts.is_orphan:
        return None
    ending = facts.ending
    observed = Observed(
        pod=facts.pod,
        life=facts.life,
        start_failures={
            name: StartFailure(
                reason=one.waiting.reason, message=one.waiting.message, until_s=one.waiting.until_s
            )
            for name, one in facts.containers.items()
            if one.waiting is not None
        },
        counts={name: one.restart_count for name, one in facts.containers.items()},
        owed=frozenset([one.owed for one in facts.containers.values() if one.owed]),
        # Whoever ends by itself, or is deleted, has no reason: nobody else decided that it fails.
        ending=ToldEnding(reason=ending.reason, message=ending.message, disruption=ending.disruption)
        if ending is not None and ending.reason
        else None,
        refused=facts.is_refused,
        static=is_static(facts.pod),
        noticed_unix_s=facts.noticed_unix_s,
    )
    if facts.pod.status.get("phase") in _FINAL:
        # Its source may not have been read again since the start, and has the last word of it.
        observed = with_source(observed, facts.pod)
    return observed if facts.known is None else with_runtime(observed, facts.known)


@typed_on_error
def with_verdicts(observed: Observed, verdicts: ProbeResults, /) -> Observed:
    """With what probes have said; a `Part` over `probes.Probing.verdicts` is made of it."""
    started, ready = verdicts.started, verdicts.ready
    health = {one: Health(startup=started.get(one), readiness=ready.get(one)) for one in {**started, **ready}}
    return attrs.evolve(observed, health=health)


@typed_on_error
def with_source(observed: Observed, pod: Pod, /) -> Observed:
    """With the status that a source has of the pod: conditions of others, which readiness gates may ask for.

    A `Part` over `podsources.PodSources.pods` is made of it. What nobody knows of that status is left out.

    Raises:
        DecodeError: A field of it is wrong.
    """
    if not pod.status:
        return observed
    status = status_from_manifest(dict(pod.status), source=pod.full_name, unread=_left_out)
    return attrs.evolve(observed, source_status=status)


def _left_out(_fault: Fault) -> None:
    """It is of a newer API."""
