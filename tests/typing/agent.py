"""An agent over a runtime in memory, for type checkers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import assert_type

from nodealloc.agent import (
    AGENT_FORMATS,
    KUBELET,
    AdmissionPreparer,
    Agent,
    Beside,
    ConfinedRuntime,
    GrantedConfiguration,
    Remembered,
    Rulebook,
    preparations_of,
    remembering_editions,
)
from nodealloc.checkpoint import MemoryStore
from nodealloc.cpuset import CpuAllocator, CpusetReconciler
from nodealloc.dsw_asw import InlineExecutor
from nodealloc.machine import machine_from_text
from nodealloc.node import NodeAllocator
from nodealloc.podlife import Configures, PodLives, PodRecord, PodRuntime, Preparation, Preparer
from nodealloc.podsources import Editions
from nodealloc.probes import Probers, Probing
from nodealloc.runtime import PodKnown, RuntimeWatch
from nodealloc.testing.cpuset import FakeCpusetWriter
from nodealloc.testing.podlife import PlainConfiguration
from nodealloc.testing.runtime import FakeContainerRuntime
from nodealloc.topology import Snapshot

store = MemoryStore(AGENT_FORMATS)
was = Remembered.read(store)
assert_type(was.lives, Mapping[str, PodRecord])
assert_type(remembering_editions(store), Callable[[str, Editions], None])
machine = machine_from_text("1 socket x 2 cores")
node = NodeAllocator(Snapshot.of(machine, allocators=[CpuAllocator.of(machine, reserved=1)]), store)
configuring: Configures = GrantedConfiguration(whole=PlainConfiguration(), node=node)
runtime = FakeContainerRuntime()
watch = RuntimeWatch(runtime, journal=store, known=was.known)
cpusets = CpusetReconciler(
    FakeCpusetWriter(), executor=InlineExecutor(), allocator=node.snapshot[CpuAllocator]
)
confined = ConfinedRuntime(runtime, node=node, cpusets=cpusets, watch=watch)
starts: PodRuntime = confined
admission = AdmissionPreparer(node, confined=confined)
prepares: Preparer = admission
assert_type(preparations_of(admission=admission), list[Preparation])
rules: Rulebook = KUBELET
probing: Probing[PodKnown] = Probing(Probers(), reports=watch.pods, journal=store, remembered=was.verdicts)
lives = PodLives(
    starts,
    watch=watch,
    configuring=configuring,
    preparations=preparations_of(admission=admission),
    rules=rules.life,
    probes=probing.verdicts,
    journal=store,
    remembered=was.lives,
)
beside: Beside = probing
agent = Agent(watch, lives=lives, probing=probing, node=node, beside=[beside])
assert_type(agent.lives, PodLives)
assert not agent.running()
agent.close()
