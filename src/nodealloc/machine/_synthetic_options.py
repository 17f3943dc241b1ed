"""Options of a machine's text: `memory=16Gi, distances=10/12/32, offline=3`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, cast

from nodealloc import _attrs as attrs
from nodealloc._reading import short
from nodealloc.errors import ConfigurationError, DecodeError, Fault
from nodealloc.idset import CPUSet, parse_list

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Numbering", "Options", "read_options"]

Numbering = Literal["kernel", "adjacent", "interleaved"]

# Blanks are looked at from their start only: else a long row of them is, from each of them.
_SPLIT = re.compile(r"(?<!\s)\s*[,;]\s*(?=[A-Za-z]+\s*=)")
_LEAST = 1 << 10
"""Bytes; less memory of a node is a size whose unit was forgotten."""
_SIZE = re.compile(r"([0-9]{1,15})([KMGT]i)?B?")
_UNITS = {"": 1, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}
_STEPS = 3


@attrs.frozen(kw_only=True)
class Options:
    """What follows the levels; see `machine_from_text`.

    Attributes:
        memory: Bytes of each NUMA node; one entry holds for all.
        hugepages: Page size in bytes to pages, in each node's pool.
        steps: Distance inside a node, inside a socket, beyond.
        matrix: All distances, row by row, or None.
        numbering: How CPU numbers follow cores.
        offline: CPUs that are not online.
        isolated: CPUs that the scheduler leaves alone.
        at: Option to the character where it stands.
    """

    memory: tuple[int, ...] = (16 << 30,)
    hugepages: Mapping[int, int] = attrs.field(factory=dict[int, int])
    steps: tuple[int, int, int] = (10, 12, 32)
    matrix: tuple[tuple[int, ...], ...] | None = None
    numbering: Numbering = "kernel"
    offline: CPUSet = CPUSet()
    isolated: CPUSet = CPUSet()
    at: Mapping[str, int] = attrs.field(factory=dict[str, int])

    def fault(self, option: str, reason: str) -> DecodeError:
        """An error at the place of an option."""
        return _fault(self.at.get(option, 0), f"{option}: {reason}")


def _fault(position: int, reason: str) -> DecodeError:
    return DecodeError("machine text", [Fault(f"character {position}", reason)])


def read_options(text: str) -> tuple[Options, int]:
    """The options of a text, and the character at which they begin.

    Raises:
        DecodeError: An unknown option, one given twice, or a value that does not fit.
    """
    options = Options()
    found = list(_SPLIT.finditer(text))
    ends = [*(match.start() for match in found[1:]), len(text)][: len(found)]
    for match, end in zip(found, ends, strict=True):
        position = match.end()
        name, _, value = text[position:end].partition("=")
        name = name.strip().lower()
        if name in options.at:
            raise _fault(position, f"option {name} is given twice")
        try:
            options = attrs.evolve(_read(options, name, value.strip()), at={**options.at, name: position})
        except (ValueError, KeyError) as error:
            raise _fault(position, f"{name}: {_reason(error)}") from error
    return options, found[0].start() if found else len(text)


def _reason(error: Exception) -> str:
    return str(error.faults[0]) if isinstance(error, DecodeError) else str(error.args[0])


def _read(options: Options, name: str, value: str) -> Options:
    if name == "memory":
        return attrs.evolve(options, memory=tuple(_memory(part) for part in value.split("/")))
    if name == "hugepages":
        return attrs.evolve(options, hugepages=dict(sorted(_pool(part) for part in value.split("/"))))
    if name == "distances":
        return _with_distances(options, value)
    if name == "numbering":
        if value not in {"kernel", "adjacent", "interleaved"}:
            raise ConfigurationError(f"{short(value)} is unknown; expected kernel, adjacent or interleaved")
        return attrs.evolve(options, numbering=cast("Numbering", value))
    if name in {"offline", "isolated"}:
        cpus = CPUSet.from_mask(parse_list(value.replace(" ", ""), source=name))
        return (
            attrs.evolve(options, offline=cpus) if name == "offline" else attrs.evolve(options, isolated=cpus)
        )
    raise ConfigurationError(
        "unknown; options are distances, hugepages, isolated, memory, numbering, offline"
    )


def _size(text: str) -> int:
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise ConfigurationError(
            f"{short(text.strip())} is no size; expected digits with Ki, Mi, Gi or Ti, as 16Gi"
        )
    return int(found[1]) * _UNITS[found[2] or ""]


def _memory(text: str) -> int:
    size = _size(text)
    if 0 < size < _LEAST:
        raise ConfigurationError(f"{size} bytes are less than any node has; write 8Gi for gibibytes")
    return size


def _pool(text: str) -> tuple[int, int]:
    size, colon, count = text.partition(":")
    if not colon or not count.strip().isdecimal() or not _size(size):
        raise ConfigurationError(f"{short(text.strip())} is no pool; expected size and count, as 2Mi:512")
    return _size(size), int(count)


def _with_distances(options: Options, value: str) -> Options:
    rows = [[_distance(word) for word in row.split()] for row in value.split("/")]
    if len(rows) == _STEPS and all(len(row) == 1 for row in rows):
        return attrs.evolve(options, steps=(rows[0][0], rows[1][0], rows[2][0]))
    if any(len(row) != len(rows) for row in rows):
        raise ConfigurationError("expected three steps, as 10/12/32, or a square matrix, as 10 12/12 10")
    return attrs.evolve(options, matrix=tuple(map(tuple, rows)))


def _distance(word: str) -> int:
    if not word.isdecimal():
        raise ConfigurationError(f"{short(word)} is no distance; expected a whole number, 0 or more")
    return int(word)
