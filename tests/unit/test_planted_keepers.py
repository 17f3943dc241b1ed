"""Keepers, stores, writers, handlers and cgroup drivers with one bug each, which the kit refuses."""

# ruff: noqa: E741 - a function says in one line what it does wrong; fakes are of any kind

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import attrs
import pytest

from nodealloc.cgroups import CgroupStats, Limits
from nodealloc.checkpoint import MemoryStore
from nodealloc.cpuset import CPUSet
from nodealloc.errors import NodeallocError
from nodealloc.testing._fake_cpus import _read
from nodealloc.testing.abilities import FakeCpuAllocator
from nodealloc.testing.cgroups import FakeCgroups
from nodealloc.testing.cpuset import FakeCpusetWriter
from nodealloc.testing.pluginreg import RecordingHandler
from nodealloc.topology import Owner, Restored
from tests.unit.planted_bugs import PLANTED, RIGHT, Bug, planted, refused

TOLD = itertools.count()


@planted("topology.Remembers", FakeCpuAllocator, "restored", "restoring no rows at all raised KeyError")
def raises_on_empty(self: Any, g: Any) -> Any:
    """Cannot begin with nothing."""
    if not g:
        raise KeyError("no rows")
    return RIGHT[FakeCpuAllocator, "restored"](self, g)


@planted("topology.Remembers", FakeCpuAllocator, "restored", "both hold it now")
def takes_conflicts(self: Any, g: Any) -> Any:
    """Two that are remembered with the same come back both."""
    al = self
    for w, row in g.items():
        masks = {Owner(w, m): cp.mask for m, (cp, _) in _read(w, row).items() if cp}
        sh = {Owner(w, m): s for m, (_, s) in _read(w, row).items() if s}
        al = attrs.evolve(
            al,
            units=attrs.evolve(al.units, held={**al.units.held, **masks}),
            shared_milli_cpu={**al.shared_milli_cpu, **sh},
        )
    return Restored(allocator=al)


@planted("topology.Remembers", FakeCpuAllocator, "restored", "changed the rows that it was given")
def drops_rows_argument(self: Any, g: Any) -> Any:
    """Empties what it was given."""
    r = RIGHT[FakeCpuAllocator, "restored"](self, dict(g))
    if isinstance(g, dict):
        g.clear()
    return r


@planted("topology.Remembers", FakeCpuAllocator, "remembered", "asked again, it remembers something else")
def stamp(self: Any, w: Any) -> Any:
    """Writes down how often it was asked."""
    r = RIGHT[FakeCpuAllocator, "remembered"](self, w)
    return r and {**r, "stamp": {"cpus": "", "sharedMilliCpu": next(TOLD) % 900}}


@planted("checkpoint.Store", MemoryStore, "_write", "row.1 is .*'number': 1.*'number': 5")
def keeps_first_value(self: Any, fresh: Any, settled: Any, writer: Any) -> Any:
    """Never overwrites."""
    RIGHT[MemoryStore, "_write"](
        self, {k: v for k, v in fresh.items() if k not in self._stored or v is None}, (), None
    )


@planted("checkpoint.Store", MemoryStore, "_write", "'number': 5.* was committed last")
def loses_last_commit(self: Any, fresh: Any, settled: Any, writer: Any) -> Any:
    """Writes a commit with the next one."""
    p = getattr(self, "_pend", None)
    self._pend = dict(fresh)
    if p:
        RIGHT[MemoryStore, "_write"](self, p, (), None)


@planted("checkpoint.Store", MemoryStore, "_write", "was committed last")
def reorders(self: Any, fresh: Any, settled: Any, writer: Any) -> Any:
    """Writes an older commit after a newer one."""
    old = getattr(self, "_old", None)
    RIGHT[MemoryStore, "_write"](self, fresh, (), None)
    if old:
        RIGHT[MemoryStore, "_write"](self, {k: v for k, v in old.items() if k in fresh}, (), None)
    self._old = dict(fresh)


@planted("checkpoint.Store", MemoryStore, "commit", "a commit of nothing raised")
def refuses_empty(self: Any, ch: Any) -> Any:
    """Refuses to do nothing."""
    if not ch:
        raise ValueError("nothing")
    RIGHT[MemoryStore, "commit"](self, ch)


@planted("checkpoint.Store", MemoryStore, "commit", "that is absent, to be forgotten raised KeyError")
def absent_delete_raises(self: Any, ch: Any) -> Any:
    """Cannot forget what it does not know."""
    for k, v in ch.items():
        if v is None and k not in self.read().values:
            raise KeyError(k)
    RIGHT[MemoryStore, "commit"](self, ch)


@planted("checkpoint.Store", MemoryStore, "commit", "changed what it was given")
def clears_argument(self: Any, ch: Any) -> Any:
    """Empties what it was given."""
    RIGHT[MemoryStore, "commit"](self, dict(ch))
    if isinstance(ch, dict):
        ch.clear()


@planted("checkpoint.Store", MemoryStore, "close", "closing twice raised")
def close_twice_raises(self: Any) -> Any:
    """Closes once."""
    if getattr(self, "_cl", False):
        raise RuntimeError("closed")
    self._cl = True
    RIGHT[MemoryStore, "close"](self)


@planted("pluginreg.PluginHandler", RecordingHandler, "deregister", "for the first time, raised KeyError")
def unknown_deregister_raises(self: Any, n: Any, e: Any) -> Any:
    """Cannot let go of what it does not know."""
    if (n, e) not in self.held:
        raise KeyError(n)
    RIGHT[RecordingHandler, "deregister"](self, n, e)


@planted("pluginreg.PluginHandler", RecordingHandler, "register", "register answered False")
def register_returns_false(self: Any, n: Any, e: Any, v: Any) -> Any:
    """Refuses by an answer."""
    return False


@planted("pluginreg.PluginHandler", RecordingHandler, "validate", "validate answered False")
def validate_returns_false(self: Any, n: Any, e: Any, v: Any) -> Any:
    """Refuses by an answer."""
    return False


@planted("pluginreg.PluginHandler", RecordingHandler, "register", "changed the versions")
def wants_a_list(self: Any, n: Any, e: Any, v: Any) -> Any:
    """Adds a version to what it was given."""
    v.append("x")


@planted("pluginreg.PluginHandler", RecordingHandler, "deregister", "deregister answered True")
def deregister_returns_true(self: Any, n: Any, e: Any) -> Any:
    """Answers what nobody reads."""
    RIGHT[RecordingHandler, "deregister"](self, n, e)
    return True


@planted("cpuset.CpusetWriter", FakeCpusetWriter, "write", "wrote .*, then read")
def only_shrinks(self: Any, t: Any, c: Any, m: Any) -> Any:
    """Keeps to what was allowed before."""
    b = self.sets[t][0] if t in self.sets else c
    RIGHT[FakeCpusetWriter, "write"](self, t, c & b or c, m)


@planted("cpuset.CpusetWriter", FakeCpusetWriter, "write", "wrote 0,2, then read 0")
def first_cpu_only(self: Any, t: Any, c: Any, m: Any) -> Any:
    """Writes the first CPU."""
    RIGHT[FakeCpusetWriter, "write"](self, t, CPUSet(list(c)[:1]), m)


@planted("cpuset.CpusetWriter", FakeCpusetWriter, "write", "was written, and db changed")
def writes_everybody(self: Any, t: Any, c: Any, m: Any) -> Any:
    """Writes all containers."""
    RIGHT[FakeCpusetWriter, "write"](self, t, c, m)
    for k in self.sets:
        self.sets[k] = self.sets[t]


@planted("cpuset.CpusetWriter", FakeCpusetWriter, "read", "which is no CPUSet")
def reads_text(self: Any, t: Any) -> Any:
    """Reads text."""
    return (str(RIGHT[FakeCpusetWriter, "read"](self, t)[0]), RIGHT[FakeCpusetWriter, "read"](self, t)[1])


@planted("cpuset.CpusetWriter", FakeCpusetWriter, "write", "it may be repeated")
def second_write_raises(self: Any, t: Any, c: Any, m: Any) -> Any:
    """Cannot write the same once more."""
    if t in self.sets and self.sets[t][0] == c and c and (len(self.calls) > 1):
        raise NodeallocError("same")
    RIGHT[FakeCpusetWriter, "write"](self, t, c, m)


@planted("cpuset.CpusetWriter", FakeCpusetWriter, "write", "which is no NodeallocError")
def permission_error(self: Any, t: Any, c: Any, m: Any) -> Any:
    """Passes on what the kernel says."""
    if t not in self.sets:
        raise PermissionError(t)
    RIGHT[FakeCpusetWriter, "write"](self, t, c, m)


@planted("cgroups.CgroupDriver", FakeCgroups, "apply", "reads back as None")
def first_apply_drops_limits(self: Any, n: Any, l: Any) -> Any:
    """Makes a cgroup without its limits."""
    RIGHT[FakeCgroups, "apply"](self, n, l if n in self.tree else Limits())


@planted("cgroups.CgroupDriver", FakeCgroups, "remove", "is gone as well")
def removes_siblings(self: Any, n: Any) -> Any:
    """Removes those beside it."""
    RIGHT[FakeCgroups, "remove"](self, n)
    for k in [k for k in self.tree if k.parent == n.parent and k.parts]:
        self.tree.pop(k)


@planted("cgroups.CgroupDriver", FakeCgroups, "remove", "is gone as well")
def removes_root(self: Any, n: Any) -> Any:
    """Removes what it is in."""
    RIGHT[FakeCgroups, "remove"](self, n)
    self.tree.pop(n.parent, None)


@planted("cgroups.CgroupDriver", FakeCgroups, "apply", "has others now")
def applies_to_parent(self: Any, n: Any, l: Any) -> Any:
    """Sets the limits of what it is in."""
    RIGHT[FakeCgroups, "apply"](self, n, l)
    self.tree[n.parent] = l.over(self.tree[n.parent])


@planted("cgroups.ProcessDriver", FakeCgroups, "kill", "and leaves the cgroups")
def kill_removes(self: Any, n: Any) -> Any:
    """Removes the cgroups whose processes it ends."""
    r = RIGHT[FakeCgroups, "kill"](self, n)
    [self.tree.pop(k, None) for k in list(self.tree) if k.is_below(n)]
    return r


@planted("cgroups.TreeReader", FakeCgroups, "children", "it has none")
def unknown_children_raise(self: Any, n: Any) -> Any:
    """Knows no cgroup without limits."""
    if n not in self.tree:
        raise KeyError(n)
    return RIGHT[FakeCgroups, "children"](self, n)


@planted("cgroups.TreeReader", FakeCgroups, "stats", "is a part of the")
def stats_ws_above(self: Any, n: Any) -> Any:
    """Counts more in the working set than is used."""
    RIGHT[FakeCgroups, "stats"](self, n)
    return CgroupStats(memory_bytes=1, working_set_bytes=5, cpu_ns=0, pids=0)


@pytest.mark.parametrize("name", [name for name, bug in PLANTED.items() if bug.broken.__module__ == __name__])
def test_it_is_refused_in_a_sentence_that_names_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check passes without the bug, and with it says which promise is broken."""
    (tmp_path / "again").mkdir()
    bug: Bug = PLANTED[name]
    refused(bug, tmp_path, monkeypatch)
