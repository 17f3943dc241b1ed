"""Hashes of containers as earlier releases wrote them: an upgrade restarts nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nodealloc.podlife._definitions import Definitions
from nodealloc.podspec import Pod, container_hash, kubelet_hash

ROWS: list[dict[str, Any]] = json.loads(
    Path(__file__).with_name("podspec").joinpath("container_hashes_v1.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["container"]["name"])
def test_a_hash_that_was_written_before_is_written_again(row: dict[str, Any]) -> None:
    """A container whose manifest is the same is the same container, whichever release wrote its hash."""
    pod = Pod.from_manifest({"metadata": {"name": "p"}, "spec": {"containers": [row["container"]]}})
    container = pod.containers[0]
    assert (kubelet_hash(container), container_hash(container)) == (row["kubelet"], row["ours"])


def test_mounts_and_sandboxes_have_the_hashes_that_they_had() -> None:
    """Another one for what has not changed would start every pod of a node anew."""
    bare = {"name": "bare", "image": "i"}
    mount = {"name": "v", "mountPath": "/v", "subPath": "s", "readOnly": True}
    ports = [{"containerPort": 80, "hostPort": 80}]
    spec = {
        "hostPID": True,
        "hostAliases": [{"ip": "192.0.2.7", "hostnames": ["far"]}],
        "securityContext": {"runAsUser": 5, "sysctls": [{"name": "net.core.somaxconn", "value": "9"}]},
        "dnsConfig": {"options": [{"name": "ndots", "value": "2"}]},
        "containers": [{"name": "app", "image": "i", "ports": ports, "volumeMounts": [mount]}, bare],
        "volumes": [{"name": "v", "configMap": {"name": "c", "items": [{"key": "k", "path": "p"}]}}],
    }
    found = Definitions.of(Pod.from_manifest({"metadata": {"name": "web"}, "spec": spec}))
    assert found.sandbox == "v1:09d2ab7cd6128bf8637be8776bc187fe"
    assert found.mounts == {
        "app": "v1:58b2d3027182ae12e5837e547c494502",
        "bare": "v1:4f53cda18c2baa0c0354bb5f9a3ecbe5",
    }
    plain = Pod.from_manifest({"metadata": {"name": "web"}, "spec": {"containers": [bare]}})
    assert Definitions.of(plain).sandbox == "v1:1ecf95f336c2430224a21f79bc5f31ee"
