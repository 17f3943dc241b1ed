"""Checkers of what is told: each hears every event of the node, and remembers what it needs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection

from nodealloc.podfacts import ContainerRunning, ContainerTerminated, Exited, PodPhase, PodStatus
from nodealloc.podspec import RestartPolicy
from nodealloc.testing.simulation.node._behaviour import end_reason, last_words
from nodealloc.testing.simulation.node._environment import Environment
from nodealloc.testing.simulation.node._events import Event, What
from nodealloc.testing.simulation.node._guarantee import Guarantee, id_told, is_ready
from nodealloc.testing.simulation.node._pods import READY

__all__ = [
    "CountsRise",
    "EndsAreKept",
    "ExitsAreTrue",
    "NothingToldAfterwards",
    "OverStays",
    "PhasesGoOn",
    "SameEnd",
    "TerminalStays",
]


class TerminalStays(Guarantee):
    """Guarantee 8."""

    words = "a terminal phase stays; each pod tells one before it is gone"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._terminal: dict[str, PodPhase] = {}

    def heard(self, event: Event, /) -> None:
        """What is told does not come back from its end."""
        if event.what is What.TOLD and isinstance(event.value, PodStatus) and event.value.phase is not None:
            phase = event.value.phase
            before = self._terminal.get(event.uid)
            assert before is None or phase is before, (
                f"{event.uid} was told to be {before.value} and is now {phase.value}"
            )
            if phase.is_terminal:
                self._terminal[event.uid] = phase
                running = self.main_runs(event.uid) - self.environment.containers.late
                assert not running, f"{event.uid} is told to be {phase.value} while {', '.join(running)} runs"
        if event.what is What.GONE:
            assert event.uid in self._terminal, f"{event.uid} is gone, and was never told to have ended"


class PhasesGoOn(Guarantee):
    """Guarantee 8."""

    words = "a pod that is told to run does not wait again while it runs"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._running_with: dict[str, set[str]] = {}

    def heard(self, event: Event, /) -> None:
        """Pending is not told of what was told to run, and runs as it did."""
        if event.what is not What.TOLD or not isinstance(event.value, PodStatus):
            return
        runs = self.main_runs(event.uid)
        states = [one.state for one in event.value.containers]
        is_running = bool(states) and all(isinstance(one, ContainerRunning) for one in states)
        assert not is_running or event.value.phase is PodPhase.RUNNING, (
            f"{event.uid}: all its containers are told to run, and it is told to be {event.value.phase}"
        )
        if event.value.phase is PodPhase.RUNNING:
            self._running_with[event.uid] = runs
        if event.value.phase is PodPhase.PENDING:
            before = self._running_with.pop(event.uid, None)
            assert not before or not before <= runs, f"{event.uid} was told to run, runs, and is told to wait"


class NothingToldAfterwards(Guarantee):
    """Guarantee 3."""

    words = "only pods that somebody wanted are told of, and none after it was told gone"

    def heard(self, event: Event, /) -> None:
        """A status is of a pod that there was, and is."""
        if event.what is What.TOLD:
            assert event.uid in self.environment.known, f"{event.uid} is told of, and nobody ever wanted it"
            assert event.uid not in self.environment.gone, f"{event.uid} is told of after it was told gone"


class CountsRise(Guarantee):
    """Guarantees 1 and 9."""

    words = "restart counts that are told never fall, and count what happened"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._counts: dict[tuple[str, str], int] = defaultdict(int)
        self._made: Counter[tuple[str, str]] = Counter()
        self._killed = 0

    def heard(self, event: Event, /) -> None:
        """A count is at least what it was, and no further ahead of what was made than kills explain."""
        if event.what is What.MADE:
            self._made[event.uid, event.name] += 1
        if event.what is What.KILLED:
            self._killed += 1  # what was about to be made may have been, for all that anybody knows
        if event.what is not What.TOLD or not isinstance(event.value, PodStatus):
            return
        for one in event.value.all_containers:
            before = self._counts[event.uid, one.name]
            assert one.restart_count >= before, (
                f"{event.uid}/{one.name} was restarted {before} times and is now told {one.restart_count}"
            )
            self._counts[event.uid, one.name] = one.restart_count
            made = self._made[event.uid, one.name]
            assert one.restart_count <= made + self._killed, (
                f"{event.uid}/{one.name} was made {made} times and is told to be "
                f"restarted {one.restart_count}"
            )


class OverStays(Guarantee):
    """Guarantee 8: what was told of a pod outlives whoever told it."""

    words = "a pod of which its source says that it has ended is not run again, nor told to be otherwise"

    def heard(self, event: Event, /) -> None:
        """Nothing is made of it."""
        if event.uid not in self.environment.over:
            return
        assert event.what not in {What.SANDBOX_MADE, What.STARTED}, (
            f"{event.what.value} of {event.uid}, which had ended before"
        )
        if event.what is What.TOLD and isinstance(event.value, PodStatus):
            phase = event.value.phase
            assert phase is PodPhase.SUCCEEDED, f"{event.uid} had succeeded, and is told to be {phase}"


class ExitsAreTrue(Guarantee):
    """Guarantee 4."""

    words = "an exit code that is told is the one that there was, with what the runtime said of it"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._codes: dict[str, int] = {}
        self._began: set[str] = set()

    def heard(self, event: Event, /) -> None:
        """No code is told that no instance of the container ended with."""
        if event.what is What.STARTED:
            self._began.add(event.id)
        if event.what is What.ENDED and isinstance(event.value, Exited):
            self._codes[event.id] = event.value.code
        # Of one that had ended before the agent came that is told which its source said.
        was_over = event.uid in self.environment.over
        if event.what is What.TOLD and isinstance(event.value, PodStatus) and not was_over:
            for one in event.value.all_containers:
                for state in (one.state, one.last_state):
                    if isinstance(state, ContainerTerminated) and isinstance(state.exit, Exited):
                        made = id_told(state.container_id)
                        code = self._codes.get(made)
                        assert state.exit.code == code, (
                            f"{event.uid}/{one.name} ({made}) is told to have ended with {state.exit.code}; "
                            f"it ended with {'nothing yet' if code is None else code}"
                        )
                        reason, words = self._said(made, state.exit.code)
                        assert state.reason == reason, (
                            f"{event.uid}/{one.name} ({made}) is told to have ended for the reason "
                            f"{state.reason!r}, with {state.exit.code}"
                        )
                        assert state.message == words, (
                            f"{event.uid}/{one.name} ({made}) is told to have ended with the words "
                            f"{state.message!r}; they were {words!r}"
                        )

    def _said(self, made: str, code: int) -> tuple[str, str]:
        """Reason and words that the runtime has of an end; it says little of what it refused to start."""
        return (end_reason(code), last_words(made, code)) if made in self._began else ("StartError", "")


class EndsAreKept(Guarantee):
    """Guarantee 9."""

    words = "while a pod is wanted, an exit that the runtime knew is told, also when its record is gone"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._ended: set[tuple[str, str]] = set()
        self._lost: set[tuple[str, str]] = set()
        self._ids: set[str] = set()
        self._shown: set[tuple[str, str]] = set()

    def heard(self, event: Event, /) -> None:
        """Nobody tells of an unknown exit where the runtime has lost none."""
        key = (event.uid, event.name)
        if event.what is What.ENDED:
            self._ids.add(event.id)
        if event.what is What.ENDED:
            (self._ended if isinstance(event.value, Exited) else self._lost).add(key)
        # Of whom the runtime does not know how it is, that is told until somebody looks again.
        if event.what in {What.FORGOT, What.UNSURE}:
            self._lost.add(key)
        if event.what is What.POWER:
            self._lost |= self._ended  # nobody may have looked by then, and after a boot nobody needs to
        # Of a pod that is wanted no more the last word may be what was told before it was forgotten.
        is_wanted = event.uid not in self.environment.deletions
        if event.what is What.TOLD and isinstance(event.value, PodStatus) and is_wanted:
            for one in event.value.all_containers:
                key = (event.uid, one.name)
                shows = any(isinstance(each, ContainerTerminated) for each in (one.state, one.last_state))
                assert shows or key not in self._shown, (
                    f"{event.uid}/{one.name} was told to have ended, and nobody says so any more"
                )
                self._shown |= {key} if shows else set()
                for state in (one.state, one.last_state):
                    if isinstance(state, ContainerTerminated) and not isinstance(state.exit, Exited):
                        # One that was made and never ran ends with its pod, and nobody knows how.
                        made = id_told(state.container_id)
                        is_known = made in self._ids if made else key in self._ended
                        assert key in self._lost or not is_known, (
                            f"{event.uid}/{one.name} is told to have ended nobody knows how; the runtime knew"
                        )


class SameEnd(Guarantee):
    """Guarantee 15."""

    words = "when all is quiet, what runs and what is told is what was asked for, whatever happened"

    def settled(self) -> None:
        """Each wanted pod runs as its policy says; nothing else runs."""
        wanted = {uid: pod for pods in self.environment.pods.values() for uid, pod in pods.items()}
        # Of two of a name the second one is no pod of this node before the first one's manifest is gone.
        wanted = {uid: pod for uid, pod in wanted.items() if not self.environment.is_held_back(uid)}
        for one in self.environment.containers.running:
            uid = one.record.pod.uid
            assert uid in wanted, f"{uid}/{one.record.name} runs, and nobody wants it"
            assert uid not in self.environment.deletions, f"{uid}/{one.record.name} runs, and nobody wants it"
        for uid, pod in wanted.items():
            status = self.environment.told.get(uid)
            assert status is not None, f"nobody was ever told of {uid}"
            assert uid not in self.environment.deletions, (
                f"{uid} was asked to end, and is still there: {status.phase}"
            )
            runs = {
                one.record.name for one in self.environment.containers.running if one.record.pod.uid == uid
            }
            self._is_told_of(uid, runs)
            assert runs or status.is_terminal or pod.restart_policy is RestartPolicy.ALWAYS, (
                f"nothing of {uid} runs, or ever will, and it is told to be {status.phase}"
            )
            if pod.restart_policy is RestartPolicy.ALWAYS and status.phase is not PodPhase.FAILED:
                missing = [one.name for one in pod.containers if one.name not in runs]
                assert not missing, f"{uid}: {', '.join(missing)} should run; told: {status.phase}"
                unwell = self._unready(uid)
                assert is_ready(status) or unwell, f"{uid} runs, and is told not to be ready"
                assert not is_ready(status) or not unwell, (
                    f"{uid} is told to be ready, and its probe fails in {', '.join(unwell)}"
                )

    def _is_told_of(self, uid: str, runs: Collection[str]) -> None:
        """What runs is told to run."""
        for one in self.environment.told[uid].all_containers:
            running = isinstance(one.state, ContainerRunning)
            assert running or one.name not in runs, f"{uid}/{one.name} runs, and is told to be otherwise"
            assert not running or one.name in runs, f"{uid}/{one.name} is told to run, and does not"

    def _unready(self, uid: str) -> list[str]:
        """Names of containers that run, and whose readiness probe fails."""
        return [
            one.record.name
            for one in self.environment.containers.running
            if one.record.pod.uid == uid
            and READY in self.environment.containers.unwell.get(one.record.id, ())
            and self._asks(uid, one.record.name)
        ]

    def _asks(self, uid: str, name: str) -> bool:
        pod = self.pod(uid)
        return pod is not None and any(one.name == name and one.readiness_probe for one in pod.containers)
