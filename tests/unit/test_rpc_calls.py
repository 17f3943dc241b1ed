"""Calls without a thread each: bytes of HTTP/2, who is next, and what follows a future."""

from __future__ import annotations

import random
from concurrent.futures import CancelledError, Future

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodealloc._futures import then
from nodealloc._rpc.hpack import HeaderDecoder, HpackError, encoded
from nodealloc._rpc.places import Places
from nodealloc._rpc.unary import UnaryCall
from nodealloc.errors import ConfigurationError

SETTINGS = b"\0\0\0\4\0\0\0\0\0"
TRAILERS = encoded([(b":status", b"200"), (b"grpc-status", b"0")])


def decoder() -> HeaderDecoder:
    """One connection's."""
    return HeaderDecoder(most_bytes=1 << 16)


def frame(kind: int, flags: int, payload: bytes, *, stream: int = 1) -> bytes:
    """A frame of HTTP/2."""
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


def message(data: bytes) -> bytes:
    """As gRPC puts it into DATA."""
    return b"\0" + len(data).to_bytes(4, "big") + data


def call() -> UnaryCall:
    """One on its way."""
    return UnaryCall("/a.B/C", b"", limit_s=1.0, largest_bytes=1 << 16)


def ended(*parts: bytes) -> tuple[str, bytes, str]:
    """How a call ends that gets these bytes, whole and byte by byte."""
    answers = []
    for size in (1 << 20, 1):
        one = call()
        data = b"".join(parts)
        for at in range(0, len(data), size):
            if one.answer is None:
                one.received(data[at : at + size])
        if one.answer is None:
            one.received(b"")
        answers.append(one.answer)
    assert answers[0] == answers[1]
    assert answers[0] is not None
    return answers[0].status, answers[0].data, answers[0].detail


@pytest.mark.parametrize(
    ("block", "headers"),
    [
        # RFC 7541, C.4.1 to C.4.3 and C.6.1: with Huffman codes and a table.
        ("828684418cf1e3c2e5f23a6ba0ab90f4ff", {b":authority": b"www.example.com", b":path": b"/"}),
        ("828684be5886a8eb10649cbf", {b":authority": b"www.example.com", b"cache-control": b"no-cache"}),
        ("828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf", {b"custom-key": b"custom-value"}),
    ],
    ids=["first", "second", "third"],
)
def test_headers_are_read_as_the_standard_has_them(block: str, headers: dict[bytes, bytes]) -> None:
    """The standard's own examples, of which each builds on those before."""
    mine = decoder()
    blocks = ["828684418cf1e3c2e5f23a6ba0ab90f4ff", "828684be5886a8eb10649cbf", block]
    for one in blocks[: blocks.index(block) + 1]:
        read = dict(mine.decode(bytes.fromhex(one)))
    assert headers.items() <= read.items()


@given(st.lists(st.tuples(st.binary(max_size=300), st.binary(max_size=300))))
def test_headers_that_were_written_are_read(headers: list[tuple[bytes, bytes]]) -> None:
    """What one writes the other reads."""
    assert HeaderDecoder(most_bytes=1 << 30).decode(encoded(headers)) == headers


@given(st.lists(st.binary(max_size=80), max_size=4))
def test_any_bytes_are_headers_or_refused(blocks: list[bytes]) -> None:
    """Nothing else is raised, and nothing grows beyond its bound."""
    mine = HeaderDecoder(most_bytes=200)
    for block in blocks:
        try:
            assert sum(len(name) + len(value) for name, value in mine.decode(block)) <= 200
        except HpackError:
            return


@pytest.mark.parametrize(
    "block",
    ["ff", "ffffffffffffff", "80", "c0", "3fffffff", "0005616263", "008361", "0001610184fffffffc", "bf"],
)
def test_broken_headers_are_refused(block: str) -> None:
    """Numbers without end, references to nothing, texts that are cut."""
    with pytest.raises(HpackError):
        decoder().decode(bytes.fromhex(block))


def test_one_byte_that_stands_for_thousands_is_bounded() -> None:
    """A header of 4,000 bytes, said once and referred to ten thousand times."""
    said = b"\x40" + encoded([(b"a", b"x" * 4000)])[1:]
    with pytest.raises(HpackError, match="more than 65536 bytes"):
        decoder().decode(said + b"\xbe" * 10_000)


def test_a_table_is_made_smaller_and_forgets() -> None:
    """Whoever refers to what was forgotten is refused."""
    mine = decoder()
    mine.decode(b"\x40" + encoded([(b"a", b"b")])[1:])
    assert mine.decode(b"\xbe") == [(b"a", b"b")]
    assert mine.decode(b"\x20") == []
    with pytest.raises(HpackError, match="never said"):
        mine.decode(b"\xbe")


def test_an_answer_is_read_in_any_pieces() -> None:
    """Headers, padded data in two frames, headers in two frames."""
    body = message(b"hello")
    status, data, _ = ended(
        SETTINGS,
        frame(1, 0x4, encoded([(b":status", b"200")])),
        frame(0, 0x8, b"\2" + body[:3] + b"\0\0"),
        frame(0, 0, body[3:]),
        frame(1, 0x21, b"\0\0\0\0\x10" + TRAILERS[:4]),
        frame(9, 0x4, TRAILERS[4:]),
    )
    assert (status, data) == ("OK", b"hello")


@pytest.mark.parametrize(
    ("parts", "status", "said"),
    [
        ([b"HTTP/1.1 400 Bad Request\r\n\r\n"], "UNAVAILABLE", "does not speak HTTP/2"),
        ([SETTINGS], "UNAVAILABLE", "closed before an answer"),
        ([SETTINGS, frame(3, 0, b"\0\0\0\7")], "UNAVAILABLE", "code 7"),
        ([SETTINGS, frame(3, 0, b"\0\0\0\2")], "INTERNAL", "code 2"),
        ([SETTINGS, frame(7, 0, bytes(8) + b"full", stream=0)], "UNAVAILABLE", "full"),
        ([SETTINGS, frame(5, 0, bytes(8))], "INTERNAL", "pushes"),
        ([SETTINGS, b"\xff\xff\xff\0\0\0\0\0\1"], "INTERNAL", "a frame of 16777215 bytes"),
        ([SETTINGS, frame(1, 0x4, b"\xbe")], "INTERNAL", "never said"),
        ([SETTINGS, frame(1, 0, b""), frame(0, 0, b"")], "INTERNAL", "broken off"),
        ([SETTINGS, frame(0, 0x8, b"\5a")], "INTERNAL", "more padding"),
        ([SETTINGS, frame(0, 1, message(b"a"))], "INTERNAL", "without a status"),
        ([SETTINGS, frame(0, 0, b"\0\xff\xff\xff\xff")], "RESOURCE_EXHAUSTED", "4294967295 bytes"),
        ([SETTINGS, *[frame(0, 0, bytes(1 << 14))] * 5], "RESOURCE_EXHAUSTED", "65536 are allowed"),
        ([SETTINGS, frame(1, 0, b""), *[frame(9, 0, bytes(1 << 14))] * 5], "RESOURCE_EXHAUSTED", "headers"),
        ([SETTINGS, *[SETTINGS] * 10_001], "RESOURCE_EXHAUSTED", "10000 frames"),
        ([SETTINGS, frame(1, 0x5, encoded([(b":status", b"404")]))], "UNIMPLEMENTED", "HTTP status 404"),
        ([SETTINGS, frame(1, 0x5, b"")], "UNKNOWN", "no status"),
        ([SETTINGS, frame(1, 0x4, encoded([(b":status", b"503")]))], "UNAVAILABLE", "503"),
        ([SETTINGS, frame(1, 0x5, TRAILERS)], "INTERNAL", "not one whole answer"),
        ([SETTINGS, frame(0, 0, b"\1\0\0\0\1a"), frame(1, 0x5, TRAILERS)], "INTERNAL", "compressed"),
        ([SETTINGS, frame(1, 0x5, encoded([(b"grpc-status", b"99")]))], "UNKNOWN", ""),
        (
            [SETTINGS, frame(1, 0x5, encoded([(b"grpc-status", b"13"), (b"grpc-message", b"a%20%c3%a4")]))],
            "INTERNAL",
            "a ä",
        ),
    ],
)
def test_what_is_no_answer_says_why(parts: list[bytes], status: str, said: str) -> None:
    """Each in gRPC's own statuses."""
    got, data, detail = ended(*parts)
    assert (got, data) == (status, b"")
    assert said in detail


def test_a_ping_is_answered_and_settings_are_acknowledged() -> None:
    """As the standard wants it; acknowledgements are not."""
    one = call()
    ack = frame(4, 1, b"", stream=0)
    assert one.received(SETTINGS) == ack
    assert one.received(ack) == b""
    assert one.received(frame(6, 0, b"12345678", stream=0)) == frame(6, 1, b"12345678", stream=0)
    assert one.received(frame(6, 1, b"12345678", stream=0)) == b""


def test_a_request_that_is_too_large_is_refused() -> None:
    """Before the other side has said how much it takes."""
    with pytest.raises(ValueError, match="65530 may be sent"):
        UnaryCall("/a.B/C", bytes(1 << 16), limit_s=1.0, largest_bytes=1)


@given(st.binary(max_size=400), st.randoms(use_true_random=False))
def test_any_bytes_end_a_call_or_leave_it_waiting(data: bytes, rng: random.Random) -> None:
    """Nothing escapes, whoever speaks."""
    one = call()
    one.received(SETTINGS)
    kind, flags = rng.randrange(12), rng.randrange(256)
    one.received(frame(kind, flags, data))


# Who is next.


def begun(places: Places[str], now_s: float) -> list[str]:
    """Who begins now, and who gives way to whom."""
    return [talk if leaves is None else f"{talk} for {leaves}" for talk, leaves in places.begin(now_s)]


def test_while_there_is_room_nobody_gives_way() -> None:
    """However long they last."""
    places = Places[str](2, first_s=0.1)
    places.wait("a", "a")
    places.wait("b", "b")
    assert begun(places, 0.0) == ["a", "b"]
    assert begun(places, 100.0) == []
    assert places.next_s() is None


def test_a_newcomer_takes_the_place_of_who_had_his_time() -> None:
    """Not before that time is over."""
    places = Places[str](2, first_s=0.1)
    for name in "abc":
        places.wait(name, name)
    assert begun(places, 0.0) == ["a", "b"]
    assert places.next_s() == pytest.approx(0.1)
    assert begun(places, 0.05) == []
    assert begun(places, 0.1) == ["c for a"]
    assert len(places) == 2


def test_newcomers_come_before_whoever_was_heard_and_later_turns_are_longer() -> None:
    """A crowd that hangs stands in its own way."""
    places = Places[str](4, first_s=0.1)
    now_s = 0.0
    for _ in range(30):
        for number in range(20):
            places.leave(f"hangs {number}")
            places.wait(f"hangs {number}", f"hangs {number}")
        for _ in begun(places, now_s):
            pass
        now_s += 10.0
    places.wait("good", "good")
    assert begun(places, now_s)[0].startswith("good")
    places.leave("good")
    places.forget("good")
    places.wait("good again", "good")
    wait_s = 0.0
    while not any(one.startswith("good again") for one in begun(places, now_s + wait_s)):
        wait_s += 0.1
    assert wait_s <= 0.1


def test_whoever_had_fewest_turns_is_next() -> None:
    """So whoever needs a longer turn gets it, after as many others as there are."""
    places = Places[str](2, first_s=0.1)
    order: list[str] = []
    names = [f"n{number}" for number in range(10)]
    for name in names:
        places.wait(name, name)
    now_s = 0.0
    for _ in range(400):
        for talk, leaves in places.begin(now_s):
            order.append(talk)
            if leaves is not None:
                places.wait(leaves, leaves)
        now_s += 0.1
    turns = {name: order.count(name) for name in names}
    # Whoever sat down first, in a place that is kept for newcomers, sits there as long as none comes.
    assert max(turns.values()) - sorted(turns.values())[1] <= 1
    assert sorted(order[:10]) == names


def test_no_place_is_too_few() -> None:
    """Nobody would ever have a turn."""
    with pytest.raises(ConfigurationError, match="give 1 or more"):
        Places[str](0, first_s=0.1)


def test_peers_beyond_the_most_are_forgotten() -> None:
    """Whoever makes sockets without end is not remembered without end."""
    places = Places[int](2, first_s=0.1)
    for number in range(9000):
        places.wait(number, number)
        list(places.begin(float(number)))
        places.leave(number)
    assert len(places._turns) <= 1 << 13


# What follows a future.


def test_what_follows_a_future_is_done_with_it() -> None:
    """Its result, what it raises, and what another future brings."""
    first, inner = Future[int](), Future[int]()
    second: Future[int] = then(first, lambda _: inner)
    first.set_result(1)
    assert not second.done()
    inner.set_result(2)
    assert second.result(0) == 2
    failed = Future[int]()
    third = then(failed, lambda done: done.result() + 1)
    failed.set_exception(OSError("x"))
    assert isinstance(third.exception(0), OSError)
    broken = Future[int]()
    fourth: Future[int] = then(broken, lambda _: then(failed, lambda done: done.result()))
    broken.set_result(0)
    assert isinstance(fourth.exception(0), OSError)


def test_cancelling_what_follows_cancels_the_first() -> None:
    """And nothing is called."""
    first = Future[int]()
    called: list[int] = []
    second = then(first, lambda done: called.append(done.result()))
    second.cancel()
    assert first.cancelled()
    assert called == []
    with pytest.raises(CancelledError):
        second.result(0)
