"""`python -m examples.agent.demo`: an agent's whole life, watched from outside.

Pods with probes, an init container and a sidecar, a crash loop, one that is too
large; the agent is killed and starts again; a probe fails; a pod is edited and
put back; one ends in its own time; all go. `--runtime containerd` does the same
with real containers, where Debian's packages can be had and this is root.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from typing import TypeAlias, cast

import attrs

from examples.agent.outside import AgentProcess, DemoError, Surroundings, left_behind, surroundings

Status: TypeAlias = Mapping[str, object]
"""As the API has it."""

FOREVER = "trap 'exit 0' TERM; sleep 86400 & wait $!"
FLAG = "${MOUNT_DATA:-/data}/ok"
"""A file in the pod's volume: where processes have it, and where containers have it."""
MACHINES = {
    "laptop": "1 socket x 4 cores x 2 threads, memory=16Gi",
    "server": "2 sockets x 2 numa x 8 cores x 2 threads, memory=64Gi",
    "chiplets": "2 sockets x 2 numa x 4 l3 x 8 cores x 2 threads, memory=128Gi",
}
"""Synthetic machines by name."""
NOTHING: Mapping[str, object] = {}
PATIENCE_S = float(os.environ.get("NODEALLOC_PATIENCE_S", "60"))


def pod(name: str, containers: list[Mapping[str, object]], **spec: object) -> Mapping[str, object]:
    """A manifest."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": containers, "terminationGracePeriodSeconds": 5, **spec},
    }


def container(name: str, image: str, script: str, **more: object) -> Mapping[str, object]:
    """One of a shell script."""
    return {"name": name, "image": image, "command": ["sh", "-c", script], **more}


def probe(script: str, **more: object) -> Mapping[str, object]:
    """One by a command, each second; with time, since commands in containers take some on a busy machine."""
    return {"exec": {"command": ["sh", "-c", script]}, "periodSeconds": 1, "timeoutSeconds": 10, **more}


def manifests(image: str, **spec: object) -> Mapping[str, Mapping[str, object]]:
    """The pods that come first, each with this in its specification."""
    web = container(
        "app",
        image,
        f"echo up >{FLAG}; {FOREVER}",
        startupProbe=probe(f"cat {FLAG}", failureThreshold=30),
        readinessProbe=probe(f"cat {FLAG}"),
        livenessProbe=probe(f"cat {FLAG}", failureThreshold=1),
        volumeMounts=[{"name": "data", "mountPath": "/data"}],
    )
    first = container("first", image, "exit 0")
    proxy = container("proxy", image, FOREVER, restartPolicy="Always")
    large = container("app", image, FOREVER, resources={"requests": {"cpu": "1000"}})
    return {
        "web": pod("web", [web], volumes=[{"name": "data", "emptyDir": NOTHING}], **spec),
        "pipeline": pod(
            "pipeline",
            [container("work", image, "exit 0")],
            initContainers=[first, proxy],
            restartPolicy="Never",
            **spec,
        ),
        "crash": pod("crash", [container("app", image, "exit 3")], **spec),
        "large": pod("large", [large], **spec),
        "polite": pod(
            "polite",
            [container("app", image, "trap 'sleep 1; exit 0' TERM; sleep 86400 & wait $!; wait")],
            **spec,
        ),
    }


@attrs.define
class Show:
    """The acts, and what is seen of them.

    Attributes:
        place: Where the agent runs, and how it is looked at.
        told: The newest status of each pod, by name; None of one that is gone.
        lines: How many lines of the status file were read.
        flaps: Names of pods that were told not ready since `watch_ready`.
        succeeded: Names of pods that were told to have ended with 0; records of them may be gone by then.
    """

    place: Surroundings
    told: dict[str, Status | None] = attrs.field(factory=dict[str, "Status | None"])
    lines: int = 0
    flaps: list[str] = attrs.field(factory=list[str])
    succeeded: set[str] = attrs.field(factory=set[str])

    def write(self, name: str, manifest: Mapping[str, object]) -> None:
        """Put a manifest into the folder, whole."""
        aside = self.place.pods / f".{name}.new"
        aside.write_text(json.dumps(manifest))
        aside.rename(self.place.pods / f"{name}.json")

    def wait(self, words: str, holds: Callable[[], object]) -> None:
        """Wait until something holds, telling what is told of pods meanwhile."""
        until = time.monotonic() + PATIENCE_S
        while not holds():
            self.place.agent_lives()
            if time.monotonic() > until:
                raise DemoError(f"not within {PATIENCE_S:g} s: {words}; told last: {self.told}")
            time.sleep(0.02)
            self.read()
        print(f"  ok   {words}", flush=True)

    def read(self) -> None:
        """What the agent has told since the last time."""
        lines = self.place.status()
        for line in lines[self.lines :]:
            said = json.loads(line)
            name, status = str(said["name"]).removesuffix("-demo"), said["status"]
            before, self.told[name] = self.told.get(name), status
            if summary(before) != summary(status):
                print(f"  | {name}: {summary(status)}", flush=True)
            if status is not None and status.get("phase") == "Succeeded":
                self.succeeded.add(name)
            if before is not None and is_ready(before) and status is not None and not is_ready(status):
                self.flaps.append(name)
        self.lines = len(lines)

    def is_so(self, name: str, words: str) -> bool:
        """Whether the summary of a pod has these words."""
        return words in summary(self.told.get(name))


def listed(status: Status, field: str) -> list[Status]:
    """Conditions or containers of a status."""
    return cast("list[Status]", status.get(field) or [])


def is_ready(status: Status) -> bool:
    """Whether a status says that the pod is ready."""
    found = [one for one in listed(status, "conditions") if one["type"] == "Ready"]
    return any(one["status"] == "True" for one in found)


def summary(status: Status | None) -> str:
    """A status in a line."""
    if status is None:
        return "gone"
    words = [str(status.get("phase"))]
    words += [str(status["reason"])] if status.get("reason") else []
    words += ["ready"] if is_ready(status) else []
    for kind in ("initContainerStatuses", "containerStatuses"):
        for one in listed(status, kind):
            ((state, inside),) = cast("dict[str, Status]", one["state"]).items()
            reason = inside.get("reason", "")
            code = f" {inside['exitCode']}" if state == "terminated" else ""
            restarts = f", restarts {one['restartCount']}" if one.get("restartCount") else ""
            words.append(f"{one['name']} {state}{code}{f' ({reason})' if reason else ''}{restarts}")
    return "; ".join(words)


def check(holds: bool, words: str) -> None:
    """Say what holds, or end."""
    print(f"  {'ok  ' if holds else 'FAIL'} {words}", flush=True)
    if not holds:
        raise DemoError(words)


def act(number: int, words: str) -> None:
    """A heading."""
    print(f"\n{number}. {words}", flush=True)


def play(show: Show) -> None:
    """All acts."""
    place, files = show.place, manifests(show.place.image, **show.place.spec)
    act(1, "The agent starts on an empty node")
    first = place.start()
    show.wait("it answers", place.is_up)
    arrive(show, files)
    running = place.running()
    second = start_again(show, first, running)
    act(4, "A probe fails, and its container is started again")
    place.command(running["web/app"], f"rm {FLAG}")
    show.wait("the container was started again", lambda: show.is_so("web", "ready; app running, restarts 1"))
    edit(show, files["polite"])
    leave(show)
    second.end(signal.SIGTERM)


def arrive(show: Show, files: Mapping[str, Mapping[str, object]]) -> None:
    """One that is probed, one that ends, one that crashes, one that is too large."""
    act(2, "Pods come; each is told to be what it is")
    for name, manifest in files.items():
        show.write(name, manifest)
    show.wait("a pod is ready once its probes say so", lambda: show.is_so("web", "Running; ready"))
    show.wait(
        "what has done its work has succeeded, its sidecar ended last",
        lambda: show.is_so("pipeline", "Succeeded"),
    )
    show.wait("a crash loop waits longer each time", lambda: show.is_so("crash", "CrashLoopBackOff"))
    show.wait("a pod that is too large is refused", lambda: show.is_so("large", "Failed"))
    show.wait("the others run", lambda: show.is_so("polite", "Running; ready"))


def start_again(show: Show, first: AgentProcess, running: dict[str, str]) -> AgentProcess:
    """Nothing moves; the agent that goes on."""
    place = show.place
    act(3, "The agent is killed with SIGKILL, and starts again")
    first.end(signal.SIGKILL)
    check(place.running() == running, "its containers run on")
    show.flaps.clear()
    second = place.start()
    show.wait("it answers", place.is_up)
    time.sleep(2.0)
    show.read()
    check(
        {name: one for name, one in place.running().items() if name in running} == running,
        "the same containers run",
    )
    check(not {"web", "polite"} & set(show.flaps), "nobody was told to be less ready")
    return second


def edit(show: Show, polite: Mapping[str, object]) -> None:
    """Another edition of a pod, then the first again."""
    place = show.place
    act(5, "A pod is edited, and put back")
    edited = json.loads(json.dumps(polite))
    edited["spec"]["containers"][0]["env"] = [{"name": "EDITION", "value": "2"}]
    before = place.running()["polite/app"]
    show.write("polite", edited)
    show.wait(
        "the edited pod runs in place of the first",
        lambda: place.running().get("polite/app", before) != before,
    )
    between = place.running()["polite/app"]
    show.write("polite", polite)
    show.wait(
        "and the first one again", lambda: place.running().get("polite/app", between) not in (before, between)
    )


def leave(show: Show) -> None:
    """A graceful end, then nothing is left."""
    place = show.place
    act(6, "A pod ends in its own time; then all go")
    show.succeeded.clear()
    (place.pods / "polite.json").unlink()
    show.wait("it took the second that it needed, and left with 0", lambda: "polite" in show.succeeded)
    for path in place.pods.glob("*.json"):
        path.unlink()
    show.wait("no container runs", lambda: not place.running())
    show.wait("nothing of a pod is left in the runtime", place.is_empty)
    show.wait("no directory, mount or cgroup of a pod is left", lambda: not left_behind(place))


def main() -> int:
    """Show it; 1 when something was not as it should be."""
    parser = argparse.ArgumentParser(prog="python -m examples.agent.demo", description=__doc__)
    parser.add_argument("--runtime", choices=("processes", "containerd"), default="processes")
    parser.add_argument("--store", choices=("files", "sqlite"), default="files")
    parser.add_argument("--machine", help=f"{', '.join(MACHINES)}, or another one")
    chosen = parser.parse_args()
    started = time.monotonic()
    try:
        with surroundings(
            chosen.runtime, store=chosen.store, machine=MACHINES.get(chosen.machine, chosen.machine)
        ) as place:
            play(Show(place))
    except DemoError as error:
        print(f"\nThe demo failed: {error}", file=sys.stderr)
        return 1
    print(f"\nThe demo went as it should, in {time.monotonic() - started:.1f} s.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
