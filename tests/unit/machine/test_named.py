"""A machine as somebody names it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nodealloc.errors import ConfigurationError, DecodeError, NodeallocError
from nodealloc.machine import machine_from_text, machine_to_json, named_machine


def test_a_line_a_file_and_a_directory_name_a_machine(tmp_path: Path) -> None:
    """Each is taken for what it is."""
    written = machine_from_text("1 socket x 2 cores")
    path = tmp_path / "machine.json"
    path.write_text(json.dumps(machine_to_json(written)))
    assert len(named_machine("1 socket x 2 cores").machine.cpus) == 2
    assert named_machine(str(path)).machine.cpus == written.cpus
    assert named_machine("/sys").machine.cpus


def test_what_is_no_machine_is_refused(tmp_path: Path) -> None:
    """Without a traceback of the parser's."""
    path = tmp_path / "machine.json"
    path.write_text("[" * 100_000)
    with pytest.raises(DecodeError, match="nested too deeply"):
        named_machine(str(path))
    path.write_text("[]")
    with pytest.raises(DecodeError, match="expected an object"):
        named_machine(str(path))
    for words in ("", "x" * 5000, "a\0b"):
        with pytest.raises(NodeallocError):
            named_machine(words)


@pytest.mark.parametrize("words", ["/nowhere.json", "./nowhere/", "nowhere.json", "~/machine.json"])
def test_a_file_that_is_missing_is_told_as_missing(words: str) -> None:
    """It is not read as a line of text, whose faults say nothing of files."""
    with pytest.raises(ConfigurationError, match="no file or directory that can be seen"):
        named_machine(words)
