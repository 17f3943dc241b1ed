"""What had another name before still works, and says what to call now."""

from __future__ import annotations

import pytest

from nodealloc.podspec import Pod, pod_from_manifest  # pyright: ignore[reportDeprecated]

MANIFEST = {"metadata": {"name": "p", "uid": "u"}, "spec": {"containers": [{"name": "c"}]}}


def test_the_earlier_name_reads_the_same_pod_and_names_the_new_one() -> None:
    """Programs that were written before go on, with a warning that holds the remedy."""
    with pytest.warns(DeprecationWarning, match=r"Pod\.from_manifest"):
        pod = pod_from_manifest(MANIFEST)  # pyright: ignore[reportDeprecated]
    assert pod == Pod.from_manifest(MANIFEST)
