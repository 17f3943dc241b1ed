"""Laws of registrations: whatever happens in whatever order, what is on disk is what is registered."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from nodealloc.dsw_asw import BackOff
from nodealloc.pluginreg import PluginInfo, PluginRegistrar, RegistrationState, SocketIdentity
from nodealloc.pluginreg._sightings import Sightings
from nodealloc.testing.dirwatch import FakeWatcher
from nodealloc.testing.dsw_asw import ManualExecutor, VirtualClock, run_to_rest
from nodealloc.testing.pluginreg import FakeRegistration, RecordingHandler

PATHS = ("/a", "/b", "/c", "/d")
IDENTITIES = st.builds(SocketIdentity, st.just(1), st.integers(0, 3), st.sampled_from([b"", b"x"]))


@given(st.lists(st.dictionaries(st.sampled_from(PATHS), IDENTITIES)))
def test_generations_only_grow(looks: list[dict[str, SocketIdentity]]) -> None:
    """A generation is given out once; the same socket keeps its own."""
    sightings, given_out = Sightings(), set[int]()
    for found in looks:
        after = sightings.after(found)
        assert set(after.by_path) == set(found)
        for path, sighting in after.by_path.items():
            before = sightings.by_path.get(path)
            if before is not None and before.identity == sighting.identity:
                assert sighting is before
            else:
                assert sighting.generation not in given_out
                given_out.add(sighting.generation)
        sightings = after


@given(st.data())
def test_any_order_converges(data: st.DataObject) -> None:
    """Sockets come and go, handlers fail, calls end in any order: in the end all is in line.

    Two sockets may bring one name. A handler sees one call for a name at a
    time, and never two registrations of one endpoint without a deregistration
    in between.
    """
    sockets: dict[str, SocketIdentity] = {}
    number = 0

    def look(_directory: str) -> Mapping[str, SocketIdentity]:
        return dict(sockets)

    client, handler = FakeRegistration(), RecordingHandler()
    executor, clock = ManualExecutor(), VirtualClock()
    registrar = PluginRegistrar(
        "/nowhere",
        {"T": handler},
        watcher=FakeWatcher(),
        registration=client,
        executor=executor,
        clock=clock,
        back_off=BackOff(initial_s=1.0, max_s=4.0),
        look=look,
    )
    for _ in range(data.draw(st.integers(1, 40))):
        what = data.draw(st.sampled_from(["bind", "remove", "look", "pass", "run", "run", "fail", "wait"]))
        path = data.draw(st.sampled_from(PATHS))
        name = f"n{PATHS.index(path) // 2}"
        if what == "bind":
            number += 1
            sockets[path] = SocketIdentity(1, number, b"")
            client.plugins[path] = PluginInfo(type="T", name=name, endpoint=path)
        elif what == "remove":
            sockets.pop(path, None)
            client.plugins.pop(path, None)
        elif what == "look":
            registrar.observe()
        elif what == "pass":
            registrar.reconciler.reconcile()
        elif what == "run":
            executor.run(data.draw(st.integers(0, 5)))
        elif what == "fail":
            handler.fail[name] = 1
        else:
            clock.advance(data.draw(st.floats(0, 30)))
    registrar.observe()
    handler.fail.clear()
    run_to_rest(registrar.reconciler, executor, clock)
    assert {endpoint for _, endpoint in handler.held} == set(sockets)
    states = registrar.status()
    assert {status.path for status in states} == set(sockets)
    assert all(status.state is RegistrationState.REGISTERED for status in states)
    assert handler.overlaps == []
    check_alternation(handler)


def check_alternation(handler: RecordingHandler) -> None:
    """Between two registrations of an endpoint that its handler took stands a deregistration."""
    taken: set[str] = set()
    for verb, _, endpoint in handler.taken:
        if verb == "register":
            assert endpoint not in taken, f"{endpoint} was registered over itself"
            taken.add(endpoint)
        elif verb == "deregister":
            taken.discard(endpoint)
