"""The machine that the example agent gives out."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples.agent.inputs import read_machine
from nodealloc.errors import DecodeError


def test_a_machine_has_a_name_or_is_a_line_of_text() -> None:
    """One of three, or any."""
    assert len(read_machine("laptop")[0].cpus) == 8
    assert len(read_machine("1 socket x 2 cores")[0].cpus) == 2


def test_a_machine_that_is_nested_too_deeply_is_an_error_in_a_line(tmp_path: Path) -> None:
    """No traceback comes of a file of brackets."""
    (tmp_path / "machine.json").write_text("[" * 100_000)
    with pytest.raises(DecodeError, match="nested too deeply"):
        read_machine(str(tmp_path / "machine.json"))
