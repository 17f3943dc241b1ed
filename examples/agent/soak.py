"""`python -m examples.agent.soak`: random pods, and an agent that is killed at any moment.

After each restart, when every pod is told to be what it should be, the invariants
are checked from outside: in the runtime, in `/proc`, in the mount table, in the
cgroup tree. `--runtime containerd` does it with real containers (see the demo).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import time
from collections.abc import Iterator, Mapping

import attrs

from examples.agent.demo import FOREVER, container, pod, probe
from examples.agent.outside import DemoError, Surroundings, left_behind, surroundings
from nodealloc.idset import CPUSet

MOST_PODS = 10
PATIENCE_S = float(os.environ.get("NODEALLOC_PATIENCE_S", "90"))


@attrs.define
class Tally:
    """What happened so far."""

    rounds: int = 0
    kills: int = 0
    checks: int = 0
    violations: list[str] = attrs.field(factory=list[str])

    def __str__(self) -> str:
        """One line."""
        counts = f"{self.rounds} rounds, {self.kills} kills of the agent"
        return f"{counts}, {self.checks} checks, {len(self.violations)} violations"


def manifest(
    chance: random.Random, number: int, image: str, more_spec: Mapping[str, object]
) -> Mapping[str, object]:
    """A random pod: its own CPUs or shared ones, init containers, sidecars, volumes, probes, ends."""
    more: dict[str, object] = {}
    if chance.random() < 0.3:
        more["resources"] = {"limits": {"cpu": "1", "memory": "64Mi"}}
    elif chance.random() < 0.5:
        more["resources"] = {"requests": {"cpu": "50m"}}
    script = FOREVER
    if chance.random() < 0.3:
        part = chance.choice(["", "deep/er"])
        more["volumeMounts"] = [
            {"name": "data", "mountPath": "/data", "subPath": part},
            {"name": "told", "mountPath": "/told"},
        ]
        script = f"echo x >${{MOUNT_DATA:-/data}}/x; {FOREVER}"
    if chance.random() < 0.3:
        more["readinessProbe"] = probe("true")
    if chance.random() < 0.2:
        script = "trap '' TERM; while :; do sleep 0.1; done"
    first = {
        "once": [container("first", image, "exit 0")],
        "sidecar": [container("first", image, FOREVER, restartPolicy="Always")],
    }.get(chance.choice(["", "", "once", "sidecar"]), [])
    name = {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}
    volumes = [
        {"name": "data", "emptyDir": chance.choice([{}, {"medium": "Memory"}])},
        {"name": "told", "downwardAPI": {"items": [name]}},
    ]
    spec = {"initContainers": first, "volumes": volumes, "terminationGracePeriodSeconds": 1, **more_spec}
    return pod(f"pod-{number}", [container("main", image, script, **more)], **spec)


@attrs.define
class Soak:
    """One run.

    Attributes:
        place: Where the agents run.
        chance: What is done next.
        tally: What happened.
        names: Pods that should be there.
        told: The newest status of each, by name.
        lines: How much of the status file was read.
        numbers: Pods so far.
    """

    place: Surroundings
    chance: random.Random
    tally: Tally = attrs.field(factory=Tally)
    names: set[str] = attrs.field(factory=set[str])
    told: dict[str, Mapping[str, object] | None] = attrs.field(
        factory=dict[str, "Mapping[str, object] | None"]
    )
    lines: int = 0
    numbers: int = 0

    def round(self) -> None:
        """A few changes, a kill at a random moment and a restart, then a check."""
        self.tally.rounds += 1
        before = {
            name: one for name, one in self.place.running().items() if name.partition("/")[0] in self.names
        }
        for _ in range(self.chance.randint(1, 4)):
            self.change()
        time.sleep(self.chance.uniform(0, 1.0))
        if self.place.agent is not None:
            self.place.agent.end(signal.SIGKILL)
            self.tally.kills += 1
        self.place.start()
        self.settle()
        after = self.place.running()
        for name, one in before.items():
            if name.partition("/")[0] in self.names and after.get(name) != one:
                self.say(f"{name} was {one}, and is {after.get(name)}")
        self.check()

    def change(self) -> None:
        """A pod comes, or one goes."""
        if self.names and (len(self.names) >= MOST_PODS or self.chance.random() < 0.45):
            name = self.chance.choice(sorted(self.names))
            (self.place.pods / f"{name}.json").unlink()
            self.names.discard(name)
            return
        self.numbers += 1
        name = f"pod-{self.numbers}"
        self.names.add(name)
        aside = self.place.folder / "aside"
        aside.write_text(json.dumps(manifest(self.chance, self.numbers, self.place.image, self.place.spec)))
        aside.rename(self.place.pods / f"{name}.json")

    def settle(self) -> None:
        """Until each pod runs or was refused, and nothing of any other one is left."""
        until = time.monotonic() + PATIENCE_S
        while waits := list(self.waits_for()):
            self.place.agent_lives()
            if time.monotonic() > until:
                raise DemoError(f"not settled after {PATIENCE_S:g} s: {'; '.join(waits)}")
            time.sleep(0.05)

    def waits_for(self) -> Iterator[str]:
        """What is not as it should be yet."""
        lines = self.place.status()
        for line in lines[self.lines :]:
            said = json.loads(line)
            self.told[str(said["name"]).removesuffix("-demo")] = said["status"]
        self.lines = len(lines)
        for name in sorted(self.names):
            status = self.told.get(name) or {}
            if status.get("phase") not in ("Running", "Failed"):
                yield f"{name} is told to be {status.get('phase')}"
        running = self.place.running()
        there = {name.partition("/")[0] for name in running}
        for name in sorted(self.names - there):
            if (self.told.get(name) or {}).get("phase") != "Failed":
                yield f"nothing of {name} runs"
        yield from (f"{name} runs" for name in sorted(there - self.names))
        kept = {uid for uid, one in self.place.uids().items() if one in self.names}
        yield from (
            f"{path} is left" for path in left_behind(self.place) if not any(uid in path for uid in kept)
        )

    def check(self) -> None:
        """What must not be, is not."""
        self.tally.checks += 1
        for name, count in self.place.instances().items():
            if count > 1:
                self.say(f"{count} instances of {name} run at once")
        own: dict[str, CPUSet] = {}
        for name, (cpus, exclusive) in self.place.cpus().items():
            for other, theirs in own.items():
                if exclusive and not cpus.isdisjoint(theirs):
                    self.say(f"CPUs {cpus & theirs} are {name}'s and {other}'s")
            if exclusive:
                own[name] = cpus

    def say(self, line: str) -> None:
        """Something that must not be."""
        self.tally.violations.append(line)
        print(f"VIOLATION in round {self.tally.rounds}: {line}", flush=True)

    def finish(self) -> None:
        """All pods go; nothing may be left."""
        for path in self.place.pods.glob("*.json"):
            path.unlink()
        self.names.clear()
        self.settle()
        if self.place.agent is not None:
            self.place.agent.end(signal.SIGTERM)
        self.tally.violations += [f"{path} is left" for path in left_behind(self.place)]


def main() -> int:
    """Soak; 1 when anything was violated."""
    parser = argparse.ArgumentParser(prog="python -m examples.agent.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="default: 60")
    parser.add_argument("--runtime", choices=("processes", "containerd"), default="processes")
    parser.add_argument("--store", choices=("files", "sqlite"), default="files")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    chosen = parser.parse_args()
    where = f"soak on {chosen.runtime} (seed {chosen.seed})"
    more = {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0"} if (os.cpu_count() or 1) > 1 else {}
    with surroundings(chosen.runtime, store=chosen.store, more=more) as place:
        soak = Soak(place, random.Random(chosen.seed))  # noqa: S311
        try:
            until = time.monotonic() + chosen.seconds
            while time.monotonic() < until:
                soak.round()
            soak.finish()
        except DemoError as error:
            print(f"{where} ended early, after {soak.tally}: {error}", file=sys.stderr)
            return 1
    print(f"{where}: {soak.tally}", flush=True)
    return 1 if soak.tally.violations else 0


if __name__ == "__main__":
    raise SystemExit(main())
