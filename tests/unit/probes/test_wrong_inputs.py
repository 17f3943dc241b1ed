"""What is given to probes by mistake: schedules of nobody, runners that answer nothing, TLS that is none."""

from __future__ import annotations

from typing import Any

import pytest

from nodealloc.dsw_asw import World
from nodealloc.errors import ConfigurationError
from nodealloc.podspec import Container, ExecAction, HttpGetAction, Pod, Probe
from nodealloc.probes import ExecProber, ProbeKind, Probers, Probing, Question, Schedule
from nodealloc.probes.health import GrpcProber, Tls
from nodealloc.runtime import PodKnown
from nodealloc.testing.probes import FakeProber

READY = Probe(http_get=HttpGetAction(port=80))
WEB = Pod(uid="u", name="web", containers=(Container(name="app", readiness_probe=READY),))


@pytest.mark.parametrize(("name", "kind"), [("ap", ProbeKind.READINESS), ("app", ProbeKind.LIVENESS)])
def test_a_schedule_of_no_probe_is_refused(name: str, kind: ProbeKind) -> None:
    """It was taken, and the probe was asked by what the pod says."""
    reports: World[str, PodKnown] = World("reports")
    probing = Probing(Probers(), reports=reports)
    probing.put(WEB, schedules={("app", ProbeKind.READINESS): Schedule(period_s=0.1)})
    with pytest.raises(ConfigurationError, match=f"no {kind.value} probe in a container {name}; it has app"):
        probing.put(WEB, schedules={(name, kind): Schedule(period_s=0.1)})


def test_a_runner_that_answers_nothing_is_called_so() -> None:
    """Not by the exit status that it lacks."""

    class Runner:
        def run_command(self, *_: object) -> Any:
            return None

    asked = Question(action=ExecAction(command=("true",)), container_id="c")
    with pytest.raises(ConfigurationError, match="run_command: expected what a command left"):
        ExecProber(Runner()).probe(asked)


def test_tls_that_is_none_is_refused_when_it_is_made() -> None:
    """A truth would have been taken for it at the first question."""
    yes: Any = True
    text: Any = "-----BEGIN CERTIFICATE-----"
    with pytest.raises(ConfigurationError, match="GrpcProber: tls: expected a Tls or None"):
        GrpcProber(tls=yes)
    with pytest.raises(ConfigurationError, match="Tls: roots: expected"):
        Tls(roots=text)


def test_what_is_said_to_make_one_makes_one() -> None:
    """`Probers.of` is asked of one that there is."""
    prober: Any = FakeProber()
    reports: World[str, PodKnown] = World("reports")
    with pytest.raises(ConfigurationError, match="probers: expected a Probers, found a FakeProber"):
        Probing(prober, reports=reports)
    with pytest.raises(ConfigurationError, match="fails: error: expected an Exception"):
        prober.fails("c", "away")
