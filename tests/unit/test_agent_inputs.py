"""What the example agent reads from files that others write."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples.agent.inputs import read_machine, read_pods
from nodealloc.errors import DecodeError

POD = "metadata: {name: web}\nspec: {containers: [{name: app}]}\n"


def test_a_manifest_of_ordinary_size_is_read(tmp_path: Path) -> None:
    """One pod a document."""
    (tmp_path / "a.yaml").write_text(POD)
    assert [pod.name for pod in read_pods(tmp_path).values()] == ["web"]


def test_a_larger_file_is_no_manifest(tmp_path: Path) -> None:
    """It is refused before YAML makes anything of it."""
    (tmp_path / "a.yaml").write_text(POD + "# " + "x" * (1 << 18))
    with pytest.raises(DecodeError, match="more than 262144 bytes are no manifest"):
        read_pods(tmp_path)


def test_references_are_measured_before_they_are_read(tmp_path: Path) -> None:
    """A few kilobytes of YAML that stand for millions of values are one fault."""
    arguments = ", ".join(["a"] * 2000)
    containers = ", ".join(["*app"] * 2000)
    listed = f"[&app {{name: c, args: [{arguments}]}}, {containers}]"
    (tmp_path / "a.yaml").write_text(f"metadata: {{name: web}}\nspec: {{containers: {listed}}}\n")
    with pytest.raises(DecodeError, match="larger than") as caught:
        read_pods(tmp_path)
    assert len(caught.value.faults) == 1


def test_a_machine_that_is_nested_too_deeply_is_an_error_in_a_line(tmp_path: Path) -> None:
    """No traceback comes of a file of brackets."""
    (tmp_path / "machine.json").write_text("[" * 100_000)
    with pytest.raises(DecodeError, match="nested too deeply"):
        read_machine(str(tmp_path / "machine.json"))
