"""Laws of what containers are made from: texts, name servers, names of images."""

from __future__ import annotations

import attrs
from hypothesis import given
from hypothesis import strategies as st

from nodealloc.podlife import (
    ImageFacts,
    ImageName,
    NodeSettings,
)
from nodealloc.podlife._configuration import (
    container_config,
    pod_dns,
    termination_message,
)
from nodealloc.podspec import Container, DnsPolicy, MessagePolicy, Pod, Variable
from nodealloc.podspec._expansion import expand
from nodealloc.podspec._network import PodDnsConfig

NODE = NodeSettings(
    name="n1", memory_capacity_bytes=1 << 30, cluster_dns=("10.0.0.10",), cluster_domain="cluster.test"
)
PIECES = st.lists(
    st.sampled_from(["$", "$$", "(", ")", "$(", "$(A)", "$(B)", "$(NOT)", "A", "x", "\n", "é"]), max_size=12
)
VARIABLES = {"A": "1", "B": "$(A)"}


def scanned(text: str) -> str:
    """The same by hand: one character after another."""
    out: list[str] = []
    at = 0
    while at < len(text):
        rest = text[at + 1 :]
        if text[at] != "$" or not rest:
            out.append(text[at])
            at += 1
        elif rest[0] == "$":
            out.append("$")
            at += 2
        elif rest[0] == "(" and ")" in rest:
            name = rest[1 : rest.index(")")]
            out.append(VARIABLES.get(name, f"$({name})"))
            at += len(name) + 3
        else:
            out.append(text[at : at + 2])
            at += 2
    return "".join(out)


@given(pieces=PIECES)
def test_texts_expand_as_read_by_hand(pieces: list[str]) -> None:
    """Character by character, whatever stands where."""
    text = "".join(pieces)
    assert expand(text, VARIABLES) == scanned(text)


@given(text=st.text())
def test_a_text_can_be_kept_from_expanding(text: str) -> None:
    """With each `$` doubled it comes out as it is."""
    assert expand(text.replace("$", "$$"), VARIABLES) == text


names = st.sampled_from(["A", "B", "C", "D"])


@given(variables=st.lists(st.tuples(names, PIECES.map("".join)), max_size=6))
def test_the_same_pod_gives_the_same_container(variables: list[tuple[str, str]]) -> None:
    """To the order of its variables; each name stands there once, with its last value."""
    app = Container(
        name="app", variables=tuple(Variable(name=name, value=value) for name, value in variables)
    )
    pod = Pod(uid="u", name="web", containers=(app,))
    made = [container_config(pod, app, attempt=0, image=ImageFacts(id="i"), node=NODE) for _ in range(2)]
    assert made[0] == made[1]
    assert list(made[0].env) == list(made[1].env) == list(dict.fromkeys(name for name, _ in variables))


words = st.text("abcdefgh.", min_size=1, max_size=300)


@given(
    servers=st.lists(st.sampled_from([f"192.0.2.{n}" for n in range(9)]), max_size=3),
    searches=st.lists(words, max_size=32),
    policy=st.sampled_from(DnsPolicy),
    shares=st.booleans(),
)
def test_resolv_conf_is_within_limits_and_loses_nothing(
    servers: list[str], searches: list[str], policy: DnsPolicy, shares: bool
) -> None:
    """What does not fit is told; nothing stands there twice, and the order stays."""
    pod = Pod(
        uid="u",
        name="web",
        dns_policy=policy,
        host_network=shares,
        dns_config=PodDnsConfig(nameservers=tuple(servers), searches=tuple(searches)),
    )
    found = pod_dns(pod, NODE)
    config = found.config
    assert len(config.servers) <= 3
    assert len(config.searches) <= 32
    assert len(" ".join(config.searches)) <= 2048
    assert len(set(config.searches)) == len(config.searches)
    told = {*config.servers, *config.searches, *found.left_out}
    assert {*servers, *searches} <= told
    kept = [one for one in searches if one in config.searches]
    assert list(dict.fromkeys(kept)) == [one for one in config.searches if one in kept]


steps = st.from_regex(r"[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*", fullmatch=True).filter(lambda one: len(one) < 40)
hosts = st.sampled_from(["", "localhost/", "r.test/", "r.test:5000/", "docker.io/", "[fd00::1]:5/"])
ends = st.sampled_from(["", ":1", ":latest", f"@sha256:{'0' * 64}", f":v1@sha256:{'f' * 64}"])


@given(host=hosts, path=st.lists(steps, min_size=1, max_size=3), end=ends)
def test_a_name_in_full_means_the_same(host: str, path: list[str], end: str) -> None:
    """Reading what was written in full changes nothing, and both know each other."""
    if not host and len(path) > 1 and ("." in path[0] or path[0] == "localhost"):
        path = ["team", *path]
    name = ImageName.of(f"{host}{'/'.join(path)}{end}")
    tag, digest = (f"{mark}{part}" if part else "" for mark, part in ((":", name.tag), ("@", name.digest)))
    full = ImageName.of(f"{name.repository}{tag}{digest}")
    assert attrs.evolve(full, given=name.given) == name
    assert ImageName.of(name.asked).repository == name.repository
    listed = f"{name.repository}@{name.digest}" if name.digest else f"{name.repository}:{name.tag}"
    assert name.is_named_by(listed)


@given(
    written=st.binary(max_size=5000),
    output=st.binary(max_size=5000),
    policy=st.sampled_from(MessagePolicy),
    failed=st.booleans(),
)
def test_last_words_are_bounded(written: bytes, output: bytes, policy: MessagePolicy, failed: bool) -> None:
    """Whatever a container leaves, a text of so many characters comes of it."""
    said = termination_message(written, policy=policy, has_failed=failed, output=output)
    assert len(said) <= 4096
    if written:
        assert said == written[-4096:].decode("utf-8", "replace")
