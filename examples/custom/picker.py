"""A CPU picker of your own: one thread of each core, and none of a core that is half taken.

For work that gains nothing from SMT: what runs beside it never shares a core.
"""

from __future__ import annotations

import attrs

from nodealloc.cpuset import CpuLayout

__all__ = ["OneThreadPerCore"]


@attrs.frozen
class OneThreadPerCore:
    """Takes the first thread of cores that are wholly free, lowest core first.

    The other threads stay in the shared pool; with `spare_siblings` off, they are
    taken next when whole cores run out.
    """

    spare_siblings: bool = True

    def pick(self, layout: CpuLayout, available: int, count: int, /) -> int | None:
        """Exactly `count` of the available CPUs as a mask, or None."""
        whole = [core for core in layout.cores if core & available == core]
        taken = 0
        for core in whole[:count]:
            taken |= core & -core
        missing = count - taken.bit_count()
        if missing and self.spare_siblings:
            return None
        rest = available & ~taken
        for _ in range(missing):
            if not rest:
                return None
            taken |= rest & -rest
            rest &= rest - 1
        return taken
