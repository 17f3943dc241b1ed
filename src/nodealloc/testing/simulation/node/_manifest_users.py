"""Whoever writes manifests of static pods whose name another pod has, or had; all of it by lot."""

from __future__ import annotations

import math
import random

from nodealloc.testing.simulation.node._environment import FILE, Environment
from nodealloc.testing.simulation.node._users import KNOWN_S, MOST_PODS, Users

__all__ = ["ManifestUsers"]

_FIRST_GOES = 0.7
"""Of two pods of one name the one that is here goes first so often."""


class ManifestUsers:
    """They replace manifests, put them back, and write two of one name.

    Args:
        environment: Where they act.
        users: Who wants pods besides.
    """

    def __init__(self, environment: Environment, users: Users) -> None:
        self._environment = environment
        self._users = users

    def replace(self, rng: random.Random) -> None:
        """A static pod is edited: another pod under the same name."""
        # Of one that somebody else ran before, and that was never told of, nobody knows that it is static.
        uids = [
            uid
            for uid in self._environment.pods[FILE]
            if (uid not in self._users.found or uid in self._environment.told)
            and not self._environment.has_twin(uid)
        ]
        if uids:
            uid = rng.choice(uids)
            pod = self._environment.known[uid]
            self._environment.delete(uid, float(pod.termination_grace_period_seconds))
            self._environment.let_go(uid)
            self._environment.want(FILE, self._users.another(rng, FILE, pod.name))

    def twin(self, rng: random.Random) -> None:
        """A second manifest says a pod of a name that another one has: that one stays, and this one waits."""
        environment = self._environment
        pods = environment.pods[FILE]
        uids = [uid for uid in pods if uid in environment.told and not environment.has_twin(uid)]
        if uids:
            environment.want(FILE, self._users.another(rng, FILE, environment.known[rng.choice(uids)].name))

    def part(self, rng: random.Random) -> None:
        """Of two pods of one name the manifest of one is taken away: most often of the one that is here."""
        environment = self._environment
        twins = [uid for uid in environment.pods[FILE] if environment.has_twin(uid)]
        first = [uid for uid in twins if not environment.is_held_back(uid)]
        if twins:
            uid = rng.choice(first if rng.random() < _FIRST_GOES else twins)
            environment.delete(uid, float(environment.known[uid].termination_grace_period_seconds))
            environment.let_go(uid)

    def put_back(self, rng: random.Random) -> None:
        """A manifest that was taken away is there again, word for word: another pod."""
        environment = self._environment
        names = {pod.name for pod in environment.pods[FILE].values()}
        newest = {
            pod.name: uid
            for uid, pod in environment.known.items()
            if uid in environment.deletions and environment.is_static(uid)
        }
        # Of two of a name that were here nobody knows which one was read to go last.
        names |= environment.twins
        uids = [uid for name, uid in newest.items() if name not in names and self._is_seen_gone(uid)]
        if uids and sum(map(len, environment.pods.values())) < MOST_PODS:
            environment.want(FILE, environment.manifests.put_back(environment.known[rng.choice(uids)]))

    def _is_seen_gone(self, uid: str) -> bool:
        """Whether the agent has read that its manifest was there and is no more, and remembers both."""
        environment, reads = self._environment, self._environment.reads
        read_s = reads.ends_s.get(uid, -math.inf)
        is_read = read_s > reads.alive_since_s and environment.awake_s - read_s > KNOWN_S
        return uid in environment.told and environment.reads_once and is_read
