"""Users who want pods for the room that there is, once all is quiet: nothing of it is drawn by lot."""

from __future__ import annotations

from collections.abc import Callable

from nodealloc.podspec import effective_requests
from nodealloc.testing.simulation.node._environment import API, FILE, FILL, REST, Environment
from nodealloc.testing.simulation.node._pods import found_pod, rest_pod, whole_pod
from nodealloc.testing.simulation.node._resources import OF_EACH_NODE

__all__ = ["RoomUsers"]

_WORTH_IT = 500
"""Thousandths of CPUs; a pod that takes less than that is not worth its time."""
_LITTLE = 100
"""So many thousandths of CPUs are left to others."""
_SMALLER, _LARGER = 0.3, 1.0
"""Of the CPUs that are left at a time each of two pods takes so much."""
_LEAST = -1
"""A priority below that of all others."""
_SPARE_BYTES = 1 << 30
"""Of memory at least so much is left where somebody wants all the CPUs that are: an agent keeps some back."""


class RoomUsers:
    """They fill a quiet node, have others make room, and let go of what they wanted.

    Args:
        environment: Where they act.
        next_number: Of a pod; each call another one.
    """

    def __init__(self, environment: Environment, next_number: Callable[[], int]) -> None:
        self._environment, self._next_number = environment, next_number
        self._guests: list[str] = []

    def come(self) -> None:
        """A source that has said the same for long has one pod more."""
        self._environment.want(FILE, found_pod(self._next_guest()))

    def go(self) -> None:
        """It says again, word for word, what it had said before."""
        for uid in self._guests:
            grace_s = float(self._environment.known[uid].termination_grace_period_seconds)
            self._environment.delete(uid, grace_s)
            self._environment.let_go(uid)
        self._guests.clear()

    def crowd(self) -> None:
        """Somebody wants pods, of two sizes, that take most of the CPUs that nobody asks for.

        The smaller one is less important than all others.
        """
        for part, priority in ((_SMALLER, _LEAST), (_LARGER, None)):
            left = self._cpus_left() - _LITTLE
            if left >= _WORTH_IT:
                pod = rest_pod(self._next_uid(), cpus=f"{int(left * part)}m", priority=priority)
                self._environment.want(API, pod)

    def nudge(self) -> bool:
        """Somebody wants a critical pod for which almost any one of the others has to go; False for none."""
        left = self._cpus_left()
        pods = [one for one in self._environment.staying() if one.uid in self._environment.pods[API]]
        if left < 0 or not pods:
            return False
        self._environment.want(FILE, rest_pod(self._next_guest(), cpus=f"{left + _LITTLE // 2}m"))
        return True

    def press(self) -> bool:
        """Somebody wants a critical pod for which some of the others have to go; False for none to go.

        With it comes one that takes little. They ask for all the CPUs that nobody asks for, and half of what
        less important pods do.
        """
        environment, left = self._environment, self._cpus_left()
        lesser = important_bytes = 0
        for one in environment.staying():
            asked = effective_requests(one)
            if one.uid in environment.pods[API]:
                lesser += asked["cpu"].milli_value
            else:
                important_bytes += asked["memory"].value
        # Where more is asked for than there is, some wait already.
        if left < 0 or lesser < _WORTH_IT or environment.room[1] - important_bytes < _SPARE_BYTES:
            return False
        environment.want(FILE, rest_pod(self._next_guest(), cpus=f"{left + lesser // 2 - _LITTLE}m"))
        environment.want(FILE, rest_pod(self._next_guest(), cpus=f"{_LITTLE}m"))
        return True

    def demand(self) -> None:
        """Somebody wants a critical pod that asks for the whole node: none goes that is as critical."""
        self._environment.want(FILE, rest_pod(self._next_guest(), cpus=f"{self._environment.room[0]}m"))

    def take_rest(self) -> None:
        """Somebody wants all the CPUs that nobody asks for; of memory little, where there is some."""
        environment = self._environment
        memory = [effective_requests(pod)["memory"].value for pod in environment.staying()]
        cpus, memory_bytes = self._cpus_left(), environment.room[1] - sum(memory)
        if cpus >= _WORTH_IT and memory_bytes >= _SPARE_BYTES:
            environment.want(API, rest_pod(f"{REST}{self._next_number()}", cpus=f"{cpus}m"))

    def fill(self) -> None:
        """Somebody wants, of each NUMA node, all the CPUs that are given out, and most of its memory."""
        for node in self._environment.machine.numa_nodes:
            whole = whole_pod(
                f"{FILL}{node.id}",
                cpus=len(node.cpus - self._environment.reserved),
                memory_bytes=node.memory_bytes // 4 * 3,
                devices=OF_EACH_NODE if self._environment.plugins.are_asked else 0,
            )
            self._environment.want(API, whole)

    def _next_guest(self) -> str:
        self._guests.append(self._next_uid())
        return self._guests[-1]

    def _cpus_left(self) -> int:
        """Thousandths of CPUs that no pod asks for that is to go on."""
        staying = self._environment.staying()
        return self._environment.room[0] - sum(effective_requests(one)["cpu"].milli_value for one in staying)

    def _next_uid(self) -> str:
        return f"uid-{self._next_number()}"
