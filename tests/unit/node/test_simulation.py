"""The whole node under simulation: it keeps its guarantees, and finds the bugs that are planted."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from nodealloc.errors import ConfigurationError
from nodealloc.idset import CPUSet
from nodealloc.testing.simulation import ViolationError
from nodealloc.testing.simulation.node import (
    CLASSES,
    PLANTS,
    Deed,
    NodeSimulation,
    What,
    agent,
    class_of,
    spoiled,
)

FAULTS = 2000
"""Within so many faults each planted bug is found."""

KEPT = {
    5: "what was remembered was believed before it was looked at",
    8: "what was remembered was believed before it was looked at",
    13: "what was remembered was believed before it was looked at",
    1006: "nothing was made any more after a start that stopped when its time was over",
    1026: "nothing was made any more after a sandbox that was made when its time was over",
    1049: "the same, in a pod that had run before",
}
"""Seeds that once found a bug, and which."""


def run(*words: str) -> subprocess.CompletedProcess[str]:
    """The command, as a shell runs it."""
    return subprocess.run(
        [sys.executable, "-m", "nodealloc.testing.simulation", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.mark.parametrize("seed", [*range(len(CLASSES)), *KEPT])
def test_a_node_keeps_its_guarantees(seed: int) -> None:
    """One seed of each class of faults, and those that once found something, end without a violation."""
    done = run("--seed", str(seed), "--story")
    assert done.returncode == 0, done.stdout[-4000:]
    operations = int(done.stdout.splitlines()[-1].split()[0])
    assert operations >= class_of(seed).operations
    assert "pod wanted" in done.stdout


def test_a_seed_is_one_life() -> None:
    """The same story each time, another for another seed."""

    def story(seed: int) -> list[str]:
        with NodeSimulation(seed, agent) as node:
            node.run()
            return [str(line) for line in node.story]

    first = story(1)
    assert first == story(1)
    assert first != story(11)
    assert any("killed" in line for line in first)


STORY = """
import hashlib
from nodealloc.testing.simulation.node import NodeSimulation, agent
with NodeSimulation(9, agent) as node:
    node.run()
    print(len(node.story), hashlib.sha256(repr(list(node.story)).encode()).hexdigest())
"""


def test_a_seed_is_one_life_for_any_order_of_hashes() -> None:
    """Processes order sets of texts each in its own way; nothing hangs on that."""
    stories = {
        subprocess.run(
            [sys.executable, "-c", STORY],
            env={**os.environ, "PYTHONHASHSEED": hashes},
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
        ).stdout
        for hashes in ("1", "2")
    }
    assert len(stories) == 1


QUICK = (
    "counts-twice",
    "full-grace",
    "images-go",
    "never-unmounts",
    "no-grace",
    "other-cpus",
    "same-attempt",
    "same-cpu",
    "stops-all-at-start",
    "told-after-gone",
    "unmounts-early",
)
"""Found by the first seeds; the others take seconds to a minute each."""
PATIENT = [
    pytest.mark.timeout(1800),
    pytest.mark.skipif(
        os.environ.get("NODEALLOC_HYPOTHESIS") != "ci",
        reason="many seeds take minutes: nox -s simulation",
    ),
]


@pytest.mark.parametrize(
    "plant", [pytest.param(one.name, marks=[] if one.name in QUICK else PATIENT) for one in PLANTS]
)
def test_a_planted_bug_is_found(plant: str) -> None:
    """Each of them within two thousand faults, with the seed and a story in the message."""
    faults = seed = 0
    while faults < FAULTS:
        with NodeSimulation(seed, spoiled(agent, plant)) as node:
            try:
                node.run()
            except ViolationError as error:
                found = error
                break
            faults += node.report().faults
        seed += 1
    else:
        pytest.fail(f"{plant} was not found by {faults} faults in {seed} seeds")
    assert f"seed {seed}" in str(found)
    assert found.story


def test_containers_are_confined_as_they_were_granted() -> None:
    """In an honest life some containers get one CPU for themselves, and others are moved off it."""
    confined: dict[str, list[CPUSet]] = {}

    def heard(deed: Deed) -> None:
        if deed.what is What.CONFINED and isinstance(deed.value, CPUSet):
            confined.setdefault(deed.id, []).append(deed.value)

    with NodeSimulation(0, agent) as node:
        node.outside.deeds.listen(heard)
        node.run()
    assert any(len(cpus[0]) == 1 for cpus in confined.values())
    assert any(len(set(cpus)) > 1 for cpus in confined.values())


def test_at_least_twenty_bugs_can_be_planted() -> None:
    """Their names are unique, and one that is not there is refused by name."""
    names = [one.name for one in PLANTS]
    assert len(set(names)) == len(names) >= 20
    with pytest.raises(ConfigurationError, match="no planted bug is called 'none'"):
        spoiled(agent, "none")


def test_the_command_ends_with_its_figures() -> None:
    """One seed; the last line is what scripts read."""
    done = run("--seed", "0")
    assert done.returncode == 0, done.stdout
    words = done.stdout.splitlines()[-1]
    assert words.endswith(" 0 violations")
    assert [part.split()[1] for part in words.split(", ")] == [
        "operations",
        "faults",
        "node-hours",
        "violations",
    ]


def test_the_command_tells_a_story() -> None:
    """Line by line, each with its time."""
    done = run("--seed", "1", "--story")
    assert done.stdout.startswith("seed 1, class kills:")
    assert "container started" in done.stdout


def test_a_planted_bug_ends_the_command_with_1() -> None:
    """The violation names the seed, and how to see it again."""
    done = run("--seed", "0", "--plant", "full-grace")
    assert done.returncode == 1, done.stdout
    assert "no fault is needed; without any, at " in done.stdout
    assert "simulation --seed 0 --story --plant full-grace" in done.stdout
    assert "full-grace" in run("--plants").stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--plant", "none"), "no planted bug is called 'none'"),
        (("--story",), "add --seed N"),
        (("--wiring", "nowhere"), "is no MODULE:FUNCTION"),
        (("--wiring", "no.such:thing"), "cannot be had"),
        (("--wiring", "os:sep"), "name a function"),
    ],
)
def test_bad_options_are_refused(words: tuple[str, ...], said: str) -> None:
    """With status 2, and a sentence that says what to do."""
    done = run(*words)
    assert done.returncode == 2
    assert said in done.stderr
