"""A real device plugin to run in a process of its own, well-behaved or not.

    python -m nodealloc.testing.device_plugin --resource example.com/gpu --devices 8 --numa 0,1

It registers on `kubelet.sock` of its directory, and again whenever that socket
is made anew or its own was deleted; with `--registry` it is found by its
socket instead. Each thing that happens is a line of JSON on standard output:
`serving`, `registered`, `refused`, `called`, `listed`, `allocated`, `prepared`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from nodealloc._sockets import too_long
from nodealloc.devices import Device, PluginOptions
from nodealloc.errors import DecodeError
from nodealloc.idset import bits, parse_list
from nodealloc.testing._plugin_server import CALLS, STATUSES, Behaviour, DevicePluginServer

__all__ = ["Behaviour", "DevicePluginServer", "main", "numbered"]


def numbered(count: int, /, *, numa: Sequence[int] = (), prefix: str = "dev") -> tuple[Device, ...]:
    """Healthy devices `dev-0`, `dev-1`, …, spread over NUMA nodes in blocks; none for no place.

    Args:
        count: How many.
        numa: NUMA nodes, in order; the first gets the first block.
        prefix: Of their ids.
    """
    return tuple(
        Device(f"{prefix}-{number}", numa_nodes=1 << numa[number * len(numa) // count] if numa else None)
        for number in range(count)
    )


def _natural(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{number} is below 0")
    return number


def _seconds(text: str) -> float:
    number = float(text)
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is no time to wait: give seconds, 0 or more")
    return number


def _nodes(text: str) -> tuple[int, ...]:
    try:
        return tuple(bits(parse_list(text)))
    except DecodeError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m nodealloc.testing.device_plugin", description="Serve devices as a device plugin."
    )
    add = parser.add_argument
    add("--resource", default="example.com/gpu", help="what it serves")
    add("--devices", type=_natural, default=8, metavar="N", help="how many devices")
    add("--prefix", default="dev", help="ids are PREFIX-0, PREFIX-1, ...")
    add("--numa", type=_nodes, default=(), metavar="LIST", help="NUMA nodes, such as 0-1; none without")
    add("--directory", type=Path, default=Path("/var/lib/kubelet/device-plugins"), help="of the sockets")
    add("--socket", default="", metavar="NAME", help="name of its socket; after the resource without")
    add("--registry", action="store_true", help="wait to be found, do not register on kubelet.sock")
    add("--once", action="store_true", help="register once and never again")
    add("--with-parent", action="store_true", help="end when the process that started it has ended")
    add("--pre-start", action="store_true", help="wants PreStartContainer")
    add("--preferred", action="store_true", help="offers GetPreferredAllocation; prefers the highest ids")
    _add_misbehaviour(parser)
    return parser


def _add_misbehaviour(parser: argparse.ArgumentParser) -> None:
    bad = parser.add_argument_group("misbehaviour", f"CALL is one of {', '.join(CALLS)}")
    for name, what in (
        ("hang", "never answer"),
        ("crash-on", "die at it"),
        ("garbage", "answer with junk"),
        ("status", "answer with the status of --status-code"),
    ):
        bad.add_argument(f"--{name}", action="append", default=[], choices=CALLS, metavar="CALL", help=what)
    bad.add_argument(
        "--status-code", default="INTERNAL", choices=STATUSES, metavar="NAME", help="of a gRPC status"
    )
    bad.add_argument("--slow-s", type=_seconds, default=0.0, metavar="S", help="think before each answer")
    bad.add_argument(
        "--crash-after", type=_natural, default=0, metavar="N", help="die in mid-stream after N lists"
    )
    bad.add_argument("--end-after", type=_natural, default=0, metavar="N", help="end it after N lists")
    bad.add_argument("--flap-s", type=_seconds, default=0.0, metavar="S", help="change a device's health")
    bad.add_argument("--change-s", type=_seconds, default=0.0, metavar="S", help="replace a device")
    bad.add_argument(
        "--flood", type=_natural, default=0, metavar="N", help="send N empty lists before the true one"
    )
    bad.add_argument("--refuse-allocate", default="", metavar="TEXT", help="refuse Allocate")
    bad.add_argument("--answer-bytes", type=_natural, default=0, metavar="N", help="Allocate says N too many")
    bad.add_argument(
        "--extra-answers", type=_natural, default=0, metavar="N", help="Allocate answers for N more"
    )
    bad.add_argument(
        "--wrong-ids", action="store_true", help="list ids twice and without name, prefer others"
    )
    bad.add_argument("--foreign-nodes", action="store_true", help="name NUMA nodes that do not exist")
    bad.add_argument("--strange-health", default="", metavar="WORD", help="an unknown word for health")
    bad.add_argument("--empty-first", action="store_true", help="begin with an empty list")
    bad.add_argument("--register-twice", action="store_true", help="register a second time at once")
    bad.add_argument("--leave-socket", action="store_true", help="leave the socket behind at SIGTERM")
    bad.add_argument("--versions", default="v1beta1", metavar="LIST", help="what it says it speaks")


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT; the exit status is 0 then."""
    parser = _parser()
    said = parser.parse_args(argv)
    name = said.socket or f"{said.resource.replace('/', '-')}.sock"
    server = DevicePluginServer(
        said.resource,
        numbered(said.devices, numa=said.numa, prefix=said.prefix),
        said.directory / name,
        options=PluginOptions(pre_start_required=said.pre_start, preferred_allocation=said.preferred),
        behaviour=_behaviour(said),
        tell=_tell,
    )
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: stop.set())
    if said.with_parent:
        threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    if fault := too_long(server.socket):
        parser.error(f"{server.socket}: {fault}")
    try:
        server.start()
    except OSError as error:
        parser.error(f"cannot serve: {error}")
    if said.registry:
        stop.wait()
    elif said.once:
        server.introduce(said.directory / "kubelet.sock")
        stop.wait()
    else:
        server.keep_introducing(said.directory / "kubelet.sock", stop)
    if said.leave_socket:
        os._exit(0)
    server.stop()
    return 0


def _behaviour(said: argparse.Namespace) -> Behaviour:
    """What the switches ask it to do wrong."""
    names = [part for part in ("hang", "crash_on", "garbage", "status") if getattr(said, part)]
    return Behaviour(
        **{name: frozenset(getattr(said, name)) for name in names},
        status_code=said.status_code,
        slow_s=said.slow_s,
        crash_after=said.crash_after,
        end_after=said.end_after,
        flap_s=said.flap_s,
        change_s=said.change_s,
        flood=said.flood,
        refuse_allocate=said.refuse_allocate,
        answer_bytes=said.answer_bytes,
        extra_answers=said.extra_answers,
        wrong_ids=said.wrong_ids,
        foreign_nodes=said.foreign_nodes,
        strange_health=said.strange_health,
        empty_first=said.empty_first,
        register_twice=said.register_twice,
        leave_socket=said.leave_socket,
        versions=tuple(said.versions.split(",")),
    )


def _end_with(parent: int) -> None:
    """End as soon as somebody else has become the parent."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(4)


_line = threading.Lock()


def _tell(what: str, details: str) -> None:
    # Whoever read along may have gone; the plugin serves on.
    with _line, contextlib.suppress(BrokenPipeError):
        sys.stdout.write(json.dumps({"event": what, "details": details}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
