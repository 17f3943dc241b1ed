"""One story, in namespaces of its own: does the steps, and says what was seen."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final, cast

from nodealloc.cri import CriDeadlines, CriRuntime
from nodealloc.errors import NodeallocError
from tests.stories import seen
from tests.stories.api import ApiServer
from tests.stories.machine import (
    CONFIG,
    NODE_IP,
    RUN,
    STATIC,
    StoryContainerd,
    configuration,
    import_images,
    make_cgroup,
    set_up,
)
from tests.stories.proxy import Proxy
from tests.stories.rows import Story
from tests.stories.watch import Watch

__all__ = ["AGENT", "play"]

AGENT: Final = (
    "{python} -m {agent} --config {config} --root /var/lib/kubelet --node n1 --node-ip {ip} "
    "--status {status} --logs /var/log/pods --links /var/log/containers --rules kubelet"
)
"""How the agent is called; `--agent` says otherwise. {agent} is the module, with a file of pods beside it
where a story has an API server."""

_IDLE_S: Final = 2.5
_OK, _CREATED = 200, 201
_PATIENCE_S: Final = 90.0


class Play:
    """A story on its machine.

    Args:
        story: What happens.
        root: Debian's packages, unpacked.
        folder: A tmpfs for everything.
        cgroup: Root of all cgroups.
        agent: How the agent is called.
    """

    def __init__(self, story: Story, root: Path, folder: Path, cgroup: str, agent: str) -> None:
        self._story = story
        self._cgroup = make_cgroup(cgroup)
        self._daemon = StoryContainerd(root, folder / "containerd", "1.7")
        os.environ["PATH"] = f"{root / 'usr/bin'}:{os.environ['PATH']}"
        Path("/run/containerd/containerd.sock").symlink_to(self._daemon.socket)
        self._daemon.start()
        (RUN / "api").mkdir()
        named = story.row.get("images")
        import_images(self._daemon)
        if isinstance(named, list):
            import_images(self._daemon, map(str, named), pause=False)
        socket = RUN / "cri.sock"
        self._proxy = Proxy(socket, self._daemon.socket)
        self._others = CriRuntime(socket, deadlines=CriDeadlines())
        CONFIG.write_text(json.dumps(configuration(story.settings, cgroup, socket), indent=1))
        self._status = RUN / "status.jsonl"
        joins = any(str(one["do"]).startswith("api_") for one in story.steps)
        self._api = ApiServer(RUN / "api" / "pods.json", self._at) if joins else None
        self._command = agent.format(
            agent=f"tests.stories.joined {self._api.file}" if self._api else "examples.agent",
            python=sys.executable,
            config=CONFIG,
            status=self._status,
            ip=NODE_IP,
        )
        self._log = (RUN / "agent.log").open("ab")
        self._agent: subprocess.Popen[bytes] | None = None
        self._answers: list[tuple[float, str]] = []
        self._results: list[Mapping[str, object]] = []
        self._watch = self._made_watch()

    def run(self) -> Mapping[str, object]:
        """Play it to its end; `seen`."""
        steps = sorted(self._story.steps, key=lambda one: float(str(one["at"])))
        early = [one for one in steps if float(str(one["at"])) < 0]
        for step in early:
            self._do(step)
        answered = self._start()
        if not answered:
            self._answers.append((0.0, "does not answer"))
        if answered and not early:
            time.sleep(_IDLE_S)
        began_s = time.monotonic()
        self._watch = self._made_watch()
        self._watch.start()
        # An agent that refuses its configuration is not watched to the end: nothing comes.
        steps = [one for one in steps if one not in early] if answered else []
        for step in steps:
            time.sleep(max(0.0, began_s + float(str(step["at"])) - time.monotonic()))
            self._do(step)
        time.sleep(max(0.0, began_s + self._story.end - time.monotonic()) if answered else 0.0)
        self._watch.stop()
        found = self._seen(began_s)
        self.close()
        return found

    def _at(self, monotonic_s: float) -> float:
        return self._watch.at(monotonic_s)

    def _made_watch(self) -> Watch:
        return Watch(self._daemon.socket, self._status, self._cgroup, time.monotonic(), self._api)

    def close(self) -> None:
        """End what was started; the namespaces end the rest."""
        with contextlib.suppress(OSError):
            self._kill_agent(signal.SIGKILL)
        self._proxy.close()
        self._daemon.kill()

    def _seen(self, began_s: float) -> Mapping[str, object]:
        watch = self._watch
        names = watch.names
        told = self._api.told if self._api else []
        made = [
            seen.Call(
                at=watch.at(one.at),
                method=one.method,
                request=one.request,
                answer=one.answer,
                error=one.error,
            )
            for one in self._proxy.calls
        ]
        runs, boxes = seen.configs(made, names)
        found: dict[str, object] = {
            "pods": seen.pods(sorted(watch.told + told, key=lambda one: one.at), names),
            "runtime": seen.order(watch.contained.values(), names),
            "calls": seen.calls(made, names),
            "container_config": runs,
            "sandbox_config": boxes,
            "cgroups": watch.cgroups(),
            "end": watch.left(),
            "agent": self._answers,
            "faults": watch.faults,
            "log": (RUN / "agent.log").read_text(errors="replace")[-6000:],
        }
        if self._results:
            found["steps"] = self._results
        return found

    # The agent

    def _start(self) -> bool:
        """Start it; whether it answers, which its status file tells."""
        before = self._size()
        self._agent = subprocess.Popen(
            shlex.split(self._command),
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(one or os.curdir for one in sys.path)},
        )
        until = time.monotonic() + _PATIENCE_S
        while time.monotonic() < until and self._agent.poll() is None:
            if self._size() > before:
                return True
            time.sleep(0.02)
        return False

    def _size(self) -> int:
        try:
            return self._status.stat().st_size
        except FileNotFoundError:
            return 0

    def _kill_agent(self, number: signal.Signals) -> None:
        if self._agent is not None:
            self._agent.send_signal(number)
            self._agent.wait(_PATIENCE_S)
            self._agent = None

    # Steps

    def _do(self, step: Mapping[str, object]) -> None:
        result = getattr(self, f"_do_{step['do']}")(step)
        if result is not None:
            self._results.append({"at": step["at"], "do": step["do"], "result": result})

    def _do_write(self, step: Mapping[str, object]) -> None:
        text = json.dumps(step["manifest"]) if "manifest" in step else str(step["text"])
        aside = STATIC / f".{step['file']}.new"
        aside.write_text(text)
        aside.rename(STATIC / str(step["file"]))

    def _do_remove(self, step: Mapping[str, object]) -> None:
        (STATIC / str(step["file"])).unlink()

    def _do_api_create(self, step: Mapping[str, object]) -> int:
        manifest = cast("Mapping[str, object]", step["manifest"])
        if manifest.get("kind", "Pod") == "Pod":
            self._server.create(manifest)
        else:
            self._server.put(manifest)
        return _CREATED

    def _do_api_delete(self, step: Mapping[str, object]) -> int:
        grace = step.get("grace")
        self._server.delete(str(step["name"]), None if grace is None else int(str(grace)))
        return _OK

    def _do_api_patch(self, step: Mapping[str, object]) -> int:
        self._server.patch(str(step["name"]), cast("Mapping[str, object]", step["patch"]))
        return _OK

    def _do_api_kill(self, _step: Mapping[str, object]) -> None:
        self._server.go_away()

    def _do_api_start(self, _step: Mapping[str, object]) -> None:
        self._server.come_back()

    @property
    def _server(self) -> ApiServer:
        if self._api is None:
            raise RuntimeError("this story has no API server")
        return self._api

    def _do_agent_kill(self, _step: Mapping[str, object]) -> None:
        self._kill_agent(signal.SIGKILL)

    def _do_agent_term(self, _step: Mapping[str, object]) -> None:
        self._kill_agent(signal.SIGTERM)

    def _do_agent_start(self, _step: Mapping[str, object]) -> None:
        self._start()

    def _do_containerd_kill(self, _step: Mapping[str, object]) -> None:
        self._daemon.kill()

    def _do_containerd_start(self, _step: Mapping[str, object]) -> None:
        self._daemon.launch()

    def _do_exec(self, step: Mapping[str, object]) -> int:
        command = step["command"]
        words = [str(one) for one in command] if isinstance(command, list) else []
        return self._others.run_command(self._running(step), words, 20.0).code

    def _do_host(self, step: Mapping[str, object]) -> int:
        return subprocess.run(["/bin/sh", "-c", str(step["command"])], check=False).returncode

    def _do_kill_container(self, step: Mapping[str, object]) -> None:
        os.kill(self._others.confined(self._running(step)).pid, int(str(step["signal"])))

    def _do_kill_sandbox(self, step: Mapping[str, object]) -> None:
        box = self._box(step)
        for path in Path("/proc").glob("[0-9]*/cgroup"):
            with contextlib.suppress(OSError):
                if f"/{box}\n" in path.read_text():
                    os.kill(int(path.parent.name), signal.SIGKILL)

    def _do_stop_sandbox(self, step: Mapping[str, object]) -> None:
        self._others.stop_sandbox(self._box(step))

    def _do_remove_sandbox(self, step: Mapping[str, object]) -> None:
        box = self._box(step)
        inside = [
            one.id
            for pod in self._others.listing().pods.values()
            for one in pod.containers
            if one.sandbox_id == box
        ]
        self._watch.overlook(box, *inside)
        self._others.remove_sandbox(box)

    def _do_stop_container(self, step: Mapping[str, object]) -> None:
        self._others.stop_container(self._running(step), float(str(step.get("timeout", 0))))

    def _do_remove_container(self, step: Mapping[str, object]) -> None:
        run = self._running(step)
        self._watch.overlook(run)
        self._others.remove_container(run)

    def _do_import_image(self, step: Mapping[str, object]) -> None:
        import_images(self._daemon, [str(step["image"])], pause=False)

    def _do_power_cut(self, _step: Mapping[str, object]) -> None:
        for path in Path("/proc").glob("[0-9]*"):
            if int(path.name) not in (1, os.getpid()):
                with contextlib.suppress(OSError):
                    os.kill(int(path.name), signal.SIGKILL)
        self._kill_agent(signal.SIGKILL)
        self._daemon.kill()

    def _running(self, step: Mapping[str, object]) -> str:
        """The container that runs, or the newest."""
        for pod in self._others.listing().pods.values():
            for one in sorted(pod.containers, key=lambda each: each.newest_last, reverse=True):
                if (one.pod.name, one.name) == (step["pod"], step["container"]):
                    return one.id
        raise RuntimeError(f"no container for {step}")

    def _box(self, step: Mapping[str, object]) -> str:
        for pod in self._others.listing().pods.values():
            for one in sorted(pod.sandboxes, key=lambda each: each.attempt, reverse=True):
                if one.pod.name == step["pod"]:
                    return one.id
        raise RuntimeError(f"no sandbox for {step}")


def play(row: Path, out: Path, root: Path, folder: Path, /, *, cgroup: str, agent: str) -> int:
    """Play the story in a file, and write what was seen, or why nothing was."""
    set_up(folder)
    story = Story(json.loads(row.read_text()))
    try:
        found = Play(story, root, folder, cgroup, agent).run()
    except (NodeallocError, OSError, RuntimeError, subprocess.SubprocessError) as error:
        found = {"fault": f"{type(error).__name__}: {error}"}
        with contextlib.suppress(OSError):
            found["log"] = (RUN / "agent.log").read_text(errors="replace")[-6000:]
    out.write_text(json.dumps(found, default=str))
    return 0
