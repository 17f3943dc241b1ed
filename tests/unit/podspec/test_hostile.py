"""Manifests that somebody wrote to keep the reader busy: bounded in faults, text and values looked at."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from nodealloc.errors import DecodeError
from nodealloc.podspec import Pod, Quantity, api_faults

TOLD = 101
"""A hundred faults, and how many more there are."""
TEXT = 1 << 16
LIMIT = 1 << 18


def pod(*containers: object, **spec: object) -> dict[str, Any]:
    """A manifest of these containers."""
    return {"metadata": {"name": "p"}, "spec": {"containers": list(containers), **spec}}


def refused(manifest: object, max_bytes: int = LIMIT) -> DecodeError:
    """The refusal of a manifest, whose size is bounded."""
    with pytest.raises(DecodeError) as caught:
        Pod.from_manifest(manifest, max_bytes=max_bytes)
    assert len(caught.value.faults) <= TOLD
    assert len(str(caught.value)) < TEXT
    return caught.value


class Counted(Mapping[str, object]):
    """A mapping that counts how often it is read."""

    def __init__(self, fields: Mapping[str, object]) -> None:
        self.fields = fields
        self.reads = 0

    def __getitem__(self, key: str) -> object:
        self.reads += 1
        return self.fields[key]

    def __iter__(self) -> Iterator[str]:
        self.reads += len(self.fields)
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)


def test_a_fault_lists_a_few_of_many_volumes() -> None:
    """Each of thousands of mounts that name no volume costs as much as one, in time and in memory."""
    mounts = [{"name": f"x{n}", "mountPath": "/a"} for n in range(4000)]
    volumes = [{"name": f"v{n}"} for n in range(4000)]
    tracemalloc.start()
    try:
        error = refused(pod({"name": "c", "volumeMounts": mounts}, volumes=volumes))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert error.faults[0].reason.endswith(", 3990 more")
    assert error.faults[-1].reason == "and 3900 more faults"
    assert peak < 20 << 20


@pytest.mark.parametrize(
    "container",
    [
        {"args": [1] * 2000},
        {"resources": {"limits": {f"example.com/c{n}": 1 for n in range(2000)}}},
        {"env": [{"name": f"V{n}", "value": "v"} for n in range(2000)]},
    ],
    ids=["args", "limits", "env"],
)
def test_what_a_reference_stands_for_counts_each_time(container: dict[str, Any]) -> None:
    """Few bytes of YAML that stand for many values are refused after looking at a bounded number of them."""
    shared = Counted({"name": "c", **container})
    error = refused(pod(*[shared] * 2000))
    assert [fault.path for fault in error.faults] == ["$"]
    assert "larger than 262144 bytes" in str(error)
    assert shared.reads < LIMIT


def test_a_volume_in_itself_is_too_large() -> None:
    """References of YAML that lead round and round are refused, however much is allowed."""
    endless: dict[str, Any] = {}
    endless["again"] = endless
    refused(pod({"name": "c"}, volumes=[{"name": "v", "emptyDir": endless}]), max_bytes=1 << 20)


def test_a_set_of_yaml_counts_with_what_is_in_it() -> None:
    """A set that is referred to again and again is as large as so many sets."""
    many = {f"value-{number}" for number in range(2000)}
    error = refused(pod({"name": "c"}, volumes=[{"name": "v", "csi": {"a": [many] * 100}}]))
    assert "larger than" in str(error)


def test_a_larger_manifest_is_refused_unread_unless_the_caller_allows_it() -> None:
    """What is too large is not looked into; `max_bytes` lets it in."""
    large = pod({"name": "c", "command": ["sh", "x" * LIMIT]})
    assert "max_bytes" in str(refused(large))
    assert len(Pod.from_manifest(large, max_bytes=2 * LIMIT).containers[0].command[1]) == LIMIT
    assert Pod.from_manifest(pod({"name": "c", "command": ["x" * (LIMIT - 100)]})).containers


@pytest.mark.parametrize("item", [None, {}, []], ids=["nothing", "empty", "list"])
@pytest.mark.parametrize("where", ["containers", "volumes", "env", "volumeMounts"])
def test_a_list_of_nothing_is_given_up(item: object, where: str) -> None:
    """A hundred thousand entries that say nothing are faults, and reading ends long before the last."""
    items = [item] * 100_000
    manifest = pod({"name": "c", where: items}) if where in {"env", "volumeMounts"} else pod({"name": "c"})
    if where in {"containers", "volumes"}:
        manifest["spec"][where] = items
    assert refused(manifest).faults[-1].reason == "and at least 5001 more faults"


@pytest.mark.parametrize(
    "manifest",
    [
        {"metadata": {"name": "x" * 200_000}, "spec": {"containers": [{"name": "c"}]}},
        pod(*[{"name": "Y" * 1000}] * 200),
        pod({"name": "c", "resources": {"limits": {"z" * 100_000: 1}}}),
        pod({"name": "c", "resources": {"limits": {"hugepages-" + "9" * 100_000: 1}}}),
        pod({"name": "c", "resources": {"limits": {"memory": "9" * 100_000}}}),
        pod({"name": "c"}, volumes=[{"name": "v", **{f"{'k' * 1000}{n}": {} for n in range(200)}}]),
        pod({"name": "c", "volumeMounts": [{"name": "n" * 100_000, "mountPath": "/a"}]}),
    ],
    ids=["pod", "containers", "resource", "pages", "amount", "kinds", "mount"],
)
def test_a_fault_quotes_the_start_of_a_long_text(manifest: dict[str, Any]) -> None:
    """However long a name is, the message about it is short."""
    refused(manifest)


def test_a_long_key_above_many_values_is_not_repeated_for_each() -> None:
    """Paths below a key of 100 kB are made of its start: nine thousand values take little memory."""
    tracemalloc.start()
    try:
        Pod.from_manifest(pod({"name": "c"}, volumes=[{"name": "v", "x" * 100_000: {"k": [None] * 9000}}]))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 << 20


@pytest.mark.parametrize("amount", [16**6000, -(16**6000)], ids=["large", "negative"])
def test_a_number_that_python_does_not_write_is_a_fault(amount: int) -> None:
    """YAML reads hexadecimal numbers of any length; as an amount, a key or a detail they are faults."""
    limits = {"cpu": amount, "memory": amount, "example.com/gpu": amount}
    error = refused(pod({"name": "c", "resources": {"limits": limits}}))
    assert [fault.path.rpartition(".limits.")[2] for fault in error.faults] == [*limits]
    refused({"metadata": {"name": "p", "labels": {amount: "a"}}, "spec": {"containers": [{"name": "c"}]}})
    refused(pod({"name": "c"}, volumes=[{"name": "v", "emptyDir": {"sizeLimit": amount}}]))
    assert Pod.from_manifest(pod({"name": "c"}, volumes=[{"name": "v", "own": {"a": {amount: 1}}}])).volumes
    with pytest.raises(DecodeError, match="512 digits"):
        Quantity.of(amount)


def test_a_number_of_the_longest_text_is_an_amount() -> None:
    """What is refused is longer than the longest text that is read."""
    assert Quantity.of(10**512 - 1) == Quantity.parse("9" * 512)


def test_an_amount_of_many_digits_is_told_as_it_was_written() -> None:
    """Each of seventeen thousand was written out with five hundred digits, whether told or not."""
    limits = {f"example.com/c{n}": "1e500" for n in range(200)}
    error = refused(pod({"name": "c", "resources": {"limits": limits}}))
    assert error.faults[0].reason.startswith("1e500 is more than any machine has (9223372036854775807")
    error = refused(pod({"name": "c", "resources": {"limits": {"cpu": "-1e500"}}}))
    assert error.faults[0].reason.startswith("-1e500 is negative")


def test_what_only_an_api_server_refuses_is_told_a_hundred_times() -> None:
    """Of eight thousand containers without an image the error was a megabyte."""
    faults = api_faults(Pod.from_manifest(pod(*[{"name": f"c{n}"} for n in range(200)])))
    assert len(faults) == TOLD
    assert faults[-1].reason == "and more faults"
