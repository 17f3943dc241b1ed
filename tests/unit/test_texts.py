"""Texts in YAML that somebody else wrote: read as a kubelet reads them, or refused before they cost much."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from nodealloc._texts import documents_of
from nodealloc.errors import DecodeError
from nodealloc.machine import machine_from_text
from nodealloc.podsources import FolderSource
from nodealloc.podspec import Pod
from nodealloc.testing.dsw_asw import ManualCancel

DOUBLING = "b0: &b0 {k: 1}\n" + "".join(
    f"b{n}: &b{n} {{<<: [*b{n - 1}, *b{n - 1}], k{n}: 1}}\n" for n in range(1, 60)
)


@pytest.mark.parametrize(
    "text",
    [
        DOUBLING,
        "a: &a {" + ", ".join(f"k{n}: 1" for n in range(2000)) + "}\nb: {<<: [" + "*a, " * 2000 + "]}",
        "[" + "~," * 100_000 + "]",
    ],
    ids=["merges that double", "merges of one mapping", "a list of nothing"],
)
def test_values_are_counted_before_they_are_made(text: str) -> None:
    """Sixty lines of merges are 2^60 values; none of these is read to its end."""
    with pytest.raises(DecodeError, match="more than 30000 values of YAML, merged ones counted each time"):
        documents_of(text, "x")


@pytest.mark.parametrize(
    "text",
    ["[" * 50_000, "{" * 50_000, "- " * 50_000, "? " * 50_000, "\n".join(" " * n + "a:" for n in range(300))],
)
def test_yaml_that_is_nested_deeply_is_given_up_early(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever stands behind: each word would be held against every bracket before it."""
    words: list[int] = []
    more = yaml.SafeLoader.fetch_more_tokens

    def counted(loader: yaml.SafeLoader) -> None:
        words.append(1)
        more(loader)

    monkeypatch.setattr(yaml.SafeLoader, "fetch_more_tokens", counted)
    with pytest.raises(DecodeError, match="nested too deeply"):
        documents_of(text, "x")
    assert len(words) < 1_000


def test_merges_of_ordinary_size_are_read() -> None:
    """The first of a list counts, and what stands there counts more."""
    text = "a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}\nc: {<<: [*a, {z: 5, x: 9}]}"
    (found,) = documents_of(text, "x")
    assert found == {"a": {"x": 1, "y": 2}, "b": {"x": 1, "y": 3}, "c": {"x": 1, "y": 2, "z": 5}}


def test_a_mapping_that_merges_itself_is_refused() -> None:
    """It has no end."""
    with pytest.raises(DecodeError, match="nested too deeply"):
        documents_of("a: &a {<<: *a}", "x")


def test_colons_make_no_number_and_dates_no_moment() -> None:
    """As with a kubelet; numbers to base 60 took PyYAML time that grows with the square of their length."""
    (found,) = documents_of("[1:59:59, 1:59.5, 2001-12-14, 2024-01-01T00:00:00Z]", "x")
    assert found == ["1:59:59", "1:59.5", "2001-12-14", "2024-01-01T00:00:00Z"]
    (found,) = documents_of("[0x1f, 0b11, 017, 1_000, -1.5e+3, .5, .inf, yes, ~, 1e3]", "x")
    assert found == [31, 3, 15, 1000, -1500.0, 0.5, float("inf"), True, None, "1e3"]


@pytest.mark.parametrize(
    "text", ["!!int '1:59'", "!!float '1:59.5'", "!!set {x}", "!!binary aGk=", "!!omap []"]
)
def test_what_json_has_not_is_refused(text: str) -> None:
    """A kubelet makes JSON of it first."""
    with pytest.raises(DecodeError, match=r"a number to base 60|could not determine a constructor"):
        documents_of(f"a: {text}", "x")


@pytest.mark.parametrize("text", ['metadata: {name: "\\ud800"}', '{"metadata": {"name": "\\udfff"}}'])
def test_half_a_character_is_no_text(tmp_path: Path, text: str) -> None:
    """It raised an error of Python's that ended the whole reading of a folder."""
    (tmp_path / "a.yaml").write_text(text)
    (tmp_path / "b.yaml").write_text("metadata: {name: b}\nspec: {containers: [{name: c, image: i}]}")
    reading = FolderSource(tmp_path, settle_s=0).read(ManualCancel())
    assert [one.where for one in reading.faults if "half of a pair of surrogates" in one.what] == ["a.yaml"]
    assert documents_of('{"a": "\\ud83d\\ude00"}', "x") == [{"a": "\U0001f600"}]


def test_half_a_character_is_no_text_in_values_either() -> None:
    """Whoever has JSON read already hands over the same."""
    spec = {"containers": [{"name": "c", "image": "i", "args": ["\ud800"]}]}
    for manifest in (
        {"metadata": {"name": "\ud800"}, "spec": spec},
        {"metadata": {"name": "a"}, "spec": spec},
    ):
        with pytest.raises(DecodeError, match="half of a pair of surrogates"):
            Pod.from_manifest(manifest)
    with pytest.raises(DecodeError):
        machine_from_text("\ud800")
