"""`python -m examples.agent --config kubelet.yaml`: run the pods of a configuration until told to stop."""

from __future__ import annotations

import gc

if __name__ == "__main__":
    # What is imported now stays: no cycles are looked for in all of it while it is.
    gc.set_threshold(20_000, 1000, 1000)

import argparse
import contextlib
import ctypes
import errno
import ipaddress
import linecache
import os
import re
import signal
import socket
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from examples.agent.place import Place
from examples.agent.wiring import wire
from nodealloc import checkpoint
from nodealloc.agent import AGENT_FORMATS, KUBELET, Agent, Rulebook
from nodealloc.cgroups import CgroupFs, CgroupName, Layout, Limits, detect, stand_in
from nodealloc.checkpoint import FileStore, JsonCheckpoint, Store, this_machine
from nodealloc.cpuset import CpusetWriter
from nodealloc.cri import CriCpusetWriter, CriDeadlines, CriRuntime
from nodealloc.errors import ConfigurationError, Fault, NodeallocError
from nodealloc.kubeconfig import (
    KubeletConfig,
    NodePlan,
    has_app_armor,
    machine_capacity,
    node_settings,
    read_kubelet_config,
    swap_bytes,
)
from nodealloc.machine import named_machine

if TYPE_CHECKING:
    from examples.processes import ProcessRuntime

_ARENA_MAX: Final = -8  # malloc.h
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_STORES: Final = {"files": "checkpoint", "sqlite": "checkpoint.db"}
"""Kind of store to where it stands below the root."""
_CGROUPS: Final = "cgroups"
"""Key under which a store has the cgroup of all pods."""
_THREADS: Final = 20
"""Fewer than an agent has that runs nothing yet."""
Wiring: TypeAlias = Callable[[KubeletConfig, NodePlan, Place, Rulebook], Agent]


def _folder(text: str) -> Path:
    if not text:
        raise argparse.ArgumentTypeError("it is empty; name a folder, such as build/agent")
    return Path(text)


def _address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no IP address; give one such as 10.0.0.1") from None


def _name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no name; write lower-case letters, digits, '-' and '.'"
        )
    return text


def _hostname() -> str:
    """The machine's, as a name that a node can have: hosts are called by other characters, too."""
    return re.sub(r"[^-a-z0-9.]+", "-", socket.gethostname().lower()).strip("-.") or "node"


def options() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(prog="python -m examples.agent", description=__doc__)
    parser.add_argument("--config", type=Path, required=True, help="a KubeletConfiguration, YAML or JSON")
    parser.add_argument("--config-dir", type=Path, help="a folder of *.conf files that are laid over it")
    parser.add_argument(
        "--leave-out", action="store_true", help="say what of it nothing here acts upon, and go on"
    )
    parser.add_argument(
        "--root", type=_folder, default=Path("build/agent"), help="folder of all that is kept"
    )
    parser.add_argument("--logs", type=_folder, help="folder of logs (default: below --root)")
    parser.add_argument("--links", type=_folder, help="folder of links to each container's log")
    parser.add_argument(
        "--runtime", choices=("containerd", "processes"), help="default: by the configuration"
    )
    parser.add_argument("--store", choices=("files", "sqlite"), default="files", help="what remembers")
    parser.add_argument(
        "--status", type=Path, help="file of what pods are told to be (default: below --root)"
    )
    parser.add_argument("--node", type=_name, default=_hostname(), help="name of the node")
    parser.add_argument("--node-ip", type=_address, default="127.0.0.1", help="address of the node")
    parser.add_argument(
        "--rules",
        choices=("right", "kubelet"),
        default="right",
        help="decide as is right, or as a kubelet does",
    )
    parser.add_argument("--machine", metavar="TEXT|FILE|DIR", help="give out another machine than this one")
    return parser.parse_args()


def main() -> int:
    """Run until SIGTERM or SIGINT; containers stay behind for the next agent. 2 for bad input."""
    chosen = options()
    # Many threads do little each: one that has something to do does not wait 5 ms for its turn.
    sys.setswitchinterval(0.0005)
    gc.freeze()  # what is imported stays, and of the values that come nearly all go by themselves
    gc.set_threshold(10_000, 20, 20)
    linecache.clearcache()  # but for two MiB of text that attrs generated, for debuggers
    with contextlib.suppress(OSError, AttributeError):  # glibc alone gives each new thread a heap of its own
        ctypes.CDLL(None).mallopt(_ARENA_MAX, 2)
    try:
        return run(chosen)
    except (NodeallocError, OSError, ValueError) as error:
        is_short = isinstance(error, OSError) and error.errno in {errno.EMFILE, errno.ENFILE}
        remedy = "; let it open more of them (ulimit -n)" if is_short else ""
        print(f"agent: {error}{remedy}", file=sys.stderr)
        return 2
    except RuntimeError as error:
        if "new thread" not in str(error):
            raise
        print(f"agent: {error}; let it have more of them (ulimit -u, TasksMax)", file=sys.stderr)
        return 2


def _check_threads() -> None:
    """Start some, and let them end: gRPC aborts the process where it may start none.

    Raises:
        RuntimeError: So many may not be started.
    """
    end, begun = threading.Event(), list[threading.Thread]()
    try:
        for _ in range(_THREADS):
            thread = threading.Thread(target=end.wait, daemon=True)
            thread.start()
            begun.append(thread)
    finally:
        end.set()
        for thread in begun:
            thread.join()


def _left_out(fault: Fault) -> None:
    print(f"left out: {fault.path} {fault.reason.partition(';')[0]}", flush=True)


def run(chosen: argparse.Namespace, wiring: Wiring = wire) -> int:
    """Read everything before anything is written, then go; another `wiring` may join it to more."""
    config = read_kubelet_config(
        chosen.config, drop_ins=chosen.config_dir, unread=_left_out if chosen.leave_out else None
    )
    if wiring is wire and not (config.static_pod_path or config.static_pod_url):
        raise ConfigurationError("pods come from nowhere; set staticPodPath or staticPodURL")
    _check_threads()
    rules = KUBELET if chosen.rules == "kubelet" else Rulebook()
    named = named_machine(chosen.machine or "/sys")
    for note in named.notes:
        print(f"not known: {note}", flush=True)
    root = _made("--root", chosen.root)
    _check_folders(root / "pods", root / "containers", config.pod_logs_dir or root / "logs")
    tree = root / "cgroup" if chosen.machine else Path("/sys/fs/cgroup")
    driver = _stand_in(root) if chosen.machine else _cgroups(tree, root)
    plan = NodePlan.of(
        config,
        named.machine,
        name=chosen.node,
        capacity=machine_capacity(named.machine, folder=root, is_this=not chosen.machine),
        kernel=os.uname().release,
        architecture=os.uname().machine,
        unified=driver.layout.kind == "v2",
        swap_bytes=swap_bytes(),
        app_armor=has_app_armor(),
        rules=rules.admission,
    )
    _make_root(driver, plan.tree.root)
    logs = _made("--logs", chosen.logs) if chosen.logs else None
    fresh = partial(node_settings, config, plan, root=root, logs=logs)
    with contextlib.ExitStack() as stack:
        store = stack.enter_context(_store(root, chosen.store))
        _say_what_is_left(store, driver, plan.tree.root)
        runtime, cpusets = _runtime(chosen, config, root, driver.layout)
        stack.callback(runtime.close)
        place = Place(
            runtime=runtime,
            scheme=_kind(chosen, config),
            cpusets=cpusets,
            driver=driver,
            store=store,
            root=root,
            settings=fresh(),
            fresh=fresh,
            node_ip=chosen.node_ip,
            status=chosen.status or root / "status.jsonl",
            links=_made("--links", chosen.links) if chosen.links else None,
        )
        agent = _wired(wiring, config, plan, place, rules)
        agent.start()
        stack.callback(agent.stop)
        print(f"agent: runs until it is interrupted; statuses of pods go to {place.status}", flush=True)
        _until_told_to_stop()
    return 0


def _wired(wiring: Wiring, config: KubeletConfig, plan: NodePlan, place: Place, rules: Rulebook) -> Agent:
    try:
        return wiring(config, plan, place, rules)
    except OSError as error:
        if str(error.filename) != str(place.status):
            raise
        remedy = "name a file in a folder that is there"
        raise ConfigurationError(f"--status {place.status}: {error.strerror}; {remedy}") from error


def _made(option: str, folder: Path) -> Path:
    """A folder that is made where it is not there yet."""
    path = Path(os.path.realpath(folder))
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        remedy = "name a folder that can be made"
        raise ConfigurationError(f"{option} {path}: {error.strerror}; {remedy}") from error
    return path


def _check_folders(*paths: Path | str) -> None:
    """Refuse what stands in place of a folder that is made later: each pod would fail by itself."""
    for path in paths:
        if os.path.lexists(path) and not Path(path).is_dir():
            raise ConfigurationError(f"{path} is there and is no folder; move it away")


def _until_told_to_stop() -> None:
    stop = threading.Event()

    def asked(_number: int, _frame: object) -> None:
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, asked)
    while not stop.wait(1.0):  # the signal may reach another thread, which does not end this wait
        pass


def _store(root: Path, kind: str) -> FileStore | checkpoint.SqliteStore:
    """What remembers; an agent that began anew beside what another one has remembered would mix them."""
    path = root / _STORES[kind]
    for other, name in _STORES.items():
        if other != kind and (root / name).exists():
            raise ConfigurationError(
                f"--store {kind}: {root / name} is there, of an earlier agent; give --store {other}, "
                f"or have `python -m nodealloc checkpoint convert {root / name} {path} --to {kind}` take it "
                "over, and move it away"
            )
    formats = {**AGENT_FORMATS, _CGROUPS: JsonCheckpoint.unmarshal}
    if kind == "sqlite":
        return checkpoint.SqliteStore(path, formats, identity=this_machine())
    return FileStore(path, formats, identity=this_machine())


def _say_what_is_left(store: Store, driver: CgroupFs, pods: CgroupName) -> None:
    """Name the cgroup in which pods were before `cgroupRoot` was another, at each start until it is gone."""
    known = store.read().get(_CGROUPS, JsonCheckpoint)
    before = known.value if known else None
    if before == pods.path():
        return
    if isinstance(before, str) and driver.read(CgroupName.parse(before)) is not None:
        print(
            f"cgroupRoot: pods were below {before}, and are below {pods.path()} now; what is left there "
            "stays as it is: remove it once nothing runs in it",
            flush=True,
        )
        return
    store.commit({_CGROUPS: JsonCheckpoint(kind=_CGROUPS, version=1, value=pods.path())})


def _cgroups(tree: Path, root: Path) -> CgroupFs:
    """Real ones, or a directory that stands in for them where they are refused."""
    try:
        driver = detect(tree)
        # A process id is another's as well, in another namespace over the same cgroups.
        probe = CgroupName.of(f"nodealloc-{os.urandom(8).hex()}")
        driver.apply(probe, Limits())
        driver.remove(probe)
    except (NodeallocError, OSError) as error:
        print(f"containers are not confined: {error}", flush=True)
        return _stand_in(root)
    return driver


def _stand_in(root: Path) -> CgroupFs:
    try:
        return stand_in(root / "cgroup")
    except OSError as error:
        remedy = "name a folder that can be written"
        raise ConfigurationError(f"--root {root}: {error.filename}: {error.strerror}; {remedy}") from error


def _make_root(driver: CgroupFs, pods: CgroupName) -> None:
    """Make `cgroupRoot` where it is not there: no pod could have a cgroup, and a kubelet does not begin."""
    for depth in range(1, len(pods.parts)):
        name = CgroupName(pods.parts[:depth])
        try:
            if driver.read(name) is None:
                driver.apply(name, Limits())
        except NodeallocError as error:
            raise ConfigurationError(f"cgroupRoot: {error}") from error


def _kind(chosen: argparse.Namespace, config: KubeletConfig) -> str:
    """Which runtime runs containers: `containerd` or `processes`."""
    return chosen.runtime or ("containerd" if config.container_runtime_endpoint else "processes")


def _runtime(
    chosen: argparse.Namespace, config: KubeletConfig, root: Path, layout: Layout
) -> tuple[CriRuntime | ProcessRuntime, CpusetWriter]:
    if _kind(chosen, config) == "processes":
        # An agent of containerd needs none of it.
        from examples.processes import ProcessCpusets, ProcessRuntime  # noqa: PLC0415

        tree = str(root / "cgroup") if layout.stand_in else "/sys/fs/cgroup"
        cgroup = f"{config.cgroup_root.strip('/')}/kubepods".lstrip("/")
        made = ProcessRuntime(root / "containers", cgroup=cgroup, tree=tree)
        confined = made.health().conditions["Confined"]
        if not confined.holds and (chosen.machine or not layout.stand_in):
            why = confined.message or "a machine that is another one has no cgroups here"
            print(f"containers are not confined: {why}", flush=True)
        return made, ProcessCpusets(made)
    endpoint = config.container_runtime_endpoint
    limit_s = config.runtime_request_timeout_s
    runtime = CriRuntime(
        endpoint or "/run/containerd/containerd.sock",
        deadlines=CriDeadlines(look_s=limit_s, change_s=2 * limit_s),
        tells_starts=False,
    )
    return runtime, CriCpusetWriter(runtime)


if __name__ == "__main__":
    raise SystemExit(main())
