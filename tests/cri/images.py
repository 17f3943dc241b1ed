"""Images without a registry, and a registry of a few lines for one that is pulled."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import json
import tarfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

__all__ = ["archive", "registry"]

_APPLETS = (
    *("sh", "sleep", "cat", "echo", "true", "false", "kill", "ls", "grep", "head", "tail", "dd", "id"),
    *("stat", "touch", "wc", "tr", "yes", "date", "seq", "taskset", "nproc"),
)
_PAUSE = ("sh", "-c", "trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done")


def _layer(busybox: Path) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for folder in ("bin", "etc", "tmp", "proc", "sys", "dev", "root"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if folder == "tmp" else 0o755
            tar.addfile(entry)
        program = tarfile.TarInfo("bin/busybox")
        program.mode, program.size = 0o755, busybox.stat().st_size
        with busybox.open("rb") as file:
            tar.addfile(program, file)
        for applet in _APPLETS:
            link = tarfile.TarInfo(f"bin/{applet}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
        users = b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n"
        entry = tarfile.TarInfo("etc/passwd")
        entry.mode, entry.size = 0o644, len(users)
        tar.addfile(entry, io.BytesIO(users))
    return made.getvalue()


def _config(layer: bytes, command: Sequence[str]) -> bytes:
    return json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Env": ["PATH=/bin"], "Cmd": list(command)},
            "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
            "history": [],
        }
    ).encode()


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def archive(busybox: Path, path: Path) -> None:
    """An archive of two images, as `docker save` makes one: busybox, and one that only waits."""
    layer = _layer(busybox)
    named = {"localhost/busybox:1": ("sh",), "localhost/pause:1": _PAUSE}
    files: dict[str, bytes] = {"layer.tar": layer}
    manifest = []
    for name, command in named.items():
        config = _config(layer, command)
        file = f"{hashlib.sha256(config).hexdigest()}.json"
        files[file] = config
        manifest.append({"Config": file, "RepoTags": [name], "Layers": ["layer.tar"]})
    files["manifest.json"] = json.dumps(manifest).encode()
    with tarfile.open(path, "w") as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))


def _served(busybox: Path) -> Mapping[str, tuple[str, bytes]]:
    """Paths of a registry to media type and content, for the image `busybox:pulled`."""
    plain = _layer(busybox)
    layer, config = gzip.compress(plain, 1), _config(plain, ("sh", "-c", "true"))
    kind = "application/vnd.docker.distribution.manifest.v2+json"
    types = (
        "application/vnd.docker.container.image.v1+json",
        "application/vnd.docker.image.rootfs.diff.tar.gzip",
    )
    parts = [
        {"mediaType": of, "size": len(data), "digest": _digest(data)}
        for of, data in zip(types, (config, layer), strict=True)
    ]
    manifest = json.dumps(
        {"schemaVersion": 2, "mediaType": kind, "config": parts[0], "layers": parts[1:]}
    ).encode()
    served = {
        f"/v2/busybox/blobs/{_digest(one)}": ("application/octet-stream", one) for one in (layer, config)
    }
    for name in ("pulled", _digest(manifest)):
        served[f"/v2/busybox/manifests/{name}"] = (kind, manifest)
    return {**served, "/v2/": ("application/json", b"{}")}


@contextlib.contextmanager
def registry(busybox: Path) -> Generator[str]:
    """A registry on the loopback; the name of the image that it has."""
    served = _served(busybox)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            kind, data = served.get(self.path, ("text/plain", b""))
            self.send_response(200 if self.path in served else 404)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            if data:
                self.send_header("Docker-Content-Digest", _digest(data))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(data)

        do_HEAD = do_GET  # noqa: N815 - the base class's name

        def log_message(self, *_words: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"localhost:{server.server_address[1]}/busybox:pulled"
        finally:
            server.shutdown()
            thread.join(5)
