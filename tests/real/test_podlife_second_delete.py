"""A second delete with a shorter grace, on real processes, in the middle of a hook, a pull and a mount."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from examples.processes import ProcessRuntime
from nodealloc.dsw_asw import Cancel, Group
from nodealloc.podlife import LifePolicy, PodLives, Preparation
from nodealloc.podspec import Container, ExecAction, Lifecycle, LifecycleHandler, Pod
from nodealloc.runtime import Pace, PullCredentials, RunState, RuntimeWatch, SandboxConfig
from nodealloc.testing.podlife import PlainConfiguration
from nodealloc.verdicts import Admitted

pytestmark = [pytest.mark.real]

PATIENCE_S = 20.0
SECOND_S = 1.5
"""Grace of the second delete."""


class Slow(ProcessRuntime):
    """A runtime to which one image never comes.

    Attributes:
        pulling: Whether it is being fetched.
        let_go: Ends what hangs.
    """

    def __init__(self, folder: Path) -> None:
        self.pulling, self.let_go = threading.Event(), threading.Event()
        super().__init__(folder, cgroup="none", tree=str(folder / "nothing"))

    def pull_image(
        self, name: str, credentials: PullCredentials | None = None, sandbox: SandboxConfig | None = None, /
    ) -> str:
        """See `Images.pull_image`."""
        if name.startswith("slow"):
            self.pulling.set()
            self.let_go.wait(PATIENCE_S)
        return super().pull_image(name, credentials, sandbox)


class Mounts:
    """A preparer that hangs for the second form of a pod."""

    def __init__(self, let_go: threading.Event) -> None:
        self.mounting, self._let_go = threading.Event(), let_go

    def make_ready(self, pod: Pod, _cancel: Cancel, /) -> Admitted:
        """See `Preparer.make_ready`."""
        if pod.labels.get("form") == "second":
            self.mounting.set()
            self._let_go.wait(PATIENCE_S)
        return Admitted()

    def take_back(self, _pod: Pod, _cancel: Cancel, /) -> None:
        """See `Preparer.take_back`."""


def until(holds: Callable[[], object], what: str) -> None:
    """Wait for something that has to come."""
    ends_s = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < ends_s, f"{what} did not come"
        time.sleep(0.01)


def pod_of(uid: str, notes: Path, **more: object) -> Pod:
    """A pod whose container notes TERM, and does not leave."""
    script = f"trap 'date +%s.%N >> {notes / uid}' TERM; touch {notes / uid}.up; while :; do sleep 0.05; done"
    app = Container(name="app", image="busybox", entrypoint=("sh", "-c", script))
    made = Pod(uid=uid, name=uid, containers=(app,), termination_grace_period_seconds=600)
    return attrs.evolve(made, **more)  # type: ignore[arg-type]


def test_every_container_has_its_signal_within_a_second_of_the_new_deadline(tmp_path: Path) -> None:
    """Whatever hangs: TERM has come by then, and whoever does not leave is killed."""
    runtime = Slow(tmp_path / "state")
    mounts = Mounts(runtime.let_go)
    watch = RuntimeWatch(runtime, events=runtime, pace=Pace(period_s=0.5, gap_s=0.02))
    lives = PodLives(
        runtime,
        watch=watch,
        configuring=PlainConfiguration(),
        preparations=[Preparation(name="volumes", why="they are mounted first", by=mounts)],
        policy=LifePolicy(pulls_at_once=None),
    )
    hook = Lifecycle(pre_stop=LifecycleHandler(exec=ExecAction(command=("sleep", "60"))))
    in_hook = pod_of("hook", tmp_path)
    in_hook = attrs.evolve(in_hook, containers=(attrs.evolve(in_hook.containers[0], lifecycle=hook),))
    in_pull = pod_of("pull", tmp_path)
    late = Container(name="late", image="slow", entrypoint=("sleep", "1000"))
    in_pull = attrs.evolve(in_pull, containers=(*in_pull.containers, late))
    in_mount = pod_of("mount", tmp_path)

    def runs(uid: str) -> bool:
        return any(one.record.state is RunState.RUNNING for one in runtime.inspect(uid).containers)

    try:
        with Group(watch, lives):
            lives.heard()
            for one in (in_hook, in_pull, in_mount):
                lives.put(one)
            for uid in ("hook", "pull", "mount"):
                until((tmp_path / f"{uid}.up").exists, f"{uid} runs")
            lives.put(attrs.evolve(in_mount, labels={"form": "second"}))
            until(mounts.mounting.is_set, "a mount that hangs")
            until(runtime.pulling.is_set, "a pull that hangs")
            for uid in ("hook", "pull", "mount"):
                lives.remove(uid)
            time.sleep(0.5)
            assert not (tmp_path / "hook").exists(), "it heard TERM before its hook was through"
            again_s, again_unix_s = time.monotonic(), time.time()
            for uid in ("hook", "pull", "mount"):
                lives.remove(uid, grace_s=SECOND_S)
            until(lambda: not any(map(runs, ("hook", "pull", "mount"))), "the end of all")
            assert time.monotonic() - again_s < SECOND_S + 1.0
            for uid in ("hook", "pull", "mount"):
                heard_s = float((tmp_path / uid).read_text().split()[0]) - again_unix_s
                assert heard_s < SECOND_S + 1.0, f"{uid} heard TERM {heard_s:.2f} s after the second delete"
            runtime.let_go.set()
            until(lambda: not lives.pods.snapshot(), "nothing is remembered of them")
    finally:
        runtime.let_go.set()
        for pod in runtime.listing().pods.values():
            for box in pod.sandboxes:
                runtime.remove_sandbox(box.id)
        runtime.close()
