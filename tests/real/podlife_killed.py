"""An agent of its own process that ends by SIGKILL at one call of its runtime or its store.

The programs of its pod note that they ran, in a file that outlives them all.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Final, ParamSpec, TypeVar, cast

import attrs

from examples.processes import ProcessRuntime
from nodealloc.checkpoint import FileStore, JsonCheckpoint, row_formats, rows_of
from nodealloc.cri import CriRuntime
from nodealloc.dsw_asw import Group, Journal, Moment
from nodealloc.podlife import POD_ROWS, LifePolicy, PodLives, PodRecord, PodRuntime, record_from_checkpoint
from nodealloc.podspec import Container, Pod
from nodealloc.runtime import (
    RUNTIME_ROWS,
    ContainerConfig,
    HostMount,
    Listing,
    Looks,
    Pace,
    PodReport,
    RunState,
    RuntimeWatch,
    SandboxConfig,
    pod_from_checkpoint,
)
from nodealloc.testing.podlife import PlainConfiguration

P = ParamSpec("P")
T = TypeVar("T")

FORMATS: Final = row_formats(POD_ROWS, RUNTIME_ROWS)
CALLS: Final = (
    "listing",
    "inspect",
    "images",
    "pull_image",
    "run_sandbox",
    "stop_sandbox",
    "remove_sandbox",
    "create_container",
    "start_container",
    "stop_container",
    "remove_container",
)
GRACE_S: Final = 1
PATIENCE_S: Final = float(os.environ.get("NODEALLOC_PATIENCE_S", "90"))
RAN: Final = ["app#0", "setup#0", "side#0"]
"""All that ever runs: each container once, whoever was killed when."""
UNDONE: Final = "StartError"
"""Why an instance ended whose start failed, by its runtime's record.

containerd undoes a start whose caller dies while the shim starts the program: it kills what
has begun by then, and records that the start failed. No other instance may come twice.
"""


@attrs.frozen(kw_only=True)
class Life:
    """One agent's life.

    Attributes:
        folder: Where everything is that outlives it.
        uid: Of its pod.
        image: Of its containers.
        socket: Of containerd; "" for processes.
        cgroups: Parent of the pod's cgroup; "" for none.
        at: Which call is its last, from 1; 0 for none.
        late: Whether that call is done first.
    """

    folder: Path
    uid: str = "u"
    image: str = "busybox"
    socket: str = ""
    cgroups: str = ""
    at: int = 0
    late: bool = False


class Striking:
    """Counts calls, and kills the process at one.

    Attributes:
        count: Calls so far.
        late: Whether the last call is done first.
    """

    def __init__(self, at: int, *, late: bool) -> None:
        self.count, self.late, self._at = 0, late, at
        self._lock = threading.Lock()

    def counts(self) -> bool:
        """Count a call; whether it is the last one."""
        with self._lock:
            self.count += 1
            return self.count == self._at

    def strike(self, now: bool) -> None:
        """Kill the process, if now is the time."""
        if now:
            os.kill(os.getpid(), signal.SIGKILL)

    def wrapped(self, call: Callable[P, T]) -> Callable[P, T]:
        """The same call, which may be the last."""

        def striking(*args: P.args, **kwargs: P.kwargs) -> T:
            is_last = self.counts()
            self.strike(is_last and not self.late)
            answer = call(*args, **kwargs)
            self.strike(is_last)
            return answer

        return striking


@attrs.frozen
class Configuration(PlainConfiguration):
    """Containers know their attempt, and where to note it."""

    life: Life

    def sandbox(self, pod: Pod, attempt: int, provided: Mapping[str, object], /) -> SandboxConfig:
        """See `Configures.sandbox`."""
        made = super().sandbox(pod, attempt, provided)
        parent = f"/{self.life.cgroups}/{pod.uid}" if self.life.cgroups else ""
        return attrs.evolve(made, cgroup_parent=parent, log_directory=str(self.life.folder / "logs"))

    def container(
        self, record: PodRecord, container: Container, attempt: int, image_id: str, report: PodReport, /
    ) -> ContainerConfig:
        """See `Configures.container`."""
        made = super().container(record, container, attempt, image_id, report)
        notes = str(self.life.folder / "notes")
        return attrs.evolve(
            made,
            env={"ME": f"{container.name}#{attempt}", "NOTES": notes},
            mounts=(HostMount(host_path=notes, container_path=notes),),
        )


def pod_of(life: Life) -> Pod:
    """An init container, one that hears TERM, and one that does not."""

    def runs(name: str, then: str) -> Container:
        script = f'echo "$ME" >> "$NOTES/ran"; {then}'
        return Container(name=name, image=life.image, entrypoint=("sh", "-c", script))

    # Only a cgroup holds who leaves its session.
    leaver = "setsid sleep 999 & " if life.cgroups and not life.socket else ""
    return Pod(
        uid=life.uid,
        name=f"web-{life.uid}",
        host_network=True,
        termination_grace_period_seconds=GRACE_S,
        init_containers=(runs("setup", "exit 0"),),
        containers=(
            runs("app", f"trap '' TERM; {leaver}exec sleep 1000"),
            runs("side", "trap 'exit 0' TERM; while true; do sleep 0.1; done"),
        ),
    )


def live(life: Life) -> None:
    """Bring the pod up and down again, from wherever the agent before was killed."""
    striking = Striking(life.at, late=life.late)
    runtime: ProcessRuntime | CriRuntime = (
        CriRuntime(life.socket)
        if life.socket
        else ProcessRuntime(
            life.folder / "state",
            cgroup=life.cgroups or "none",
            tree="/sys/fs/cgroup" if life.cgroups else str(life.folder / "nothing"),
        )
    )
    store = FileStore(life.folder / "store", FORMATS)
    for name in CALLS:
        setattr(runtime, name, striking.wrapped(getattr(runtime, name)))
    store.commit = striking.wrapped(store.commit)  # type: ignore[method-assign]
    runtime.listing = _alone(runtime.listing, life.uid)  # type: ignore[method-assign]
    rows, now = store.read().values, Moment.now()
    journal = cast("Journal[JsonCheckpoint]", store)
    watch = RuntimeWatch(
        cast("Looks", runtime),
        journal=journal,
        known=rows_of(RUNTIME_ROWS, rows, pod_from_checkpoint),
        pace=Pace(period_s=0.5, gap_s=0.02),
    )
    lives = PodLives(
        cast("PodRuntime", runtime),
        watch=watch,
        configuring=Configuration(life),
        journal=journal,
        remembered=rows_of(POD_ROWS, rows, lambda row: record_from_checkpoint(row, now)),
        policy=LifePolicy(pulls_at_once=None),
    )
    with Group(watch, lives):
        try:
            _go_on(life, lives)
        except AssertionError as error:
            facts = lives.facts.get(life.uid)
            waiting = {} if facts is None else facts.containers
            raise AssertionError(
                f"{error}; {[*map(str, lives.failures(life.uid))]}; {waiting}; {facts and facts.known}"
            ) from None
    assert life.uid not in runtime.listing().pods, "something of the pod is left"
    assert not rows_of(POD_ROWS, store.read().values, lambda row: row), "something is remembered of it"
    (life.folder / "calls").write_text(str(striking.count))


def _alone(listing: Callable[[], Listing], uid: str) -> Callable[[], Listing]:
    """Without the pods of agents that live beside this one, on the same runtime."""

    def own() -> Listing:
        listed = listing()
        return attrs.evolve(listed, pods={one: pod for one, pod in listed.pods.items() if one == uid})

    return own


def _go_on(life: Life, lives: PodLives) -> None:
    """The pod is wanted until it ran; that nobody wants it any more is known on disk first."""
    unwanted = life.folder / "unwanted"
    if not unwanted.exists():
        lives.put(pod_of(life))
        lives.heard()
        _wait(lambda: _running(lives, life.uid) == ["app", "side"], "the pod runs")
        (life.folder / "undone").write_text("\n".join(_undone(lives, life.uid)))
        ran = life.folder / "notes" / "ran"
        _wait(lambda: len(ran.read_text().split()) >= len(RAN), "its programs have begun")
        unwanted.touch()
        lives.remove(life.uid)
    else:
        lives.heard()
    deadline_s = 0.0

    def is_gone() -> bool:
        nonlocal deadline_s
        record = lives.pods.get(life.uid)
        deadline_s = deadline_s if record is None or record.deadline_s is None else record.deadline_s
        return record is None and life.uid not in lives.wanted

    _wait(is_gone, "the pod is gone")
    (life.folder / "deadline").write_text(str(deadline_s))


def _running(lives: PodLives, uid: str) -> list[str]:
    facts = lives.facts.get(uid)
    report = facts.known.report if facts is not None and facts.known is not None else None
    found = () if report is None else report.containers
    return sorted(one.record.name for one in found if one.record.state is RunState.RUNNING)


def _undone(lives: PodLives, uid: str) -> list[str]:
    facts = lives.facts.get(uid)
    if facts is None or facts.known is None:
        return []
    return [f"{one.name}#{one.attempt}" for one in facts.known.ends.values() if one.reason == UNDONE]


def _wait(is_so: Callable[[], bool], what: str) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while not is_so():
        if time.monotonic() > end_s:
            raise AssertionError(f"{what}: not within {PATIENCE_S:g} s")
        time.sleep(0.01)


_FORKS = get_context("forkserver")
_FORKS.set_forkserver_preload([__name__])


def lived(life: Life) -> int | None:
    """Live it in a process of its own; its exit code, -9 for killed."""
    process = _FORKS.Process(target=live, args=(life,))
    process.start()
    process.join(3 * PATIENCE_S)
    process.kill()
    process.join()
    return process.exitcode


def stored_deadline_s(life: Life) -> float | None:
    """Until when the pod has to have ended, as the killed agent left it in its store."""
    with FileStore(life.folder / "store", FORMATS) as store:
        rows, now = store.read().values, Moment.now()
        found = rows_of(POD_ROWS, rows, lambda row: record_from_checkpoint(row, now))
    return found[life.uid].deadline_s if life.uid in found else None


def check_ran(ran: Sequence[str], undone: Sequence[str], where: str = "") -> None:
    """Each container ran in one instance, the one behind those whose starts the runtime undid.

    Args:
        ran: `name#attempt` of each program that began.
        undone: The same of instances whose starts failed, by the runtime's own record.
        where: For the message.
    """
    assert len(set(ran)) == len(ran), f"{where}: an attempt began twice: {ran}"
    stayed = sorted(set(ran) - set(undone))
    expected = sorted(
        f"{name}#{sum(one.startswith(f'{name}#') for one in undone)}"
        for name, _, _ in (one.partition("#") for one in RAN)
    )
    assert stayed == expected, f"{where}: {ran}, of which the runtime undid {list(undone)}"


def check_killed(life: Life) -> None:
    """Kill one agent, let the next one finish, and look at what ran."""
    where = f"killed {'after' if life.late else 'before'} call {life.at}"
    life.folder.mkdir(parents=True)
    (life.folder / "notes").mkdir()
    code = lived(life)
    assert code in {0, -signal.SIGKILL}, f"{where}: exit status {code}"
    deadline_s = None if code == 0 else stored_deadline_s(life)
    if code != 0:
        assert lived(attrs.evolve(life, at=0)) == 0, f"{where}: the next agent did not finish"
    ran = (life.folder / "notes" / "ran").read_text().split()
    undone = life.folder / "undone"
    check_ran(ran, undone.read_text().split() if life.socket and undone.exists() else [], where)
    if deadline_s is not None:
        in_the_end_s = float((life.folder / "deadline").read_text())
        assert in_the_end_s <= deadline_s + 0.05, f"{where}: the grace began anew"


def calls_of(life: Life) -> int:
    """How many calls there are in a life that nobody ends."""
    check_killed(life)
    return int((life.folder / "calls").read_text())


def moments(count: int, every: int) -> list[tuple[int, bool]]:
    """At which calls an agent is killed, and whether after it: every so many, from another one each way."""
    return [(at, late) for late in (False, True) for at in range(1 + late * (every // 2), count + 1, every)]


def many_moments(count: int, every: int) -> list[tuple[int, bool]]:
    """The same at `NODEALLOC_KILL_EVERY` calls, and of those the `NODEALLOC_KILL_PART`, such as `2/3`."""
    found = moments(count, int(os.environ.get("NODEALLOC_KILL_EVERY", str(every))))
    part, _, parts = os.environ.get("NODEALLOC_KILL_PART", "1/1").partition("/")
    return found[int(part) - 1 :: int(parts)]


def check_all(lives: list[Life], *, at_once: int = 8) -> None:
    """Several at a time: most of each is waiting."""
    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(check_killed, lives))
