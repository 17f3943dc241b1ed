"""Commands as probes in real processes: what they say, and that nothing of them lives on."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from examples.processes import ProcessRuntime
from nodealloc.cgroups import CgroupName, Limits, detect
from nodealloc.dsw_asw import World
from nodealloc.errors import NodeallocError
from nodealloc.podfacts import PodIdentity
from nodealloc.podspec import Container, ExecAction, Pod, Probe
from nodealloc.probes import (
    ContainerVerdicts,
    ExecProber,
    Passed,
    ProbeKind,
    Probers,
    Probing,
    Question,
    ReplyKind,
    Schedule,
    Unwell,
)
from nodealloc.runtime import ContainerConfig, PodKnown, SandboxConfig
from nodealloc.testing.probes import check_exec, check_prober

PATIENCE_S = 20.0
IDENTITY = PodIdentity(uid="u", namespace="default", name="web")
BOX = SandboxConfig(pod=IDENTITY)


def _cgroups() -> str:
    """Why cgroups cannot be had here, or ""."""
    try:
        driver = detect()
        mine = CgroupName.of(f"nodealloc-probes-{os.getpid()}")
        driver.apply(mine, Limits())
        driver.remove(mine)
    except (NodeallocError, OSError) as error:
        return str(error)
    return ""


REFUSED = _cgroups()


@pytest.fixture
def runtime(tmp_path: Path) -> Iterator[ProcessRuntime]:
    """A runtime of processes; a container is a cgroup where they can be had, else a session."""
    tree = "/sys/fs/cgroup" if not REFUSED else str(tmp_path / "nothing")
    with ProcessRuntime(tmp_path / "state", cgroup=f"nodealloc-probes-{os.getpid()}", tree=tree) as one:
        yield one
        for pod in one.listing().pods.values():
            for sandbox in pod.sandboxes:
                one.remove_sandbox(sandbox.id)


@pytest.fixture
def app(runtime: ProcessRuntime) -> str:
    """A container that sleeps."""
    config = ContainerConfig(name="app", image="", command=("sleep", "1000"))
    made = runtime.create_container(runtime.run_sandbox(BOX), config, BOX)
    runtime.start_container(made)
    return made


def alive(word: str) -> list[int]:
    """Processes whose command line holds a word, zombies included where their name does."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            continue
        if word in command and int(folder.name) != os.getpid():
            found.append(int(folder.name))
    return found


def eventually(what: Callable[[], object]) -> None:
    """Wait for something to come true."""
    ends_s = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < ends_s, "it did not come true"
        time.sleep(0.02)


def run(container_id: str, *command: str, timeout_s: float = PATIENCE_S) -> Question:
    """A question by a command."""
    return Question(action=ExecAction(command=command), container_id=container_id, timeout_s=timeout_s)


def test_commands_keep_the_promises_of_probers(runtime: ProcessRuntime, app: str) -> None:
    """0 is well, all else is not, also a program that is not there; silence ends with the time-out."""
    check_exec(runtime, app, {("true",): 0, ("sh", "-c", "exit 3"): 3}, absent=("no-such-program",))
    prober = ExecProber(runtime)
    check_prober(
        prober, well=run(app, "true"), sick=run(app, "false"), silent=run(app, "sleep", "77", timeout_s=0.2)
    )
    assert prober.probe(run(app, "sh", "-c", "echo low; echo oil >&2; exit 1")).message == "low\noil"
    assert prober.probe(run(app, "no-such-program")).kind is ReplyKind.REFUSED


def test_nothing_of_a_probe_is_left_alive_after_its_time_out(runtime: ProcessRuntime, app: str) -> None:
    """Neither children in the background nor one in a session of its own, where a container is a cgroup."""
    if REFUSED:
        pytest.skip(f"no cgroups: {REFUSED}")
    script = "sleep 8871 & setsid sleep 8872 & sleep 8873"
    reply = ExecProber(runtime).probe(run(app, "sh", "-c", script, timeout_s=0.5))
    assert (reply.kind, "has not ended" in reply.message) == (ReplyKind.FAILURE, True)
    eventually(lambda: not alive("sleep 887"))


def test_probes_that_hang_do_not_pile_up(runtime: ProcessRuntime, app: str) -> None:
    """Ten times a second a command that never ends: one at a time lives, and none afterwards."""
    probe = Probe(exec=ExecAction(command=("sh", "-c", "sleep 6641 & sleep 6642")), failure_threshold=3)
    pod = Pod(uid="u", name="web", containers=(Container(name="app", readiness_probe=probe),))
    reports: World[str, PodKnown] = World("reports")
    reports.put("u", PodKnown(uid="u", report=runtime.inspect("u")))
    fast = Schedule(period_s=0.1, timeout_s=0.1, failure_threshold=3)
    probing = Probing(Probers.real(commands=runtime), reports=reports)
    most = 0
    with probing:
        probing.put(pod, schedules={("app", ProbeKind.READINESS): fast})

        def unwell() -> bool:
            nonlocal most
            most = max(most, len(alive("sleep 664")))
            verdicts = probing.verdicts.get("u")
            one = None if verdicts is None else verdicts.of(app)
            return one is not None and isinstance(one.readiness, Unwell)

        eventually(unwell)
    # The shell of one question, and its two sleeps; the one before may be on its way out.
    assert most <= 6
    eventually(lambda: not alive("sleep 664"))


def test_a_container_is_probed_for_real(runtime: ProcessRuntime, app: str, tmp_path: Path) -> None:
    """A file says whether it is ready; the verdict follows it both ways."""
    flag = tmp_path / "ready"
    probe = Probe(exec=ExecAction(command=("test", "-e", str(flag))), failure_threshold=1)
    pod = Pod(uid="u", name="web", containers=(Container(name="app", readiness_probe=probe),))
    reports: World[str, PodKnown] = World("reports")
    reports.put("u", PodKnown(uid="u", report=runtime.inspect("u")))
    fast = Schedule(period_s=0.1, timeout_s=5.0, failure_threshold=1)

    def stands() -> ContainerVerdicts | None:
        verdicts = probing.verdicts.get("u")
        return None if verdicts is None else verdicts.of(app)

    with Probing(Probers.real(commands=runtime), reports=reports) as probing:
        probing.put(pod, schedules={("app", ProbeKind.READINESS): fast})
        eventually(lambda: (one := stands()) is not None and isinstance(one.readiness, Unwell))
        flag.touch()
        eventually(lambda: stands() == ContainerVerdicts(readiness=Passed()))
        flag.unlink()
        eventually(lambda: (one := stands()) is not None and isinstance(one.readiness, Unwell))
