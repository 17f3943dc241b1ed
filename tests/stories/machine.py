"""The machine on which stories play: folders, network, images, a containerd of its own; inside namespaces."""

from __future__ import annotations

import ctypes
import hashlib
import io
import json
import os
import subprocess
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from nodealloc.cgroups import CgroupName, Limits, detect
from tests.cri.containerd import Containerd

__all__ = [
    "AGENT_ROOT",
    "CONFIG",
    "FOLDERS",
    "LOGS",
    "NODE_IP",
    "RUN",
    "STATIC",
    "StoryContainerd",
    "configuration",
    "import_images",
    "make_cgroup",
    "set_up",
]

RUN: Final = Path("/run/ks")
STATIC: Final = RUN / "static"
CONFIG: Final = RUN / "kubelet.yaml"
AGENT_ROOT: Final = Path("/var/lib/kubelet")
LOGS: Final = Path("/var/log/pods")
NODE_IP: Final = "192.0.2.100"
FOLDERS: Final = (
    *("/run/containerd", "/run/runc", "/run/ks", "/run/story", "/run/netns"),
    *("/var/lib/kubelet", "/var/lib/cni", "/var/log/pods", "/var/log/containers"),
)
"""Each is a tmpfs of its own inside; they have to be there outside."""

_DATA_BYTES: Final = 700 << 20
_BUSYBOX: Final = ("localhost/busybox:1", "localhost/busybox:2")
_PAUSE: Final = ("/bin/sh", "-c", "trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done")


def set_up(folder: Path) -> None:
    """Folders and network; the kubelet's folder and the runtime's lie on one file system."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    subprocess.run(["ip", "addr", "add", f"{NODE_IP}/32", "dev", "lo"], check=True)
    for one in FOLDERS:
        if one != str(AGENT_ROOT):
            _mount(b"tmpfs", one, b"tmpfs")
    _mount(b"tmpfs", str(folder), b"tmpfs", f"size={_DATA_BYTES}")
    (folder / "kubelet").mkdir()
    _mount(str(folder / "kubelet").encode(), str(AGENT_ROOT), b"none", flags=4096)
    STATIC.mkdir()
    (RUN / "resolv.conf").write_text("nameserver 192.0.2.1\nsearch example.test\n")
    network = {
        "cniVersion": "0.4.0",
        "name": "stories",
        "plugins": [
            {
                "type": "bridge",
                "bridge": "stories0",
                "isGateway": True,
                "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.88.0.0/16"}]]},
            },
            {"type": "loopback"},
        ],
    }
    (RUN / "net.d").mkdir()
    (RUN / "net.d" / "10-stories.conflist").write_text(json.dumps(network))


def _mount(source: bytes, at: str, kind: bytes, data: str = "", flags: int = 0) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(source, at.encode(), kind, flags, data.encode()):
        raise OSError(ctypes.get_errno(), f"{kind.decode()} on {at}")


def make_cgroup(name: str) -> CgroupName:
    """The configured root of all cgroups of a story, in every hierarchy."""
    driver, root = detect(), CgroupName.of(name)
    driver.apply(root, Limits())
    return root


def configuration(settings: Mapping[str, object], cgroup: str, socket: Path) -> Mapping[str, object]:
    """A KubeletConfiguration: what all stories have in common, and what one sets on top."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "staticPodPath": str(STATIC),
        "containerRuntimeEndpoint": f"unix://{socket}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{cgroup}",
        "cgroupsPerQOS": True,
        "enforceNodeAllocatable": ["pods"],
        "fileCheckFrequency": "1s",
        "failSwapOn": False,
        "clusterDNS": ["192.0.2.10"],
        "clusterDomain": "cluster.test",
        "resolvConf": str(RUN / "resolv.conf"),
        "imageGCHighThresholdPercent": 100,
        "evictionHard": {"memory.available": "1Mi", "nodefs.available": "1Mi"},
        **settings,
    }


class StoryContainerd(Containerd):
    """A containerd with a bridge network."""

    def _config(self) -> str:
        lines = super()._config().splitlines()
        place = lines.index('[plugins."io.containerd.grpc.v1.cri"]')
        network = [
            '[plugins."io.containerd.grpc.v1.cri".cni]',
            f'bin_dir = "{self.root / "usr/lib/cni"}"',
            f'conf_dir = "{RUN / "net.d"}"',
            # Pulls go to a registry that is not there, over plain HTTP, at once.
            '[plugins."io.containerd.grpc.v1.cri".registry]',
            f'config_path = "{self.folder / "hosts"}"',
        ]
        after = next(n for n in range(place + 1, len(lines)) if lines[n].startswith("["))
        return "\n".join([*lines[:after], *network, *lines[after:]]) + "\n"


def _layer(busybox: Path) -> bytes:
    applets = subprocess.run([busybox, "--list"], check=True, capture_output=True, text=True).stdout.split()
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for folder in ("bin", "etc", "tmp", "proc", "sys", "dev", "root", "usr", "var"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if folder == "tmp" else 0o755
            tar.addfile(entry)
        _put(tar, "bin/busybox", busybox.read_bytes(), 0o755)
        for applet in applets:
            if applet == "busybox":
                continue
            link = tarfile.TarInfo(f"bin/{applet}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
        _put(tar, "etc/passwd", b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n")
        _put(tar, "etc/group", b"root:x:0:\nnobody:x:65534:\n")
    return made.getvalue()


def _put(tar: tarfile.TarFile, name: str, data: bytes, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.mode, entry.size = mode, len(data)
    tar.addfile(entry, io.BytesIO(data))


def import_images(daemon: Containerd, names: Iterable[str] = (), *, pause: bool = True) -> None:
    """Busybox under its names and under others, and the sandbox image."""
    layer = _layer(daemon.busybox)
    tags = (*(_BUSYBOX if pause else ()), *names)
    commands: dict[str, tuple[Sequence[str], Sequence[str]]] = dict.fromkeys(tags, ((), ("sh",)))
    if pause:
        commands["localhost/pause:1"] = (_PAUSE, ())
    files: dict[str, bytes] = {"layer.tar": layer}
    manifest: dict[str, dict[str, object]] = {}
    for name, (entry, command) in commands.items():
        config = json.dumps(
            {
                "architecture": "amd64",
                "os": "linux",
                "config": {
                    "Env": ["PATH=/bin:/usr/bin:/sbin:/usr/sbin"],
                    "Entrypoint": list(entry) or None,
                    "Cmd": list(command) or None,
                },
                "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
                "history": [],
            }
        ).encode()
        file = f"{hashlib.sha256(config).hexdigest()}.json"
        files[file] = config
        one = manifest.setdefault(file, {"Config": file, "RepoTags": [], "Layers": ["layer.tar"]})
        known = one["RepoTags"]
        if isinstance(known, list):
            known.append(name)
    files["manifest.json"] = json.dumps(list(manifest.values())).encode()
    path = daemon.folder / f"images-{os.urandom(4).hex()}.tar"
    with tarfile.open(path, "w") as tar:
        for name, data in files.items():
            _put(tar, name, data)
    daemon.ctr("images", "import", str(path))
    path.unlink()
