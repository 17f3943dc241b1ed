"""Bugs that are planted into the library itself, by a change of its text: the simulation finds each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import nodealloc
from nodealloc.testing.simulation.node import CLASSES
from tests.unit.node.simulated_by_strangers import BY_STRANGERS
from tests.unit.node.simulated_changes import CHANGES, Change
from tests.unit.node.simulated_eighth_look import EIGHTH_LOOK
from tests.unit.node.simulated_fifth_look import FIFTH_LOOK
from tests.unit.node.simulated_fourth_look import FOURTH_LOOK
from tests.unit.node.simulated_making import MAKING
from tests.unit.node.simulated_once_unfound import ONCE_UNFOUND
from tests.unit.node.simulated_outages import OUTAGES
from tests.unit.node.simulated_oversights import OVERSIGHTS
from tests.unit.node.simulated_promises import PROMISES
from tests.unit.node.simulated_restarts import RESTARTS
from tests.unit.node.simulated_second_look import SECOND_LOOK
from tests.unit.node.simulated_seventh_look import SEVENTH_LOOK
from tests.unit.node.simulated_sixth_look import SIXTH_LOOK
from tests.unit.node.simulated_third_look import THIRD_LOOK

PACKAGE = Path(nodealloc.__file__).parent
FAULTS = 4000
"""Within so many faults each is found."""


FIRST = {
    "backoff-none": Change(
        about="restarts do not wait",
        file="podlife/_restarts.py",
        old="            return 0.0\n        return min(entry.delay_s",
        new="            return 0.0\n        return 0.0\n        return min(entry.delay_s",
        seeds="calm",
    ),
    "backoff-never-grows": Change(
        about="restarts wait ten seconds each time",
        file="podlife/_restarts.py",
        old="return min(max(entry.delay_s * self.factor, base_s), cap_s)",
        new="return base_s",
        seeds="calm",
    ),
    "attempt-reused": Change(
        about="a number is used for two instances",
        file="podlife/_starting.py",
        old="return record.attempts.get(name, -1) + 1",
        new="return max(record.attempts.get(name, -1), 0)",
        seeds="calm",
    ),
    "ready-not-first": Change(
        about="nobody waits until it was told that a pod is not ready",
        file="podlife/_domain.py",
        old="        until_s = min(record.told_by_s,",
        new="        return None\n        until_s = min(record.told_by_s,",
        seeds="calm",
    ),
    "hook-skipped": Change(
        about="no container runs its hook",
        file="podlife/_stops.py",
        old="is HookState.WAITS and now_s < told_s:",
        new="is HookState.WAITS and now_s < told_s and False:",
        seeds="calm",
    ),
    "sidecars-die-first": Change(
        about="sidecars wait for nobody",
        file="podlife/_grace.py",
        old="            after[one.name] = mains | later\n",
        new="            pass\n",
        seeds="calm",
    ),
    "onfailure-restarts-success": Change(
        about="what succeeded runs again under policy OnFailure",
        file="podlife/_actions.py",
        old="if policy is _POLICY_ON_FAILURE and latest.succeeded:\n        return",
        new="if policy is None:\n        return",
        seeds="calm",
    ),
    "releases-before-end": Change(
        about="what a pod holds is given back while it runs",
        file="podlife/_ending.py",
        old="    if asked:\n        # What",
        new="    if asked and not record.stopping and record.life is None:\n        # What",
        seeds="calm",
    ),
    "heard-at-once": Change(
        about="sources count as heard before they were",
        file="podlife/_arrivals.py",
        old="if not self._was_ready and not self._due and self._sources.is_ready():",
        new="if not self._was_ready:",
        seeds="kills",
    ),
    "liveness-ignored": Change(
        about="a liveness probe that fails ends nothing",
        file="podlife/_actions.py",
        old="elif draft.seen.alive.get(latest.id) is False:",
        new="elif False:",
        seeds="calm",
    ),
    "twins-run": Change(
        about="two static pods of one name run at a time",
        file="podlife/_domain.py",
        old="            if line and line[0] != view.key:",
        new="            if False:",
        seeds="calm",
    ),
    "unmounts-with-users": Change(
        about="mounts that an earlier life left are taken away from who runs",
        file="volumes/_plan.py",
        old="        if (use is None and not mount.held) or",
        new="        if use is None or",
        seeds="kills",
    ),
    "probe-threshold-1": Change(
        about="the first failure of a probe counts",
        file="probes/_tally.py",
        old="schedule.success_threshold if succeeded else schedule.failure_threshold",
        new="schedule.success_threshold if succeeded else 1",
        seeds="runtimes",
    ),
    "verdict-of-old": Change(
        about="what a probe said of an instance counts for the next one",
        file="probes/_tally.py",
        old="    if seen.id != tally.container_id:\n        tally = _anew",
        new="    if not tally.container_id:\n        tally = _anew",
        seeds="calm",
    ),
    "failed-telling-told": Change(
        about="what a sink did not take counts as told",
        file="podstatus/_telling.py",
        old="isinstance(outcome, Done):\n            return have\n",
        new="isinstance(outcome, Done):\n            return have and attrs.evolve(have, told_version=9**9)\n",
        seeds="sinks",
    ),
    "shared-keeps-exclusive": Change(
        about="CPUs of one container stay in the shared pool",
        file="cpuset/_stock.py",
        old="return CPUSet.from_mask(self.policy.pool & ~self.state.held)",
        new="return CPUSet.from_mask(self.policy.pool)",
        seeds="calm",
    ),
    "shared-only-on-grant": Change(
        about="who shares is not moved when somebody gets CPUs of its own",
        file="cpuset/_reconciler.py",
        old="        if before.shared != after.shared:\n            return tuple(self._targets)\n",
        new="",
        seeds="calm",
    ),
    "release-not-stored": Change(
        about="what was given back is held again after a restart",
        file="node/_ledger.py",
        old="        rows.update((row_key(ROW, workload), None) for workload in forgotten)\n",
        new="",
        seeds="kills",
    ),
    "release-not-done": Change(
        about="CPUs are never given back",
        file="cpuset/_allocator.py",
        old="        return self._moved(self.state.without(workload, member))",
        new="        return self",
        seeds="calm",
    ),
    "gone-pod-unreleased": Change(
        about="a pod that is gone holds what it held",
        file="agent/_admission.py",
        old="        self._node.release(pod.uid)\n",
        new="",
        seeds="calm",
    ),
    "near-change-lost": Change(
        about="of several changes elsewhere the first wakes nobody",
        file="dsw_asw/_due_keys.py",
        old="self._changed(tuple(self._near.woken()))",
        new="self._changed(tuple(self._near.woken())[1:])",
        seeds="calm",
    ),
    "own-cpus-not-awaited": Change(
        about="a container with CPUs of its own starts while others are on them",
        file="agent/_confined.py",
        old="        others = sorted({*starting,",
        new="        return None\n        others = sorted({*starting,",
        seeds="calm",
    ),
    "restored-elsewhere": Change(
        about="what was remembered of CPUs is not restored",
        file="cpuset/_allocator.py",
        old="        return abilities.restored(self, grants, self._moved)",
        new="        return abilities.restored(self, {}, self._moved)",
        seeds="kills",
    ),
}

MUTANTS = (
    FIRST
    | CHANGES
    | OVERSIGHTS
    | PROMISES
    | RESTARTS
    | BY_STRANGERS
    | OUTAGES
    | ONCE_UNFOUND
    | MAKING
    | SECOND_LOOK
    | THIRD_LOOK
    | FOURTH_LOOK
    | FIFTH_LOOK
    | SIXTH_LOOK
    | SEVENTH_LOOK
    | EIGHTH_LOOK
)


@pytest.mark.parametrize("name", MUTANTS)
def test_what_a_mutant_changes_is_there_once(name: str) -> None:
    """So that none of them changes nothing."""
    mutant = MUTANTS[name]
    assert (PACKAGE / mutant.file).read_text().count(mutant.old) == 1


@pytest.mark.timeout(1800)
@pytest.mark.skipif(
    os.environ.get("NODEALLOC_HYPOTHESIS") != "ci", reason="many seeds take minutes: nox -s simulation"
)
@pytest.mark.parametrize("name", MUTANTS)
def test_a_bug_in_the_library_is_found(name: str) -> None:
    """A process of its own lives with the library as it is but for one change."""
    mutant = MUTANTS[name]
    assert found(mutant).startswith("found "), f"{name}: {mutant.about}; nothing was found"


def found(mutant: Change, *, lives: int = 240) -> str:
    """What the program says."""
    first = [one.name for one in CLASSES].index(mutant.seeds)
    asked = {
        "module": f"nodealloc.{mutant.file.removesuffix('.py').replace('/', '.')}",
        "old": mutant.old,
        "new": mutant.new,
        "seeds": [first, len(CLASSES)],
        "faults": FAULTS,
        "lives": lives,
    }
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("live_with_a_change.py"))],
        input=json.dumps(asked),
        env={**os.environ, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout
