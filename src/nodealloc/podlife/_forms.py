"""Pure functions: which form of a pod is acted upon, and which one comes, as what is said of it changes."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from nodealloc import _attrs as attrs
from nodealloc.podlife._look import StartFailure
from nodealloc.podlife._record import Coming, PodRecord
from nodealloc.podlife._stops import containers_of
from nodealloc.podlife._wanted import PodWanted
from nodealloc.podspec import Pod

__all__ = ["as_wanted", "in_form", "made_ready", "unready"]


def as_wanted(record: PodRecord, want: PodWanted, /, *, parts: Collection[str], waits: bool) -> PodRecord:
    """With the pod as it is now, and the pokes that nobody answered.

    Args:
        record: What is remembered.
        want: What is said of it now.
        parts: Preparations of a pod.
        waits: Whether another form is acted upon once all parts are ready for it; else it is at once.
    """
    if record.pod is not want.pod and record.pod != want.pod:
        record, coming = _with_coming(record, want.pod)
        if not waits or coming.ready.issuperset(parts):
            record = in_form(record, coming)
    elif record.coming is not None:
        record = _without_coming(record, record.coming)
    if record.pokes != want.pokes:
        poked = [name for name, number in want.pokes.items() if record.pokes.get(name) != number]
        names = () if "" in poked else tuple(poked)
        record = record.but(pokes=want.pokes, restarts=record.restarts.poked(names))
    return record


def in_form(record: PodRecord, form: Coming, /) -> PodRecord:
    """Another form is acted upon from now on, with the parts that are ready for it."""
    return record.but(
        pod=form.pod,
        edition=form.edition,
        coming=None,
        definitions=None,
        images=_still_wanted(record, form.pod),
        failures=_still_waiting(record, form.pod),
        edition_ready={**record.edition_ready, **dict.fromkeys(form.ready, form.edition)},
        provided={**record.provided, **form.provided},
    )


def unready(record: PodRecord, parts: Collection[str], /) -> tuple[str, ...]:
    """Parts that are not ready for the form that is acted upon, in their order.

    One that is ready for the form that comes serves the one before it as well.
    """
    ready = _NONE if record.coming is None else record.coming.ready
    return tuple(
        [one for one in parts if record.edition_ready.get(one) != record.edition and one not in ready]
    )


def made_ready(
    record: PodRecord, edition: int, ready: Collection[str], provided: Mapping[str, object], /
) -> PodRecord:
    """With parts that were made ready for a form; for one that came to nothing they serve no other."""
    coming = record.coming
    if coming is None or coming.edition != edition:
        return record.but(
            edition_ready={**record.edition_ready, **dict.fromkeys(ready, edition)},
            provided={**record.provided, **provided},
        )
    came = attrs.evolve(coming, ready=coming.ready.union(ready), provided={**coming.provided, **provided})
    # What runs goes on with what it was given; where nobody knows that any more, this is what there is.
    return record.but(coming=came, provided={**provided, **record.provided})


def _with_coming(record: PodRecord, pod: Pod) -> tuple[PodRecord, Coming]:
    coming = record.coming
    if coming is not None and (coming.pod is pod or coming.pod == pod):
        return record, coming
    if coming is not None:
        record = _without_coming(record, coming)
    coming = Coming(pod=pod, edition=record.edition + 1)
    return record.but(coming=coming), coming


def _without_coming(record: PodRecord, coming: Coming) -> PodRecord:
    """All parts are to be made ready for this form again, as any of them may have begun with the other.

    A call for that one may still be on its way, so this one has another number from now on.
    """
    return record.but(coming=None, edition=coming.edition + 1, edition_ready={})


def _still_wanted(record: PodRecord, pod: Pod) -> Mapping[str, str]:
    """Images that were got, without those of containers that are to run from another one now."""
    if not record.images:
        return record.images
    same = _of_same_image(record, pod)
    return {name: image for name, image in record.images.items() if name in same}


def _still_waiting(record: PodRecord, pod: Pod) -> Mapping[str, StartFailure]:
    """Why containers do not run; of one that is to run from another image nothing is waited for."""
    if not record.failures:
        return record.failures
    same = _of_same_image(record, pod)
    return {
        name: one if name in same else attrs.evolve(one, until_s=None)
        for name, one in record.failures.items()
    }


def _of_same_image(record: PodRecord, pod: Pod) -> frozenset[str]:
    """Names of containers that are to run from the image that they ran from by the form before."""
    before, now = containers_of(record.pod), containers_of(pod)
    return frozenset(name for name in before if name in now and before[name].image == now[name].image)


_NONE = frozenset[str]()
