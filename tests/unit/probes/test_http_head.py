"""Answers and requests of HTTP as bytes: where a head ends, and what is asked for."""

from __future__ import annotations

import pytest

from nodealloc._request_paths import path_of
from nodealloc.probes._http_head import HttpNonsenseError, head_in, is_whole


@pytest.mark.parametrize("end", [b"\r\n", b"\n"])
def test_lines_of_a_head_may_end_without_a_carriage_return(end: bytes) -> None:
    """Scripts write them so, and a kubelet reads them: such a server is well."""
    data = end.join([b"HTTP/1.1 200 OK", b"Content-Length: 2", b"Location: /a", b"", b"ok"])
    head = head_in(data)
    assert head is not None
    assert (head.status, head.fields) == (200, {"content-length": "2", "location": "/a"})
    assert data[head.length_bytes :] == b"ok"
    assert is_whole(head, b"ok")
    assert not is_whole(head, b"o")
    bare = end.join([b"HTTP/1.0 503", b"", b""])
    assert (head_in(bare[:-1]), getattr(head_in(bare), "status", None)) == (None, 503)
    again = head_in(end.join([b"HTTP/1.1 100 Continue", b"", b"HTTP/1.1 404 No", b"", b""]))
    assert again is not None
    assert again.status == 404
    with pytest.raises(HttpNonsenseError, match=r"the answer is no HTTP/1: b'SSH-2\.0'$"):
        head_in(end.join([b"SSH-2.0", b"", b""]))


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("/health\n", "/health%0A"),
        ("/a\tb", "/a%09b"),
        ("/a\r\nX: y", "/a%0D%0AX:%20y"),
        ("a\x7f?b#c", "/a%7F%3Fb%23c"),
        ("/a#\n", "/a"),
        ("/a?b", "/a?b"),
        ("/a?", "/a?"),
        ("/a??#?", "/a??"),
    ],
)
def test_no_character_of_a_path_is_dropped(path: str, asked: str) -> None:
    """One that no URL has makes all of it a path, as with a kubelet: another one would be asked for."""
    assert path_of(path) == asked


@pytest.mark.parametrize(("status", "goes_on"), [(100, True), (104, True), (199, True), (101, False)])
def test_what_comes_before_the_answer_is_passed_over(status: int, goes_on: bool) -> None:
    """Whatever its number, but for another protocol, after which no answer comes."""
    head = head_in(b"HTTP/1.1 %d Early\r\n\r\nHTTP/1.1 200 OK\r\n\r\n" % status)
    assert head is not None
    assert head.status == (200 if goes_on else status)


@pytest.mark.parametrize(
    ("sent", "asked"), [("/é".encode(), "/%C3%A9"), (b"/\xe9?\xff", "/%E9?%FF"), (b"/%c3", "/%c3")]
)
def test_a_redirect_leads_where_its_bytes_say(sent: bytes, asked: str) -> None:
    """UTF-8 or not: they are sent as they came."""
    head = head_in(b"HTTP/1.1 302 Found\r\nLocation: " + sent + b"\r\n\r\n")
    assert head is not None
    assert path_of(head.fields["location"]) == asked


@pytest.mark.parametrize(
    ("lines", "word"),
    [
        (b"no colon", "b'no colon'"),
        (b"a", "b'a'"),
        (b"Content-Length: 2\r\nno colon", "b'no colon'"),
        (b" X: folded into nothing", "b' X: folded"),
        (b": nameless", "b': nameless'"),
        (b"X\t: a", "b'X\\\\t: a'"),
        (b"X(): a", r"b'X\(\): a'"),
        (b"X: a\x00b", r"b'X: a\\x00b'"),
        (b"X: a\rb", r"b'X: a\\rb'"),
        (b"Content-Length: 2\r\nContent-Length: 3", "Content-Length: .2, 3"),
        (b"Transfer-Encoding: gzip", "Transfer-Encoding: .gzip"),
        (b"Transfer-Encoding: gzip, chunked", "Transfer-Encoding: .gzip, chunked"),
        (b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "Transfer-Encoding: .chunked, chunked"),
    ],
)
def test_a_head_that_makes_no_sense_is_no_answer(lines: bytes, word: str) -> None:
    """A kubelet does not take it, and whoever sends it is not well."""
    for end in (b"\r\n", b"\n"):
        data = b"".join([b"HTTP/1.1 200 OK", end, lines.replace(b"\r\n", end), end, end, b"ok"])
        with pytest.raises(HttpNonsenseError, match=word):
            head_in(data)


@pytest.mark.parametrize(
    "length", ["", "two", "+2", "-2", "2.0", "0x2", "1_0", "9223372036854775808", "9" * 5000]
)
def test_a_length_that_is_none_makes_no_sense(length: str) -> None:
    """It was taken for none at all, so that whatever came until the end was an answer."""
    head = head_in(f"HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n".encode())
    assert head is not None
    with pytest.raises(HttpNonsenseError, match="Content-Length"):
        is_whole(head, b"ok")


@pytest.mark.parametrize(
    ("start", "lines", "fields"),
    [
        (b"HTTP/1.1 200 OK", b"X:\r\nX-y z_~: a", {}),
        (b"HTTP/1.1 200 OK", "X: \t é\r\n more of it".encode(), {}),
        (b"HTTP/1.1 200 O\x01K", b"content-length: 007 \t", {"content-length": "007"}),
        (b"HTTP/1.1 200 OK", b"Content-Length: 0\r\nContent-Length: 0", {"content-length": "0"}),
        (b"HTTP/1.1 200 OK", b"Content-Length : 9", {}),
        (b"HTTP/1.1 200 OK", b"Location: /a\r\nLocation: /b", {"location": "/a"}),
        (b"HTTP/1.1 200 OK", b"Transfer-Encoding: Chunked", {"transfer-encoding": "Chunked"}),
        (b"HTTP/1.0 200 OK", b"Transfer-Encoding: gzip", {}),
    ],
)
def test_what_a_kubelet_takes_in_a_head_is_taken(start: bytes, lines: bytes, fields: dict[str, str]) -> None:
    """Of two the first counts, a name with a blank is another one, and HTTP/1.0 has no chunks."""
    head = head_in(start + b"\r\n" + lines + b"\r\n\r\n")
    assert head is not None
    assert dict(head.fields) == fields
    assert is_whole(head, b"0\r\n\r\n", has_ended=True) is ("007" not in fields.values())
