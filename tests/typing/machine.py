"""What is there: discovered, described, drawn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_type

from nodealloc.idset import CPUSet, NodeSet
from nodealloc.machine import Level, draw_svg, draw_text, machine_from_text

machine = machine_from_text("2 sockets x 2 cores x 2 threads, memory=4Gi")
level: Level = "core"
assert_type(machine.groups(level), Mapping[int, CPUSet])
assert_type(machine.online, CPUSet)
assert_type(machine.nodes, NodeSet)
holders = {"web": CPUSet.parse("0-1")}
assert_type(draw_text(machine, holders), str)
assert_type(draw_svg(machine, holders, reserved=CPUSet()), str)
assert len(machine.online) == 8
