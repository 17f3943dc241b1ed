"""The command of the simulation: what it tells, and what it refuses."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from nodealloc.dsw_asw import Driven
from nodealloc.errors import ConfigurationError
from nodealloc.testing.simulation import ViolationError
from nodealloc.testing.simulation.__main__ import main
from nodealloc.testing.simulation.node import CLASSES, NodePorts, NodeSimulation, agent
from nodealloc.testing.simulation.node._many import wiring_named


def run(*words: str) -> subprocess.CompletedProcess[str]:
    """The command, as a shell runs it."""
    return subprocess.run(
        [sys.executable, "-m", "nodealloc.testing.simulation", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.mark.parametrize(("text", "said"), [("def f(:", "SyntaxError: "), ("1 / 0", "ZeroDivisionError: ")])
def test_a_wiring_whose_module_is_broken_is_refused_in_a_sentence(
    text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it raises when it is imported."""
    (tmp_path / "broken_wiring.py").write_text(text)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    with pytest.raises(ConfigurationError, match=f"wiring 'broken_wiring:f' cannot be had: {said}"):
        wiring_named("broken_wiring:f")


@pytest.mark.slow
def test_the_command_tells_a_story() -> None:
    """Line by line, each with its time."""
    done = run("--seed", "1", "--story")
    assert done.stdout.startswith("seed 1, class kills:")
    assert "container started" in done.stdout


@pytest.mark.slow
def test_a_planted_bug_ends_the_command_with_1() -> None:
    """The violation names the seed, and how to see it again."""
    done = run("--seed", "0", "--plant", "full-grace")
    assert done.returncode == 1, done.stdout
    assert "no fault is needed; without any, at " in done.stdout
    assert "simulation --seed 0 --story --plant full-grace" in done.stdout
    assert "full-grace" in run("--plants").stdout


NO_WIRINGS = """
import sys

def raises(ports):
    raise ValueError("no such socket")

def leaves(ports):
    sys.exit("bye")

def returns_nothing(ports):
    pass

def takes_none():
    pass

def takes_two(ports, other):
    pass
"""


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("raises", "ValueError: no such socket (.*no_wirings.py, line 5)"),
        ("leaves", "SystemExit: bye"),
        ("returns_nothing", "returns a NoneType; return a group of reconcilers"),
        ("takes_none", "TypeError: takes_none.. takes 0 positional arguments"),
        ("takes_two", "TypeError: takes_two.. missing 1 required positional argument"),
    ],
)
def test_a_wiring_that_builds_no_agent_ends_the_command(
    function: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With status 2 and a sentence, before any seed is lived."""
    (tmp_path / "no_wirings.py").write_text(NO_WIRINGS)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setenv("PYTHONHASHSEED", "0")  # else the command starts itself again
    assert main(["--seed", "0", "--wiring", f"no_wirings:{function}"]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"wiring 'no_wirings:{function}' ")
    assert re.search(said, err)
    assert err.count("\n") == 1


def test_an_agent_that_cannot_be_built_again_is_a_violation() -> None:
    """What it trips over is what its own first life has left; the seed is told."""

    def wiring(ports: NodePorts) -> Driven:
        if ports.life.number > 1:
            raise ValueError("cannot read what I wrote")
        return agent(ports)

    kills = next(place for place, one in enumerate(CLASSES) if one.name == "kills")
    with (
        NodeSimulation(kills, wiring) as node,
        pytest.raises(ViolationError, match=f"seed {kills}, .*does not start: ValueError.'cannot read"),
    ):
        node.run()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--plant", "none"), "no planted bug is called 'none'"),
        (("--story",), "add --seed N"),
        (("--story", "--seed", "1", "--seconds", "5"), "leave out --seconds and --faults"),
        (("--wiring", "nowhere"), "is no MODULE:FUNCTION"),
        (("--wiring", "no.such:thing"), "cannot be had"),
        (("--wiring", "os:sep"), "name a function"),
        (("--seed-of", "nowhere"), "no code is in nowhere"),
        (("--seed-of", __file__, "nowhere"), "no code is in nowhere"),
        (("--seed", "-1"), "--seed: '-1' is no whole number from 0 on"),
        (("--seed", "x"), "--seed: 'x' is no whole number from 0 on"),
        (("--faults", "0"), "--faults: '0' is no whole number from 1 on"),
        (("--jobs", "0"), "--jobs: '0' is no whole number from 1 on"),
        (("--seconds", "0"), "--seconds: '0' is no number of seconds above 0"),
        (("--seconds", "nan"), "--seconds: 'nan' is no number of seconds above 0"),
        (("--seconds", "soon"), "--seconds: 'soon' is no number of seconds above 0"),
    ],
)
def test_bad_options_are_refused(
    words: tuple[str, ...],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With status 2, and a sentence that says what to do."""
    monkeypatch.setenv("PYTHONHASHSEED", "0")  # else the command starts itself again
    try:
        status = main(list(words))
    except SystemExit as left:
        status = int(left.code or 0)
    assert status == 2
    assert said in capsys.readouterr().err


@pytest.mark.slow
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
