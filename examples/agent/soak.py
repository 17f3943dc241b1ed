"""`python -m examples.agent.soak`: random pods, plugins that crash, an agent that is killed at any moment.

After each restart, and whenever the agent has settled, the invariants are checked
from outside: from the checkpoint's rows, from `/proc`, from the mount table.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import attrs

from examples.agent.inputs import read_machine
from examples.agent.outside import AgentProcess, DemoError, clean, held, may_mount, mounts, start_plugin
from nodealloc.checkpoint import JsonCheckpoint
from nodealloc.errors import NodeallocError
from nodealloc.idset import CPUSet, bits, format_list
from nodealloc.machine import Machine

MOST_PODS = 12


@attrs.define
class Tally:
    """What happened so far."""

    rounds: int = 0
    kills: int = 0
    plugin_kills: int = 0
    checks: int = 0
    violations: list[str] = attrs.field(factory=list[str])

    def __str__(self) -> str:
        """One line."""
        counts = f"{self.rounds} rounds, {self.kills} kills of the agent, {self.plugin_kills} of the plugin"
        return f"{counts}, {self.checks} checks, {len(self.violations)} violations"


def manifest(chance: random.Random, number: int, *, with_mounts: bool) -> str:
    """A random pod: guaranteed, burstable or best-effort; devices, init containers, sidecars, volumes."""
    forever = '[sleep, "1000000"]'
    kind = chance.choice(["own", "own", "shares", "plain"])
    limits = ["memory: 64Mi"]
    if kind != "plain" and chance.random() < 0.4:
        limits.append(f"example.com/gpu: {chance.randint(1, 2)}")
    if kind == "own":
        limits.append(f"cpu: {chance.randint(1, 3)}")
    requests = "requests: {cpu: 100m}, " if kind == "shares" else ""
    asked = "" if kind == "plain" else f"resources: {{{requests}limits: {{{', '.join(limits)}}}}}, "
    init = chance.choice(["", "once", "sidecar"])
    volume = chance.choice(["", "{}", "{medium: Memory, sizeLimit: 1Mi}" if with_mounts else "{}"])
    lines = [f"metadata: {{name: pod-{number}, uid: uid-{number}}}", "spec:"]
    if init:
        policy = "restartPolicy: Always, " if init == "sidecar" else ""
        command = forever if init == "sidecar" else '["true"]'
        lines += ["  initContainers:", f"    - {{name: first, {policy}{asked}command: {command}}}"]
    mount = "volumeMounts: [{name: fast, mountPath: /fast}], " if volume else ""
    lines += ["  containers:", f"    - {{name: main, {mount}{asked}command: {forever}}}"]
    if volume:
        lines += ["  volumes:", f"    - {{name: fast, emptyDir: {volume}}}"]
    return "\n".join(lines) + "\n"


def violations(state: Path, wanted: set[str], machine: Machine, *, real: bool) -> Iterator[str]:
    """Everything that must not be, as seen from outside."""
    own: dict[str, CPUSet] = {}
    devices: dict[str, str] = {}
    taken: dict[int, int] = {}
    for path in sorted((state / "checkpoint").glob("workload.*")):
        record = JsonCheckpoint.unmarshal(path.read_bytes())
        record.verify()
        uid = path.name.partition(".")[2]
        grants = json.loads(path.read_bytes())["value"]["grants"]
        mine = CPUSet()
        for member, grant in grants.get("cpu", {}).items():
            cpus = CPUSet.parse(grant["cpus"])
            own[f"{uid}_{member}"] = cpus
            mine |= cpus
        for other, cpus in own.items():
            if not other.startswith(f"{uid}_") and not cpus.isdisjoint(mine):
                yield f"CPUs {cpus & mine} are held by {uid} and by {other}"
        for block in (block for blocks in grants.get("memory", {}).values() for block in blocks):
            taken[block["nodes"]] = taken.get(block["nodes"], 0) + block["size_bytes"]
        for grant in grants.get("devices", ()):
            for identity in {one for ids in grant["places"].values() for one in ids}:
                holder = devices.setdefault(f"{grant['resource']} {identity}", uid)
                if holder != uid:
                    yield f"device {identity} is held by {uid} and by {holder}"
    for nodes, size in taken.items():
        there = sum(machine.node[node].memory_bytes for node in bits(nodes))
        if size > there:
            yield f"{size} bytes are granted on NUMA nodes {format_list(nodes)}, which have {there}"
    yield from _processes(state, wanted, own, real=real)
    yield from _mounts(state, wanted)


def _processes(state: Path, wanted: set[str], own: dict[str, CPUSet], *, real: bool) -> Iterator[str]:
    everybody = CPUSet()
    for cpus in own.values():
        everybody |= cpus
    for container, (pid, cpus) in held(state).items():
        uid = container.partition("_")[0]
        if uid not in wanted:
            yield f"process {pid} of {container} outlived its pod"
        if not real:
            continue
        if container in own and cpus != own[container]:
            yield f"process {pid} of {container} runs on {cpus}, granted {own[container]}"
        if container not in own and not cpus.isdisjoint(everybody):
            yield f"process {pid} of {container} shares, and runs on exclusive CPUs {cpus & everybody}"


def _mounts(state: Path, wanted: set[str]) -> Iterator[str]:
    seen: set[str] = set()
    for target in mounts(state):
        uid = target.removeprefix(f"{state.resolve()}/pods/").partition("/")[0]
        if uid not in wanted:
            yield f"mount {target} is an orphan"
        if target in seen:
            yield f"mount {target} is there twice"
        seen.add(target)


class Soak:
    """One run."""

    def __init__(self, folder: Path, machine: list[str], cgroup: str, chance: random.Random) -> None:
        self.folder, self.state, self.pods = folder, folder / "state", folder / "pods"
        self.pods.mkdir()
        self.arguments = ["--pods", str(self.pods), "--state", str(self.state), "--cgroup", cgroup, *machine]
        self.real = not machine
        self.machine, _ = read_machine(machine[1] if machine else None)
        self.with_mounts = may_mount()
        self.chance = chance
        self.tally = Tally()
        self.names: dict[int, str] = {}
        self.numbers = iter(range(1, 1_000_000))
        self.plugin = start_plugin(self.state)
        self.settled = ""
        self.agent = self.started()

    def started(self) -> AgentProcess:
        """A fresh agent that has settled once."""
        agent = AgentProcess(self.arguments, echo=False)
        self.settled = agent.wait_for("settled with ")[-1].strip()
        return agent

    def round(self) -> None:
        """A few changes, then a kill at a random moment and a restart, then a check."""
        self.tally.rounds += 1
        for _ in range(self.chance.randint(1, 4)):
            self.change()
        if self.chance.random() < 0.3:
            self.plugin.kill()
            self.plugin.wait()
            self.tally.plugin_kills += 1
            self.plugin = start_plugin(self.state)
        time.sleep(self.chance.uniform(0, 0.4))
        self.agent.end(signal.SIGKILL)
        self.tally.kills += 1
        self.agent = self.started()
        self.check()

    def change(self) -> None:
        """A pod comes, or one goes."""
        if self.names and (len(self.names) >= MOST_PODS or self.chance.random() < 0.45):
            number = self.chance.choice(sorted(self.names))
            (self.pods / f"{number}.yaml").unlink()
            del self.names[number]
            return
        number = next(self.numbers)
        self.names[number] = f"uid-{number}"
        aside = self.folder / "aside"
        aside.write_text(manifest(self.chance, number, with_mounts=self.with_mounts))
        aside.rename(self.pods / f"{number}.yaml")

    def check(self) -> None:
        """What must not be, is not."""
        self.tally.checks += 1
        for line in violations(self.state, set(self.names.values()), self.machine, real=self.real):
            self.tally.violations.append(line)
            print(f"VIOLATION in round {self.tally.rounds}: {line}", flush=True)

    def finish(self) -> None:
        """All pods go; nothing may be left."""
        nothing = "settled with 0 pods"
        if self.names or self.settled != nothing:  # otherwise it has been said and is not said again
            for number in list(self.names):
                (self.pods / f"{number}.yaml").unlink()
            self.names.clear()
            self.agent.wait_for(nothing)
        self.agent.end(signal.SIGTERM)
        self.check()
        left = [path.name for path in (self.state / "checkpoint").glob("workload.*")]
        self.tally.violations += [f"{name} is left" for name in left]


def run(seconds: float, machine: list[str], seed: int) -> Tally:
    """Soak for so long, on this machine or on another."""
    cgroup = f"nodealloc-soak-{os.getpid()}"
    with clean(cgroup) as folder:
        soak = Soak(folder, machine, cgroup, random.Random(seed))  # noqa: S311
        try:
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                soak.round()
            soak.finish()
        finally:
            soak.agent.process.kill()
            soak.plugin.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                soak.agent.process.wait(5)
                soak.plugin.wait(5)
        return soak.tally


def main() -> int:
    """Soak on this machine and on a synthetic one; 1 when anything was violated."""
    parser = argparse.ArgumentParser(prog="python -m examples.agent.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="for each machine (default: 60)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    chosen = parser.parse_args()
    failed = False
    for machine in ([], ["--machine", "server"]):
        where = machine[1] if machine else "this machine"
        try:
            tally = run(chosen.seconds, machine, chosen.seed)
        except (DemoError, NodeallocError) as error:
            print(f"soak on {where} (seed {chosen.seed}) ended early: {error}", file=sys.stderr)
            return 1
        print(f"soak on {where} (seed {chosen.seed}): {tally}", flush=True)
        failed = failed or bool(tally.violations)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
