"""The run of one seed: a program on a machine in virtual time, with faults, restarts and checkers."""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Self

from nodealloc.dsw_asw import Driven, Summary
from nodealloc.testing.simulation._chance import Chance, FaultOccurrence
from nodealloc.testing.simulation._clock import SimulatedClock
from nodealloc.testing.simulation._executor import Killed, SeededExecutor
from nodealloc.testing.simulation._life import Life
from nodealloc.testing.simulation._report import Report, ViolationError
from nodealloc.testing.simulation._silence import silence
from nodealloc.testing.simulation._threads import SimulatedThreads

__all__ = ["Simulation"]

_TOLD = 30
"""Happenings before a violation that its message tells."""
_IDLE = 1_000
"""Passes in a row without a call after which it counts as over."""
_PASSES = 20_000
"""Passes and calls in one moment after which it counts as a livelock."""
_EARLY_S = 0.001
"""A driver that rests is asked so much before its next pass is due: sums of floats are not exact."""


class Simulation:
    """One seed: a node's life, the same each time.

    Faults, by name, besides those of the executor and of ports: `killed`
    (between two calls), `power lost`, `machine sleeps`, `clock jumps` (a stall
    of an hour at most), `clock is set` (the wall clock alone, by a year at most),
    `pass without reason`. While it runs, what
    `nodealloc` logs below CRITICAL is not written: faults are meant here.

    `run`, `settle`, `go_on` and `rest` do all that they do on threads of their own, one at a
    time, and return or raise when they are done; a debugger or a profiler sees it on the thread
    of the caller when `step` is called instead.

    Args:
        seed: What all randomness is drawn from.
        build: From a life to what is driven; called again after each kill. It
            reads what outlived the last life through ports. What it returns is asked for work
            once it wakes its listeners, when a pass is due, and after each pass.
        odds: Fault to its probability each time it may strike.
        only: No others than these strike; see `Chance`.
        latency_s: Mean virtual seconds until a call begins.
        pass_after_s: Mean virtual seconds from a wake-up to the pass that it brings, as on a busy
            machine; what happens until then is seen by the same pass.
        away_s: How long a program that was killed may be away, in virtual seconds; one of these by lot.

    Attributes:
        clock: The machine's clocks.
        chance: Which faults strike.
        life: The present one.
        ended_s: When the one before it ended, on the clock that stands still while the machine sleeps.
    """

    def __init__(
        self,
        seed: int,
        build: Callable[[Life], Driven],
        *,
        odds: Mapping[str, float] | None = None,
        only: Collection[FaultOccurrence] | None = None,
        latency_s: float = 0.05,
        pass_after_s: float = 0.0,
        away_s: Sequence[float] = (0.0,),
    ) -> None:
        self.seed = seed
        self.clock: SimulatedClock = SimulatedClock()
        self.chance: Chance = Chance(random.Random(seed), odds, only=only)
        self._build = build
        self._latency_s = latency_s
        self._pass_after_s = pass_after_s
        self._away_s = tuple(away_s)
        self._next_pass_s: float | None = None
        self._is_woken = True
        self._rests_until_s = -math.inf
        self._threads = SimulatedThreads()
        self._checks: list[Callable[[], object]] = []
        self._final: list[Callable[[], object]] = []
        self._ended: list[Callable[[bool], object]] = []
        self._acts: list[tuple[float, Callable[[random.Random], object]]] = []
        self._next_act_s: float | None = None
        self._story: deque[tuple[float, str]] = deque(maxlen=_TOLD)
        self._operations = 0
        self._summary = Summary()
        self._driver: Driven | None = None
        self._lives = 0
        self._in_this_moment = 0
        self.chance.on_strike = self.tell
        self.life: Life = self._born()
        self.ended_s: float = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process and the threads of calls that took time."""
        self.life.end()
        self.life.executor.bury()
        self._threads.close()

    def check(self, checker: Callable[[], object], /) -> None:
        """Call this after everything that happens; it raises `AssertionError` for a violation."""
        self._checks.append(checker)

    def check_settled(self, checker: Callable[[], object], /) -> None:
        """Call this when all is quiet and nothing strikes any more."""
        self._final.append(checker)

    def on_end(self, call: Callable[[bool], object], /) -> None:
        """Call this when a process has ended, with whether power was lost with it."""
        self._ended.append(call)

    def act(self, every_s: float, call: Callable[[random.Random], object], /) -> None:
        """Let the world outside do something, every so many virtual seconds on average, until `settle`."""
        self._acts.append((every_s, call))
        self._set_next_act()

    def tell(self, what: str, /) -> None:
        """Add a line to the story of a violation."""
        self._story.append((self.clock.passed_s, what))

    def kill(self, *, power_lost: bool = False, down_s: float = 30.0) -> None:
        """End the process now; the next step starts another one. Without power the machine boots again."""
        self.life.end()
        self._restart(power_lost=power_lost, down_s=down_s)

    def run(self, operations: int, /) -> Report:
        """Live until so many more operations have been made, with faults."""
        before, idle = self._count(), -1
        until = before + operations

        def is_over(happened: bool) -> bool:
            nonlocal before, idle
            count = self._count()
            idle = idle + 1 if count == before else 0
            before = count
            if self._next_act_s is None and (idle > _IDLE or not happened):
                raise self._violation("nothing is left to do, and nobody acts from outside")
            return before >= until

        self._step_until(is_over)
        return self.report()

    def settle(self, *, within_s: float = 7200.0, until: Callable[[], bool] = lambda: True) -> Report:
        """Stop faults and acts, let what hangs go on, live until all is quiet, and call the final checkers.

        Args:
            within_s: Virtual seconds that it may take.
            until: What has to be true besides: nothing runs, and nothing is held off.

        Raises:
            ViolationError: It took longer, or a checker found something.
        """
        self.chance.stop()
        self._next_act_s = None
        self.life.executor.release()
        until_s = self.clock.passed_s + within_s

        def is_over(happened: bool) -> bool:
            if not happened:
                raise self._violation("nothing is left to do, and it is not what it should be")
            is_quiet = self._is_quiet(until)
            if not is_quiet and self.clock.passed_s > until_s:
                raise self._violation(f"not quiet {within_s:g} s after the last fault: {self._summary}")
            return is_quiet

        self._step_until(is_over)
        with silence():
            self._run_checks(self._final)
        return self.report()

    def go_on(self, steps: int, /) -> None:
        """After `settle`, let so much more happen, with faults and without acts, or until nothing is left."""
        self.chance.is_on = True
        left = steps + 1

        def is_over(happened: bool) -> bool:
            nonlocal left
            left -= 1
            return not (left and happened)

        self._step_until(is_over)

    def live_on(self, operations: int, /) -> Report:
        """After `settle`, let the world outside act until so many more have been made, without faults."""
        self._act_soon()
        return self.run(operations)

    def rest(self, seconds: float, /) -> None:
        """After `settle`, let so much virtual time pass, without faults and acts."""
        until_s = self.clock.passed_s + seconds
        self._step_until(lambda happened: not happened or self.clock.passed_s >= until_s)

    def step(self) -> bool:
        """Let one thing happen; False when nothing can happen by itself."""
        self._in_this_moment += 1
        if self._in_this_moment > _PASSES:
            raise self._violation(f"{_PASSES:,} things happened in one moment, and there is no end")
        strikes = self.chance.strikes
        if strikes("killed"):
            self.kill()
        if strikes("power lost"):
            self.kill(power_lost=True)
        if strikes("machine sleeps"):
            self.clock.sleep(self.chance.rng.uniform(1.0, 1e5))
        if strikes("clock jumps"):
            self.clock.advance(self.chance.rng.choice((1.0, 60.0, 3600.0)))
        if strikes("clock is set"):
            self.clock.set_wall(self.chance.rng.uniform(-3e7, 3e7))
        driver = self._driven()
        if driver is None:
            return True
        return self._stepped(happened=self._happen(driver))

    def report(self) -> Report:
        """What happened so far."""
        return Report(
            operations=self._count(),
            faults=self.chance.struck.total(),
            lives=self._lives,
            passed_s=self.clock.passed_s,
            summary=self._summary,
        )

    def _step_until(self, is_over: Callable[[bool], bool]) -> None:
        """Step until it is over; that is asked with whether anything happened."""
        happened = True
        with silence():
            if not is_over(happened):
                self._threads.drive(
                    lambda: not is_over(self.step()), lambda: not is_over(self._stepped(happened=happened))
                )

    def _stepped(self, *, happened: bool) -> bool:
        """What each step ends with."""
        if self.life.is_over:
            self._restart()
        if happened:
            self._run_checks(self._checks)
        return happened

    def _count(self) -> int:
        return self._operations + self.life.calls

    def _born(self) -> Life:
        self._lives += 1
        executor = SeededExecutor(self.clock, self.chance, self._threads, latency_s=self._latency_s)
        return Life(self._lives, self.clock, executor, self.chance)

    def _restart(self, *, power_lost: bool = False, down_s: float = 0.0) -> None:
        self._driver = self._next_pass_s = None
        self.ended_s = self.clock.awake_s
        self._operations += self.life.calls
        # Only now: what ends on the way may take locks that the killed call held.
        self.life.executor.bury()
        if power_lost:
            self.clock.reboot(down_s=down_s)
            self._set_next_act()
        elif any(self._away_s):
            self.clock.advance(self.chance.rng.choice(self._away_s))
        for call in self._ended:
            call(power_lost)
        self.life = self._born()
        self.tell(f"life {self._lives} begins")

    def _driven(self) -> Driven | None:
        """The program; None where it was killed while it started."""
        if self._driver is None:
            try:
                self._driver = self._build(self.life)
                self._driver.add_listener(self._wake)
                self._is_woken = True
            except Killed:
                self._restart()
            except Exception as error:
                raise self._violation(f"the program does not start: {error!r}") from error
        return self._driver

    def _happen(self, driver: Driven) -> bool:
        executor, rng = self.life.executor, self.chance.rng
        for _ in range(2):
            now_s = self.clock.monotonic_s()
            if self._next_act_s is not None and self._next_act_s <= now_s:
                self._act()
                return True
            ready, pass_s = executor.is_ready, self._pass_due_s(driver, now_s)
            is_due = pass_s is not None and pass_s <= now_s
            if ready and (not is_due or rng.random() < 0.5):
                self._operations += 1
                executor.run_next()
                return True
            if is_due or self.chance.strikes("pass without reason"):
                self._pass(driver)
                return True
            if pass_s is None:
                wait_s = driver.seconds_to_next()
                pass_s = None if wait_s is None else now_s + wait_s
                self._rests_until_s = math.inf if pass_s is None else pass_s - _EARLY_S
            due = [one for one in (executor.next_due_s, self._next_act_s, pass_s) if one is not None]
            if not due:
                return False
            # A float's last bit must not keep time from passing.
            self.clock.advance(max(min(due) - now_s, 1e-6))
            self._in_this_moment = 0
        return True

    def _pass_due_s(self, driver: Driven, now_s: float) -> float | None:
        """When the pass is made for which there is work; None for no work.

        As a thread that drives does, it rests until it is woken or a pass is due by itself.
        """
        rests = not self._is_woken and now_s < self._rests_until_s
        if self._next_pass_s is None and not rests and driver.has_work:
            after_s = self._pass_after_s
            self._next_pass_s = now_s + (self.chance.rng.expovariate(1.0) * after_s if after_s else 0.0)
        return self._next_pass_s

    def _wake(self) -> None:
        self._is_woken = True

    def _pass(self, driver: Driven) -> int:
        """Make a pass; how many steps are held off."""
        held_off, self._next_pass_s = 0, None
        self._is_woken, self._rests_until_s = False, -math.inf
        try:
            self._summary = driver.reconcile()
            held_off = self._summary.held_off
        except KeyboardInterrupt:
            self._is_woken = True
            self.tell("a pass was interrupted")
        except Killed:
            self.tell("killed in a pass")
        except Exception as error:
            raise self._violation(f"a pass raised {error!r}") from error
        return held_off

    def _act(self) -> None:
        weights = [1.0 / every_s for every_s, _ in self._acts]
        ((_, call),) = self.chance.rng.choices(self._acts, weights)
        call(self.chance.rng)
        self._set_next_act()

    def _set_next_act(self) -> None:
        if self.chance.is_on or self._next_act_s is not None:
            self._act_soon()

    def _act_soon(self) -> None:
        if self._acts:
            rate = sum(1.0 / every_s for every_s, _ in self._acts)
            self._next_act_s = self.clock.monotonic_s() + self.chance.rng.expovariate(rate)

    def _is_quiet(self, until: Callable[[], bool]) -> bool:
        driver, executor = self._driven(), self.life.executor
        if driver is None or executor.paused or executor.next_due_s is not None or self._is_busy(driver):
            return False
        held_off = self._pass(driver)
        # What that pass started, or woke, is still to come.
        return not (held_off or driver.has_work or self._is_busy(driver)) and until()

    def _is_busy(self, driver: Driven) -> bool:
        """Whether anything runs that does not wait for somebody outside."""
        return len(driver.running()) > self.life.executor.resting

    def _run_checks(self, checks: list[Callable[[], object]]) -> None:
        for check in checks:
            try:
                check()
            except AssertionError as error:
                raise self._violation(str(error) or "a checker refused it") from error

    def _violation(self, what: str) -> ViolationError:
        story = tuple(f"{at_s:.3f} s: {line}" for at_s, line in self._story)
        return ViolationError(what, self.seed, self.clock.passed_s, story)
