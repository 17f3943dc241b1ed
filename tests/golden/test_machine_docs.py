"""The drawn node of the documentation is what the code draws."""

from __future__ import annotations

import os
from pathlib import Path

from nodealloc.idset import CPUSet
from nodealloc.machine import draw_svg, machine_from_text

DRAWN = Path(__file__).parent.parent.parent / "docs" / "how-to" / "node-256.svg"


def picture() -> str:
    """Two sockets of eight caches, four holders, as the page beside it describes."""
    machine = machine_from_text("2 sockets x 8 l3 x 8 cores x 2 threads, hugepages=2Mi:512", name="node-1")
    holders = {
        "db/postgres": CPUSet.parse("8-15,136-143"),
        "ml/train-0": CPUSet.parse("64-95,192-223"),
        "ml/train-1": CPUSet.parse("16-31,144-159"),
        "web/api": CPUSet.parse("2,130"),
    }
    return draw_svg(machine, holders, reserved=CPUSet.parse("0-1,128-129"), width=760) + "\n"


def test_the_drawn_node_is_up_to_date() -> None:
    """Draw it anew with NODEALLOC_DRAW=1 when the picture has changed on purpose."""
    if os.environ.get("NODEALLOC_DRAW") == "1":
        DRAWN.write_text(picture())
    assert DRAWN.read_text() == picture()
