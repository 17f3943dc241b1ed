"""Hashes of containers as earlier releases wrote them: an upgrade restarts nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

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
