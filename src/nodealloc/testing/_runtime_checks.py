"""What every container runtime is held to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import attrs

from nodealloc.errors import NodeallocError
from nodealloc.runtime import (
    ContainerConfig,
    Containers,
    Exit,
    LinuxResources,
    Looks,
    NameReservedError,
    NoSuchRecordError,
    PodReport,
    RunState,
    RuntimeHealth,
    SandboxConfig,
    Sandboxes,
)
from nodealloc.testing._runtime_ends import check_ends, check_known, check_reported
from nodealloc.testing._wording import in_words

__all__ = [
    "ContainerRuntime",
    "check_containers",
    "check_looks",
    "check_sandboxes",
]


class ContainerRuntime(Looks, Sandboxes, Containers, Protocol):
    """What the checks of a runtime need in one."""


@in_words
def check_sandboxes(runtime: ContainerRuntime, config: SandboxConfig, /) -> None:
    """Hold a runtime to its promises about sandboxes; it has none of that pod before and after.

    Raises:
        AssertionError: A promise is broken; the text says which.
    """
    uid = config.pod.uid
    made = runtime.run_sandbox(config)
    listed = runtime.listing().pods.get(uid)
    assert listed is not None, "a sandbox was made, and no listing has it"
    assert [one.id for one in listed.sandboxes] == [made], "a sandbox was made, and the listing has another"
    found = listed.sandboxes[0]
    assert found.pod == config.pod, f"made for {config.pod}, listed as of {found.pod}"
    assert found.attempt == config.attempt, f"attempt {config.attempt} was made, {found.attempt} is listed"
    assert found.is_ready, "run_sandbox returned, and the sandbox is not ready"
    for key, value in {**config.labels, **config.annotations}.items():
        kept = {**found.labels, **found.annotations}
        assert kept.get(key) == value, f"{key} was {value!r}, it comes back as {kept.get(key)!r}"
    try:
        runtime.run_sandbox(config)
    except NameReservedError:
        pass
    else:
        raise AssertionError("the same pod and attempt were made twice")
    assert len(runtime.listing().pods[uid].sandboxes) == 1, "a refused sandbox is there all the same"
    _check_next_sandbox(runtime, config, made)
    _twice(lambda: runtime.stop_sandbox(made), "stop_sandbox")
    report = runtime.inspect(uid)
    assert [one.record.is_ready for one in report.sandboxes] == [False], "a stopped sandbox counts as ready"
    _twice(lambda: runtime.remove_sandbox(made), "remove_sandbox")
    assert uid not in runtime.listing().pods, "a removed sandbox is still listed"
    assert not runtime.inspect(uid).sandboxes, "a removed sandbox is still reported"
    for what, call in (("stopping", runtime.stop_sandbox), ("removing", runtime.remove_sandbox)):
        try:
            call("no-such-sandbox")
        except Exception as error:
            raise AssertionError(f"{what} a sandbox that is not there raised {error!r}") from error


def _check_next_sandbox(runtime: ContainerRuntime, config: SandboxConfig, first: str) -> None:
    """Two attempts of one pod are two sandboxes, each removed for itself."""
    uid = config.pod.uid
    second = runtime.run_sandbox(attrs.evolve(config, attempt=config.attempt + 1))
    there = {*_sandboxes(runtime, uid)}
    assert there == {first, second}, (
        f"{first} was made, then {second} for the same pod; listed are {sorted(there)}"
    )
    runtime.stop_sandbox(second)
    runtime.remove_sandbox(second)
    left = _sandboxes(runtime, uid)
    assert left == [first], f"{second} was removed, and of {first} and {second} there is {left}"


def _sandboxes(runtime: ContainerRuntime, uid: str) -> list[str]:
    listed = runtime.listing().pods.get(uid)
    return [one.id for one in listed.sandboxes] if listed is not None else []


@in_words
def check_containers(
    runtime: ContainerRuntime,
    sandbox: SandboxConfig,
    config: ContainerConfig,
    /,
    *,
    grace_s: float = 1.0,
    ends: Mapping[int, ContainerConfig] | None = None,
) -> None:
    """Hold a runtime to its promises about containers; of that pod it has nothing before and after.

    Args:
        runtime: To check.
        sandbox: What to make the sandbox from.
        config: What to make the container from: one that runs until it is stopped.
        grace_s: What it needs to end.
        ends: Containers that end by themselves, by the exit status that each leaves, two or
            more; None where there is no such thing. Without them a runtime that takes every
            end for the same one passes.

    Raises:
        AssertionError: A promise is broken; the text says which.
    """
    uid = sandbox.pod.uid
    box = runtime.run_sandbox(sandbox)
    try:
        made = runtime.create_container(box, config, sandbox)
        assert _state(runtime, uid, made) is RunState.CREATED, "a container that was made is not `created`"
        _check_made(runtime.inspect(uid), made, box, config)
        try:
            runtime.create_container(box, config, sandbox)
        except NameReservedError:
            pass
        else:
            raise AssertionError("the same name and attempt were made twice in one sandbox")
        _check_running(runtime, uid, made)
        _check_ending(runtime, uid, made, grace_s)
        second = runtime.create_container(box, attrs.evolve(config, attempt=config.attempt + 1), sandbox)
        _check_next_instance(runtime, uid, made, second, config)
        runtime.start_container(second)
        _check_apart(runtime, uid, made, second, grace_s)
        _check_ended_at_once(runtime, box, config, sandbox)
        _check_unknown(runtime)
        check_ends(runtime, box, sandbox, ends or {})
        late = runtime.create_container(box, attrs.evolve(config, attempt=config.attempt + 4), sandbox)
        runtime.stop_sandbox(box)
        state = _state(runtime, uid, second)
        assert state is RunState.EXITED, f"its sandbox was stopped, and {second} is {state.value}"
        _check_stopped_sandbox(runtime, box, late, config, sandbox)
    finally:
        runtime.stop_sandbox(box)
        runtime.remove_sandbox(box)
    assert uid not in runtime.listing().pods, "containers outlive the sandbox that was removed"


def _check_next_instance(
    runtime: ContainerRuntime, uid: str, made: str, second: str, config: ContainerConfig
) -> None:
    """Made once more, it is another one, and the newest."""
    assert second != made, f"made once more, it is {made} again, which has ended"
    newest = runtime.inspect(uid).newest(config.name)
    assert newest is not None, "two instances were made, and there is no newest"
    assert newest.record.id == second, "the newest instance is not the last one made"
    attempt, expected = newest.record.attempt, config.attempt + 1
    assert attempt == expected, f"attempt {expected} was made, and comes back as {attempt}"


def _check_apart(runtime: ContainerRuntime, uid: str, ended: str, runs: str, grace_s: float) -> None:
    """Stopping and removing an instance that has ended leaves the one that runs alone."""
    runtime.stop_container(ended, grace_s)
    assert _state(runtime, uid, runs) is RunState.RUNNING, f"{ended} was stopped, and {runs} as well"
    listed = runtime.listing().pods[uid]
    _twice(lambda: runtime.remove_container(ended), "remove_container")
    for before in (None, listed):  # which may be older than the inspection
        left = [one.record.id for one in runtime.inspect(uid, before).containers]
        assert left == [runs], f"{ended} was removed, {left} is left"


def _check_stopped_sandbox(
    runtime: ContainerRuntime, box: str, made: str, config: ContainerConfig, sandbox: SandboxConfig
) -> None:
    """In a sandbox that was stopped no container begins, and none is made."""
    _refused(lambda: runtime.start_container(made), f"its sandbox was stopped, and {made} was started")
    state = _state(runtime, sandbox.pod.uid, made)
    assert state is not RunState.RUNNING, f"its sandbox was stopped, its start was refused, and {made} runs"
    other = attrs.evolve(config, attempt=config.attempt + 5)
    _refused(
        lambda: runtime.create_container(box, other, sandbox), "a container was made in a stopped sandbox"
    )


def _refused(call: Callable[[], object], words: str) -> None:
    try:
        call()
    except NodeallocError:
        return
    raise AssertionError(words)


def _check_running(runtime: ContainerRuntime, uid: str, made: str) -> None:
    """A container that was made is started, once, and changed."""
    runtime.start_container(made)
    assert _state(runtime, uid, made) is RunState.RUNNING, "a container that was started does not run"
    began = check_reported(runtime.inspect(uid), made)
    assert (began.started_unix_s or 0.0) >= (began.record.created_unix_s or 0.0), (
        f"made at {began.record.created_unix_s}, and said to run since {began.started_unix_s}"
    )
    _start_again(runtime, made, "that runs")
    since = check_reported(runtime.inspect(uid), made).started_unix_s
    assert since == began.started_unix_s, (
        f"started once more, it is said to run since {since}, not {began.started_unix_s}: it runs twice"
    )
    runtime.update_container(made, LinuxResources())
    report = check_reported(runtime.inspect(uid), made)
    assert report.exit is None, f"it runs and has ended with {report.exit}"
    assert report.started_unix_s is not None, "it runs, and nobody knows since when"


def _check_ending(runtime: ContainerRuntime, uid: str, made: str, grace_s: float) -> None:
    """A container that runs is stopped, and stays as it ended."""
    exits: list[Exit | None] = []
    for _ in range(2):
        _passes(lambda: runtime.stop_container(made, grace_s), "stop_container")
        exits.append(check_reported(runtime.inspect(uid), made).exit)
    assert exits[0] == exits[1], f"ended with {exits[0]}, and {exits[1]} once it was stopped again"
    assert _state(runtime, uid, made) is RunState.EXITED, "stop_container returned, and it has not ended"
    ended = check_known(check_reported(runtime.inspect(uid), made))
    assert check_reported(runtime.inspect(uid), made).exit == ended, "its exit changed by being asked again"
    _start_again(runtime, made, "that has ended")
    assert _state(runtime, uid, made) is RunState.EXITED, "what has ended was started once more, and runs"


def _check_ended_at_once(
    runtime: ContainerRuntime, box: str, config: ContainerConfig, sandbox: SandboxConfig
) -> None:
    """Two more instances: one is stopped without any grace, the other removed while it runs."""
    uid = sandbox.pod.uid
    stopped, removed = (
        runtime.create_container(box, attrs.evolve(config, attempt=config.attempt + more), sandbox)
        for more in (2, 3)
    )
    order = [one.record.attempt for one in runtime.inspect(uid).containers]
    assert order == sorted(order, reverse=True), f"the newest comes first, and the attempts are {order}"
    for one in (stopped, removed):
        runtime.start_container(one)
    runtime.stop_container(stopped, 0.0)
    state = _state(runtime, uid, stopped)
    assert state is RunState.EXITED, f"{stopped} was stopped without any grace, and is {state.value}"
    runtime.remove_container(removed)
    left = [one.record.id for one in runtime.inspect(uid).containers]
    assert removed not in left, f"{removed} was removed while it ran, and is left"
    runtime.remove_container(stopped)


def _passes(call: Callable[[], object], what: str) -> None:
    try:
        call()
    except Exception as error:
        raise AssertionError(f"{what} raised {error!r}; it may be repeated") from error


def _twice(call: Callable[[], object], what: str) -> None:
    for _ in range(2):
        _passes(call, what)


def _start_again(runtime: ContainerRuntime, made: str, which: str) -> None:
    """Refused or taken in silence; not started."""
    try:
        runtime.start_container(made)
    except NodeallocError:
        return
    except Exception as error:
        raise AssertionError(f"to start a container {which} raised {error!r}") from error


@in_words
def check_looks(runtime: ContainerRuntime, sandboxes: Sequence[SandboxConfig], /) -> None:
    """Hold a runtime to its promises about being looked at.

    Args:
        runtime: To check; ready, and with nothing of these pods.
        sandboxes: Of two pods at least; made, and removed again.

    Raises:
        AssertionError: A promise is broken; the text says which.
    """
    assert len({one.pod.uid for one in sandboxes}) > 1, "give sandboxes of two pods"
    health = runtime.health()
    assert isinstance(health, RuntimeHealth), f"its health is {health!r}, and no RuntimeHealth"
    assert health.is_ready, "give a runtime that is ready"
    try:
        nobody = runtime.inspect("no such pod")
    except Exception as error:
        raise AssertionError(f"inspecting an unknown pod raised {error!r}") from error
    assert nobody == PodReport(uid="no such pod"), "an unknown pod has a report"
    made = {one.pod.uid: runtime.run_sandbox(one) for one in sandboxes}
    try:
        listing = runtime.listing()
        for uid, sandbox in made.items():
            assert uid in listing.pods, f"pod {uid} is there and not listed"
            report = runtime.inspect(uid)
            assert report.uid == uid, f"asked about pod {uid}, got a report of {report.uid!r}"
            there = [one.record.id for one in report.sandboxes]
            assert there == [sandbox], f"pod {uid} has sandbox {sandbox}, its report has {there}"
            closely = [one.record.id for one in runtime.inspect(uid, listing.pods[uid]).sandboxes]
            assert closely == [sandbox], (
                f"pod {uid} has sandbox {sandbox}, and its report for what is listed has nothing of it"
            )
            assert set(listing.pods[uid].marks) == {sandbox}, f"pod {uid} is listed with things of others"
        assert runtime.listing().pods == listing.pods, "nothing changed, and the second listing differs"
        first, *rest = made
        runtime.stop_sandbox(made[first])
        for uid in rest:
            ready = [one.record.is_ready for one in runtime.inspect(uid).sandboxes]
            assert ready == [True], f"the sandbox of pod {first} was stopped, and that of {uid} as well"
        runtime.remove_sandbox(made[first])
        gone = set(rest) - set(runtime.listing().pods)
        assert not gone, (
            f"the sandbox of pod {first} was removed, and that of {', '.join(sorted(gone))} as well"
        )
    finally:
        for sandbox in made.values():
            runtime.stop_sandbox(sandbox)
            runtime.remove_sandbox(sandbox)
    assert not set(made) & set(runtime.listing().pods), "what was removed is listed"


def _state(runtime: ContainerRuntime, uid: str, container_id: str) -> RunState:
    listed = runtime.listing().pods.get(uid)
    assert listed is not None, "a container is there, and its pod is not listed"
    assert container_id in listed.marks, "a container that is there is not listed"
    report = check_reported(runtime.inspect(uid), container_id)
    closely = check_reported(runtime.inspect(uid, listed), container_id)
    assert closely == report, f"inspected for what is listed it is {closely}, for all that there is {report}"
    state = report.record.state
    assert listed.marks[container_id] is state, f"listed as {listed.marks[container_id]}, reported as {state}"
    return state


def _check_made(report: PodReport, made: str, sandbox: str, config: ContainerConfig) -> None:
    record = check_reported(report, made).record
    for field, expected in (
        ("name", config.name),
        ("sandbox_id", sandbox),
        ("attempt", config.attempt),
        ("definition", config.definition),
    ):
        got = getattr(record, field)
        assert got == expected, f"{field} was {expected!r}, it comes back as {got!r}"
    kept = {**record.labels, **record.annotations}
    for key, value in {**config.labels, **config.annotations}.items():
        assert kept.get(key) == value, f"{key} was {value!r}, it comes back as {kept.get(key)!r}"
    assert check_reported(report, made).exit is None, "it was only made, and has ended"


def _check_unknown(runtime: ContainerRuntime) -> None:
    _passes(
        lambda: runtime.stop_container("no-such-container", 0.0), "stopping a container that is not there"
    )
    _passes(lambda: runtime.remove_container("no-such-container"), "removing a container that is not there")
    calls: tuple[Callable[[], object], ...] = (
        lambda: runtime.start_container("no-such-container"),
        lambda: runtime.update_container("no-such-container", LinuxResources(cpu_shares=2)),
    )
    for call in calls:
        try:
            call()
        except NoSuchRecordError:
            continue
        raise AssertionError("a container that is not there was started or changed")
