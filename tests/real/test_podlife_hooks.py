"""Hooks of containers: commands, requests and pauses, against real servers, and cut short."""

from __future__ import annotations

import contextlib
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from nodealloc.podlife import ContainerHooks, HookCall, HookRunner
from nodealloc.podspec import (
    Container,
    ContainerPort,
    ExecAction,
    HttpGetAction,
    HttpHeader,
    LifecycleHandler,
    Pod,
    SleepAction,
    TcpSocketAction,
)
from nodealloc.runtime import CommandResult, CommandTimedOutError, PodReport, RuntimeRefusedError
from nodealloc.testing.conformance import read_rows
from nodealloc.testing.dsw_asw import ManualCancel
from nodealloc.testing.podlife import check_hook_runner

VECTORS = Path(__file__).parent.parent / "vectors"
Answer = Callable[[socket.socket, bytes], None]


OTHER = Container(name="a", ports=(ContainerPort(container_port=1, name="other"),))


def call_of(
    handler: LifecycleHandler,
    *,
    timeout_s: float = 10.0,
    report: PodReport = PodReport(uid="u", ips=("127.0.0.1",)),  # noqa: B008 - a frozen value
    container: Container = OTHER,
) -> HookCall:
    """A hook that is to be run."""
    return HookCall(
        pod=Pod(uid="<uid>", name="p-n1", namespace="default"),
        container=container,
        container_id="c1",
        handler=handler,
        timeout_s=timeout_s,
        report=report,
    )


class Commands:
    """Runs no command; answers with what it was given."""

    def __init__(self, answer: Callable[[float], CommandResult]) -> None:
        self.answer = answer
        self.asked: list[tuple[str, tuple[str, ...], float]] = []

    def run_command(self, container_id: str, command: Any, timeout_s: float, /) -> CommandResult:
        """See `CommandRunner.run_command`."""
        self.asked.append((container_id, tuple(command), timeout_s))
        return self.answer(timeout_s)


def ends(code: int, output: bytes = b"") -> Commands:
    """Commands that end so."""
    return Commands(lambda _: CommandResult(code=code, output=output))


def run(handler: LifecycleHandler, commands: Commands | None = None, **more: Any) -> str:
    """What becomes of a hook."""
    hooks: HookRunner = ContainerHooks(commands or ends(0))
    return hooks.run_hook(call_of(handler, **more), ManualCancel())


@contextlib.contextmanager
def server(answer: Answer, wrap: Callable[[socket.socket], socket.socket] = lambda one: one) -> Iterator[int]:
    """A server on a port of its own; each connection is answered on a thread."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    one, _ = listening.accept()
                    threading.Thread(target=talk, args=(one,), daemon=True).start()

        def talk(one: socket.socket) -> None:
            with contextlib.suppress(OSError), wrap(one) as wrapped:
                data = b""
                while b"\r\n\r\n" not in data:
                    data += wrapped.recv(4096) or b"\r\n\r\n"
                answer(wrapped, data)

        threading.Thread(target=serve, daemon=True).start()
        yield int(listening.getsockname()[1])


def says(status: str, seen: list[bytes] | None = None) -> Answer:
    """An answer with a status."""

    def answer(one: socket.socket, data: bytes) -> None:
        if seen is not None:
            seen.append(data)
        one.sendall(f"HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\nok".encode())

    return answer


def get(port: int | str, **more: Any) -> LifecycleHandler:
    """A request."""
    return LifecycleHandler(http_get=HttpGetAction(port=port, **more))


EXEC = LifecycleHandler(exec=ExecAction(command=("sh", "-c", "echo no; exit 2")))


def test_a_command_that_ends_well_says_nothing() -> None:
    """It runs in the container, with the time that the hook has."""
    commands = ends(0, b"much")
    assert run(EXEC, commands, timeout_s=5.0) == ""
    ((where, command, limit_s),) = commands.asked
    assert (where, command) == ("c1", ("sh", "-c", "echo no; exit 2"))
    assert 4.0 < limit_s <= 5.0


def test_a_command_that_fails_says_what_users_of_a_kubelet_saw() -> None:
    """The words are in a recorded story."""
    story = next(one for one in read_rows(VECTORS / "kubelet_stories.jsonl.gz") if one["id"] == 32)
    pod = cast("Any", story)["seen"]["pods"]["p-n1"]
    told = {one.get("message", "") for state in pod["states"] for one in state["containers"].values()}
    assert run(EXEC, ends(2, b"no\n")) in told


def test_what_a_command_that_failed_wrote_is_told_as_kubelets_tell_it() -> None:
    """Its errors as they are, then all it wrote in one line."""
    wrote = CommandResult(code=2, output=b'said "so"\x1b[0m \xff', errors=b"no such caf\xc3\xa9\n\x7f")
    words = run(EXEC, Commands(lambda _: wrote))
    errors, _, message = words.partition(", message: ")
    assert errors.endswith("error: command 'sh -c echo no; exit 2' exited with 2: no such caf\u00e9\n\x7f")
    assert message == r'"said \"so\"\x1b[0m \xffno such café\n\x7f"'


def test_a_command_that_cannot_run_has_failed() -> None:
    """With the runtime's words, or with the time that it was given."""

    def refuse(_: float) -> CommandResult:
        raise RuntimeRefusedError("ExecSync", "UNKNOWN", "no such program")

    def late(limit_s: float) -> CommandResult:
        raise CommandTimedOutError("c1", limit_s)

    assert "no such program" in run(EXEC, Commands(refuse))
    assert "has not ended after 5 s" in run(EXEC, Commands(late), timeout_s=5.0)


def test_a_runtime_that_hangs_holds_no_hook() -> None:
    """The call returns when the hook's time is over, or soon after it is called off."""
    go = threading.Event()
    hanging = Commands(lambda _: (go.wait(30), CommandResult(code=0))[1])
    assert "has not ended after 0.05 s" in run(EXEC, hanging, timeout_s=0.05)
    cancel = ManualCancel()
    threading.Timer(0.05, cancel.set).start()
    assert "called off" in ContainerHooks(hanging).run_hook(call_of(EXEC, timeout_s=60), cancel)
    go.set()


def test_a_hook_without_time_runs_nothing() -> None:
    """No grace is left for it."""
    commands = ends(0)
    assert "has not ended after 0 s" in run(EXEC, commands, timeout_s=0.0)
    assert commands.asked == []


def test_a_request_reaches_the_pod() -> None:
    """At its address, with path and headers; a header of the manifest takes the place of ours."""
    seen: list[bytes] = []
    headers = (HttpHeader(name="X-A", value="1"), HttpHeader(name="user-agent", value="me"))
    with server(says("200 OK", seen)) as port:
        assert run(get(port, path="/drain?x=1", http_headers=headers)) == ""
    lines = seen[0].decode().split("\r\n")
    assert lines[0] == "GET /drain?x=1 HTTP/1.1"
    assert {"X-A: 1", "user-agent: me", f"Host: 127.0.0.1:{port}"} <= set(lines)
    assert not [one for one in lines if one.startswith("User-Agent")]


def test_a_port_may_be_named() -> None:
    """The container's port of that name; a name that it has not is a failure."""
    with server(says("200 OK")) as port:
        named = Container(name="a", ports=(ContainerPort(container_port=port, name="web"),))
        assert run(get("web"), container=named) == ""
        assert run(get(str(port))) == ""
    assert "port web of the hook is none" in run(get("web"))


@pytest.mark.parametrize("status", ["404 Not Found", "500 No", "302 Found"])
def test_any_answer_will_do(status: str) -> None:
    """As with kubelets: the hook was called."""
    with server(says(status)) as port:
        assert run(get(port)) == ""


def test_a_redirect_within_the_host_is_followed() -> None:
    """What the hook is for is done behind it; to another host nobody goes, and ten requests are the most."""
    seen: list[bytes] = []
    with server(says("200 OK", seen)) as end:
        for where in (f"http://127.0.0.1:{end}/end?x=1", f"http://localhost:{end}/other"):
            with server(says(f"302 Found\r\nLocation: {where}")) as port:
                assert run(get(port, path="/drain")) == ""
    assert [one.split(b" HTTP")[0] for one in seen] == [b"GET /end?x=1"]
    with server(says("302 Found\r\nLocation: /again", seen)) as port:
        assert "10 requests, and redirected again" in run(get(port))
    assert len(seen) == 11


def test_a_redirect_leads_where_its_bytes_say() -> None:
    """They are sent as they came, as with probes."""
    seen: list[bytes] = []

    def leads(one: socket.socket, data: bytes) -> None:
        says("302 Found\r\nLocation: /é" if b"GET / " in data else "200 OK", seen)(one, data)

    with server(leads) as port:
        assert run(get(port)) == ""
    assert [one.split(b" HTTP")[0] for one in seen] == [b"GET /", b"GET /%C3%A9"]


@pytest.mark.parametrize(
    ("location", "word"),
    [
        ("ftp://127.0.0.1/", "redirected to ftp, which is not HTTP"),
        ("/%zz", "redirected to '/%zz', which is no URL"),
        ("http://127.0.0.1:odd/", "Port"),
    ],
)
def test_a_redirect_within_the_host_to_where_nobody_can_ask_has_failed(location: str, word: str) -> None:
    """What the hook is for was to be done there."""
    with server(says(f"302 Found\r\nLocation: {location}")) as port:
        assert f"failed - error: {word}" in run(get(port))


def test_a_host_of_the_pod_goes_with_redirects_until_one_is_a_whole_url() -> None:
    """A host after `//` alone takes it from none, and once it was left out it stays out."""
    onward, seen = ["//127.0.0.1:PORT/a", "http://127.0.0.1:PORT/b", "/c"], list[bytes]()

    def leads(one: socket.socket, data: bytes) -> None:
        seen.append(next(line for line in data.split(b"\r\n") if line.startswith(b"Host: ")))
        where = onward.pop(0).replace("PORT", str(one.getsockname()[1])) if onward else ""
        says(f"302 Found\r\nLocation: {where}" if where else "200 OK")(one, data)

    with server(leads) as port:
        assert run(get(port, http_headers=(HttpHeader(name="Host", value="web.test"),))) == ""
    ours = b"Host: 127.0.0.1:%d" % port
    assert seen == [b"Host: web.test", b"Host: web.test", ours, ours]


def test_a_server_without_tls_is_asked_without() -> None:
    """As with kubelets; secrets do not go over it."""
    seen: list[bytes] = []
    headers = (HttpHeader(name="Authorization", value="Bearer x"), HttpHeader(name="X-A", value="1"))

    def plain(one: socket.socket, data: bytes) -> None:
        says("200 OK" if data.startswith(b"GET") else "400 Bad Request", seen)(one, data)

    def shake(one: socket.socket) -> socket.socket:
        if one.recv(1, socket.MSG_PEEK) != b"G":
            one.sendall(b"HTTP/1.0 400 Bad Request\r\n\r\n")
            one.recv(4096)
            one.close()
            raise OSError
        return one

    with server(plain, shake) as port:
        assert run(get(port, scheme="HTTPS", http_headers=headers)) == ""
    assert b"X-A: 1" in seen[-1]
    assert b"Authorization" not in seen[-1]


def test_only_what_a_command_wrote_is_told() -> None:
    """A request and a pause write nothing."""
    failed = run(LifecycleHandler(sleep=SleepAction(seconds=5)), timeout_s=0.01)
    assert failed.startswith('Sleep lifecycle hook (5) for Container "a" in Pod')
    assert "message:" not in failed


def test_a_request_that_nobody_takes_has_failed() -> None:
    """The reason is told, with hook and container; so it is for a pod without address."""
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    words = run(get(port, path="/x"))
    assert words.startswith('HTTP lifecycle hook (/x) for Container "a" in Pod "p-n1_default(<uid>)" failed')
    assert "refused" in words
    assert "no address" in run(get(port), report=PodReport(uid="u"))


def drip(one: socket.socket, _: bytes) -> None:
    """An answer that never ends, a byte at a time."""
    for _step in range(3000):
        one.sendall(b"H")
        time.sleep(0.01)


def mute(one: socket.socket, _: bytes) -> None:
    """No answer, until the other end closes."""
    one.recv(1)


@pytest.mark.parametrize("answer", [drip, mute])
def test_a_server_that_hangs_holds_no_hook(answer: Answer) -> None:
    """At the end of its time the connection is closed; so it is when the hook is called off."""
    closed = threading.Event()

    def watched(one: socket.socket, data: bytes) -> None:
        try:
            answer(one, data)
        finally:
            closed.set()

    with server(watched) as port:
        assert "has not ended after 0.1 s" in run(get(port), timeout_s=0.1)
        assert closed.wait(10)
        closed.clear()
        cancel = ManualCancel()
        threading.Timer(0.05, cancel.set).start()
        assert "called off" in ContainerHooks(ends(0)).run_hook(call_of(get(port), timeout_s=60), cancel)
        assert closed.wait(10)


def test_a_certificate_of_its_own_is_taken(tmp_path: Path) -> None:
    """A pod's certificate is for its service; the request is to its address."""
    key, certificate = tmp_path / "key", tmp_path / "certificate"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=x", "-days", "1"]
    try:
        subprocess.run([*command, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no openssl to make a certificate with: {error}")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with server(says("200 OK"), lambda one: context.wrap_socket(one, server_side=True)) as port:
        assert run(get(port, scheme="HTTPS")) == ""


def test_a_pause_ends_by_itself_or_with_its_time() -> None:
    """A longer one than its time has failed; one that is called off ends at once."""
    assert run(LifecycleHandler(sleep=SleepAction(seconds=0))) == ""
    assert "has not ended after 0.05 s" in run(LifecycleHandler(sleep=SleepAction(seconds=5)), timeout_s=0.05)
    cancel = ManualCancel()
    cancel.set()
    five = LifecycleHandler(sleep=SleepAction(seconds=5))
    assert "called off" in ContainerHooks(ends(0)).run_hook(call_of(five), cancel)


def test_a_socket_hook_fails() -> None:
    """It is taken for old manifests, and nothing is done for it: that is told."""
    assert "nothing is done for it" in run(LifecycleHandler(tcp_socket=TcpSocketAction(port=1)))


def test_it_keeps_the_promises_of_who_runs_hooks() -> None:
    """As the kit holds anybody's to them."""
    sleeps = {seconds: LifecycleHandler(sleep=SleepAction(seconds=seconds)) for seconds in (0, 600)}
    check_hook_runner(
        ContainerHooks(ends(2)),
        call_of(sleeps[0]),
        call_of(EXEC),
        call_of(sleeps[600], timeout_s=300.0),
    )
