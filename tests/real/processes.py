"""What tests of the example's process runtime share: runtimes in a folder, pods, and looks from outside."""

from __future__ import annotations

import itertools
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import pytest

from examples.processes import ProcessRuntime
from nodealloc.cgroups import CgroupName, Limits, detect
from nodealloc.errors import NodeallocError
from nodealloc.podfacts import PodIdentity
from nodealloc.runtime import ContainerConfig, ContainerReport, RunState, SandboxConfig

NUMBERS = itertools.count()
SLEEP = ("sleep", "1000")
PATIENCE_S = 20.0


def _cgroups() -> str:
    """Why cgroups cannot be had here, or ""."""
    try:
        driver = detect()
        probe = CgroupName.of(f"nodealloc-probe-{os.getpid()}")
        driver.apply(probe, Limits())
        driver.remove(probe)
    except (NodeallocError, OSError) as error:
        return str(error)
    return ""


REFUSED = _cgroups()
needs_cgroups = pytest.mark.skipif(bool(REFUSED), reason=f"no cgroups: {REFUSED}")


@attrs.define
class Node:
    """A folder and a cgroup in which runtimes come and go."""

    folder: Path
    tree: str
    cgroup: str
    open: list[ProcessRuntime] = attrs.field(factory=list[ProcessRuntime])

    def runtime(self) -> ProcessRuntime:
        """A runtime that finds what earlier ones left."""
        self.open.append(ProcessRuntime(self.folder, cgroup=self.cgroup, tree=self.tree))
        return self.open[-1]


@pytest.fixture(params=["cgroups", "sessions"])
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Node]:
    """On cgroups, and where they are refused; nothing runs afterwards."""
    if request.param == "cgroups" and REFUSED:
        pytest.skip(f"no cgroups: {REFUSED}")
    tree = "/sys/fs/cgroup" if request.param == "cgroups" else str(tmp_path / "nothing")
    one = Node(tmp_path / "state", tree, f"nodealloc-test-{os.getpid()}-{next(NUMBERS)}")
    yield one
    last = one.open[-1] if one.open else one.runtime()
    for pod in last.listing().pods.values():
        for sandbox in pod.sandboxes:
            last.remove_sandbox(sandbox.id)
    for runtime in one.open:
        runtime.close()


def box(**more: object) -> SandboxConfig:
    """A sandbox of a pod of its own."""
    name = f"pod-{next(NUMBERS)}"
    made = SandboxConfig(
        pod=PodIdentity(uid=f"{name}-uid", namespace="default", name=name), labels={"app": "web"}
    )
    return attrs.evolve(made, **more)  # type: ignore[arg-type]


def app(*command: str, **more: object) -> ContainerConfig:
    """A container that sleeps unless told otherwise."""
    made = ContainerConfig(
        name="app", image="busybox", command=command or SLEEP, definition="d1", annotations={"a": "b"}
    )
    return attrs.evolve(made, **more)  # type: ignore[arg-type]


def started(runtime: ProcessRuntime, config: ContainerConfig, sandbox: SandboxConfig | None = None) -> str:
    """A container in a sandbox of its own; its id."""
    where = sandbox or box()
    made = runtime.create_container(runtime.run_sandbox(where), config, where)
    runtime.start_container(made)
    return made


def report(runtime: ProcessRuntime, container_id: str) -> ContainerReport:
    """The newest word on a container."""
    reports = [one for uid in runtime.listing().pods for one in runtime.inspect(uid).containers]
    return next(one for one in reports if one.record.id == container_id)


def until(what: Callable[[], object]) -> None:
    """Wait for something that has to come."""
    ends_s = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < ends_s, "it did not come"
        time.sleep(0.01)


def ended(runtime: ProcessRuntime, container_id: str) -> ContainerReport:
    """A container's report once it has ended."""
    until(lambda: report(runtime, container_id).record.state is RunState.EXITED)
    return report(runtime, container_id)


def process(node: Node, container_id: str) -> int:
    """Pid of a container, as it stands on disk."""
    return int(json.loads((node.folder / "containers" / container_id / "started").read_text())["pid"])


def sleeps() -> str:
    """A command that nobody else runs, also where tests run side by side."""
    return f"sleep 1092.{os.getpid()}{next(NUMBERS):05}"


def runs(words: str) -> bool:
    """Whether any process was called with these words."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            said = path.read_bytes()
        except OSError:
            continue
        if words.encode() in said.replace(b"\0", b" "):
            return True
    return False
