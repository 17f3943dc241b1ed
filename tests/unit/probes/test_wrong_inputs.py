"""What is given to probes by mistake: schedules of nobody, runners that answer nothing, TLS that is none."""

from __future__ import annotations

import ssl
import subprocess
from collections.abc import Callable
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


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes]:
    """Two of them, in PEM."""
    made: list[bytes] = []
    for name in ("one", "other"):
        folder = tmp_path_factory.mktemp(name)
        words = f"openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN={name} -keyout key -out cert"
        try:
            subprocess.run(words.split(), cwd=folder, check=True, capture_output=True)
        except FileNotFoundError:
            pytest.skip("openssl makes the certificates")
        made.append((folder / "cert").read_bytes())
    return made[0], made[1]


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (lambda _one, _other: b"", r"0 bytes without a certificate"),
        (lambda _one, _other: b"hello\n", r"6 bytes without a certificate"),
        (lambda one, _other: b"\xef\xbb\xbf" + one, r".*without a certificate"),
        (lambda one, _other: ssl.PEM_cert_to_DER_cert(one.decode()), r".*without a certificate"),
        (lambda one, _other: one.replace(b"CERTIFICATE", b"PRIVATE KEY"), r".*without a certificate"),
        (lambda one, _other: one[:300], r"certificate 1 of 1, from line 1 on, has no line .*END CERTIFICATE"),
        (lambda one, other: one[:300] + b"\n" + other, r"certificate 1 of 2, from line 1 on, has no line"),
        (lambda one, other: one + other.replace(b"MII", b"M!I", 1), r"certificate 2 of 2.* is no base64"),
        (lambda one, other: one + other.replace(b"MII", b"AAA", 1), r"certificate 2 of 2.* cannot be read"),
        (lambda one, other: one + other.replace(b"\n", b"", 3).replace(b"-----M", b"-----\nM"), ""),
        (lambda one, other: b"# ours\r\n" + (one + other).replace(b"\n", b"\r\n") + b"\r\n", ""),
        (lambda one, other: one + one.replace(b"CERTIFICATE", b"X509 CERTIFICATE") + other * 200, ""),
    ],
    ids=[
        "empty",
        "junk",
        "a mark before it",
        "no PEM",
        "another thing",
        "cut",
        "cut before another one",
        "no base64",
        "no certificate",
        "long lines",
        "lines of Windows",
        "many",
    ],
)
def test_certificates_that_nobody_can_read_are_refused_when_they_are_given(
    broken: Callable[[bytes, bytes], bytes], words: str, certificates: tuple[bytes, bytes]
) -> None:
    """Every question of a liveness probe would fail, and every container be started anew."""
    roots = broken(*certificates)
    if not words:
        assert Tls(roots=roots).roots == roots
        return
    with pytest.raises(ConfigurationError, match=rf"Tls: roots: {words}"):
        Tls(roots=roots)
