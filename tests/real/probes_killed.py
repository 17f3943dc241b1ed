"""An agent of its own process that probes over HTTP, and ends by SIGKILL at one question or one commit."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Final

import attrs

from nodealloc.checkpoint import FileStore, row_formats, rows_of
from nodealloc.dsw_asw import World
from nodealloc.podfacts import PodIdentity
from nodealloc.podspec import Container, HttpGetAction, Pod, Probe
from nodealloc.probes import (
    PROBE_ROWS,
    Exchange,
    HttpProber,
    PodVerdicts,
    ProbeKind,
    ProbeOptions,
    Probers,
    Probing,
    Question,
    Schedule,
    verdicts_from_checkpoint,
)
from nodealloc.runtime import ContainerRecord, ContainerReport, PodKnown, PodReport, RunState
from nodealloc.testing.probes import FakeProber
from tests.real.podlife_killed import Striking

FORMATS: Final = row_formats(PROBE_ROWS)
UID: Final = "u"
PERIOD: Final = Schedule(period_s=0.05, timeout_s=20.0, failure_threshold=3)
PATIENCE_S: Final = 90.0


@attrs.frozen(kw_only=True)
class Life:
    """One agent's life.

    Attributes:
        folder: Where its store and its notes are.
        ports: Container to the port that it is asked at.
        at: Which call is its last, from 1; 0 for none.
        late: Whether that call is done first.
        answers: It ends by itself once so many questions were answered.
    """

    folder: Path
    ports: Mapping[str, int]
    at: int = 0
    late: bool = False
    answers: int = 12


def pod_of(life: Life) -> Pod:
    """A readiness probe for each container."""
    return Pod(
        uid=UID,
        name="web",
        containers=tuple(
            Container(name=name, readiness_probe=Probe(http_get=HttpGetAction(host="127.0.0.1", port=port)))
            for name, port in life.ports.items()
        ),
    )


def known(pod: Pod) -> PodKnown:
    """All of them run, and have run for a while."""
    reports = [
        ContainerReport(
            record=ContainerRecord(
                id=one.name,
                pod=PodIdentity.of(pod),
                name=one.name,
                sandbox_id="box",
                state=RunState.RUNNING,
            ),
            started_unix_s=time.time() - 100.0,
        )
        for one in pod.containers
    ]
    return PodKnown(uid=UID, report=PodReport(uid=UID, containers=tuple(reports), ips=("127.0.0.1",)))


class Struck(HttpProber):
    """Counts answers; one of them may be the last, before its question goes out or once it is there."""

    def __init__(self, striking: Striking) -> None:
        super().__init__()
        self.answers, self._striking = 0, striking

    def exchange(self, question: Question, /) -> Exchange | None:
        """See `Exchanges.exchange`."""
        begun = super().exchange(question)
        return None if begun is None else self._counted(begun)

    def _counted(self, begun: Exchange) -> Exchange:
        is_last = self._striking.counts()
        self._striking.strike(is_last and not self._striking.late)
        reply = yield from begun
        self._striking.strike(is_last)
        self.answers += 1
        return reply


def live(life: Life) -> None:
    """Probe; note each verdict that anybody could have seen, the first one before anything is asked."""
    striking = Striking(life.at, late=life.late)
    store = FileStore(life.folder / "store", FORMATS)
    store.commit = striking.wrapped(store.commit)  # type: ignore[method-assign]
    prober, nobody = Struck(striking), FakeProber()
    reports: World[str, PodKnown] = World("reports")
    pod = pod_of(life)
    probing: Probing[PodKnown] = Probing(
        Probers(http=prober, tcp=nobody, exec=nobody, grpc=nobody),
        reports=reports,
        journal=store,
        remembered=rows_of(PROBE_ROWS, store.read().values, verdicts_from_checkpoint),
        options=ProbeOptions(late_s=20.0),
    )
    with (life.folder / "seen").open("a", buffering=1) as seen:

        def note() -> None:
            verdicts = probing.verdicts.get(UID) or PodVerdicts(uid=UID)
            seen.write(json.dumps(dict(verdicts.ready)) + "\n")

        note()
        with contextlib.closing(probing.verdicts.watch(note)):
            reports.put(UID, known(pod))
            schedules = {(one.name, ProbeKind.READINESS): PERIOD for one in pod.containers}
            probing.put(pod, schedules=schedules)
            probing.start()
            end_s = time.monotonic() + PATIENCE_S
            while prober.answers < life.answers and time.monotonic() < end_s:
                time.sleep(0.01)
            probing.stop(PATIENCE_S)
            note()
    (life.folder / "calls").write_text(str(striking.count))


_FORKS = get_context("forkserver")
_FORKS.set_forkserver_preload([__name__])


def lived(life: Life) -> int | None:
    """Live it in a process of its own; its exit code, -9 for killed."""
    process = _FORKS.Process(target=live, args=(life,))
    process.start()
    process.join(2 * PATIENCE_S)
    process.kill()
    process.join()
    return process.exitcode


def seen_in(life: Life) -> list[dict[str, bool]]:
    """What was ever to be seen of readiness, in order."""
    return [
        json.loads(line) for line in (life.folder / "seen").read_text().splitlines() if line.endswith("}")
    ]


def all_lived(lives: list[Life]) -> list[int | None]:
    """Several at a time."""
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(lived, lives))
