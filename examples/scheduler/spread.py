"""One function over many nodes: in this process, in a process pool, on a Dask cluster."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import islice
from typing import Protocol, cast

from examples.scheduler.score import Candidate, Scores, score_each
from nodealloc.podspec import Pod

__all__ = ["WAYS", "NoDaskError", "here", "on_dask", "on_pool"]

_BATCH = 500
"""Nodes a task: large enough that the shared machines are pickled seldom."""


class NoDaskError(ImportError):
    """Dask is not installed."""


class _Client(Protocol):
    """As much of `dask.distributed.Client` as is used here."""

    def map(
        self, call: Callable[[Sequence[Candidate]], list[Scores]], parts: Sequence[object]
    ) -> Sequence[object]:
        """Submit one call for each part; answers with futures."""
        ...

    def gather(self, futures: Sequence[object]) -> Sequence[list[Scores]]:
        """Results of the futures, in order."""
        ...

    def close(self) -> None:
        """Leave the cluster."""
        ...


def here(candidates: Sequence[Candidate], pods: Sequence[Pod], top: int, workers: int) -> list[Scores]:
    """In this process; `workers` is not used."""
    del workers
    return score_each(candidates, pods, top)


def on_pool(candidates: Sequence[Candidate], pods: Sequence[Pod], top: int, workers: int) -> list[Scores]:
    """In a pool of processes on this machine."""
    task = partial(score_each, pods=pods, top=top)
    with ProcessPoolExecutor(workers) as pool:
        return _joined(pool.map(task, _batches(candidates)), top)


def on_dask(candidates: Sequence[Candidate], pods: Sequence[Pod], top: int, workers: int) -> list[Scores]:
    """On a Dask cluster; a `LocalCluster` here, the code is the same for any other.

    Raises:
        NoDaskError: `dask.distributed` cannot be imported.
    """
    try:
        distributed = importlib.import_module("dask.distributed")
    except ImportError as error:
        raise NoDaskError("dask.distributed is not installed; pip install distributed") from error
    with distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster:
        client = cast("_Client", distributed.Client(cluster))
        try:
            futures = client.map(partial(score_each, pods=pods, top=top), list(_batches(candidates)))
            return _joined(client.gather(futures), top)
        finally:
            client.close()


WAYS: Mapping[str, Callable[[Sequence[Candidate], Sequence[Pod], int, int], list[Scores]]] = {
    "here": here,
    "pool": on_pool,
    "dask": on_dask,
}
"""Where the work is done, by its name on the command line."""


def _joined(parts: Iterable[list[Scores]], top: int) -> list[Scores]:
    """For each pod the outcome of all parts together."""
    return [Scores.joined(of_pod, top) for of_pod in zip(*parts, strict=True)]


def _batches(candidates: Sequence[Candidate]) -> Iterator[Sequence[Candidate]]:
    rest = iter(candidates)
    while batch := list(islice(rest, _BATCH)):
        yield batch
