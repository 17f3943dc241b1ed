"""Probers against real servers on loopback: good ones, and every bad habit that is known."""

from __future__ import annotations

import contextlib
import queue
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest

from nodealloc._proto import health_v1_pb2 as wire
from nodealloc.dsw_asw import World
from nodealloc.errors import ConfigurationError
from nodealloc.podfacts import PodEvent, PodIdentity
from nodealloc.podspec import (
    Container,
    GrpcAction,
    HttpGetAction,
    HttpHeader,
    Pod,
    Probe,
    TcpSocketAction,
)
from nodealloc.probes import (
    Exchange,
    HttpProber,
    ProbeKind,
    ProbeOptions,
    Prober,
    Probers,
    Probing,
    Question,
    Reply,
    ReplyKind,
    Schedule,
    TcpProber,
)
from nodealloc.probes.health import GrpcProber, Tls
from nodealloc.runtime import ContainerRecord, ContainerReport, PodKnown, PodReport, RunState
from nodealloc.testing.probes import check_exchanges, check_prober

LONG_S, SHORT_S = 20.0, 0.2
Serve = Callable[[socket.socket], None]


@contextlib.contextmanager
def server(*serves: Serve, tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """A server that treats its first connection by the first of `serves`, the last by the last; its port."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        stop = threading.Event()

        def one(accepted: socket.socket, serve: Serve) -> None:
            with accepted, contextlib.suppress(OSError):
                accepted.settimeout(LONG_S)
                made = accepted if tls is None else tls.wrap_socket(accepted, server_side=True)
                with made:
                    serve(made)

        def loop() -> None:
            count = 0
            while not stop.is_set():
                try:
                    accepted, _ = listening.accept()
                except OSError:
                    return
                serve = serves[min(count, len(serves) - 1)]
                count += 1
                threading.Thread(target=one, args=(accepted, serve), daemon=True).start()

        thread = threading.Thread(target=loop, daemon=True)
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            stop.set()
            with contextlib.suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)
            thread.join(LONG_S)


def request_of(one: socket.socket) -> bytes:
    """The head of a request, read whole."""
    data = bytearray()
    while b"\r\n\r\n" not in data[-70_000:]:
        more = one.recv(65_536)
        if not more:
            break
        data += more
    return bytes(data)


def says(answer: bytes) -> Serve:
    """Reads the request, answers with these bytes, closes."""

    def serve(one: socket.socket) -> None:
        request_of(one)
        one.sendall(answer)

    return serve


def silent(one: socket.socket) -> None:
    """Takes the request and says nothing until the other side has gone."""
    while one.recv(4096):
        pass


def answer(status: str, body: bytes = b"", *fields: str) -> bytes:
    """An answer with a length."""
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *fields, "", ""]
    return "\r\n".join(head).encode() + body


def http(port: int, path: str = "/", *, timeout_s: float = LONG_S, scheme: str = "HTTP") -> Question:
    """A question over HTTP."""
    action = HttpGetAction(port=port, path=path, scheme=scheme)
    return Question(action=action, address="127.0.0.1", port=port, timeout_s=timeout_s)


def tcp(port: int, *, timeout_s: float = LONG_S, address: str = "127.0.0.1") -> Question:
    """A question by connecting."""
    return Question(action=TcpSocketAction(port=port), address=address, port=port, timeout_s=timeout_s)


def closed_port() -> int:
    """A port where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as one:
        port: int = one.getsockname()[1]
    return port


def test_http_keeps_the_promises_of_probers() -> None:
    """With a thread and without, well, sick and silent are told apart, and no socket is left open."""
    with (
        server(says(answer("200 OK", b"ok"))) as good,
        server(says(answer("500 No"))) as bad,
        server(silent) as hung,
    ):
        check_exchanges(HttpProber(), well=http(good), sick=http(bad), silent=http(hung, timeout_s=SHORT_S))


@pytest.mark.parametrize(
    ("sent", "kind", "word"),
    [
        (answer("204 No Content"), ReplyKind.SUCCESS, ""),
        (b"HTTP/1.1 204 No Content\r\n\r\n", ReplyKind.SUCCESS, ""),
        (answer("304 Not Modified"), ReplyKind.WARNING, "Probe terminated redirects, Response body: "),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: odd\r\n\r\n", ReplyKind.WARNING, "body: "),
        (answer("399 Odd"), ReplyKind.WARNING, "Probe terminated redirects, Response body: "),
        (answer("301 Moved", b"gone"), ReplyKind.WARNING, "Probe terminated redirects, Response body: gone"),
        (
            b"HTTP/1.1 302 Found\r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\nbeh\r\n3\r\nind\r\n0\r\n\r\n",
            ReplyKind.WARNING,
            "Response body: behind",
        ),
        (answer("300 Many", b"two") + b"junk", ReplyKind.WARNING, "Response body: two"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + answer("200 OK"), ReplyKind.SUCCESS, ""),
        (b"HTTP/1.0 200 OK\r\n\r\nuntil the end", ReplyKind.SUCCESS, ""),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", ReplyKind.SUCCESS, ""),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n",
            ReplyKind.FAILURE,
            "breaks off",
        ),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nodd\r\n", ReplyKind.FAILURE, "chunk"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-6\r\n", ReplyKind.FAILURE, "chunk"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\nhalf", ReplyKind.FAILURE, "breaks off"),
        (b"HTTP/1.1 200 OK\r\nContent-Le", ReplyKind.FAILURE, "breaks off"),
        (b"", ReplyKind.FAILURE, "closed"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", ReplyKind.FAILURE, "no HTTP/1"),
        (b"HTTP/2 200\r\n\r\n", ReplyKind.FAILURE, "no HTTP/1"),
        (b"\x15\x03\x01\x00\x02\x02\x46" * 3, ReplyKind.FAILURE, "no HTTP/1"),
    ],
)
def test_http_understands_what_servers_say(sent: bytes, kind: ReplyKind, word: str) -> None:
    """Success from 200 to 399; half an answer, or none that makes sense, is a failure that says why."""
    with server(says(sent)) as port:
        reply = HttpProber().probe(http(port))
    assert reply.kind is kind
    assert word in reply.message
    assert not reply.message.endswith(("0", "junk"))


def test_a_failure_is_told_without_its_body() -> None:
    """Whoever reads events is not meant to read what a server says: the pod may name any host."""
    with server(says(answer("503 No", b"a secret"))) as port:
        assert HttpProber().probe(http(port)).message == "HTTP probe failed with statuscode: 503"


def test_a_huge_body_is_not_read() -> None:
    """10 KiB are enough to know; the other gigabyte is left where it is."""
    sent = list[int]()

    def endless(one: socket.socket) -> None:
        request_of(one)
        one.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
        with contextlib.suppress(OSError):
            for _ in range(1_000_000_000 // 65536):
                sent.append(one.send(b"x" * 65536))
        raise OSError

    with server(endless) as port:
        assert HttpProber().probe(http(port)) == Reply(ReplyKind.SUCCESS)
    assert sum(sent) < 100_000_000


def test_a_head_without_end_is_refused() -> None:
    """Headers that go on for ever are no answer, before they fill the memory."""

    def endless(one: socket.socket) -> None:
        request_of(one)
        one.sendall(b"HTTP/1.1 200 OK\r\n")
        while True:
            one.sendall(b"X-Odd: " + b"x" * 8000 + b"\r\n")

    with server(endless) as port:
        reply = HttpProber().probe(http(port))
    assert (reply.kind, "no end of the headers" in reply.message) == (ReplyKind.FAILURE, True)


def test_a_server_that_dribbles_runs_out_of_time() -> None:
    """The time-out is for the whole answer: a byte now and then does not draw it out."""

    def dribbles(one: socket.socket) -> None:
        request_of(one)
        for byte in answer("200 OK", b"x" * 10_000):
            one.sendall(bytes([byte]))
            threading.Event().wait(0.05)

    with server(dribbles) as port:
        reply = HttpProber().probe(http(port, timeout_s=SHORT_S))
    assert (reply.kind, reply.timed_out) == (ReplyKind.FAILURE, True)


def test_redirects_are_followed_within_the_host() -> None:
    """To another path and another port; the last answer counts."""
    with server(says(answer("200 OK"))) as good, server(says(answer("503 Busy"))) as bad:
        for port, kind in ((good, ReplyKind.SUCCESS), (bad, ReplyKind.FAILURE)):
            elsewhere = answer("302 Found", b"", f"Location: http://127.0.0.1:{port}/ready?x=1")
            with server(says(elsewhere)) as first:
                assert HttpProber().probe(http(first)).kind is kind
    with server(says(answer("307 Found", b"", "Location: here")), says(answer("200 OK"))) as port:
        assert HttpProber().probe(http(port, "/a/b")).kind is ReplyKind.SUCCESS


@pytest.mark.parametrize("location", ["http://example.com/", "https://[::1]/", "mailto:a", "ftp://a/"])
def test_a_redirect_that_leaves_the_host_is_a_warning(location: str) -> None:
    """Nobody else is asked; it counts as a success, with a word on it."""
    with server(says(answer("302 Found", b"there", f"Location: {location}"))) as port:
        reply = HttpProber().probe(http(port))
    assert (reply.kind, reply.message) == (
        ReplyKind.WARNING,
        "Probe terminated redirects, Response body: there",
    )


@pytest.mark.parametrize(
    "location", ["ftp://127.0.0.1/", "http://127.0.0.1:odd/", "http://127.0.0.1:70000/", "/%zz"]
)
def test_a_redirect_within_the_host_to_where_nobody_can_ask_is_a_failure(location: str) -> None:
    """It is followed as any other, and that fails."""
    with server(says(answer("302 Found", b"", f"Location: {location}"))) as port:
        assert HttpProber().probe(http(port)).kind is ReplyKind.FAILURE


def test_ten_requests_are_sent_at_most() -> None:
    """Nine redirects are followed; the tenth is a failure."""
    onward, end = says(answer("302 Found", b"", "Location: /")), says(answer("200 OK"))
    with server(*[onward] * 9, end) as port:
        assert HttpProber().probe(http(port)).kind is ReplyKind.SUCCESS
    with server(*[onward] * 10, end) as port:
        reply = HttpProber().probe(http(port))
    assert (reply.kind, "10 requests, and redirected again" in reply.message) == (ReplyKind.FAILURE, True)


def heads(*headers: HttpHeader, path: str = "/", answers: Sequence[bytes] = (b"",)) -> list[list[bytes]]:
    """Lines of the requests that a probe sends to a server that answers so, then well."""
    seen = list[list[bytes]]()

    def keeps(said: bytes) -> Serve:
        def serve(one: socket.socket) -> None:
            seen.append(request_of(one).split(b"\r\n"))
            one.sendall(said)

        return serve

    with server(*[keeps(one or answer("200 OK")) for one in answers]) as port:
        action = HttpGetAction(port=port, path=path, http_headers=headers)
        HttpProber().probe(Question(action=action, address="127.0.0.1", port=port, timeout_s=LONG_S))
    where = b":%d" % port
    return [[line.replace(where, b":PORT") for line in lines] for lines in seen]


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("", b"/"),
        ("//healthz/a", b"/a"),
        ("http://other.test:1/b?c=d", b"/b?c=d"),
        ("/100%", b"/100%25"),
        ("/a%20{b}", b"/a%20%7Bb%7D"),
        ("/a|b?c|d", b"/a%7Cb?c|d"),
    ],
)
def test_a_path_is_read_as_a_url(path: str, asked: bytes) -> None:
    """Of one that names a host only what stands behind counts, and characters are written as in URLs."""
    assert heads(path=path)[0][0] == b"GET %s HTTP/1.1" % asked


def test_a_host_is_told_with_its_port() -> None:
    """An empty one of the pod takes nothing away, of several the first counts."""
    ours = b"Host: 127.0.0.1:PORT"
    for headers, host in (((), ours), (("",), ours), (("a", "b"), b"Host: a")):
        (lines,) = heads(*(HttpHeader(name="host", value=one) for one in headers))
        assert [line for line in lines if line.lower().startswith(b"host:")] == [host]


def test_a_host_of_the_pod_goes_with_redirects_that_name_none() -> None:
    """One that names its own is asked by that name."""
    named = HttpHeader(name="Host", value="web.test")
    same = answer("302 Found", b"", "Location: /x")
    assert heads(named, answers=(same, b""))[1][:2] == [b"GET /x HTTP/1.1", b"Host: web.test"]
    seen = list[bytes]()

    def keeps(one: socket.socket) -> None:
        seen.append(request_of(one).split(b"\r\n")[1])
        one.sendall(answer("200 OK"))

    with server(keeps) as port:
        heads(named, answers=(answer("302 Found", b"", f"Location: http://127.0.0.1:{port}/"),))
    assert seen == [b"Host: 127.0.0.1:%d" % port]


def test_a_host_of_the_pod_goes_with_redirects_until_one_is_a_whole_url() -> None:
    """A host after `//` alone takes it from none, and once it was left out it stays out."""
    named, seen = HttpHeader(name="Host", value="web.test"), list[bytes]()

    def leads(location: str) -> Serve:
        def serve(one: socket.socket) -> None:
            seen.append(request_of(one).split(b"\r\n")[1])
            own = one.getsockname()[1]
            one.sendall(answer("302 Found", b"", f"Location: {location.replace('PORT', str(own))}"))

        return serve

    def ends(one: socket.socket) -> None:
        seen.append(request_of(one).split(b"\r\n")[1])
        one.sendall(answer("200 OK"))

    onward = (leads("//127.0.0.1:PORT/a"), leads("http://127.0.0.1:PORT/b"), leads("/c"))
    with server(*onward, ends) as port:
        action = HttpGetAction(port=port, http_headers=(named,))
        question = Question(action=action, address="127.0.0.1", port=port, timeout_s=LONG_S)
        assert HttpProber().probe(question).kind is ReplyKind.SUCCESS
    ours = b"Host: 127.0.0.1:%d" % port
    assert seen == [b"Host: web.test", b"Host: web.test", ours, ours]


def test_a_name_with_several_addresses_is_asked_where_somebody_listens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As `localhost` is ::1 first on most machines, and servers listen at 127.0.0.1."""
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, 0)) for one in ("127.0.0.2", "127.0.0.1")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    with server(says(answer("200 OK"))) as port:
        for prober, action in (
            (HttpProber(), HttpGetAction(port=port)),
            (TcpProber(), TcpSocketAction(port=port)),
        ):
            assert prober.probe(Question(action=action, address="two.test", port=port)).kind is (
                ReplyKind.SUCCESS
            )


def test_a_failure_says_who_was_asked() -> None:
    """Address and port, and over HTTP the path too."""
    port = closed_port()
    assert TcpProber().probe(tcp(port)).message == f"127.0.0.1:{port}: Connection refused"
    assert HttpProber().probe(http(port, "/x")).message == f"http://127.0.0.1:{port}/x: Connection refused"


def test_the_request_is_what_the_pod_says() -> None:
    """Its headers stand in place of ours, an empty one takes ours away, and no line can be smuggled in."""
    seen = list[bytes]()

    def keeps(one: socket.socket) -> None:
        seen.append(request_of(one))
        one.sendall(answer("200 OK"))

    headers = (
        HttpHeader(name="Host", value="web.test"),
        HttpHeader(name="X-Way", value="a\r\nX-Other: b"),
        HttpHeader(name="accept", value=""),
    )
    with server(keeps) as port:
        action = HttpGetAction(port=port, path="a b/ü?q=1#end", http_headers=headers)
        HttpProber().probe(Question(action=action, address="127.0.0.1", port=port, timeout_s=LONG_S))
    lines = seen[0].split(b"\r\n")
    assert lines[0] == b"GET /a%20b/%C3%BC?q=1 HTTP/1.1"
    assert sorted(lines[1:-2]) == [
        b"Connection: close",
        b"Host: web.test",
        b"User-Agent: kube-probe/1.32",
        b"X-Way: a  X-Other: b",
    ]


def test_names_are_resolved_and_absent_ones_are_failures() -> None:
    """A host's name takes a worker, since a name server is asked; no such host is its failure."""
    with server(says(answer("200 OK"))) as port:
        for prober, question in (
            (HttpProber(), Question(action=HttpGetAction(port=port), address="localhost", port=port)),
            (TcpProber(), Question(action=TcpSocketAction(port=port), address="localhost", port=port)),
        ):
            assert prober.exchange(question) is None
            assert prober.probe(question).kind is ReplyKind.SUCCESS
    for prober in (HttpProber(), TcpProber()):
        nowhere = Question(action=HttpGetAction(port=1), address="no-such-host.invalid", port=1)
        assert "no such host" in prober.probe(nowhere).message


def test_tcp_keeps_the_promises_of_probers() -> None:
    """Whoever takes a connection is well; a port where nobody listens is not; a full backlog is silent."""
    with full_backlog() as full, server(silent) as good:
        sick = tcp(closed_port())
        check_exchanges(TcpProber(), well=tcp(good), sick=sick, silent=tcp(full, timeout_s=SHORT_S))


@contextlib.contextmanager
def full_backlog() -> Iterator[int]:
    """A port whose queue is full: the kernel answers no further connection."""
    with socket.socket() as listening, contextlib.ExitStack() as held:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        port = listening.getsockname()[1]
        for _ in range(16):
            one = held.enter_context(socket.socket())
            one.settimeout(SHORT_S)
            try:
                one.connect(("127.0.0.1", port))
            except TimeoutError:
                break
        else:
            pytest.skip("this kernel takes any number of connections")
        yield port


def test_a_full_backlog_is_a_failure_for_http_too() -> None:
    """Nobody takes the connection; the reply says that time ran out."""
    with full_backlog() as port:
        reply = HttpProber().probe(http(port, timeout_s=SHORT_S))
    assert (reply.kind, reply.timed_out) == (ReplyKind.FAILURE, True)


def test_probes_hold_no_ports_afterwards() -> None:
    """A hundred leave no connection behind that waits for a minute, but where both sides end it at once."""

    def waiting() -> int:
        table = Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]
        ours = [line.split() for line in table if line.split()[2].endswith(f":{port:04X}")]
        return sum(fields[3] == "06" for fields in ours)

    with server(says(answer("200 OK", b"ok"))) as port:
        for _ in range(100):
            assert TcpProber().probe(tcp(port)).kind is ReplyKind.SUCCESS
        assert waiting() == 0
        for _ in range(100):
            assert HttpProber().probe(http(port)).kind is ReplyKind.SUCCESS
        assert waiting() <= 20


def test_whoever_was_probed_sees_an_end_and_no_broken_connection() -> None:
    """Servers write what breaks into their logs, at each probe."""
    seen = queue.SimpleQueue[bytes | str]()

    def reads(one: socket.socket) -> None:
        try:
            seen.put(one.recv(4096))
        except OSError as error:
            seen.put(str(error))

    def late(one: socket.socket) -> None:
        time.sleep(0.05)
        reads(one)

    def goes_on(one: socket.socket) -> None:
        says(answer("200 OK", b"ok"))(one)
        late(one)

    with server(late) as port:
        assert TcpProber().probe(tcp(port)).kind is ReplyKind.SUCCESS
        assert seen.get(timeout=LONG_S) == b""
    with server(goes_on) as port:
        assert HttpProber().probe(http(port)).kind is ReplyKind.SUCCESS
        assert seen.get(timeout=LONG_S) == b""


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of its own for `web.test`, with its key, in one file."""
    folder = tmp_path_factory.mktemp("tls")
    key, signed, both = folder / "key", folder / "signed", folder / "both"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    command += ["-keyout", str(key), "-out", str(signed), "-days", "30", "-subj", "/CN=web.test"]
    command += ["-addext", "subjectAltName=DNS:web.test,IP:127.0.0.1"]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no openssl here: {error}")
    both.write_bytes(key.read_bytes() + signed.read_bytes())
    return both


@pytest.fixture
def tls(certificate: Path) -> ssl.SSLContext:
    """A server's side of it."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(certificate)
    return made


def test_https_takes_any_certificate_unless_told(certificate: Path, tls: ssl.SSLContext) -> None:
    """As a kubelet does; a context that verifies is the caller's to give, and is kept to."""
    trusting = ssl.create_default_context(cafile=str(certificate))
    with server(says(answer("200 OK", b"ok")), tls=tls) as port:
        question = http(port, scheme="HTTPS")
        assert HttpProber().probe(question) == Reply(ReplyKind.SUCCESS)
        assert HttpProber(tls=trusting).probe(question) == Reply(ReplyKind.SUCCESS)
        refused = HttpProber(tls=ssl.create_default_context()).probe(question)
    assert (refused.kind, "certificate" in refused.message.lower()) == (ReplyKind.FAILURE, True)


def test_https_keeps_the_promises_of_probers(tls: ssl.SSLContext) -> None:
    """Shaking hands blocks nobody; a server that does not shake runs out of time."""
    with (
        server(says(answer("200 OK", b"ok" * 2000)), tls=tls) as good,
        server(says(answer("500 No")), tls=tls) as bad,
        server(silent) as hung,
    ):
        check_exchanges(
            HttpProber(),
            well=http(good, scheme="HTTPS"),
            sick=http(bad, scheme="HTTPS"),
            silent=http(hung, scheme="HTTPS", timeout_s=SHORT_S),
        )


def test_plain_http_where_tls_is_asked_is_a_failure(tls: ssl.SSLContext) -> None:
    """And the other way round."""
    with server(says(answer("200 OK"))) as plain, server(says(answer("200 OK")), tls=tls) as secured:
        assert HttpProber().probe(http(plain, scheme="HTTPS", timeout_s=0.5)).kind is ReplyKind.FAILURE
        assert HttpProber().probe(http(secured)).kind is ReplyKind.FAILURE


class Health(grpc.GenericRpcHandler):  # type: ignore[misc]  # gRPC has no types
    """A health service that answers by the name of the service asked for."""

    def __init__(self) -> None:
        self.hold = threading.Event()
        self.agents = list[str]()

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        """Its only method."""
        self.agents += [value for name, value in details.invocation_metadata if name == "user-agent"]
        if details.method != "/grpc.health.v1.Health/Check":
            return None
        return grpc.unary_unary_rpc_method_handler(self.check)

    def check(self, data: bytes, context: grpc.ServicerContext) -> bytes:
        """Serving, sick, silent, odd or refused."""
        name = wire.HealthCheckRequest.FromString(data).service
        if name == "silent":
            self.hold.wait(LONG_S)
        if name == "odd":
            return b"\xff\xff"
        if name == "absent":
            context.abort(grpc.StatusCode.NOT_FOUND, "no such service")
        status = wire.HealthCheckResponse.NOT_SERVING if name == "sick" else wire.HealthCheckResponse.SERVING
        return wire.HealthCheckResponse(status=status).SerializeToString()


@contextlib.contextmanager
def health_server(
    credentials: grpc.ServerCredentials | None = None, *handlers: grpc.GenericRpcHandler
) -> Iterator[int]:
    """A gRPC server with these services; its port."""
    made = grpc.server(ThreadPoolExecutor(8))
    made.add_generic_rpc_handlers(handlers)
    where = "127.0.0.1:0"
    port = made.add_insecure_port(where) if credentials is None else made.add_secure_port(where, credentials)
    made.start()
    try:
        yield port
    finally:
        for one in handlers:
            if isinstance(one, Health):
                one.hold.set()
        made.stop(None).wait(LONG_S)


def health(port: int, service: str = "", *, timeout_s: float = LONG_S) -> Question:
    """A question over gRPC."""
    action = GrpcAction(port=port, service=service)
    return Question(action=action, address="127.0.0.1", port=port, timeout_s=timeout_s)


def test_grpc_keeps_the_promises_of_probers() -> None:
    """SERVING is well, everything else is not, and nobody waits longer than the time-out."""
    with health_server(None, Health()) as port:
        check_prober(
            GrpcProber(),
            well=health(port),
            sick=health(port, "sick"),
            silent=health(port, "silent", timeout_s=SHORT_S),
        )


@pytest.mark.parametrize(
    ("service", "word"), [("sick", "NOT_SERVING"), ("odd", "BAD ANSWER"), ("absent", "NOT_FOUND")]
)
def test_grpc_says_what_the_health_service_said(service: str, word: str) -> None:
    """A status in words, an answer that cannot be read, a refusal."""
    with health_server(None, Health()) as port:
        reply = GrpcProber().probe(health(port, service))
    assert (reply.kind, word in reply.message) == (ReplyKind.FAILURE, True)


def test_grpc_says_who_asks() -> None:
    """A server may leave probes out of its log."""
    one = Health()
    with health_server(None, one) as port:
        assert GrpcProber().probe(health(port)) == Reply(ReplyKind.SUCCESS)
    assert [agent.partition(" ")[0] for agent in one.agents] == ["kube-probe/1.32"]


def test_grpc_where_there_is_no_health_service() -> None:
    """A server without it fails, and the reply says what it lacks."""
    with health_server(None) as port:
        reply = GrpcProber().probe(health(port))
    assert reply.kind is ReplyKind.FAILURE
    assert "no grpc.health.v1.Health" in reply.message


@pytest.mark.parametrize("serve", [says(answer("200 OK", b"ok")), silent])
def test_http_1_where_grpc_is_asked_is_a_failure(serve: Serve) -> None:
    """Another protocol, or a server that says nothing, is no health."""
    with server(serve) as port:
        reply = GrpcProber().probe(health(port, timeout_s=1.0))
    assert reply.kind is ReplyKind.FAILURE


def test_grpc_over_tls_is_explicit(certificate: Path) -> None:
    """Plain text to a TLS port fails; the right roots and name pass; others are refused."""
    data = certificate.read_bytes()
    credentials = grpc.ssl_server_credentials([(data, data)])
    with health_server(credentials, Health()) as port:
        kinds = [
            GrpcProber(tls=tls).probe(health(port, timeout_s=2.0)).kind
            for tls in (
                Tls(roots=data),
                Tls(roots=data, server_name="web.test"),
                Tls(roots=data, server_name="other.test"),
                Tls(),
                None,
            )
        ]
    assert kinds == [ReplyKind.SUCCESS] * 2 + [ReplyKind.FAILURE] * 3


@pytest.mark.parametrize("prober", [HttpProber(), GrpcProber()])
def test_a_prober_refuses_what_it_cannot_do(prober: Prober) -> None:
    """An action of another kind is a mistake of whoever wires, not an answer."""
    with pytest.raises(ConfigurationError, match="TcpSocketAction"):
        prober.probe(tcp(1))


class Agent:
    """A thread of its own that probes pods on loopback."""

    def __init__(self, prober: Probers, options: ProbeOptions = ProbeOptions()) -> None:  # noqa: B008
        self.reports: World[str, PodKnown] = World("reports")
        self.events: list[PodEvent] = []
        self.probing = Probing(prober, reports=self.reports, options=options, on_event=self.events.append)

    def run(self, uid: str, probe: Probe, *, period_s: float = 0.1, timeout_s: float = LONG_S) -> None:
        """A pod with one readiness probe, whose container runs."""
        pod = Pod(uid=uid, name=uid, containers=(Container(name="app", readiness_probe=probe),))
        record = ContainerRecord(
            id=f"c-{uid}",
            pod=PodIdentity.of(pod),
            name="app",
            sandbox_id="box",
            state=RunState.RUNNING,
        )
        report = PodReport(uid=uid, containers=(ContainerReport(record=record),), ips=("127.0.0.1",))
        self.reports.put(uid, PodKnown(uid=uid, report=report))
        schedule = Schedule(period_s=period_s, timeout_s=timeout_s, failure_threshold=1)
        self.probing.put(pod, schedules={("app", ProbeKind.READINESS): schedule})

    def ready(self, uid: str) -> bool | None:
        """What stands; None for no answer yet."""
        verdicts = self.probing.verdicts.get(uid)
        return None if verdicts is None else verdicts.ready.get(f"c-{uid}")

    def wait_for(self, uid: str, *, ready: bool) -> None:
        """Block until it stands."""
        ends_s = time.monotonic() + LONG_S
        while self.ready(uid) is not ready:
            assert time.monotonic() < ends_s, f"{uid} is {self.ready(uid)}: {self.events[-1:]}"
            time.sleep(0.01)


def http_probe(port: int, path: str = "/") -> Probe:
    """By HTTP."""
    return Probe(http_get=HttpGetAction(port=port, path=path))


def test_one_thread_asks_all_and_a_server_that_hangs_delays_itself_alone() -> None:
    """Good, bad, silent, refusing and full ones side by side; the good one is asked on all the time."""
    count = list[None]()

    def counted(one: socket.socket) -> None:
        count.append(None)
        says(answer("200 OK", b"ok"))(one)

    with (
        server(counted) as good,
        server(says(answer("500 No", b"because"))) as bad,
        server(silent) as hung,
        full_backlog() as full,
    ):
        agent = Agent(Probers.real())
        with agent.probing:
            agent.run("hung", http_probe(hung), timeout_s=LONG_S)
            agent.run("late", http_probe(hung), timeout_s=SHORT_S)
            agent.run("full", Probe(tcp_socket=TcpSocketAction(port=full)), timeout_s=SHORT_S)
            agent.run("bad", http_probe(bad))
            agent.run("closed", Probe(tcp_socket=TcpSocketAction(port=closed_port())))
            agent.run("named", Probe(http_get=HttpGetAction(port=good, host="localhost")))
            agent.run("good", http_probe(good))
            agent.run("tcp", Probe(tcp_socket=TcpSocketAction(port=good)))
            for uid in ("good", "tcp", "named"):
                agent.wait_for(uid, ready=True)
            for uid in ("bad", "closed", "full", "late"):
                agent.wait_for(uid, ready=False)
            assert agent.ready("hung") is None
            before = len(count)
            ends_s = time.monotonic() + LONG_S
            while len(count) < before + 5:
                assert time.monotonic() < ends_s, "nobody is asked any more"
                time.sleep(0.01)
    assert {"statuscode: 500" in one.message for one in agent.events if one.pod.uid == "bad"} == {True}


def test_the_thread_that_asks_all_asks_over_tls_too(tls: ssl.SSLContext) -> None:
    """What TLS makes of a socket is watched in its place, also behind a redirect; others are asked on."""
    count = list[None]()

    def counted(one: socket.socket) -> None:
        count.append(None)
        says(answer("200 OK", b"ok"))(one)

    onward = says(answer("302 Found", b"", "Location: /ready")), says(answer("200 OK"))
    with (
        server(says(answer("200 OK", b"ok")), tls=tls) as good,
        server(*onward, tls=tls) as moved,
        server(says(answer("500 No")), tls=tls) as bad,
        server(silent, tls=tls) as hung,
        server(counted) as plain,
    ):
        agent = Agent(Probers.real())
        with agent.probing:
            for uid, port in {"good": good, "moved": moved, "bad": bad, "hung": hung}.items():
                action = HttpGetAction(port=port, scheme="HTTPS")
                agent.run(uid, Probe(http_get=action), timeout_s=SHORT_S if uid == "hung" else LONG_S)
            agent.run("plain", http_probe(plain))
            for uid in ("good", "moved", "plain"):
                agent.wait_for(uid, ready=True)
            for uid in ("bad", "hung"):
                agent.wait_for(uid, ready=False)
            before, ends_s = len(count), time.monotonic() + LONG_S
            while len(count) < before + 5:
                assert time.monotonic() < ends_s, "nobody is asked any more"
                time.sleep(0.01)


def test_steps_of_a_question_cost_none_of_its_time(tls: ssl.SSLContext) -> None:
    """Beside many others the thread sleeps between two looks; handshakes and redirects do not wait for it."""

    def leads(one: socket.socket) -> None:
        words = request_of(one).split()
        left = int(words[1].strip(b"/")) if words else 0  # none where the agent ends
        one.sendall(answer("302 Found", b"", f"Location: /{left - 1}") if left else answer("200 OK"))

    with server(leads) as plain, server(leads, tls=tls) as secured:
        agent = Agent(Probers.real())
        with agent.probing:
            for number in range(16):
                agent.run(f"p{number}", http_probe(plain, "/0"), period_s=1.0, timeout_s=1.0)
            action = HttpGetAction(port=secured, path="/7", scheme="HTTPS")
            agent.run("web", Probe(http_get=action), period_s=1.0, timeout_s=1.0)
            agent.wait_for("web", ready=True)
    assert [one.message for one in agent.events] == []


def test_a_verdict_follows_a_server_over_its_life() -> None:
    """Not there, well, not well, gone: each is seen; asking ends with the pod."""
    said = [b""]
    asked = list[None]()

    def one_of(one: socket.socket) -> None:
        asked.append(None)
        says(said[0])(one)

    agent = Agent(Probers.real())
    with agent.probing:
        port = closed_port()
        agent.run("web", http_probe(port))
        agent.wait_for("web", ready=False)
        with server(one_of) as port:
            said[0] = answer("200 OK")
            agent.run("web", http_probe(port))
            agent.wait_for("web", ready=True)
            said[0] = answer("503 Busy")
            agent.wait_for("web", ready=False)
            said[0] = answer("200 OK")
            agent.wait_for("web", ready=True)
            agent.probing.remove("web")
            ends_s = time.monotonic() + LONG_S
            while agent.probing.verdicts.get("web") is not None:
                assert time.monotonic() < ends_s, "its verdicts stay"
                time.sleep(0.01)
            time.sleep(0.1)
            before = len(asked)
            time.sleep(0.5)
            assert len(asked) == before


def test_sockets_under_way_are_bounded() -> None:
    """Twenty silent servers, three sockets: no more are open at a time, and everybody gets a turn."""
    now, most, lock = [0], [0], threading.Lock()

    def counted(one: socket.socket) -> None:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        silent_until_gone(one)
        with lock:
            now[0] -= 1

    with server(counted) as port:
        agent = Agent(Probers.real(), ProbeOptions(sockets=3))
        with agent.probing:
            for number in range(20):
                agent.run(f"p{number}", http_probe(port), timeout_s=0.1)
            for number in range(20):
                agent.wait_for(f"p{number}", ready=False)
    # One that was given up here may be noticed there a moment later.
    assert most[0] <= 6


def silent_until_gone(one: socket.socket) -> None:
    """Says nothing until the other side has gone, in whichever way."""
    with contextlib.suppress(OSError):
        silent(one)


def test_removing_a_pod_gives_its_socket_up_at_once() -> None:
    """A question that is under way is dropped: its server sees the end of the connection."""
    began, gone = threading.Event(), threading.Event()

    def waits(one: socket.socket) -> None:
        request_of(one)
        began.set()
        silent_until_gone(one)
        gone.set()

    with server(waits) as port:
        agent = Agent(Probers.real())
        with agent.probing:
            agent.run("web", http_probe(port))
            assert began.wait(LONG_S)
            agent.probing.remove("web")
            assert gone.wait(LONG_S)
            assert agent.probing.stop(1.0) == ()


def test_stopping_gives_every_socket_up() -> None:
    """Nothing is left open when the thread has ended, and a second stop is one."""
    gone = threading.Event()

    def waits(one: socket.socket) -> None:
        silent_until_gone(one)
        gone.set()

    with server(waits) as port:
        agent = Agent(Probers.real())
        agent.run("web", http_probe(port))
        agent.probing.start()
        ends_s = time.monotonic() + LONG_S
        while not agent.probing._asker._questions._over_sockets:
            assert time.monotonic() < ends_s, "it is not asked"
            time.sleep(0.01)
        assert agent.probing.stop(1.0) == ()
        assert gone.wait(LONG_S)
        assert agent.probing.stop() == ()


@pytest.mark.parametrize("at_once", [True, False])
def test_a_prober_that_breaks_is_an_error_of_its_own_probe(at_once: bool) -> None:
    """An exchange that raises is told as what could not be asked; others go on."""

    class Broken(TcpProber):
        def exchange(self, question: Question, /) -> Exchange | None:
            if at_once:
                raise RuntimeError("told to")

            def breaks() -> Exchange:
                raise RuntimeError("told to")
                yield

            return breaks()

    with server(says(answer("200 OK"))) as port:
        agent = Agent(Probers(http=HttpProber(), tcp=Broken()))
        with agent.probing:
            agent.run("broken", Probe(tcp_socket=TcpSocketAction(port=port)))
            agent.run("good", http_probe(port))
            agent.wait_for("good", ready=True)
            ends_s = time.monotonic() + LONG_S
            while not agent.events:
                assert time.monotonic() < ends_s, "nobody tells"
                time.sleep(0.01)
    assert agent.ready("broken") is None
    assert {one.message for one in agent.events} == {"Readiness probe errored: told to"}


def test_a_thread_that_stumbles_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A fault of ours is logged, and a second later all are asked again."""
    monkeypatch.setattr("nodealloc.probes._probing._AFTER_A_FAULT_S", 0.01)
    with server(says(answer("200 OK"))) as port:
        agent = Agent(Probers.real())
        right, wrong = agent.probing._asker.turn, [True]

        def turn(most_s: float | None, /) -> None:
            if wrong.pop() if wrong else False:
                raise RuntimeError("told to")
            right(most_s)

        monkeypatch.setattr(agent.probing._asker, "turn", turn)
        with agent.probing:
            agent.run("web", http_probe(port))
            agent.wait_for("web", ready=True)
    assert "asking raised" in caplog.text


def test_a_request_that_does_not_fit_is_sent_in_parts() -> None:
    """Headers of many megabytes leave as the other side takes them."""
    seen = list[int]()

    def counted(one: socket.socket) -> None:
        seen.append(len(request_of(one)))
        one.sendall(answer("200 OK"))

    with server(counted) as port:
        action = HttpGetAction(port=port, http_headers=(HttpHeader(name="X-Long", value="x" * 30_000_000),))
        question = Question(action=action, address="127.0.0.1", port=port, timeout_s=LONG_S)
        assert HttpProber().probe(question) == Reply(ReplyKind.SUCCESS)
    assert seen[0] > 30_000_000
