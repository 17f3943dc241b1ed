"""Single packages on this machine, and what an agent has in place of them elsewhere."""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import attrs

from nodealloc.checkpoint import Store
from nodealloc.devices import DeviceAllocator
from nodealloc.devices.plugins import DeviceAdvisor, DevicePlugins
from nodealloc.dirwatch import InotifyWatcher, Watcher
from nodealloc.dsw_asw import Clock, Driven, Executor, Failure, Moment, World
from nodealloc.kubeconfig import NodePlan
from nodealloc.node import NodeAllocator
from nodealloc.pluginreg import PluginRegistrar
from nodealloc.podfacts import LifeState, PodSource
from nodealloc.podlife import HookRunner, PodFacts
from nodealloc.podstatus import Sink
from nodealloc.runtime import RuntimeWatch
from nodealloc.volumes import VolumeManager

__all__ = ["MACHINE", "Stage", "Waits", "device_plugins_of", "node_of", "say_outages", "watcher_of"]

_TRIES: Final = re.compile(r" \(\d+ tr(y|ies)\)")
"""Counted by a step that fails again and again."""


@attrs.frozen(kw_only=True)
class Stage:
    """Whose time and threads an agent lives on, and what it has in place of a machine's own parts.

    Attributes:
        executor: Runs calls, none of which may last: nobody follows the runtime's events; None for threads.
        clock: Time; None for the machine's.
        now: This moment, as it is stored.
        unix_s: The wall clock.
        hooks: Runs hooks; None for commands by the runtime, and requests over HTTP.
        volumes: From the pods that are here to who mounts their volumes; None for this machine's.
        plugins: From the node to who talks to device plugins, and what drives it; None for
            plugins behind sockets.
        sink: Is told of pods; None for the file of the place.
        say: Is told what sources cannot read, what pods wait for or fail at, and that the runtime does not
            answer, line by line; None for nobody.
    """

    executor: Executor | None = None
    clock: Clock | None = None
    now: Callable[[], Moment] = Moment.now
    unix_s: Callable[[], float] = time.time
    hooks: HookRunner | None = None
    volumes: Callable[[PodSource], VolumeManager] | None = None
    plugins: Callable[[NodeAllocator], tuple[DevicePlugins, Sequence[Driven]]] | None = None
    sink: Sink | None = None
    say: Callable[[str], object] | None = None


MACHINE: Final = Stage(say=lambda line: print(line, file=sys.stderr, flush=True))


def node_of(plan: NodePlan, store: Store) -> NodeAllocator:
    """What is held, with all that was remembered; what is not clean is printed and taken as it is."""
    node = NodeAllocator(plan.empty, store, view=plan.view, chain=plan.chain, kubelet_files=["cpu"])
    report = node.start()
    if not report.is_clean:
        print(report, flush=True)
        node.accept()
    return node


def device_plugins_of(root: Path, node: NodeAllocator) -> tuple[DevicePlugins, PluginRegistrar]:
    """Plugins that register themselves, or that a socket in `plugins_registry` is found of."""
    # Nobody but an administrator takes its socket away: it is looked at now and then.
    plugins = DevicePlugins(node.allocator(DeviceAllocator), directory=root / "device-plugins", look_s=5.0)
    node.advise_with(DeviceAdvisor(plugins))
    sockets = root / "plugins_registry"
    return plugins, PluginRegistrar(sockets, {"DevicePlugin": plugins}, watcher=watcher_of(sockets))


def watcher_of(folder: Path, *, below: bool = True) -> Watcher | None:
    """The kernel tells of changes where its extra is installed; else a look from time to time does."""
    try:
        return InotifyWatcher(str(folder), below=below)
    except ImportError as error:
        print(f"{folder} is only looked at from time to time: {error}", flush=True)
        return None


def say_outages(watch: RuntimeWatch, say: Callable[[str], object]) -> None:
    """Say that the runtime does not answer, and why, when that begins or changes; and when it is over."""
    lock, told = threading.Lock(), ""

    def look() -> None:
        nonlocal told
        with lock:
            changes.take()
            error = watch.heard().error
            if error == told:
                return
            told = error
            after = "it is asked again until it answers; start it, or name another containerRuntimeEndpoint"
            say(f"runtime: {error}; {after}" if error else "runtime: it answers again")

    changes = watch.answers.watch(look)


class Waits:
    """Says what pods wait for, such as a volume that cannot be mounted, and which of their steps fail.

    Only what lasts for two looks, since most pods wait a moment as they start or end. What their status
    tells, as of images and containers that cannot be had, is not said once more.

    Args:
        facts: Of pods.
        failures: From a uid to the steps that failed.
        say: Is told each line.
        every_s: From one look to the next.
    """

    def __init__(
        self,
        facts: World[str, PodFacts],
        failures: Callable[[str], Iterable[Failure]],
        say: Callable[[str], object],
        *,
        every_s: float = 2.0,
    ) -> None:
        self._facts, self._failures, self._say, self._every_s = facts, failures, say, every_s
        self._seen: Container[tuple[str, str]] = ()
        self._said: dict[tuple[str, str], str] = {}
        self._stops = threading.Event()

    def start(self) -> None:
        """Look from now on."""
        threading.Thread(target=self._run, name="waits", daemon=True).start()

    def stop(self) -> None:
        """Look no more."""
        self._stops.set()

    def _run(self) -> None:
        while not self._stops.wait(self._every_s):
            self.look()

    def look(self) -> None:
        """Look once."""
        facts = {uid: one.value for uid, one in self._facts.snapshot().items()}
        found = {(uid, kind): text for uid, one in facts.items() for kind, text in self._reasons(uid, one)}
        for key, text in found.items():
            if key in self._seen and self._said.get(key) != text:
                self._said[key] = text
                self._say(f"pod {_name(facts[key[0]])} {text}")
        over = [key for key in self._said if key not in found]
        for key in over:
            del self._said[key]
        going_on = {uid for uid, _ in over} - {uid for uid, _ in self._said}
        for uid in sorted(going_on & facts.keys()):
            if facts[uid].life is LifeState.SYNCING:
                self._say(f"pod {_name(facts[uid])} goes on")
        self._seen = found.keys()

    def _reasons(self, uid: str, one: PodFacts) -> Iterator[tuple[str, str]]:
        if one.waits_for is not None:
            words = _TRIES.sub("", one.waits_for.message)
            yield one.waits_for.blocker, f"waits for {one.waits_for.blocker}: {words}"
        for failure in self._failures(uid):
            # What is not made ready yet is waited for, and of what is not started its status tells.
            if failure.scope[2:] != ("parts",) and failure.verb not in {"pull", "make", "start"}:
                yield failure.verb, f"cannot {_TRIES.sub('', str(failure))}"


def _name(one: PodFacts) -> str:
    return f"{one.pod.namespace}/{one.pod.name}"
