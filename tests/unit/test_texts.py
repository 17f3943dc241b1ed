"""Texts in YAML that somebody else wrote: read as a kubelet reads them, or refused before they cost much."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest
import yaml

from nodealloc import _yaml
from nodealloc._texts import documents_of, kubelets_document_of
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
        "a: &a {" + ", ".join(f"k{n}: 1" for n in range(2000)) + "}\nb: {<<: [" + "*a, " * 2000 + "]}",
        "[" + "~," * 100_000 + "]",
        "---\n" * 60_000,
        "--- {}\n...\n" * 20_000,
    ],
    ids=["merges of one mapping", "a list of nothing", "documents", "small documents"],
)
def test_values_are_counted_before_they_are_made(text: str) -> None:
    """None of these is read to its end."""
    with pytest.raises(DecodeError, match="more than 30000 values of YAML, merged ones counted each time"):
        documents_of(text, "x")


@pytest.mark.parametrize(
    "text",
    ["[" * 50_000, "{" * 50_000, "- " * 50_000, "? " * 50_000, "\n".join(" " * n + "a:" for n in range(300))],
)
def test_yaml_that_is_nested_deeply_is_given_up_early(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever stands behind: PyYAML's own parser holds each word against every bracket before it."""
    with pytest.raises(DecodeError, match="nested too deeply"):
        documents_of(text, "x")
    words: list[int] = []
    more = yaml.SafeLoader.fetch_more_tokens

    def counted(loader: yaml.SafeLoader) -> None:
        words.append(1)
        more(loader)

    monkeypatch.setattr(yaml.SafeLoader, "fetch_more_tokens", counted)
    with pytest.raises(_yaml.TooDeepError):
        _yaml.values_of(text, parser=_yaml.SlowParser)
    assert 0 < len(words) < 1_000


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("metadata: {name: a, name: b}", "the key 'name' stands twice in one mapping, line 1"),
        ("a:\n  b: 1\n  c: 2\n  b: 3", "the key 'b' stands twice in one mapping, line 4"),
        ('{"a": [\n{"b": 1, "b": 1}]}', "the key 'b' stands twice in one mapping, line 2"),
    ],
)
def test_a_key_that_stands_twice_is_refused(text: str, words: str) -> None:
    """One of the values would count, and nobody knows of which it was thought."""
    with pytest.raises(DecodeError, match=words):
        documents_of(text, "x")


@pytest.mark.parametrize("text", ["a: 1\nb: " + "9" * 5000, '{"a": 1,\n"b": ' + "9" * 5000 + "}"])
def test_a_number_that_nobody_reads_is_told_with_its_place(text: str) -> None:
    """Not in Python's own words, which tell how to raise a limit of the program."""
    with pytest.raises(DecodeError, match="a number of 5000 characters, line 2; mend it"):
        documents_of(text, "x")


def test_merges_that_double_are_made_once_each() -> None:
    """Sixty lines that PyYAML made 2^60 entries of, one by one."""
    (found,) = documents_of(DOUBLING, "x")
    assert len(cast("dict[str, dict[str, int]]", found)["b59"]) == 60


def test_merges_of_ordinary_size_are_read() -> None:
    """The first of a list counts, and what stands there counts more."""
    text = "a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}\nc: {<<: [*a, {z: 5, x: 9}]}"
    (found,) = documents_of(text, "x")
    assert found == {"a": {"x": 1, "y": 2}, "b": {"x": 1, "y": 3}, "c": {"x": 1, "y": 2, "z": 5}}


def test_a_mapping_that_merges_itself_is_refused() -> None:
    """It has no end."""
    for text in ("a: &a {<<: *a}", "&a [*a]", "&a {b: {c: *a}}"):
        with pytest.raises(DecodeError, match="nested too deeply"):
            documents_of(text, "x")


TEXTS: Mapping[str, object] = {
    "a: &a {x: 1}\nb: [*a, *a]": {"a": {"x": 1}, "b": [{"x": 1}, {"x": 1}]},
    "- &a x\n- *a\n- &a y\n- *a": ["x", "x", "y", "y"],
    "{<<: [{a: 1, b: 1}, {b: 2, c: 2}], c: 3}": {"a": 1, "b": 1, "c": 3},
    "{c: 3, <<: {c: 1, d: 1}, <<: {d: 2}}": {"c": 3, "d": 2},
    "'<<': {a: 1}": {"<<": {"a": 1}},
    "[<<, =, '1', \"true\", !!str 1, ! 2, !!int '3', !!float 4, !!bool yes, !!null x]": (
        ["<<", "=", "1", "true", "1", 2, 3, 4.0, True, None]
    ),
    "a:\n": {"a": None},
    "? a\n? b": {"a": None, "b": None},
    "2: a\n~: b\ntrue: c": {2: "a", None: "b", True: "c"},
    "a: |\n  x\n  y\nb: >-\n  x\n  y": {"a": "x\ny\n", "b": "x y"},
    "%YAML 1.1\n---\n!!map {a: !!seq [1]}": {"a": [1]},
}


@pytest.mark.parametrize("text", TEXTS)
def test_either_parser_comes_to_the_same(text: str) -> None:
    """libyaml's, and PyYAML's own where that is not installed."""
    assert _yaml.values_of(text) == [TEXTS[text]]
    assert _yaml.values_of(text, parser=_yaml.SlowParser) == [TEXTS[text]]


@pytest.mark.parametrize(
    "text",
    [
        *(
            "*a",
            "--- &a x\n--- *a",
            "{[1]: 2}",
            "{{a: 1}: 2}",
            "{<<: 1}",
            "{<<: [1]}",
            "!!int ''",
            "a: 1\na: 2",
        ),
        *("!!bool maybe", "!!float x", "!!map [1]", "!!seq {}", "!!str {}", "!own a", "[1", "a: b: c"),
        *("\t- a", "a: \x07", "1" * 5000),
    ],
)
def test_what_is_no_yaml_is_refused_in_words(text: str) -> None:
    """Two of them ended in an error of Python's: no truth value, and a number without digits."""
    with pytest.raises(DecodeError, match=r"neither JSON nor YAML: .+; mend it"):
        documents_of(f"{text}\n---\nb", "x")
    with pytest.raises((yaml.YAMLError, ValueError)):
        _yaml.values_of(text, parser=_yaml.SlowParser)


def test_without_libyaml_a_long_text_is_refused_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyYAML's own parser took two seconds for 240 KB on a slow machine; JSON of any length is read."""
    defaults = _yaml.values_of.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "parser", _yaml.SlowParser)
    most = _yaml.MOST_SLOW
    assert documents_of("'" + "x" * (most - 2) + "'", "x") == ["x" * (most - 2)]
    with pytest.raises(DecodeError, match=r"more than 131072 characters of YAML; .* install its wheel"):
        documents_of("x" * (most + 1), "x")
    assert documents_of('["' + "x" * most + '"]', "x") == [["x" * most]]
    assert documents_of("- x\n" * 7_900, "x") == [["x"] * 7_900]
    with pytest.raises(DecodeError, match=r"more than 8000 values of YAML, .* install its wheel"):
        documents_of("- x\n" * 8_000, "x")


def test_thousands_of_anchors_and_aliases_are_read() -> None:
    """As many as there may be values."""
    anchors = "".join(f"- &a{n} x\n" for n in range(20_000))
    (found,) = documents_of(anchors, "x")
    assert found == ["x"] * 20_000
    (found,) = documents_of("a: &a [x]\nb: [" + "*a," * 20_000 + "]", "x")
    assert isinstance(found, dict)
    assert found["b"] == [["x"]] * 20_000


def test_colons_make_no_number_and_dates_no_moment() -> None:
    """As with a kubelet; numbers to base 60 took PyYAML time that grows with the square of their length."""
    (found,) = documents_of("[1:59:59, 1:59.5, 2001-12-14, 2024-01-01T00:00:00Z]", "x")
    assert found == ["1:59:59", "1:59.5", "2001-12-14", "2024-01-01T00:00:00Z"]
    (found,) = documents_of("[0x1f, 0b11, 017, 1_000, -1.5e+3, .5, .inf, yes, ~, 1e3]", "x")
    assert found == [31, 3, 15, 1000, -1500.0, 0.5, float("inf"), True, None, "1e3"]


WORDS: Mapping[str, object] = {
    "1e3": 1000,
    "08": 8,
    "-.5": -0.5,
    "1.0": 1,
    "0o17": 15,
    "017": 15,
    "0b11": 3,
    "-0x1_f": -31,
    "1_000": 1000,
    "18446744073709551615": (1 << 64) - 1,
    "99999999999999999999": 10**20,
    "1e22": 1e22,
    "1e999": "1e999",
    "y": True,
    "N": False,
    "yes": True,
    "~": None,
    "'1e3'": "1e3",
    "!!str 1e3": "1e3",
    ".5_0": ".5_0",
    "1:59": "1:59",
    "2001-12-14": "2001-12-14",
    "+": "+",
    "0x": "0x",
    "1.2.3": "1.2.3",
}


@pytest.mark.parametrize("word", WORDS)
def test_plain_words_are_what_they_are_to_a_kubelet(word: str) -> None:
    """Its reader of YAML makes JSON of a text first: a whole number is written as one."""
    found = kubelets_document_of(f"- {word}".encode(), "x")
    assert found == [WORDS[word]]
    assert isinstance(found, list)
    assert type(found[0]) is type(WORDS[word])


def test_a_kubelet_makes_texts_of_keys_and_reads_one_document() -> None:
    """Whatever stands behind the first; one in which nothing stands is one."""
    assert kubelets_document_of(b"1: a\ntrue: b\n1e3: c", "x") == {"1": "a", "true": "b", "1000": "c"}
    assert kubelets_document_of(b"# one\n---\na: 1\n---\n]: broken", "x") == {"a": 1}
    for nothing in (b"", b" \n", b"# one", b"---\n---\na: 1"):
        assert kubelets_document_of(nothing, "x") is None
    with pytest.raises(DecodeError, match=r"neither JSON nor YAML: \.inf, which JSON has not, line 1"):
        kubelets_document_of(b"a: .inf", "x")


@pytest.mark.parametrize(
    "text",
    [
        *('{"a": 1,}', "{a: 1}", "{'a': 1}", '{"a": 1} # one', '{"a": 1}\n---\n{"b": 1}', '{"a": NaN}'),
        *(' {"a": -Infinity}', '{"a": 1'),
    ],
)
def test_what_begins_with_a_brace_is_json_to_a_kubelet(text: str) -> None:
    """It reads no YAML there; nor does JSON have the numbers that Python's reader takes."""
    with pytest.raises(DecodeError, match=r"begins with \{ and is no JSON: .+; mend it"):
        kubelets_document_of(text.encode(), "x")


def test_a_kubelets_document_has_the_same_bounds() -> None:
    """Depth, length, texts."""
    with pytest.raises(DecodeError, match="nested too deeply"):
        kubelets_document_of(b'{"a":' * 100_000, "x")
    with pytest.raises(DecodeError, match="3 is the limit of YAML"):
        kubelets_document_of(b"a: 1", "x", max_yaml_bytes=3)
    with pytest.raises(DecodeError, match="half of a pair"):
        kubelets_document_of(b'{"a": "\\ud800"}', "x")
    with pytest.raises(DecodeError, match="no UTF-8"):
        kubelets_document_of(b"\xff", "x")


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
    words = "half of a pair of surrogates", "invalid Unicode character escape code"
    assert [one.where for one in reading.faults if any(some in one.what for some in words)] == ["a.yaml"]
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
