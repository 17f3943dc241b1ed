"""What a runtime reports, as values; what makes no sense is told by name and harms its pod alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest

from nodealloc.errors import ConfigurationError
from nodealloc.idset import CPUSet
from nodealloc.podfacts import Exited, ExitUnknown, PodIdentity
from nodealloc.runtime import (
    AnswerLostError,
    ContainerConfig,
    ContainerRecord,
    ContainerReport,
    DnsConfig,
    Heard,
    LinuxResources,
    Listing,
    NameReservedError,
    Oddity,
    PodReport,
    RunState,
    RuntimeCondition,
    RuntimeHealth,
    RuntimeUnavailableError,
    SandboxConfig,
    SandboxRecord,
    SandboxReport,
    Security,
    may_start,
)
from nodealloc.testing.runtime import FakeContainerRuntime
from nodealloc.verdicts import NotYet

WEB = PodIdentity(uid="web", namespace="default", name="web")
DB = PodIdentity(uid="db", namespace="default", name="db")
READY = RuntimeHealth(
    conditions={"RuntimeReady": RuntimeCondition(holds=True), "NetworkReady": RuntimeCondition(holds=True)}
)


def container(container_id: str, pod: PodIdentity = WEB, **more: object) -> ContainerRecord:
    """A container of a pod."""
    return attrs.evolve(ContainerRecord(id=container_id, pod=pod, name="app", sandbox_id="s"), **more)  # type: ignore[arg-type]


def test_an_exit_is_there_exactly_when_it_has_exited() -> None:
    """Neither an exited container without an exit nor a running one with it can be written down."""
    for state, end in ((RunState.EXITED, None), (RunState.RUNNING, Exited(code=0))):
        with pytest.raises(ValueError, match="ExitUnknown"):
            ContainerReport(record=container("c", state=state), exit=end)
    unknown = ContainerReport(record=container("c", state=RunState.EXITED), exit=ExitUnknown())
    assert unknown.exit not in (Exited(code=0), Exited(code=137))


def wrong(value: object) -> Any:
    """A value of a type that does not belong there."""
    return value


ENDED = container("c", state=RunState.EXITED)
BOX = SandboxRecord(id="b", pod=WEB)


@pytest.mark.parametrize(
    ("report", "says"),
    [
        (
            lambda: ContainerReport(record=ENDED, exit=wrong(0)),
            r"exit: expected Exited\(code=\.\.\.\).*found 0",
        ),
        (
            lambda: ContainerReport(record=ENDED, exit=Exited(code=0), finished_unix_s=wrong("now")),
            "finished_unix_s: expected finite Unix seconds",
        ),
        (
            lambda: ContainerReport(record=ENDED, exit=Exited(code=0), started_unix_s=1_795_000_000 * 10**9),
            r"started_unix_s: .*divide nanoseconds by 10\*\*9",
        ),
        (lambda: container("c", created_unix_s=-(10**18)), r"created_unix_s: .*divide nanoseconds"),
        (lambda: container("c", pod=wrong("u")), r"ContainerRecord\.pod: expected a PodIdentity"),
        (lambda: SandboxRecord(id="b", pod=wrong(None)), r"PodIdentity\.of\(pod\) has that of a pod"),
        (lambda: SandboxRecord(id="b", pod=WEB, is_ready=wrong("false")), "is_ready: expected True or False"),
        (lambda: SandboxReport(record=BOX, ips=wrong("10.0.0.7")), r"ips: expected a tuple of addresses"),
        (lambda: SandboxReport(record=BOX, ips=(wrong(7),)), r"ips\[0\]: expected addresses, each a text"),
        (
            lambda: SandboxReport(record=BOX, uses_host_network=wrong("no")),
            "uses_host_network: expected True",
        ),
        (lambda: SandboxReport(record=wrong(ENDED)), "record: expected a SandboxRecord"),
        (lambda: PodReport(uid=wrong(None)), "uid: expected the pod's uid"),
        (lambda: PodReport(uid="u", containers=wrong([])), "containers: expected a tuple of ContainerReport"),
        (
            lambda: PodReport(uid="u", containers=(wrong(ENDED),)),
            r"containers\[0\]: expected ContainerReport",
        ),
        (lambda: PodReport(uid="u", sandboxes=(wrong(BOX),)), r"sandboxes\[0\]: expected SandboxReport"),
        (lambda: PodReport(uid="u", ips=wrong("10.0.0.7")), "PodReport.ips: expected a tuple of addresses"),
    ],
)
def test_what_a_runtime_of_ones_own_writes_down_wrongly_is_refused_there(
    report: Callable[[], object], says: str
) -> None:
    """An exit as a number, an address as one text, nanoseconds for seconds: each was told on as it was."""
    with pytest.raises(ConfigurationError, match=says):
        report()


def test_the_last_moment_that_the_api_can_write_down_is_one() -> None:
    """The end of the year 9999, and a time before 1970."""
    for moment in (253_402_300_799.0, -1.0, None):
        assert container("c", created_unix_s=moment).created_unix_s == moment


def test_the_newest_instance_goes_by_attempt_before_time() -> None:
    """A clock that went back makes no old instance the newest."""
    old = ContainerReport(record=container("old", attempt=1, created_unix_s=2000.0))
    new = ContainerReport(record=container("new", attempt=2, created_unix_s=1000.0))
    assert PodReport(uid="web", containers=(old, new)).newest("app") == new
    assert PodReport(uid="web").newest("app") is None


def test_addresses_are_those_of_the_newest_ready_sandbox() -> None:
    """A sandbox that is not ready lends its addresses to nobody; no report is no address."""
    gone = SandboxReport(record=SandboxRecord(id="s2", pod=WEB, attempt=2, is_ready=False), ips=("10.0.0.2",))
    ready = SandboxReport(record=SandboxRecord(id="s1", pod=WEB, attempt=1), ips=("10.0.0.1",))
    report = PodReport.of("web", [ready, gone], [])
    assert (report.ips, report.sandbox) == (("10.0.0.1",), gone)
    assert PodReport.of("web", [attrs.evolve(ready, ips=None)], []).ips == ()


def test_a_listing_is_sorted_by_pod() -> None:
    """Each pod has its own records, and the states of all of them by id."""
    box = SandboxRecord(id="s", pod=WEB, is_ready=False)
    listing = Listing.of([box], [container("c"), container("d", DB)])
    assert set(listing.pods) == {"web", "db"}
    assert listing.pods["web"].marks == {"c": RunState.CREATED, "s": RunState.EXITED}
    assert not listing.pods["web"].is_spoilt


def test_two_listings_of_a_pod_differ_by_ids_and_states() -> None:
    """Labels of a record do not change in its life, so they are not compared."""
    first = Listing.of([], [container("c")]).pods["web"]
    assert first == Listing.of([], [container("c", labels={"a": "b"})]).pods["web"]
    assert first != Listing.of([], [container("c", state=RunState.RUNNING)]).pods["web"]
    assert first != Listing.of([], [container("d")]).pods["web"]


def test_an_id_that_is_listed_twice_spoils_the_pods_concerned() -> None:
    """Nobody can say which of two is meant; a third pod is as it was."""
    other = PodIdentity(uid="third", namespace="default", name="third")
    listing = Listing.of([], [container("c"), container("c", DB), container("e", other)])
    assert [uid for uid, pod in listing.pods.items() if pod.is_spoilt] == ["web", "db"]
    assert "'c' is listed twice" in listing.pods["db"].oddities[0].what
    assert listing.oddities == ()


def test_a_record_from_the_future_has_no_time() -> None:
    """It is told and not believed; the pod goes on."""
    listing = Listing.of([], [container("c", created_unix_s=9e9)], now_unix_s=1e9)
    pod = listing.pods["web"]
    assert (pod.containers[0].created_unix_s, pod.is_spoilt) == (None, False)
    assert "in the future" in pod.oddities[0].what


def test_megabytes_of_labels_are_not_kept() -> None:
    """They are told with their size, and spoil their pod alone."""
    listing = Listing.of([], [container("c", labels={"a": "b" * (2 << 20)}), container("d", DB)])
    assert listing.pods["web"].containers[0].labels == {}
    assert "2097153 characters" in listing.pods["web"].oddities[0].what
    assert not listing.pods["db"].is_spoilt


def test_what_a_reader_could_make_nothing_of_is_told() -> None:
    """With its pod where that is known, else with the listing; long words are cut."""
    listing = Listing.of([], [], oddities=[Oddity.of("web", "x" * 9999), Oddity.of("", "no id")])
    assert listing.pods["web"].is_spoilt
    assert len(listing.pods["web"].oddities[0].what) < 400
    assert [one.what for one in listing.oddities] == ["no id"]


@pytest.mark.parametrize(
    ("field", "wrong"), [("id", ""), ("name", ""), ("attempt", -1), ("created_unix_s", float("nan"))]
)
def test_records_that_cannot_be_are_refused(field: str, wrong: object) -> None:
    """No id, no name, a negative count, a time that is none."""
    with pytest.raises(ValueError, match=field):
        attrs.evolve(container("c"), **{field: wrong})  # type: ignore[arg-type]


def test_what_cannot_be_asked_for_is_refused() -> None:
    """Runtimes take an empty set for no change, and a group without a user for nonsense."""
    with pytest.raises(ValueError, match="cpus is an empty set"):
        LinuxResources(cpus=CPUSet())
    with pytest.raises(ValueError, match="group 5 without a user"):
        Security(group=5)


@pytest.mark.parametrize(
    ("heard", "blocker", "words"),
    [
        (Heard(), "runtime", "not been heard yet"),
        (Heard(listing=1, listed_s=0.0, health=READY, error="no"), "runtime", "for 200 s: no"),
        (Heard(listing=1, listed_s=199.0), "runtime", "not said yet"),
        (Heard(listing=1, listed_s=199.0, health=RuntimeHealth()), "runtime", "says nothing about that"),
        (
            Heard(
                listing=1,
                listed_s=199.0,
                health=attrs.evolve(
                    READY,
                    conditions={
                        "RuntimeReady": RuntimeCondition(holds=True),
                        "NetworkReady": RuntimeCondition(holds=False, reason="NoCni", message="no plugin"),
                    },
                ),
            ),
            "network",
            "NoCni no plugin",
        ),
        (
            Heard(listing=1, listed_s=199.0, health=attrs.evolve(READY, handlers=("", "gvisor"))),
            "runtime",
            "no handler 'kata'; there are: gvisor",
        ),
    ],
)
def test_nothing_starts_before_the_runtime_can(heard: Heard, blocker: str, words: str) -> None:
    """Each reason to wait is named, with what the runtime itself says."""
    verdict = may_start(heard, now_s=200.0, handler="kata")
    assert isinstance(verdict, NotYet)
    assert verdict.blocker == blocker
    assert words in verdict.message


def test_a_pod_of_the_hosts_network_does_not_wait_for_the_network() -> None:
    """And a runtime that was heard and is ready holds nothing."""
    without = attrs.evolve(READY, conditions={"RuntimeReady": RuntimeCondition(holds=True)})
    heard = Heard(listing=1, listed_s=10.0, health=without)
    assert may_start(heard, now_s=11.0, host_network=True) is None
    assert may_start(heard, now_s=11.0) is not None
    assert may_start(attrs.evolve(heard, health=READY), now_s=11.0) is None
    listed = attrs.evolve(READY, handlers=("runc",))
    assert may_start(attrs.evolve(heard, health=listed), now_s=11.0) is None


def test_the_fake_does_what_it_is_told() -> None:
    """Fail, lose an answer, go away and come back without a container's end or its record."""
    fake, box = FakeContainerRuntime(), SandboxConfig(pod=WEB)
    fake.fail("run_sandbox", RuntimeUnavailableError("run_sandbox", "busy"))
    with pytest.raises(RuntimeUnavailableError, match="busy"):
        fake.run_sandbox(box)
    assert fake.listing().pods == {}
    fake.lose_answer("run_sandbox")
    with pytest.raises(AnswerLostError, match="may have been done"):
        fake.run_sandbox(box)
    with pytest.raises(NameReservedError, match="adopt or remove") as reserved:
        fake.run_sandbox(box)
    assert reserved.value.reason in str(reserved.value)
    (sandbox,) = fake.listing().pods["web"].marks
    made = [
        fake.create_container(sandbox, ContainerConfig(name=name, image="busybox"), box)
        for name in ("app", "side")
    ]
    for one in made:
        fake.start_container(one)
    fake.go_away()
    with pytest.raises(RuntimeUnavailableError, match="connection refused"):
        fake.listing()
    fake.restart(died=made[:1], forgot=made[1:])
    (left,) = fake.inspect("web").containers
    assert (left.record.id, left.exit, left.reason) == (made[0], ExitUnknown(), "Unknown")


def test_the_fake_hangs_and_is_slow() -> None:
    """A gate holds one call about one pod; a slow call waits by what it was given."""
    waited: list[float] = []
    fake = FakeContainerRuntime(sleep=waited.append)
    gate = fake.hang("inspect", "web")
    assert fake.inspect("db") == PodReport(uid="db")
    gate.set()
    fake.slow("inspect", 3.0)
    assert fake.inspect("web") == PodReport(uid="web")
    assert waited == [3.0]


def test_values_do_not_change_with_what_they_were_made_from() -> None:
    """Labels and marks are copies, and refuse to be changed."""
    labels = {"app": "web"}
    record = container("c", labels=labels)
    labels["app"] = "other"
    assert record.labels == {"app": "web"}
    pod = Listing.of([], [record]).pods["web"]
    for mapping in (record.labels, pod.marks):
        with pytest.raises(TypeError, match="does not change"):
            mapping["x"] = "y"  # type: ignore[index]


def test_a_resolver_is_read_as_resolv_conf_says() -> None:
    """The last search counts, options by their names; what is not known means nothing."""
    text = (
        "# made by hand\nnameserver 192.0.2.1\nsearch old\nsearch a.example. b\nnameserver 192.0.2.2 more\n"
    )
    found = DnsConfig.of_resolv_conf(f"{text}\nsortlist x\noptions ndots:1 rotate\noptions ndots:5\n")
    assert found == DnsConfig(
        servers=("192.0.2.1", "192.0.2.2"), searches=("a.example", "b"), options=("ndots:5", "rotate")
    )
    assert DnsConfig.of_resolv_conf("") == DnsConfig()
