"""`python -m examples.agent --config kubelet.yaml`: run the pods of a configuration until told to stop."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import attrs

from examples.agent.wiring import Place, Rulebook, wire
from examples.processes import ProcessCpusets, ProcessRuntime
from nodealloc.admission import KUBELET as KUBELET_ADMISSION
from nodealloc.agent import AGENT_FORMATS, Agent
from nodealloc.cgroups import CgroupFs, CgroupName, Layout, Limits, detect, stand_in
from nodealloc.checkpoint import FileStore, SqliteStore, this_machine
from nodealloc.cpuset import CpusetWriter
from nodealloc.cri import CriCpusetWriter, CriRuntime
from nodealloc.errors import NodeallocError
from nodealloc.kubeconfig import KubeletConfig, NodePlan, machine_capacity, read_kubelet_config, swap_bytes
from nodealloc.machine import named_machine
from nodealloc.podlife import KUBELET as KUBELET_LIFE
from nodealloc.podlife import NodeSettings
from nodealloc.podsources import KUBELET as KUBELET_SOURCES
from nodealloc.podstatus import KUBELET as KUBELET_STATUS
from nodealloc.probes import KUBELET as KUBELET_PROBES
from nodealloc.runtime import DnsConfig

KUBELET = Rulebook(
    admission=attrs.evolve(KUBELET_ADMISSION, waits_for_victims=True),
    life=KUBELET_LIFE,
    sources=KUBELET_SOURCES,
    status=KUBELET_STATUS,
    probes=KUBELET_PROBES,
    standalone=True,
)

Wiring: TypeAlias = Callable[[KubeletConfig, NodePlan, Place, Rulebook], Agent]


def options() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(prog="python -m examples.agent", description=__doc__)
    parser.add_argument("--config", type=Path, required=True, help="a KubeletConfiguration, YAML or JSON")
    parser.add_argument("--root", type=Path, default=Path("build/agent"), help="folder of all that is kept")
    parser.add_argument("--logs", type=Path, help="folder of logs (default: below --root)")
    parser.add_argument("--links", type=Path, help="folder of links to each container's log")
    parser.add_argument(
        "--runtime", choices=("containerd", "processes"), help="default: by the configuration"
    )
    parser.add_argument("--store", choices=("files", "sqlite"), default="files")
    parser.add_argument(
        "--status", type=Path, help="file of what pods are told to be (default: below --root)"
    )
    parser.add_argument("--node", default=socket.gethostname().lower(), help="name of the node")
    parser.add_argument("--node-ip", default="127.0.0.1", help="address of the node")
    parser.add_argument("--rules", choices=("right", "kubelet"), default="right")
    parser.add_argument("--machine", metavar="TEXT|FILE|DIR", help="give out another machine than this one")
    return parser.parse_args()


def main() -> int:
    """Run until SIGTERM or SIGINT; containers stay behind for the next agent. 2 for bad input."""
    chosen = options()
    # Many threads do little each: one that has something to do does not wait 5 ms for its turn.
    sys.setswitchinterval(0.0005)
    try:
        return run(chosen)
    except (NodeallocError, OSError, ValueError) as error:
        print(f"agent: {error}", file=sys.stderr)
        return 2


def run(chosen: argparse.Namespace, wiring: Wiring = wire) -> int:
    """Read everything before anything is written, then go; another `wiring` may join it to more."""
    config, rules = read_kubelet_config(chosen.config), KUBELET if chosen.rules == "kubelet" else Rulebook()
    named = named_machine(chosen.machine or "/sys")
    for note in named.notes:
        print(f"not known: {note}", flush=True)
    root = chosen.root.resolve()
    root.mkdir(parents=True, exist_ok=True)
    tree = root / "cgroup" if chosen.machine else Path("/sys/fs/cgroup")
    driver = stand_in(tree) if chosen.machine else _cgroups(tree, root)
    plan = NodePlan.of(
        config,
        named.machine,
        name=chosen.node,
        capacity=machine_capacity(named.machine, folder=root, is_this=not chosen.machine),
        kernel=os.uname().release,
        unified=driver.layout.kind == "v2",
        swap_bytes=swap_bytes(),
        rules=rules.admission,
    )
    with contextlib.ExitStack() as stack:
        store = stack.enter_context(_store(root, chosen.store))
        runtime, cpusets = _runtime(chosen, config, root, driver.layout)
        stack.callback(runtime.close)
        place = Place(
            runtime=runtime,
            cpusets=cpusets,
            driver=driver,
            store=store,
            root=root,
            settings=_settings(chosen, config, plan, root),
            node_ip=chosen.node_ip,
            status=chosen.status or root / "status.jsonl",
            links=chosen.links,
        )
        agent = wiring(config, plan, place, rules)
        agent.start()
        stack.callback(agent.stop)
        stop = threading.Event()

        def asked(_number: int, _frame: object) -> None:
            stop.set()

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, asked)
        while not stop.wait(1.0):  # the signal may reach another thread, which does not end this wait
            pass
    return 0


def _store(root: Path, kind: str) -> FileStore | SqliteStore:
    if kind == "sqlite":
        return SqliteStore(root / "checkpoint.db", AGENT_FORMATS, identity=this_machine())
    return FileStore(root / "checkpoint", AGENT_FORMATS, identity=this_machine())


def _cgroups(tree: Path, root: Path) -> CgroupFs:
    """Real ones, or a directory that stands in for them where they are refused."""
    try:
        driver = detect(tree)
        probe = CgroupName.of(f"nodealloc-{os.getpid()}")
        driver.apply(probe, Limits())
        driver.remove(probe)
    except (NodeallocError, OSError) as error:
        print(f"containers are not confined: {error}", flush=True)
        return stand_in(root / "cgroup")
    return driver


def _runtime(
    chosen: argparse.Namespace, config: KubeletConfig, root: Path, layout: Layout
) -> tuple[CriRuntime | ProcessRuntime, CpusetWriter]:
    socket_path = config.container_runtime_endpoint.removeprefix("unix://")
    kind = chosen.runtime or ("containerd" if socket_path else "processes")
    if kind == "processes":
        tree = str(root / "cgroup") if layout.stand_in else "/sys/fs/cgroup"
        cgroup = f"{config.cgroup_root.strip('/')}/kubepods".lstrip("/")
        made = ProcessRuntime(root / "containers", cgroup=cgroup, tree=tree)
        return made, ProcessCpusets(made)
    runtime = CriRuntime(Path(socket_path or "/run/containerd/containerd.sock"))
    return runtime, CriCpusetWriter(runtime)


def _settings(chosen: argparse.Namespace, config: KubeletConfig, plan: NodePlan, root: Path) -> NodeSettings:
    return NodeSettings(
        name=chosen.node,
        hostname=socket.gethostname(),
        memory_capacity_bytes=plan.capacity["memory"].value,
        cluster_dns=config.cluster_dns,
        cluster_domain=config.cluster_domain,
        resolver=DnsConfig.of_resolv_conf(_text(Path(config.resolv_conf))) if config.resolv_conf else None,
        hosts=_text(Path("/etc/hosts")),
        allocatable=plan.view.allocatable,
        pods_directory=str(root / "pods"),
        logs_directory=str(chosen.logs or config.pod_logs_dir or root / "logs"),
        seccomp_default=config.seccomp_default,
        limits=plan.tree.pods,
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


if __name__ == "__main__":
    raise SystemExit(main())
