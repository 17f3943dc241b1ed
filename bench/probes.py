"""Probes: what asking costs, beside a bare loop of the same requests."""

from __future__ import annotations

import contextlib
import gc
import http.client
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

from bench.figure import Figure, best_ns
from nodealloc.dsw_asw import World
from nodealloc.podfacts import LifeState, PodIdentity
from nodealloc.podspec import Container, HttpGetAction, Pod, Probe
from nodealloc.probes import (
    Asking,
    HttpProber,
    Instance,
    ProbeKind,
    Probers,
    Probing,
    Question,
    Reply,
    ReplyKind,
    Tally,
    hear,
    look,
)
from nodealloc.runtime import ContainerRecord, ContainerReport, PodKnown, PodReport, RunState

CONTAINERS = 1000
SECONDS = 5.0
SERVER = """
import socket
listening = socket.create_server(("127.0.0.1", 0), backlog=1024)
print(listening.getsockname()[1], flush=True)
answer = b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\nConnection: close\\r\\n\\r\\nok"
while True:
    one, _ = listening.accept()
    one.settimeout(1.0)
    try:
        one.recv(4096)
        one.sendall(answer)
    except OSError:
        pass
    one.close()
"""
"""A process of its own, so that its work is not ours."""


@contextlib.contextmanager
def _server() -> Iterator[int]:
    with subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


def _by_http_client(port: int) -> None:
    """The same request with the standard library's client."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=1.0)
    connection.request("GET", "/", headers={"User-Agent": "kube-probe/1.32", "Connection": "close"})
    answer = connection.getresponse()
    answer.read()
    connection.close()
    assert answer.status == http.client.OK


def _by_socket(port: int) -> None:
    """The same bytes, and nothing else that a probe needs: no time-out, no reading of what comes."""
    with socket.create_connection(("127.0.0.1", port), 1.0) as one:
        one.sendall(
            b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nuser-agent: kube-probe/1.32\r\nconnection: close\r\n\r\n"
        )
        assert one.recv(4096).startswith(b"HTTP/1.1 200")


def _at_pace_us(ask: object, port: int) -> float:
    """CPU of one request of a loop that makes as many a second as the probes."""
    assert callable(ask)
    began_s, cpu_s, count = time.monotonic(), time.process_time(), 0
    while (now_s := time.monotonic()) < began_s + SECONDS:
        while count < (now_s - began_s) * CONTAINERS:
            ask(port)
            count += 1
        time.sleep(0.01)
    return (time.process_time() - cpu_s) / count * 1e6


def _probing(port: int) -> tuple[Probing[PodKnown], World[str, PodKnown]]:
    """A thousand containers that are asked once a second."""
    reports: World[str, PodKnown] = World("reports")
    probing = Probing(Probers.real(), reports=reports)
    probe = Probe(http_get=HttpGetAction(port=port), period_seconds=1)
    for number in range(CONTAINERS):
        pod = Pod(
            uid=f"u{number}",
            name=f"web-{number}",
            containers=(Container(name="app", readiness_probe=probe),),
        )
        record = ContainerRecord(
            id=f"c{number}",
            pod=PodIdentity.of(pod),
            name="app",
            sandbox_id="box",
            state=RunState.RUNNING,
        )
        report = PodReport(uid=pod.uid, containers=(ContainerReport(record=record),), ips=("127.0.0.1",))
        reports.put(pod.uid, PodKnown(uid=pod.uid, report=report))
        probing.put(pod)
    return probing, reports


def _at_work(port: int) -> tuple[float, float]:
    """Part of a core while a thousand containers are asked once a second, and CPU of one question in µs."""
    probing, _reports = _probing(port)
    with probing:
        time.sleep(CONTAINERS / 500 + 1.0)
        gc.collect()
        began_s, cpu_s = time.monotonic(), time.process_time()
        time.sleep(SECONDS)
        used_s, took_s = time.process_time() - cpu_s, time.monotonic() - began_s
        ready = sum(one.value.ready == {} for one in probing.verdicts.snapshot().values())
        assert not ready, f"{ready} containers were not asked"
    return used_s / took_s, used_s / (took_s * CONTAINERS) * 1e6


def _idle() -> float:
    """Part of a core while a thousand containers wait for their next question in an hour."""
    reports: World[str, PodKnown] = World("reports")
    probing = Probing(Probers.real(), reports=reports)
    probe = Probe(http_get=HttpGetAction(port=1), initial_delay_seconds=3600)
    for number in range(CONTAINERS):
        probing.put(
            Pod(uid=f"u{number}", name="web", containers=(Container(name="app", liveness_probe=probe),))
        )
    with probing:
        time.sleep(1.0)
        cpu_s = time.process_time()
        time.sleep(2.0)
        return (time.process_time() - cpu_s) / 2.0


def _decided_us() -> float:
    """One look and one answer, that is a whole probe but for the asking."""
    asking = Asking(kind=ProbeKind.READINESS)
    seen = Instance(id="c", has_started=True)
    tally, reply = Tally(container_id="c"), Reply(ReplyKind.SUCCESS)

    def once() -> None:
        looked = look(tally, asking, seen, life=LifeState.SYNCING, now_s=1.0)
        hear(looked.tally, asking, reply)

    return best_ns(once) / 1e3


def figures() -> Iterator[Figure]:
    """What asking costs; the server's own work is in another process."""
    yield Figure(
        package="probes",
        name="one question decided: a look and an answer",
        value=_decided_us(),
        unit="µs",
        at_most=50.0,
        cpu=True,
    )
    with _server() as port:
        core, each_us = _at_work(port)
        bare_us = _at_pace_us(_by_http_client, port)
        least_us = _at_pace_us(_by_socket, port)
        prober = HttpProber()
        question = Question(action=HttpGetAction(port=port), address="127.0.0.1", port=port)
        alone_us = best_ns(lambda: prober.probe(question)) / 1e3
    yield Figure(
        package="probes",
        name="1,000 containers × 1 HTTP probe a second on loopback",
        value=core * 100,
        unit="% of a core",
        at_most=25.0,
        cpu=True,
    )
    yield Figure(
        package="probes",
        name="one of them, beside a bare loop of http.client at the same pace",
        value=each_us / bare_us,
        unit="×",
        at_most=3.0,
    )
    yield Figure(
        package="probes",
        name="one of them, beside a bare loop of sockets at the same pace",
        value=each_us / least_us,
        unit="×",
        at_most=3.0,
    )
    yield Figure(package="probes", name="one HTTP question that is waited for", value=alone_us, unit="µs")
    yield Figure(
        package="probes",
        name="1,000 containers that wait for their first question",
        value=_idle() * 100,
        unit="% of a core",
        at_most=0.1,
        cpu=True,
    )
