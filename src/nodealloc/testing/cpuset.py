"""A writer of cpusets that lives in memory, and the check that every writer has to pass.

>>> from nodealloc.cpuset import CPUSet
>>> writer = FakeCpusetWriter({"web": CPUSet.of(0, 1)})
>>> check_cpuset_writer(writer, "web", [CPUSet.of(0), CPUSet.of(0, 1)], absent="nobody")
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from nodealloc.cpuset import CPUSet, CpusetWriteError, TargetGoneError
from nodealloc.errors import NodeallocError
from nodealloc.testing._wording import in_words

if TYPE_CHECKING:
    from collections.abc import Callable

    from nodealloc.cpuset import CpuLayout, CpusetWriter, Picker
    from nodealloc.idset import NodeSet

__all__ = ["FakeCpusetWriter", "check_cpuset_writer", "check_picker"]


class FakeCpusetWriter:
    """A `CpusetWriter` over a dict; may be called from several threads.

    Change `sets` to play somebody else who writes.

    Attributes:
        sets: Target to what it is confined to.
        calls: `read web`, `write web 0-3`, in order.
    """

    def __init__(self, sets: Mapping[str, CPUSet] | None = None, *, online: CPUSet | None = None) -> None:
        self.sets: dict[str, tuple[CPUSet, NodeSet | None]] = {
            target: (cpus, None) for target, cpus in (sets or {}).items()
        }
        self.calls: list[str] = []
        self._online = online
        self._errors: dict[str, NodeallocError] = {}
        self._gates: dict[str, threading.Event] = {}
        self._lock = threading.Lock()

    def fail(self, target: str, error: NodeallocError | None, /) -> None:
        """Have writes to a target raise this, after half of them was done; None ends it."""
        if error is None:
            self._errors.pop(target, None)
        else:
            self._errors[target] = error

    def hang(self, target: str, /) -> threading.Event:
        """Have calls for a target hang until the event is set."""
        self._gates[target] = threading.Event()
        return self._gates[target]

    def read(self, target: str, /) -> tuple[CPUSet, NodeSet | None]:
        """See `CpusetWriter.read`."""
        self._enter(f"read {target}", target)
        with self._lock:
            if target not in self.sets:
                raise TargetGoneError(target)
            return self.sets[target]

    def write(self, target: str, cpus: CPUSet, mems: NodeSet | None, /) -> None:
        """See `CpusetWriter.write`."""
        self._enter(f"write {target} {cpus}", target)
        with self._lock:
            if target not in self.sets:
                raise TargetGoneError(target)
            if not cpus or (self._online is not None and not cpus <= self._online):
                raise CpusetWriteError(target, str(cpus), "no such CPUs")
            error = self._errors.get(target)
            before_cpus, before_mems = self.sets[target]
            self.sets[target] = (
                before_cpus if error is not None else cpus,
                before_mems if mems is None else mems,
            )
            if error is not None:
                raise error

    def _enter(self, call: str, target: str) -> None:
        with self._lock:
            self.calls.append(call)
        gate = self._gates.get(target)
        if gate is not None:
            gate.wait()


@in_words
def check_cpuset_writer(
    writer: CpusetWriter,
    target: str,
    choices: Sequence[CPUSet],
    /,
    *,
    absent: str,
    mems: NodeSet | None = None,
    beside: str | None = None,
) -> None:
    """Hold a writer to what the reconciler relies on.

    Args:
        writer: The one to check.
        target: A container that is there, and may be confined for the check.
        choices: At least two different sets that the target may be confined to, of which
            one is not part of another; it is left on the last one.
        absent: A target that is not there.
        mems: Memory nodes that it may be confined to, or None to leave them alone.
        beside: Another container that is there, and that nobody writes meanwhile;
            None for none.

    Raises:
        AssertionError: A promise is broken; the text says which.
    """
    assert len(set(choices)) > 1, "give two different sets at least"
    left = None if beside is None else writer.read(beside)
    for cpus in (*choices, choices[0], *choices):
        for _ in range(2):
            _passes(partial(writer.write, target, cpus, mems), f"writing {cpus}")
        read, nodes = writer.read(target)
        assert isinstance(read, CPUSet), f"wrote {cpus}, then read {read!r}, which is no CPUSet"
        assert read == cpus, f"wrote {cpus}, then read {read}"
        assert mems is None or nodes == mems, f"wrote memory nodes {mems}, then read {nodes}"
    writer.write(target, choices[-1], None)
    nodes = writer.read(target)[1]
    assert mems is None or nodes == mems, f"told to leave memory nodes {mems} alone, made {nodes} of them"
    _check_refused(lambda: writer.write(target, CPUSet(), None), "an empty set was taken")
    assert writer.read(target)[0] == choices[-1], "the refused empty set changed what is read"
    for verb, call in (
        ("read", lambda: writer.read(absent)),
        ("write", lambda: writer.write(absent, choices[0], None)),
    ):
        error = _check_refused(call, f"{verb} of an absent target did not raise")
        assert isinstance(error, TargetGoneError), f"{verb} of an absent target raised {error!r}"
    if beside is not None and left is not None:
        now = writer.read(beside)
        assert now == left, f"{target} was written, and {beside} changed from {left[0]} to {now[0]}"


_ALL_COUNTS = 16
"""Up to so many CPUs are asked for one by one; of more some."""


@in_words
def check_picker(picker: Picker, layout: CpuLayout, /) -> None:
    """Hold a picker to what the policy relies on, on sets of many sizes of one machine.

    Raises:
        AssertionError: A promise is broken; the text says which.
    """
    whole = layout.cpus
    without_first = whole & (whole - 1)
    every_other = sum(1 << cpu for place, cpu in enumerate(CPUSet.from_mask(whole)) if place % 2)
    answers: dict[tuple[int, int], int | None] = {}
    before = pickle.dumps(layout)
    for available in (whole, without_first, every_other, 0):
        size = available.bit_count()
        for count in sorted({*range(min(size, _ALL_COUNTS) + 1), size // 2, size - 1, size, size + 1}):
            if count < 0:
                continue
            asked = f"{count} of {CPUSet.from_mask(available)}"
            try:
                taken = picker.pick(layout, available, count)
            except Exception as error:
                raise AssertionError(f"{asked}: raised {error!r}; answer None where it cannot be") from error
            answers[available, count] = taken
            assert taken == picker.pick(layout, available, count), f"{asked}: answered differently again"
            if taken is None:
                assert count > 0, f"{asked}: refused"
                continue
            kind = type(taken).__name__
            assert kind == "int", f"{asked}: a picker answers with a mask as an integer, found {kind}"
            assert taken >= 0, f"{asked}: a picker answers with a mask as an integer, 0 or more"
            assert not taken & ~available, f"{asked}: took {CPUSet.from_mask(taken & ~available)} as well"
            assert taken.bit_count() == count, f"{asked}: took {taken.bit_count()}"
    for (available, count), taken in reversed(answers.items()):
        asked = f"{count} of {CPUSet.from_mask(available)}"
        assert taken == picker.pick(layout, available, count), (
            f"{asked}: answered differently once it had been asked for others"
        )
    assert pickle.dumps(layout) == before, "a picker changed the layout that it was given"


def _passes(call: Callable[[], object], what: str) -> None:
    try:
        call()
    except Exception as error:
        raise AssertionError(f"{what} raised {error!r}; it may be repeated") from error


def _check_refused(call: Callable[[], object], otherwise: str) -> NodeallocError:
    try:
        call()
    except NodeallocError as error:
        return error
    except Exception as error:
        raise AssertionError(f"{otherwise}, but {error!r}, which is no NodeallocError") from error
    raise AssertionError(otherwise)
