"""Allocators, pickers and runtimes with one bug each, which the kit refuses."""

# ruff: noqa: E741 - a function says in one line what it does wrong; fakes are of any kind

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import attrs
import pytest

from nodealloc.cpuset import KubeletPicker
from nodealloc.idset import bits, lowest
from nodealloc.podfacts import Exited
from nodealloc.runtime import RunState
from nodealloc.testing.runtime import FakeContainerRuntime
from nodealloc.testing.topology import FakeAllocator
from nodealloc.testing.volumes import FakeMounter
from nodealloc.topology import NotYet, Shortfall
from tests.unit.planted_bugs import PLANTED, RIGHT, Bug, planted, refused

CALLS, PICKS = itertools.count(), itertools.count()
SHARED: list[Any] = []


@planted("topology.Allocator", FakeAllocator, "release", "changed how much .* holds")
def gives_freed_to_another(self: Any, w: Any, m: Any = None) -> Any:
    """Gives what is freed to somebody else."""
    after = RIGHT[FakeAllocator, "release"](self, w, m)
    gone = [u for o, u in self.held.items() if o not in after.held]
    if gone and after.held:
        o = next(iter(after.held))
        return attrs.evolve(after, held={**after.held, o: after.held[o] | gone[0] & -gone[0]})
    return after


@planted("topology.Allocator", FakeAllocator, "release", "changed how much .* holds")
def shrinks_another(self: Any, w: Any, m: Any = None) -> Any:
    """A release takes a unit from somebody else."""
    after = RIGHT[FakeAllocator, "release"](self, w, m)
    if after is not self and after.held:
        o = next(iter(after.held))
        u = after.held[o]
        if u.bit_count() > 1:
            return attrs.evolve(after, held={**after.held, o: u & u - 1})
    return after


@planted("topology.Allocator", FakeAllocator, "allocate", "moved what .* holds from NUMA nodes 0")
def grant_moves_another(self: Any, c: Any, h: Any) -> Any:
    """A grant makes somebody else move."""
    after = RIGHT[FakeAllocator, "allocate"](self, c, h)
    if isinstance(after, FakeAllocator) and after is not self and self.held:
        o = next(iter(self.held))
        n = self.held[o].bit_count()
        free = after._free
        if o.workload != c.owner.workload and free.bit_count() >= n:
            return attrs.evolve(after, held={**after.held, o: lowest(free, n)})
    return after


@planted(
    "topology.Allocator", FakeAllocator, "allocate", "1 were asked for on NUMA nodes 0, and 2 fewer are free"
)
def takes_one_more(self: Any, c: Any, h: Any) -> Any:
    """Takes a unit more than was asked for."""
    after = RIGHT[FakeAllocator, "allocate"](self, c, h)
    if isinstance(after, FakeAllocator) and after is not self:
        free = after._free & self._on(h.affinity)
        return attrs.evolve(after, held={**after.held, c.owner: after.held[c.owner] | free & -free})
    return after


@planted("topology.Allocator", FakeAllocator, "release", "changed how much .* holds|took away")
def releases_by_prefix(self: Any, w: Any, m: Any = None) -> Any:
    """Releases job-1 with job."""
    after = RIGHT[FakeAllocator, "release"](self, w, m)
    if after is self:
        return self
    return attrs.evolve(after, held={o: u for o, u in after.held.items() if not o.workload.startswith(w)})


@planted("topology.Allocator", FakeAllocator, "allocate", "hinted at nodes, and then is not yet")
def not_yet_when_busy(self: Any, c: Any, h: Any) -> Any:
    """Waits once two hold something."""
    return (
        NotYet(blocker="x", message="later")
        if len(self.held) >= 2 and c.owner not in self.held
        else RIGHT[FakeAllocator, "allocate"](self, c, h)
    )


@planted("topology.Allocator", FakeAllocator, "hints", "answered before, and now says not yet")
def hints_not_yet_when_busy(self: Any, cs: Any) -> Any:
    """Has no hints once two hold something."""
    return (
        NotYet(blocker="x", message="later")
        if len(self.held) >= 2
        else RIGHT[FakeAllocator, "hints"](self, cs)
    )


@planted(
    "topology.Allocator", FakeAllocator, "allocate", "refused for example.com/other, which was not asked for"
)
def shortfall_of_another(self: Any, c: Any, h: Any) -> Any:
    """Names another resource when it refuses."""
    after = RIGHT[FakeAllocator, "allocate"](self, c, h)
    return attrs.evolve(after, resource="example.com/other") if isinstance(after, Shortfall) else after


@planted("topology.Allocator", FakeAllocator, "allocate", "are said to be free of")
def shortfall_says_enough(self: Any, c: Any, h: Any) -> Any:
    """Refuses, and says that there is enough."""
    after = RIGHT[FakeAllocator, "allocate"](self, c, h)
    return attrs.evolve(after, free=after.wanted + 1) if isinstance(after, Shortfall) else after


@planted("topology.Allocator", FakeAllocator, "hints", "and there is no hint for it")
def hint_forgets_a_node(self: Any, cs: Any) -> Any:
    """Never hints at node 1 alone."""
    f = RIGHT[FakeAllocator, "hints"](self, cs)
    return f if isinstance(f, NotYet) or not f else {self.name: [x for x in f[self.name] if x.affinity != 2]}


@planted("topology.Allocator", FakeAllocator, "hints", "is possible nowhere, and on any node it was granted")
def hints_empty_when_half(self: Any, cs: Any) -> Any:
    """Hints at nothing once somebody holds something."""
    f = RIGHT[FakeAllocator, "hints"](self, cs)
    return f if isinstance(f, NotYet) or not f or (not self.held) else {self.name: []}


@planted("topology.Allocator", FakeAllocator, "allocate", "refuses it on any node")
def refuses_any_node(self: Any, c: Any, h: Any) -> Any:
    """Grants with hints alone."""
    if h.affinity is None and self._wanted(c) and (c.owner not in self.held):
        return Shortfall(resource=self.name, wanted=self._wanted(c), free=0)
    return RIGHT[FakeAllocator, "allocate"](self, c, h)


@planted(
    "topology.Allocator", FakeAllocator, "allocate", "depends on something beside the value and the claim"
)
def by_call_order(self: Any, c: Any, h: Any) -> Any:
    """Takes other units each third time."""
    after = RIGHT[FakeAllocator, "allocate"](self, c, h)
    n = next(CALLS) // 2
    if isinstance(after, FakeAllocator) and after is not self and (n % 3 == 0):
        want = self._wanted(c)
        free = self._free & self._on(h.affinity)
        hi = 0
        for b in sorted(bits(free), reverse=True)[:want]:
            hi |= 1 << b
        return attrs.evolve(after, held={**after.held, c.owner: hi})
    return after


@planted(
    "topology.Allocator", FakeAllocator, "hints", "an answer of hints changed when others were asked for"
)
def hints_share_a_list(self: Any, cs: Any) -> Any:
    """Answers with one list, filled anew each time."""
    f = RIGHT[FakeAllocator, "hints"](self, cs)
    if isinstance(f, NotYet) or not f:
        return f
    SHARED[:] = f[self.name]
    return {self.name: SHARED}


@planted("topology.Allocator", FakeAllocator, "allocate", "the rest is granted twice")
def reuse_doubles(self: Any, c: Any, h: Any) -> Any:
    """Lends what an init member holds to everybody."""
    after = RIGHT[FakeAllocator, "allocate"](self, c, h)
    if isinstance(after, Shortfall):
        lent = 0
        for o, u in self.held.items():
            if o.member.startswith("init"):
                lent |= u
        if lent.bit_count() >= self._wanted(c):
            return attrs.evolve(self, held={**self.held, c.owner: lowest(lent, self._wanted(c))})
    return after


@planted(
    "topology.Allocator", FakeAllocator, "release", "changed how much .* holds|left something|not the first"
)
def release_keeps_last_of_many(self: Any, w: Any, m: Any = None) -> Any:
    """Forgets a release once four hold something."""
    after = RIGHT[FakeAllocator, "release"](self, w, m)
    if after is not self and len(self.held) >= 4:
        o = next(o for o in self.held if o not in after.held)
        return attrs.evolve(after, held={**after.held, o: self.held[o]})
    return after


@planted("topology.Allocator", FakeAllocator, "allocate", "granted twice|changed how much")
def third_workload_shares(self: Any, c: Any, h: Any) -> Any:
    """The third holder shares with the first."""
    if len({o.workload for o in self.held}) >= 2 and c.owner not in self.held and self._wanted(c):
        u = next(iter(self.held.values()))
        n = self._wanted(c)
        if u.bit_count() >= n:
            return attrs.evolve(self, held={**self.held, c.owner: lowest(u, n)})
    return RIGHT[FakeAllocator, "allocate"](self, c, h)


@planted("cpuset.Picker", KubeletPicker, "pick", "0 of : refused")
def none_when_exact(self: Any, l: Any, a: Any, n: Any) -> Any:
    """Refuses to take all there is."""
    return None if n == a.bit_count() else RIGHT[KubeletPicker, "pick"](self, l, a, n)


@planted("cpuset.Picker", KubeletPicker, "pick", "raised ValueError.*answer None")
def raises_when_short(self: Any, l: Any, a: Any, n: Any) -> Any:
    """Raises where it cannot be."""
    t = RIGHT[KubeletPicker, "pick"](self, l, a, n)
    if t is None:
        raise ValueError("short")
    return t


@planted("cpuset.Picker", KubeletPicker, "pick", "once it had been asked for others")
def every_third_differs(self: Any, l: Any, a: Any, n: Any) -> Any:
    """Takes from the top each third time."""
    t = RIGHT[KubeletPicker, "pick"](self, l, a, n)
    i = next(PICKS) // 2
    return sum(1 << cpu for cpu in sorted(bits(a))[::-1][:n]) if t and i % 3 == 2 else t


@planted("runtime.Containers", FakeContainerRuntime, "start_container", "it runs twice")
def starts_twice(self: Any, c: Any) -> Any:
    """Starts what runs once more."""
    one = self._there("start_container", c)
    RIGHT[FakeContainerRuntime, "start_container"](self, c) if one.started_unix_s is None else None
    self._containers[c] = attrs.evolve(self._containers[c], started_unix_s=self._unix_s())


@planted("runtime.Containers", FakeContainerRuntime, "start_container", "runs twice|was started once more")
def starts_an_ended(self: Any, c: Any) -> Any:
    """Starts what has ended once more."""
    one = self._there("start_container", c)
    self._containers[c] = attrs.evolve(
        one, record=attrs.evolve(one.record, state=RunState.RUNNING), started_unix_s=self._unix_s(), exit=None
    )


@planted("runtime.Containers", FakeContainerRuntime, "stop_container", "was stopped, and .* as well")
def stop_all(self: Any, c: Any, g: Any) -> Any:
    """Stops all there are."""
    for k in list(self._containers):
        RIGHT[FakeContainerRuntime, "stop_container"](self, k, g)


@planted("runtime.Containers", FakeContainerRuntime, "start_container", "and said to run since")
def start_time_changes(self: Any, c: Any) -> Any:
    """Forgets when it started."""
    RIGHT[FakeContainerRuntime, "start_container"](self, c)
    self._containers[c] = attrs.evolve(self._containers[c], started_unix_s=0.0)


@planted("runtime.Containers", FakeContainerRuntime, "stop_container", "once it was stopped again")
def stop_twice_other_exit(self: Any, c: Any, g: Any) -> Any:
    """Ends anew each time it is stopped."""
    RIGHT[FakeContainerRuntime, "stop_container"](self, c, g)
    one = self._containers.get(c)
    if one and one.exit is not None:
        self._n = getattr(self, "_n", 0) + 1
        self._containers[c] = attrs.evolve(one, exit=Exited(code=self._n))


@planted("runtime.Sandboxes", FakeContainerRuntime, "remove_sandbox", "it may be repeated")
def remove_only_stopped(self: Any, b: Any) -> Any:
    """Removes once."""
    one = self._sandboxes.get(b)
    if one is None:
        raise KeyError(b)
    RIGHT[FakeContainerRuntime, "remove_sandbox"](self, b)


@planted("runtime.Looks", FakeContainerRuntime, "stop_sandbox", "was stopped, and that of v as well")
def stop_stops_all(self: Any, b: Any) -> Any:
    """Stops the sandboxes of all pods."""
    for k in list(self._sandboxes):
        RIGHT[FakeContainerRuntime, "stop_sandbox"](self, k)


@planted("runtime.Looks", FakeContainerRuntime, "inspect", "inspecting an unknown pod raised KeyError")
def unknown_raises(self: Any, u: Any) -> Any:
    """Knows no pod without sandboxes."""
    if u not in self._of_pods:
        raise KeyError(u)
    return RIGHT[FakeContainerRuntime, "inspect"](self, u)


@planted("runtime.Looks", FakeContainerRuntime, "health", "and no RuntimeHealth")
def health_none(self: Any) -> Any:
    """Says nothing of its health."""
    return None


@planted("volumes.Mounter", FakeMounter, "mount", "of source tmpfs was mounted")
def source_lost(self: Any, s: Any, t: Any, *, fstype: Any = "", options: Any = ()) -> Any:
    """Forgets the source."""
    RIGHT[FakeMounter, "mount"](self, "none", t, fstype=fstype, options=options)


@planted("volumes.Mounter", FakeMounter, "mount", "mounted with a size")
def options_lost(self: Any, s: Any, t: Any, *, fstype: Any = "", options: Any = ()) -> Any:
    """Forgets the options."""
    RIGHT[FakeMounter, "mount"](
        self, s, t, fstype=fstype, options=[o for o in options if o in ("ro", "bind", "remount")]
    )


@planted("volumes.Mounter", FakeMounter, "is_mounted", "what is below is said to be one")
def parent_counts(self: Any, t: Any) -> Any:
    """Takes what is below a mount for one."""
    self._check(t)
    return any(t.startswith(x.target) for x in self._mounts)


@planted("volumes.Mounter", FakeMounter, "mount", "is not there, and was mounted on")
def makes_the_target(self: Any, s: Any, t: Any, *, fstype: Any = "", options: Any = ()) -> Any:
    """Makes the target."""
    self._check(t)
    Path(t).mkdir(exist_ok=True)
    RIGHT[FakeMounter, "mount"](self, s, t, fstype=fstype, options=options)


@planted("volumes.Mounter", FakeMounter, "unmount", "the topmost mount goes first")
def unmounts_oldest(self: Any, t: Any, *, lazy: Any = False) -> Any:
    """Unmounts the lowest first."""
    self._check(t)
    for i, x in enumerate(self._mounts):
        if x.target == t:
            del self._mounts[i]
            [self._changed.__enter__(), self._change(), self._changed.__exit__(None, None, None)]
            return


@planted("volumes.Mounter", FakeMounter, "is_mounted", "something is said to be")
def always_mounted(self: Any, t: Any) -> Any:
    """Says yes."""
    return True


@pytest.mark.parametrize("name", [name for name, bug in PLANTED.items() if bug.broken.__module__ == __name__])
def test_it_is_refused_in_a_sentence_that_names_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check passes without the bug, and with it says which promise is broken."""
    (tmp_path / "again").mkdir()
    bug: Bug = PLANTED[name]
    refused(bug, tmp_path, monkeypatch)
