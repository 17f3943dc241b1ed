"""What a pod is doing, and what is next.

- A pod's *life* is how far it has come on its node: it waits for its predecessor,
  is kept in sync, terminates, has terminated, is finished.
- A *plan* of one pod says which sandbox, containers and init containers are
  started, left alone or killed, and why.

`Rules()` is what is right, `KUBELET` is as recorded.
"""

from nodealloc.podlife._rules import KUBELET, Rules

__all__ = [
    "KUBELET",
    "Rules",
]
