"""What a hook over HTTP asks for: the path of its manifest, as a kubelet sends it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest

from nodealloc.errors import ConfigurationError
from nodealloc.podlife import ContainerHooks, HookCall
from nodealloc.podspec import Container, HttpGetAction, LifecycleHandler, Pod
from nodealloc.runtime import PodReport
from nodealloc.testing.dsw_asw import ManualCancel
from nodealloc.testing.runtime import FakeContainerRuntime


class Server(BaseHTTPRequestHandler):
    """Notes what it is asked for; sends `/on` onward."""

    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        """Any answer will do."""
        self.asked.append(self.path)
        self.send_response(302 if self.path == "/on" else 200)
        self.send_header("Location", "/to é")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing on stderr."""


@pytest.fixture
def port() -> Iterator[int]:
    """Of a server that runs."""
    Server.asked.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


def call_of(http_get: HttpGetAction, *, host_network: bool = False) -> HookCall:
    """A hook of a pod at this machine's own address, or with the node's network."""
    one = Container(name="app")
    return HookCall(
        pod=Pod(uid="u", name="web", containers=(one,), host_network=host_network),
        container=one,
        container_id="c",
        handler=LifecycleHandler(http_get=http_get),
        timeout_s=5.0,
        report=PodReport(uid="u", ips=() if host_network else ("127.0.0.1",)),
    )


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("", ["/"]),
        ("stop", ["/stop"]),
        ("/stop?now=1", ["/stop?now=1"]),
        ("/a b", ["/a%20b"]),
        ("/é", ["/%C3%A9"]),
        ("/stop#now", ["/stop"]),
        ("/stop\n", ["/stop%0A"]),
        ("/on", ["/on", "/to%20%E9"]),
    ],
)
def test_a_hook_asks_for_its_path_from_the_root_and_in_ascii(port: int, path: str, asked: list[str]) -> None:
    """Without its slash no server knew it, and any answer ends a hook well; others were not sent at all."""
    call = call_of(HttpGetAction(port=port, path=path))
    assert ContainerHooks(FakeContainerRuntime()).run_hook(call, ManualCancel()) == ""
    assert Server.asked == asked


@pytest.mark.parametrize(("node_ip", "said"), [("127.0.0.1", ""), ("", "no address of its own")])
def test_a_pod_with_the_nodes_network_is_reached_at_the_node(port: int, node_ip: str, said: str) -> None:
    """Its address is the node's, as it is told; a kubelet finds none, and its containers go on to fail."""
    call = call_of(HttpGetAction(port=port, path="/"), host_network=True)
    hooks = ContainerHooks(FakeContainerRuntime(), node_ip=node_ip)
    assert said in hooks.run_hook(call, ManualCancel())
    assert Server.asked == (["/"] if node_ip else [])


def test_a_node_that_has_no_such_address_is_refused_as_it_is_said() -> None:
    """It had been the fault of the first hook that asked there."""
    with pytest.raises(ConfigurationError, match="ContainerHooks: node_ip: expected an IP address"):
        ContainerHooks(FakeContainerRuntime(), node_ip="eth0")


@pytest.fixture
def closed() -> Iterator[int]:
    """A port at which nobody listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


@pytest.fixture
def mute() -> Iterator[int]:
    """Of a server that hangs up without an answer."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def hang_up() -> None:
            one, _ = server.accept()
            with one:
                one.recv(4096)

        threading.Thread(target=hang_up, daemon=True).start()
        yield server.getsockname()[1]


def said_of(port: int, path: str, host: str = "") -> str:
    """Why a hook failed, without which container it was of."""
    call = call_of(HttpGetAction(port=port, path=path, host=host))
    words = ContainerHooks(FakeContainerRuntime()).run_hook(call, ManualCancel())
    return words.partition(" failed - error: ")[2]


def test_whom_a_hook_could_not_reach_is_told_as_by_a_kubelet(closed: int) -> None:
    """It stands in the status of the container: `Connection refused` alone says nothing of who refused."""
    where = f"127.0.0.1:{closed}"
    assert (
        said_of(closed, "stop") == f'Get "http://{where}/stop": dial tcp {where}: connect: connection refused'
    )


def test_a_server_that_hangs_up_is_told_as_by_a_kubelet(mute: int) -> None:
    """What was asked for, and that no answer came."""
    assert said_of(mute, "/") == f'Get "http://127.0.0.1:{mute}/": EOF'


def test_a_host_that_nobody_knows_is_told_as_by_a_kubelet(monkeypatch: pytest.MonkeyPatch) -> None:
    """`Name or service not known` alone does not say which name."""

    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    assert said_of(80, "/", "no.such.invalid") == (
        'Get "http://no.such.invalid:80/": dial tcp: lookup no.such.invalid: no such host'
    )
