"""A folder of manifests, or one manifest, as a source."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
from pathlib import Path
from typing import Final, TypeAlias

from nodealloc import _attrs as attrs
from nodealloc._plain_file import NoPlainFileError, open_plain
from nodealloc._reading import MAX_DOCUMENT_BYTES
from nodealloc._typed import typed
from nodealloc.dsw_asw import Cancel, Clock, SystemClock
from nodealloc.errors import ConfigurationError, DecodeError
from nodealloc.podsources._documents import pod_in
from nodealloc.podsources._names import NamesByFiles, check_node_name
from nodealloc.podsources._ports import Reading, SourceFault
from nodealloc.podsources._rules import RIGHT, Rules
from nodealloc.podsources._unread import why_unread
from nodealloc.podspec import Pod

__all__ = ["FolderSource"]

_MOST_FILES: Final = 10_000
_FIRST_S: Final = 10.0
"""How long the first reading waits for files that are being written; some never stand still."""
Stamp: TypeAlias = tuple[int, int, int, int]
"""Device, inode, size, time of the last change: what tells a file from another edition of it."""


@attrs.define
class _File:
    """What is known of one path."""

    number: int
    stamp: Stamp | None = None
    read: Stamp | None = None
    taken: os.stat_result | None = None
    pod: Pod | None = None
    fault: str = ""
    away_since_s: float | None = None
    spoilt_since_s: float | None = None


class FolderSource:
    """A `Source`: each file of a folder is one pod, in YAML or JSON.

    Names that begin with a dot, and folders below it, do not count. A file is
    read once two looks in a row find it the same, so that nobody acts on half of
    one; a JSON object says by itself where it ends, and is read at once. One
    that cannot be read leaves its pod as it is and is a fault of the reading;
    one that is away does so for `away_s`. A path that names a file is a folder
    with that file alone, whatever it is called.

    Args:
        folder: Where manifests stand, or a manifest; need not exist.
        node_name: Is appended to the pods' names, as a kubelet does; "" for nothing.
        source: Name of this source, which uids depend on.
        away_s: For how long a file that is away still counts, in seconds.
        unreadable_s: By rules with which a file that cannot be read, or whose folder is away, ends its
            pod: how many seconds later it does; a kubelet finds out when it lists the folder next.
            Until then, of several files that give their pods one name, the one that changed last has it.
        is_lenient: Whether fields that nobody knows are left out of manifests, and the first of
            several documents of a file counts, as with a kubelet; otherwise that is a fault. A
            kubelet does not take a manifest without `apiVersion` or `kind`, nor YAML that begins with
            `{`, and plain `1e3`, `08`, `y` and `n` are no texts to it.
        settle_s: From one look at a new edition to the one that takes it, in seconds.
        max_bytes: Longer files are not read, nor manifests that take more with every reference written out.
            A kubelet takes 10 MiB, which is minutes of YAML.
        clock: Time for these waits.
        rules: Where the kubelet is wrong.
    """

    @typed
    def __init__(
        self,
        folder: str | Path,
        /,
        *,
        node_name: str = "",
        source: str = "file",
        away_s: float = 5.0,
        unreadable_s: float = 0.0,
        is_lenient: bool = False,
        settle_s: float = 0.1,
        max_bytes: int = MAX_DOCUMENT_BYTES,
        clock: Clock | None = None,
        rules: Rules = RIGHT,
    ) -> None:
        if away_s < 0 or settle_s < 0 or unreadable_s < 0 or max_bytes < 1:
            raise ConfigurationError(
                f"FolderSource: away_s={away_s}, settle_s={settle_s}, unreadable_s={unreadable_s}, "
                f"max_bytes={max_bytes}: give times from 0 on and a size from 1 on"
            )
        check_node_name("FolderSource", node_name)
        self._folder, self._at, self._is_file = Path(folder), os.fspath(folder), False
        self._node_name, self._source = node_name, source
        self._away_s = away_s if rules.waits_for_absent else 0.0
        self._settle_s, self._max_bytes, self._rules = settle_s, max_bytes, rules
        self._unreadable_s, self._is_lenient = unreadable_s, is_lenient
        self._clock: Clock = SystemClock() if clock is None else clock
        self._files: dict[str, _File] = {}
        self._names = None if rules.keeps_known else NamesByFiles(unreadable_s)
        self._count = 0
        self._beyond: frozenset[str] = frozenset()
        self._began_s: float | None = None
        self._is_synced = False

    def read(self, _cancel: Cancel, /) -> Reading:
        """See `Source`.

        Raises:
            OSError: The folder is there and cannot be listed, is neither folder nor file, or is a link
                that leads nowhere; its pods stay as they are.
        """
        now_s = self._clock.monotonic_s()
        if self._began_s is None:
            self._began_s = now_s
        faults: list[SourceFault] = []
        names = self._listed(faults)
        is_there = names is not None
        waits = [self._look(name) for name in names or ()]
        away_s = self._away_s if is_there else max(self._away_s, self._unreadable_s)
        gone = self._miss(set(names or ()), now_s, away_s)
        self._end_spoilt()
        pods = self._pods(faults, away_s)
        is_new = not is_there and now_s - self._began_s < self._away_s
        soon = self._moments(now_s, away_s)
        if any(waits):
            soon.append(self._settle_s)
        if is_new:
            soon.append(self._began_s + self._away_s - now_s)
        is_written = any(one.read is None and one.stamp is not None for one in self._files.values())
        # Its word is that it has no pods, which a kubelet does not say of a file that it cannot read.
        is_unheard = self._is_file and not self._rules.keeps_unreadable and not pods
        is_first = is_written and not self._is_synced and now_s - self._began_s < _FIRST_S
        is_unsaid = is_new or is_first or is_unheard
        self._is_synced = self._is_synced or not is_unsaid
        return Reading(
            pods=tuple(pods),
            faults=tuple(faults),
            gone=gone,
            leaving=self._leaving(),
            places=self._places(pods),
            unread=self._unread(),
            is_synced=not is_unsaid,
            again_after_s=min(soon, default=None),
        )

    def _listed(self, faults: list[SourceFault]) -> list[str] | None:
        """Names of the files to look at; None where there is no folder."""
        self._beyond = frozenset()
        try:
            names = self._names_there()
        except FileNotFoundError:
            faults.append(SourceFault(where=str(self._folder), what="there is no such folder; make it"))
            return None
        if len(names) > _MOST_FILES:
            what = f"{len(names)} files, {_MOST_FILES} are read; take some away"
            faults.append(SourceFault(where=str(self._folder), what=what))
            names.sort(key=lambda one: one not in self._files)  # those that are known go on
            self._beyond = frozenset(names[_MOST_FILES:])
            names = sorted(names[:_MOST_FILES])
        if not self._files:  # which of two twins was first, only their files know
            names.sort(key=self._changed_s)
        return names

    def _names_there(self) -> list[str]:
        self._at, self._is_file = os.fspath(self._folder), False
        try:
            return sorted(one for one in os.listdir(self._at) if one[0] != ".")  # noqa: PTH208 - names
        except NotADirectoryError as error:
            if not stat.S_ISREG(self._folder.stat().st_mode):
                what = "no folder, and no file; give the folder of manifests, or one manifest"
                raise NotADirectoryError(f"{self._folder}: {what}") from error
        except OSError as error:
            # Behind it is what is not mounted, not a folder without manifests.
            is_link = error.errno in {errno.ENOENT, errno.ELOOP} and self._folder.is_symlink()
            if is_link and self._rules.keeps_unreadable:
                what = "a link that leads nowhere; mend it, or mount what it leads to"
                raise OSError(f"{self._folder}: {what}") from error
            raise
        self._at, self._is_file = os.fspath(self._folder.parent), True
        return [self._folder.name]

    def _moments(self, now_s: float, away_s: float) -> list[float]:
        """Seconds until a file that is away, or cannot be read, counts as gone, and a name as free."""
        files = self._files.values()
        away = [one.away_since_s + away_s for one in files if one.away_since_s is not None]
        spoilt = [one.spoilt_since_s + self._unreadable_s for one in files if one.spoilt_since_s is not None]
        names = [] if self._names is None else self._names.soon(now_s)
        return [*(max(0.0, at_s - now_s) for at_s in (*away, *spoilt)), *names]

    def _changed_s(self, name: str) -> float:
        try:
            return Path(self._at, name).stat().st_mtime
        except OSError:
            return float("inf")

    def _look(self, name: str) -> bool:
        """Look at a file; True when it has to be looked at again soon."""
        known = self._files.get(name)
        if known is None:
            self._count += 1
            known = self._files[name] = _File(number=self._count)
        known.away_since_s = None
        path = f"{self._at}/{name}"
        if known.taken is not None and known.read is not None and self._is_as_taken(path, known.taken):
            return False
        known.taken = None
        try:
            descriptor = open_plain(path)
        except NoPlainFileError:
            self._spoil(known, "no file; only files of this folder count, take it away")
            return False
        except OSError as error:
            has_gone = error.errno == errno.ENOENT and not os.path.lexists(path)
            self._spoil(known, "it is away" if has_gone else why_unread(error))
            return False
        try:
            before = os.fstat(descriptor)
            stamp = _stamp(before)
            if stamp == known.read:
                known.taken = before
                return False
            if self._settle_s and stamp != known.stamp and not self._is_whole(descriptor, before.st_size):
                known.stamp = stamp
                return True
            return self._take(known, name, descriptor, before)
        except OSError as error:
            self._spoil(known, why_unread(error))
            return False
        finally:
            # What was read is read, and a descriptor is gone after close(2) whatever it says.
            with contextlib.suppress(OSError):
                os.close(descriptor)

    def _is_as_taken(self, path: str, taken: os.stat_result) -> bool:
        """Whether nothing of a file has changed, its rights included, so that it need not be opened."""
        try:
            now = os.stat(path)  # noqa: PTH116 - a Path costs more than the call
        except OSError:
            return False
        return _stamp(now) == _stamp(taken) and now.st_ctime_ns == taken.st_ctime_ns

    def _is_whole(self, descriptor: int, size_bytes: int) -> bool:
        """Whether nothing can be missing, whoever still writes: of a JSON object the end is."""
        if size_bytes > self._max_bytes:
            return False
        data = os.pread(descriptor, size_bytes, 0)
        try:
            return data.lstrip()[:1] == b"{" and isinstance(json.loads(data), dict)
        except (ValueError, RecursionError):
            return False

    def _take(self, known: _File, name: str, descriptor: int, before: os.stat_result) -> bool:
        if before.st_size > self._max_bytes:
            known.read = known.stamp = _stamp(before)
            self._spoil(
                known, f"{before.st_size} bytes, {self._max_bytes} is the limit; shorten it", kept=True
            )
            return False
        data = b""
        # No more than it is said to hold: reading the kernel's log, say, takes away what is read.
        while len(data) < before.st_size and (more := os.read(descriptor, before.st_size - len(data))):
            data += more
        after = _stamp(os.fstat(descriptor))
        if after != _stamp(before):
            known.stamp = after
            return True
        if len(data) < before.st_size:  # as files of /sys
            self._spoil(known, f"{len(data)} bytes where {before.st_size} are said; put a plain file here")
            return False
        try:
            known.pod = pod_in(
                data,
                where=name,
                # For a kubelet the same manifest in another file is another pod.
                source=self._source if self._rules.keeps_uid else f"{self._source}/{_printable(name)}",
                node_name=self._node_name,
                is_lenient=self._is_lenient,
                max_bytes=self._max_bytes,
            )
            known.fault, known.spoilt_since_s = "", None
            self._hear(known.pod, name)
            known.read = known.stamp = after
        except DecodeError as error:
            known.read = known.stamp = after
            self._spoil(known, "; ".join(f"{one.reason} @ {one.path}" for one in error.faults), kept=True)
        except Exception as error:  # noqa: BLE001 - of one file, which is read again; others have nothing to do with it
            self._spoil(known, f"{type(error).__name__}: {error}")
        return False

    def _spoil(self, known: _File, fault: str, *, kept: bool = False) -> None:
        known.fault = fault
        if not kept:
            known.read = known.stamp = None
        # A kubelet that cannot read the only file there is keeps what it has.
        is_kept = self._rules.keeps_unreadable or self._is_file or known.pod is None
        if not is_kept and known.spoilt_since_s is None:
            known.spoilt_since_s = self._clock.monotonic_s()

    def _end_spoilt(self) -> None:
        now_s = self._clock.monotonic_s()
        for known in self._files.values():
            since_s = known.spoilt_since_s
            if since_s is not None and now_s - since_s >= self._unreadable_s:
                known.pod = known.spoilt_since_s = None

    def _miss(self, names: set[str], now_s: float, away_s: float) -> tuple[str, ...]:
        gone: list[str] = []
        for name in [one for one in self._files if one not in names]:
            known = self._files[name]
            if known.away_since_s is None:
                known.away_since_s = now_s
            if now_s - known.away_since_s >= away_s:
                del self._files[name]
                self._hear(known.pod, "")
                gone.append(name)
        return tuple(gone)

    def _leaving(self) -> frozenset[str]:
        away = [one for one in self._files.values() if one.away_since_s is not None]
        return frozenset(one.pod.full_name for one in away if one.pod is not None)

    def _places(self, pods: list[Pod]) -> dict[str, str]:
        told = {id(pod) for pod in pods}
        files = [(name, one.pod) for name, one in self._files.items() if one.pod is not None]
        return {pod.full_name: _printable(name) for name, pod in files if id(pod) in told}

    def _unread(self) -> frozenset[str]:
        """Files that are there and gave no pod since the beginning: an earlier process may have read them.

        A kubelet's pods end by such a file.
        """
        if not self._rules.keeps_unreadable:
            return frozenset()
        unread = [name for name, one in self._files.items() if one.pod is None and one.away_since_s is None]
        return frozenset(_printable(name) for name in (*unread, *self._beyond))

    def _hear(self, pod: Pod | None, file: str) -> None:
        if self._names is not None and pod is not None:
            self._names.heard(pod.full_name, file, self._clock.monotonic_s())

    def _pods(self, faults: list[SourceFault], away_s: float) -> list[Pod]:
        """The pods of all files; of two with one full name that of the file that came first."""
        # A file that moved: the path that is there speaks for the one that is away.
        ordered = sorted(
            self._files.items(), key=lambda one: (one[1].away_since_s is not None, one[1].number)
        )
        pods: dict[str, Pod] = {}
        holders: dict[str, str] = {}
        for name, known in ordered:
            if known.pod is not None:
                pods[name] = known.pod
                holders.setdefault(known.pod.full_name, name)
        if self._names is not None:
            holders = self._names.holders(pods, self._clock.monotonic_s())
        for name, known in ordered:
            is_away = known.away_since_s is not None
            if known.fault or is_away:
                stays = self._stays(known, away_s)
                faults.append(SourceFault(where=name, what=(known.fault or "it is away") + stays))
            first = name if known.pod is None else holders.get(known.pod.full_name)
            if known.pod is not None and first not in (None, name) and not is_away:
                what = (
                    f"pod {known.pod.full_name} is that of {first}, which counts; rename one, or take it away"
                )
                faults.append(SourceFault(where=name, what=what))
        held = set(holders.values())
        return [pod for name, pod in pods.items() if name in held]

    def _stays(self, known: _File, away_s: float) -> str:
        """What becomes of the pod of a file that is away, or cannot be read."""
        if known.pod is None:
            return ""
        until = ""
        if known.away_since_s is not None:
            until = f" until it was away for {away_s:g} s"
        elif known.spoilt_since_s is not None:
            until = f" until it could not be read for {self._unreadable_s:g} s"
        return f", and its pod stays as it is{until}"


def _printable(name: str) -> str:
    """A file's name as a text that can be hashed: bytes that are no UTF-8 by their numbers."""
    return os.fsencode(name).decode(errors="backslashreplace")


def _stamp(status: os.stat_result) -> Stamp:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
