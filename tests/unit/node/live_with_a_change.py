"""A program: the library with one change lives the lives of simulated nodes until a guarantee is broken.

It reads JSON with `module`, `old`, `new`, `seeds` (the first one and the step to the next), `faults` and
`lives`, and prints `found FAULTS LIVES HEADLINE`, or nothing. Only what is changed is compiled anew.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import json
import sys
from collections.abc import Sequence
from itertools import count, islice
from types import CodeType, ModuleType


class Changed(importlib.machinery.SourceFileLoader):
    """Compiles one module from its text with a change."""

    def __init__(self, name: str, path: str, old: str, new: str) -> None:
        super().__init__(name, path)
        self._old, self._new = old, new

    def get_code(self, fullname: str) -> CodeType:
        """Its code; nothing of it is kept."""
        text = self.get_data(self.path).decode()
        if text.count(self._old) != 1:
            raise ValueError(f"{self.path}: what is to be changed stands there {text.count(self._old)} times")
        return self.source_to_code(text.replace(self._old, self._new).encode(), self.path)


class Finder(importlib.abc.MetaPathFinder):
    """Finds that module alone."""

    def __init__(self, module: str, old: str, new: str) -> None:
        self._module, self._old, self._new = module, old, new

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Leave all others to those who find them anyway."""
        if fullname != self._module:
            return None
        found = importlib.machinery.PathFinder.find_spec(fullname, path)
        if found is None or found.origin is None:
            return None
        found.loader = Changed(fullname, found.origin, self._old, self._new)
        return found


def main() -> None:
    """Live, and say what was found."""
    asked = json.load(sys.stdin)
    sys.meta_path.insert(0, Finder(asked["module"], asked["old"], asked["new"]))
    from nodealloc.testing.simulation import ViolationError
    from nodealloc.testing.simulation.node import NodeSimulation, agent

    faults = 0
    for turn, seed in enumerate(islice(count(*asked["seeds"]), asked["lives"]), 1):
        with NodeSimulation(seed, agent) as node:
            try:
                node.run()
            except ViolationError as error:
                print("found", faults + node.report().faults, turn, error.headline)
                return
            faults += node.report().faults
        if faults > asked["faults"]:
            return


if __name__ == "__main__":
    main()
