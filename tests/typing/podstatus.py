"""A status decided, kept, merged and told."""

from __future__ import annotations

from typing import assert_type

from nodealloc.dsw_asw import InlineExecutor, World
from nodealloc.podfacts import LifeState, PodStatus
from nodealloc.podlife import PodFacts
from nodealloc.podspec import Container, Pod
from nodealloc.podstatus import (
    KUBELET,
    CallSink,
    LifeFacts,
    Observed,
    Part,
    ProbeResults,
    Sink,
    StatusManager,
    Told,
    merge_status,
    observed_of,
    status_of,
    take_status,
    with_runtime,
    with_verdicts,
)
from nodealloc.probes import PodVerdicts
from nodealloc.runtime import PodKnown

web = Pod(uid="u", name="web", containers=(Container(name="app"),))
status = status_of(Observed(pod=web), rules=KUBELET)
assert_type(status, PodStatus)
told = take_status(None, web, status, now_unix_s=1.0)
assert_type(told, Told | None)
assert told is not None
assert_type(merge_status(PodStatus(), told.status, could_run=False, now_unix_s=2.0), PodStatus)

held: dict[str, PodStatus] = {}
sink: Sink = CallSink(held.__setitem__)
pods: World[str, Pod] = World("pods")
known: World[str, PodKnown] = World("runtime pods")
manager = StatusManager(
    sink,
    pods,
    observed=lambda pod: Observed(pod=pod),
    parts=[Part.of(known, with_runtime)],
    executor=InlineExecutor(),
)
assert_type(manager, StatusManager[Pod])
pods.put("u", web)
manager.run_until_quiet()
assert_type(manager.status("u"), PodStatus | None)
assert held == {"u": manager.status("u")}

lives: World[str, PodFacts] = World("lives")
verdicts: World[str, PodVerdicts] = World("verdicts")
beside = StatusManager(
    sink,
    lives,
    observed=observed_of,
    parts=[Part.of(verdicts, with_verdicts)],
    executor=InlineExecutor(),
)
assert_type(beside, StatusManager[PodFacts])
facts: LifeFacts = PodFacts(pod=web, life=LifeState.SYNCING)
assert_type(observed_of(facts), Observed | None)
results: ProbeResults = PodVerdicts(uid="u")
assert_type(with_verdicts(Observed(pod=web), results), Observed)
