"""Fakes and checks for what a pod's life asks for: who prepares, who configures, who runs hooks.

>>> from nodealloc.podspec import Container, Pod
>>> web = Pod(uid="u", name="web", containers=(Container(name="app", image="busybox"),))
>>> check_preparer(FakePreparer(), web)
>>> check_configures(PlainConfiguration(), web)
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from nodealloc import _attrs as attrs
from nodealloc.dsw_asw import Cancel
from nodealloc.podfacts import PodIdentity
from nodealloc.podlife import (
    CanStopConfiguring,
    Configures,
    CredentialSource,
    EnvironmentSource,
    HookCall,
    HookRunner,
    ImageName,
    PodRecord,
    Preparer,
    Provided,
)
from nodealloc.podspec import (
    HASH_ANNOTATION,
    Container,
    Pod,
    container_hash,
    kubelet_hash,
)
from nodealloc.runtime import ContainerConfig, LinuxResources, PodReport, PullCredentials, SandboxConfig
from nodealloc.testing._wording import in_words
from nodealloc.testing.dsw_asw import ManualCancel
from nodealloc.verdicts import Admitted, NotYet, Refused

__all__ = [
    "FakeCredentials",
    "FakeEnvironment",
    "FakeHooks",
    "FakePreparer",
    "PlainConfiguration",
    "check_configures",
    "check_credential_source",
    "check_environment_source",
    "check_hook_runner",
    "check_preparer",
]


@attrs.define
class FakePreparer:
    """A `Preparer` that does as a test says.

    Attributes:
        answer: What `make_ready` answers, by the pod.
        blocks: What `take_back` answers, by the pod.
        there: Uids of pods whose part was made and not taken back.
        calls: `make u`, `back u`, in order.
    """

    answer: Callable[[Pod], Admitted | Provided | NotYet | Refused] = lambda _: Admitted()
    blocks: Callable[[Pod], NotYet | None] = lambda _: None
    there: set[str] = attrs.field(factory=set[str])
    calls: list[str] = attrs.field(factory=list[str])

    def make_ready(self, pod: Pod, _cancel: Cancel, /) -> Admitted | Provided | NotYet | Refused:
        """See `Preparer.make_ready`."""
        self.calls.append(f"make {pod.uid}")
        answer = self.answer(pod)
        if isinstance(answer, Admitted | Provided):
            self.there.add(pod.uid)
        return answer

    def take_back(self, pod: Pod, _cancel: Cancel, /) -> NotYet | None:
        """See `Preparer.take_back`."""
        self.calls.append(f"back {pod.uid}")
        blocked = self.blocks(pod)
        if blocked is None:
            self.there.discard(pod.uid)
        return blocked


class PlainConfiguration:
    """A `Configures` that says what a container is, and nothing of what a node adds."""

    def sandbox(self, pod: Pod, attempt: int, _provided: Mapping[str, object], /) -> SandboxConfig:
        """See `Configures.sandbox`."""
        return SandboxConfig(
            pod=PodIdentity.of(pod), attempt=attempt, hostname=pod.name, host_network=pod.host_network
        )

    def container(
        self, _record: PodRecord, container: Container, attempt: int, image_id: str, _report: PodReport, /
    ) -> ContainerConfig:
        """See `Configures.container`."""
        return ContainerConfig(
            name=container.name,
            attempt=attempt,
            image=image_id,
            command=container.entrypoint,
            args=container.args,
            env=container.env,
            definition=kubelet_hash(container),
            annotations={HASH_ANNOTATION: container_hash(container)},
        )

    def resources(self, _record: PodRecord, _container: Container, /) -> LinuxResources:
        """See `Configures.resources`."""
        return LinuxResources()


@attrs.define
class FakeEnvironment:
    """An `EnvironmentSource` that a test fills.

    Attributes:
        config_maps: By name space and name.
        secrets: Likewise.
    """

    config_maps: dict[tuple[str, str], Mapping[str, str]] = attrs.field(
        factory=dict[tuple[str, str], Mapping[str, str]]
    )
    secrets: dict[tuple[str, str], Mapping[str, bytes]] = attrs.field(
        factory=dict[tuple[str, str], Mapping[str, bytes]]
    )

    def config_map(self, namespace: str, name: str, /) -> Mapping[str, str] | None:
        """See `EnvironmentSource.config_map`."""
        return self.config_maps.get((namespace, name))

    def secret(self, namespace: str, name: str, /) -> Mapping[str, bytes] | None:
        """See `EnvironmentSource.secret`."""
        return self.secrets.get((namespace, name))


@attrs.define
class FakeCredentials:
    """A `CredentialSource` that a test fills.

    Attributes:
        users: Registry to who is tried there, in order.
    """

    users: dict[str, tuple[PullCredentials, ...]] = attrs.field(
        factory=dict[str, tuple[PullCredentials, ...]]
    )

    def credentials(self, pod: Pod, image: ImageName, /) -> Sequence[PullCredentials]:
        """See `CredentialSource.credentials`."""
        del pod
        return self.users.get(image.registry, ())


@attrs.define
class FakeHooks:
    """A `HookRunner` that does as a test says.

    Attributes:
        answer: Why a hook fails, by what is to be run; "" where it does not.
        calls: What was to be run, in order.
        endless: Ids of containers whose hooks go on until their time is over, or they are asked to stop.
    """

    answer: Callable[[HookCall], str] = lambda _: ""
    calls: list[HookCall] = attrs.field(factory=list[HookCall])
    endless: frozenset[str] = frozenset()

    def run_hook(self, call: HookCall, cancel: Cancel, /) -> str:
        """See `HookRunner.run_hook`."""
        self.calls.append(call)
        if call.container_id in self.endless:
            cancel.wait(call.timeout_s)
            return "its time was over"
        return self.answer(call)


@in_words
def check_preparer(preparer: Preparer, pod: Pod, /, *, is_there: Callable[[Pod], bool] | None = None) -> None:
    """Hold a `Preparer` to its promises, with a pod that it can make ready soon.

    Args:
        preparer: What to check.
        pod: Nothing of it is there.
        is_there: Whether its part is there, as whoever looks behind the preparer
            finds; None where nobody can.
    """

    def there() -> bool | None:
        return None if is_there is None else is_there(pod)

    cancel = ManualCancel()
    preparer.take_back(pod, cancel)
    answer = preparer.make_ready(pod, cancel)
    for _ in range(50):
        if not isinstance(answer, NotYet):
            break
        answer = preparer.make_ready(pod, cancel)
    assert isinstance(answer, Admitted | Provided), f"nothing is made ready: {answer}"
    assert there() is not False, f"answered {answer}, and nothing is there"
    again = preparer.make_ready(pod, cancel)
    assert there() is not False, "made ready twice, nothing is there"
    assert type(again) is type(answer), f"made ready twice, it answered {answer} and then {again}"
    for turn in ("once", "a second time"):
        waits = preparer.take_back(pod, cancel)
        for _ in range(50):
            if waits is None:
                break
            waits = preparer.take_back(pod, cancel)
        assert waits is None, f"it cannot be taken back {turn}: {waits}"
        assert not there(), f"it was taken back {turn}, and is there"
    assert isinstance(preparer.make_ready(pod, cancel), Admitted | Provided | NotYet), "it is made ready once"
    preparer.take_back(pod, cancel)


@in_words
def check_configures(configures: Configures, pod: Pod, /) -> None:
    """Hold a `Configures` to its promises: the same answer twice, named as asked, and the limits alone.

    Args:
        configures: What to check.
        pod: With at least one container.
    """
    box = configures.sandbox(pod, 3, {})
    assert box == configures.sandbox(pod, 3, {}), "one sandbox is configured in two ways"
    assert (box.pod.uid, box.attempt) == (pod.uid, 3), f"attempt 3 of {pod.uid} is configured as {box}"
    record, report = PodRecord(pod=pod), PodReport(uid=pod.uid)
    for one in pod.containers:
        made = configures.container(record, one, 2, "sha256:a", report)
        again = configures.container(record, one, 2, "sha256:a", report)
        assert made == again, f"container {one.name} is configured in two ways"
        can: object = configures
        if isinstance(can, CanStopConfiguring):
            stopped = can.unless_stopped(ManualCancel()).container(record, one, 2, "sha256:a", report)
            assert stopped == made, f"container {one.name} is another one where it may be asked to stop"
        asked = (one.name, 2, "sha256:a")
        found = (made.name, made.attempt, made.image)
        assert found == asked, f"asked for {asked}, it configures {found}"
        limits = configures.resources(record, one)
        assert limits == made.resources, f"container {one.name} is made with other limits than it gets later"


@in_words
def check_environment_source(source: EnvironmentSource, there: tuple[str, str], /) -> None:
    """Hold an `EnvironmentSource` to its promises.

    Args:
        source: What to check; knows a config map and a secret of this name.
        there: Their name space and name.
    """
    namespace, name = there
    for what, found, kind in (
        ("config map", source.config_map(namespace, name), str),
        ("secret", source.secret(namespace, name), bytes),
    ):
        assert found is not None, f"{what} {name} is there, and is not found"
        values = cast("Mapping[str, object]", found)
        odd = sorted(key for key, value in values.items() if not isinstance(value, kind))
        assert not odd, f"{what} {name}: {odd} are not {kind.__name__}"
    absent = "nobody-has-this-name"
    for what, find in (("config map", source.config_map), ("secret", source.secret)):
        assert find(namespace, absent) is None, f"a {what} that is not there is found"
        assert find(absent, name) is None, f"a {what} of another name space is found"


@in_words
def check_credential_source(source: CredentialSource, pod: Pod, mine: str, others: str, /) -> None:
    """Hold a `CredentialSource` to its promises.

    Args:
        source: What to check.
        pod: For which it has credentials.
        mine: An image that they are for.
        others: An image of a registry that they are not for.
    """
    found = [*source.credentials(pod, ImageName.of(mine))]
    assert found, f"nobody is tried for {mine}, which there are credentials for"
    assert found == [*source.credentials(pod, ImageName.of(mine))], f"{mine} has two answers"
    leaked = [*source.credentials(pod, ImageName.of(others))]
    assert not set(found) & set(leaked), f"credentials for {mine} are handed to the registry of {others}"
    shown = [one.username for one in found if one.password and one.password in repr(one)]
    assert not shown, f"the passwords of {shown} show when they are printed"


@in_words
def check_hook_runner(hooks: HookRunner, good: HookCall, bad: HookCall, endless: HookCall, /) -> None:
    """Hold a `HookRunner` to its promises.

    Args:
        hooks: What to check.
        good: A hook that succeeds.
        bad: One that fails.
        endless: One that would take minutes, and says so in `timeout_s`.
    """
    try:
        well, badly = hooks.run_hook(good, ManualCancel()), hooks.run_hook(bad, ManualCancel())
    except Exception as error:
        raise AssertionError(f"a hook raised {error!r}; answer why it failed") from error
    assert well == "", "a hook that succeeds is said to have failed"
    assert badly, "a hook that fails is said to have succeeded"
    cancel = ManualCancel()
    ended = threading.Event()

    def run() -> None:
        hooks.run_hook(endless, cancel)
        ended.set()

    threading.Thread(target=run, daemon=True).start()
    cancel.set()
    assert ended.wait(10.0), "a hook that was asked to stop goes on"
