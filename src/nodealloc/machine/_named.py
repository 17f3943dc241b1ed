"""A machine as somebody names it: a line of text, a file, a directory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from nodealloc._reading import short
from nodealloc._typed import typed
from nodealloc.errors import ConfigurationError, DecodeError, Fault
from nodealloc.machine._cadvisor import machine_from_cadvisor
from nodealloc.machine._codec import machine_from_json
from nodealloc.machine._discover import Discovery, discover
from nodealloc.machine._model import Machine
from nodealloc.machine._synthetic import machine_from_text

__all__ = ["named_machine"]


@typed
def named_machine(words: str, /) -> Discovery:
    """The machine that is described, written or captured there; and what could not be known of it.

    Args:
        words: A line for `machine_from_text`, a file in JSON of `machine_to_json` or of
            cAdvisor, or a directory: sysfs, mounted or captured, or one that has it as `sys`.

    Raises:
        NodeallocError: It is none.
    """
    path = Path(words)
    try:  # an empty text is a path as well, to where we are
        is_folder, is_file = bool(words) and path.is_dir(), path.is_file()
    except (OSError, ValueError):  # a line may be longer than any name of a file, and hold what no name does
        is_folder = is_file = False
    if is_folder:
        return discover(path / "sys" if (path / "sys").is_dir() else path)
    if not is_file and ("/" in words or words.endswith(".json")):
        raise ConfigurationError(
            f"machine: {short(words)} is no file or directory that can be seen from here; "
            "give one, or a line such as '2 sockets x 8 cores x 2 threads'"
        )
    return Discovery(machine=_written(path) if is_file else machine_from_text(words), notes=())


def _written(path: Path) -> Machine:
    try:
        document: object = json.loads(path.read_bytes())
    except RecursionError as error:
        raise DecodeError(str(path), [Fault("$", "nested too deeply")]) from error
    except (OSError, ValueError) as error:
        raise DecodeError(str(path), [Fault("$", f"no JSON: {error}")]) from error
    if not isinstance(document, dict):
        raise DecodeError(str(path), [Fault("$", "expected an object, as machine_to_json writes it")])
    fields = cast("Mapping[str, object]", document)
    # What cAdvisor and a kubelet's `/spec` tell has its topology in one field.
    if "topology" in fields:
        return machine_from_cadvisor(fields)
    return machine_from_json(fields, source=str(path))
