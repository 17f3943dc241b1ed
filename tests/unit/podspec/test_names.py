"""Which names of resources are extended ones."""

from __future__ import annotations

import pytest

from nodealloc.podspec import is_extended_resource

LONGEST = ("d" * 60 + ".") * 3 + "d" * 61
"""As long as a domain may be with `requests.` before it."""


@pytest.mark.parametrize(
    "name",
    ["example.com/gpu", "nvidia.com/mig-1g.5gb", "a/B_c", "x-1.y/z", "a/" + "b" * 63, f"{LONGEST}/b"],
)
def test_extended_resource_names(name: str) -> None:
    """What a plugin may serve and a container ask for."""
    assert is_extended_resource(name)


@pytest.mark.parametrize(
    "name",
    [
        "cpu",
        "kubernetes.io/x",
        "sub.kubernetes.io/x",
        "requests.a/b",
        "/b",
        "a/",
        "a/b/c",
        "A/b",
        "a/-b",
        "a/" + "b" * 64,
        f"{LONGEST}d/b",
    ],
)
def test_other_names(name: str) -> None:
    """What a plugin may not serve."""
    assert not is_extended_resource(name)
