"""`python -m nodealloc checkpoint`: look at, verify and convert remembered state."""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import shutil
import sys
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path

from nodealloc._cli._record_rows import record_rows
from nodealloc._units import bytes_text
from nodealloc.checkpoint import (
    DEVICE_STATE,
    KUBELET_FORMATS,
    Checkpoint,
    CpuManagerState,
    CpuManagerStateV1,
    DeviceManagerState,
    FileStore,
    Finding,
    JsonCheckpoint,
    MemoryManagerState,
    SqliteStore,
    Store,
    StoreBusyError,
    inspect,
    stored_identity,
)

__all__ = ["add_arguments", "run"]

_FORMATS = {**KUBELET_FORMATS, "*": JsonCheckpoint.unmarshal}
_WIDTH = 100
"""Longest value in a table on a terminal of up to so many columns, in characters."""


def _path(text: str) -> Path:
    if not text:
        raise argparse.ArgumentTypeError("a path is expected, found an empty text")
    return Path(text)


def add_arguments(parser: argparse.ArgumentParser, /) -> None:
    """Declare the three actions."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    show = actions.add_parser("show", help="contents as a table")
    verify = actions.add_parser("verify", help="the verdict on each key, with both checksums")
    for action in (show, verify):
        action.add_argument("paths", nargs="+", type=_path, metavar="PATH", help="a store, or a state file")
        action.add_argument(
            "--full", action="store_true", help="nothing cut short; as it is where this is no terminal"
        )
    convert = actions.add_parser("convert", help="copy a store into another, new one")
    convert.add_argument(
        "source", type=_path, metavar="SOURCE", help="a store, or a kubelet's root directory"
    )
    convert.add_argument("target", type=_path, metavar="TARGET", help="must hold nothing yet")
    convert.add_argument(
        "--to",
        choices=("files", "sqlite", "kubelet"),
        default="files",
        help="what TARGET becomes: one file a key, an SQLite file, or the kubelet's root directory",
    )
    convert.add_argument("--skip-damaged", action="store_true", help="leave damaged keys behind")


def run(arguments: argparse.Namespace, /) -> int:
    """Do it.

    Returns:
        0 when all is well, 1 when something is damaged or the target is not
        empty; 2 (from `main`) when a path cannot be read.
    """
    if arguments.action == "convert":
        with _held(arguments.source):
            return _convert(arguments.source, arguments.target, arguments.to, skip=arguments.skip_damaged)
    findings = [finding for path in arguments.paths for finding in inspect(path)]
    width = None if arguments.full or not sys.stdout.isatty() else _terminal_width()
    if arguments.action == "show":
        rows = [row for finding in findings for row in _contents(finding)]
        _table(("KEY", "OWNER", "RESOURCE", "VALUE"), rows, width)
    else:
        head = ("KEY", "VERDICT", "STORED", "COMPUTED", "PLACE", "REASON")
        _table(head, [_verdict(f) for f in findings], width)
    if not findings:
        print("nothing is stored here", file=sys.stderr)
        return 1
    return 0 if all(finding.is_good for finding in findings) else 1


def _verdict(finding: Finding) -> Sequence[str]:
    word = "set aside" if finding.is_set_aside else "ok" if finding.is_good else "DAMAGED"
    computed = finding.computed
    if finding.is_good and finding.stored == "0":
        word, computed = "unchecked", ""
    reason = " ".join(finding.reason.split())
    return (finding.key, word, finding.stored, computed, finding.place, reason)


def _contents(finding: Finding) -> Iterator[Sequence[str]]:
    mark = "" if finding.is_good else "DAMAGED "
    if finding.value is None:
        yield (finding.key, "", "", mark + " ".join(finding.reason.split()))
        return
    for owner, resource, value in _rows(finding.value):
        yield (finding.key, owner, mark + resource, value)


def _rows(value: Checkpoint) -> Iterator[tuple[str, str, str]]:
    if isinstance(value, CpuManagerState):
        yield "(policy)", "policy", value.policy_name
        yield "(shared pool)", "cpu", value.default_cpuset
        for pod, held in sorted(value.entries.items()):
            for name, cpus in sorted(held.items()):
                yield f"{pod}/{name}", "cpu", cpus
        for pod, cpus in sorted(value.pod_entries.items()):
            yield pod, "cpu", cpus
    elif isinstance(value, CpuManagerStateV1):
        yield "(policy)", "policy", value.policy_name
        yield "(shared pool)", "cpu", value.default_cpuset
        for container, cpus in sorted(value.entries.items()):
            yield f"container {container}", "cpu", cpus
    elif isinstance(value, MemoryManagerState):
        yield from _memory_rows(value)
    elif isinstance(value, DeviceManagerState):
        yield from _device_rows(value)
    elif isinstance(value, JsonCheckpoint):
        yield from record_rows(value)


def _memory_rows(value: MemoryManagerState) -> Iterator[tuple[str, str, str]]:
    yield "(policy)", "policy", value.policy_name
    for node, state in sorted((value.machine_state or {}).items()):
        for kind, table in sorted((state.memory_map or {}).items()):
            yield f"(node {node})", kind, f"{table.free} free of {table.allocatable} bytes"
    for pod, held in sorted(value.entries.items()):
        for name, blocks in sorted(held.items()):
            for block in blocks or ():
                nodes = ",".join(map(str, block.numa_affinity or ()))
                yield f"{pod}/{name}", block.type, f"{bytes_text(block.size)} on nodes {nodes}"


def _device_rows(value: DeviceManagerState) -> Iterator[tuple[str, str, str]]:
    for resource, ids in sorted((value.registered_devices or {}).items()):
        yield "(registered)", resource, " ".join(ids or ())
    for entry in value.pod_device_entries or ():
        for node, ids in sorted((entry.device_ids or {}).items()):
            where = f"on node {node}" if node >= 0 else "on no node"
            yield (
                f"{entry.pod_uid}/{entry.container_name}",
                entry.resource_name,
                f"{' '.join(ids or ())} {where}",
            )


@contextlib.contextmanager
def _held(source: Path) -> Generator[None]:
    """A store that nobody goes on with meanwhile: who opened the copy would grant what is granted there.

    A kubelet has no lock; nothing is made in its directory.

    Raises:
        StoreBusyError: An agent has it.
    """
    at = source.resolve()
    lock = at / ".nodealloc.lock" if at.is_dir() else at.with_name(f"{at.name}.lock")
    try:
        descriptor = os.open(lock, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        yield
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = os.read(descriptor, 20).decode("ascii", "replace").strip()
        raise StoreBusyError(str(source), int(owner) if owner.isdecimal() else 0) from None
    else:
        yield
    finally:
        os.close(descriptor)


def _convert(source: Path, target: Path, to: str, *, skip: bool) -> int:
    findings = inspect(source)
    bad = [finding for finding in findings if not finding.is_good]
    for finding in bad:
        print(f"{finding.place}: {' '.join(finding.reason.split())}", file=sys.stderr)
    if any(finding.is_cut_off for finding in bad):
        remedy = "open the store once, or start its agent, and convert it then"
        print(f"nothing was written: half a commit would be copied; {remedy}", file=sys.stderr)
        return 1
    if bad and not skip:
        print("nothing was written; --skip-damaged leaves damaged keys behind", file=sys.stderr)
        return 1
    values = {f.key: f.value for f in findings if f.is_good and f.value is not None}
    if not values:
        print(f"{source}: nothing is stored here", file=sys.stderr)
        return 1
    if target.exists() and inspect(target):
        print(f"{target}: holds something already; name a new place", file=sys.stderr)
        return 1
    # Whoever opens the copy after a boot, or on another machine, has to be told so.
    writer = stored_identity(source)
    if to == "sqlite":
        _fill(SqliteStore(target, _FORMATS, identity=writer), values)
    elif to == "files":
        _fill(FileStore(target, _FORMATS, identity=writer), values)
    else:
        _fill_kubelet(target, values)
    print(f"{target}: {len(values)} keys")
    return 0


def _fill_kubelet(target: Path, values: Mapping[str, Checkpoint]) -> None:
    """The kubelet's two directories: devices stand in one of their own."""
    states = {key: value for key, value in values.items() if key in KUBELET_FORMATS}
    devices = states.pop(DEVICE_STATE, None)
    _fill(FileStore(target, KUBELET_FORMATS), states)
    if devices is not None:
        _fill(FileStore(target / "device-plugins", KUBELET_FORMATS), {DEVICE_STATE: devices})


def _fill(store: Store, values: Mapping[str, Checkpoint]) -> None:
    try:
        store.commit(values)
    finally:
        store.close()


def _terminal_width() -> int:
    return max(_WIDTH, shutil.get_terminal_size((_WIDTH, 24)).columns)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], longest: int | None) -> None:
    lines = [[_printable(cell, longest) for cell in row] for row in (head, *rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(head))]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _printable(text: str, longest: int | None) -> str:
    """Text that cannot disturb a terminal; names in a damaged file may hold anything."""
    plain = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)
    return plain if longest is None or len(plain) <= longest else f"{plain[: longest - 1]}…"
