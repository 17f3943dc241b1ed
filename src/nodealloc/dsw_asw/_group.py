"""Reconcilers that are driven, remembered and stopped as one."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator

from typing_extensions import override

from nodealloc._arguments import wrong
from nodealloc._typed import typed
from nodealloc.dsw_asw._driven import Driven, Passing
from nodealloc.dsw_asw._remembering import Rows, commit_all
from nodealloc.dsw_asw._steps import Running
from nodealloc.dsw_asw._summary import Summary

__all__ = ["Group"]


class Group(Driven):
    """Reconcilers of any types, and other groups, as one.

    A pass goes over those that have work: all plan, then all that is to be
    remembered is committed, once for each journal, then all start their steps.
    A change that one makes wakes those that depend on it (`Near`).

    Args:
        members: In the order in which they plan.
        name: For threads and messages.
        stop_timeout_s: Real seconds that `stop` waits for running operations.
        gather_s: Real seconds at least from one pass to the next, in the thread of `start`, while eight
            operations or more are under way and no key is left for the next pass: what happens
            meanwhile is planned once and committed together. 0 for a pass as soon as there is work.

    Raises:
        ConfigurationError: A time that nobody can wait.
    """

    @typed
    def __init__(
        self,
        *members: Driven,
        name: str = "reconcile",
        stop_timeout_s: float = 10.0,
        gather_s: float = 0.0,
    ) -> None:
        if gather_s > threading.TIMEOUT_MAX:
            raise wrong("Group: gather_s", gather_s, "seconds that somebody can wait")
        super().__init__(name, stop_timeout_s, gather_s)
        self._members = members
        # Asked many times a pass, so that groups in it are left out where they only pass a question on.
        self._answering = tuple(itertools.chain.from_iterable(map(_asked_in_place_of, members)))
        groups = [one for one in members if isinstance(one, Group)]
        of_groups = itertools.chain.from_iterable(group._signals for group in groups)  # noqa: SLF001
        self._signals: tuple[threading.Event, ...] = (self._work, *of_groups)
        self._all: tuple[Passing, ...] | None = None
        self._passing = threading.RLock()
        for member in members:
            member.add_listener(self._wake)

    @override
    def reconcile(self) -> Summary:
        """Make one pass over the members that have work."""
        with self._passing:
            self._quiet()
            done: list[Summary] = []
            resting: list[Summary] = []
            begun: list[tuple[Passing, Rows | None]] = []
            try:
                if self._all is None:
                    self._all = tuple(self.reconcilers())
                for one in self._all:
                    if one.has_work:
                        begun.append((one, one.begin_pass()))
                    else:
                        resting.append(one.glance())
                failed = commit_all(rows for _, rows in begun if rows is not None)
                while begun:
                    one, rows = begun[0]
                    error = None if rows is None else failed.get(id(rows.journal))
                    del begun[0]
                    done.append(one.end_pass(error))
            finally:
                for one, _ in begun:
                    one.abandon_pass()
            self._passed()
        # Members woke it while the pass was made; cleared before the question, so that no wake-up is lost.
        self._quiet()
        if self.has_work:
            self._wake()
        return Summary.of_one_pass(done, resting)

    @property
    @override
    def has_work(self) -> bool:
        """Whether a pass now would find something to do."""
        for one in self._answering:  # noqa: SIM110 - a generator costs more than all of them answer
            if one.has_work:
                return True
        return False

    @override
    def seconds_to_next(self) -> float | None:
        """How long until a pass is due by itself; None when only an event can bring one."""
        due = [wait_s for one in self._answering if (wait_s := one.seconds_to_next()) is not None]
        return min(due, default=None)

    @override
    def running(self) -> tuple[Running[object], ...]:
        """Operations of all members that were started and have not ended."""
        return tuple(one for member in self._members for one in member.running())

    @override
    def close(self, timeout_s: float = 0.0, /) -> tuple[Running[object], ...]:
        """Start nothing more, ask what runs to stop, and wait so many real seconds in all."""
        until_s = time.monotonic() + timeout_s
        for member in self._members:
            member.close()
        return tuple(
            one for member in self._members for one in member.close(max(0.0, until_s - time.monotonic()))
        )

    def _quiet(self) -> None:
        """Have the next change heard again, from groups in it too: they make no passes of their own."""
        for work in self._signals:
            if work.is_set():
                work.clear()

    @override
    def reconcilers(self) -> Iterator[Passing]:
        """Its reconcilers and those of the groups in it, in order."""
        for member in self._members:
            yield from member.reconcilers()


def _asked_in_place_of(member: Driven) -> tuple[Driven, ...]:
    """Who answers for a member: those in a group that answers as every group does; else itself."""
    if not isinstance(member, Group):
        return (member,)
    kind = type(member)
    answers_so = kind.has_work is Group.has_work and kind.seconds_to_next is Group.seconds_to_next
    return member._answering if answers_so else (member,)  # noqa: SLF001 - another one of this class
