"""An address that is asked over TLS: whom the machine trusts may change while it is polled."""

from __future__ import annotations

import json
import ssl
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from nodealloc.errors import RetryableError
from nodealloc.podsources import HttpSource
from nodealloc.testing.dsw_asw import ManualCancel


class Pods(BaseHTTPRequestHandler):
    """Answers with no pods."""

    def do_GET(self) -> None:
        """The list."""
        body = json.dumps({"apiVersion": "v1", "kind": "PodList", "items": []}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


def signed(folder: Path) -> tuple[Path, Path]:
    """A key, and a certificate for this machine that it signed itself."""
    key, certificate = folder / "key", folder / "certificate"
    words = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=here -addext subjectAltName=IP:127.0.0.1"
    )
    try:
        subprocess.run([*words.split(), "-keyout", key, "-out", certificate], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no openssl here: {error}")
    return key, certificate


def test_whom_the_machine_trusts_counts_at_each_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An authority that is renewed needs no new agent; one that is taken away is trusted no more."""
    key, certificate = signed(tmp_path)
    trusted = tmp_path / "trusted"
    trusted.write_text("junk\n")
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path / "none"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with ThreadingHTTPServer(("127.0.0.1", 0), Pods) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            source = HttpSource(f"https://127.0.0.1:{server.server_address[1]}/")
            for is_trusted in (False, True, False):
                trusted.write_bytes(certificate.read_bytes() if is_trusted else b"junk\n")
                if is_trusted:
                    assert source.read(ManualCancel()).pods == ()
                else:
                    with pytest.raises(RetryableError, match="CERTIFICATE_VERIFY_FAILED"):
                        source.read(ManualCancel())
        finally:
            server.shutdown()
