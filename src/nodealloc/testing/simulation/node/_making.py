"""Checkers of what containers are made from: images as their policies fetch them, and what is their own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nodealloc.podspec import Container, ContainerPort, Pod, PullPolicy
from nodealloc.testing.simulation.node._environment import Environment
from nodealloc.testing.simulation.node._events import Event, Ran, What
from nodealloc.testing.simulation.node._guarantee import Guarantee
from nodealloc.testing.simulation.node._pods import OWN, is_for_reading

__all__ = ["CommandsAreTheirs", "FetchedByPolicy", "MadeOfTheirOwn", "SandboxesAreTheirs"]


class FetchedByPolicy(Guarantee):
    """Ours: what a pull policy says."""

    words = "an image is fetched for each start, once, or never, as its container says"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._fetched: dict[str, int] = {}
        self._started: dict[tuple[str, str, str], int] = {}

    def heard(self, event: Event, /) -> None:
        """What is there is fetched for who wants that alone; who wants it starts from what was fetched."""
        if event.what is What.PULLED:
            policies = {one.image_pull_policy for _, one in self.wanted_from(event.id)}
            assert policies != {PullPolicy.NEVER}, f"{event.id} is fetched, and is to be there or not at all"
            assert not event.value or PullPolicy.ALWAYS in policies, (
                f"{event.id} is fetched, and is there; nobody wants it to be fetched for each start"
            )
            self._fetched[event.id] = self._fetched.get(event.id, 0) + 1
        container = self.container(event) if event.what is What.STARTED else None
        image = self.environment.containers.image_of(event.id)
        if container is None or container.image != image:
            return
        key, times = (event.uid, event.name, image), self._fetched.get(image, 0)
        assert container.image_pull_policy is not PullPolicy.ALWAYS or times > self._started.get(key, 0), (
            f"{event.uid}/{event.name} starts, and {image} was not fetched since it started before"
        )
        self._started[key] = times


class _Own(NamedTuple):
    """What a container has that no other one of its pod has, nor itself in another form."""

    words: tuple[str, ...]
    directory: str
    user: int | None
    variables: frozenset[tuple[str, str]]
    volumes: frozenset[tuple[str, bool]]


class MadeOfTheirOwn(Guarantee):
    """Guarantee 3: no half of a form."""

    words = (
        "a container is made with its own command, directory, user, variables and volumes, all of one form "
        "of its pod, and may write only where that says so"
    )

    def heard(self, event: Event, /) -> None:
        """There is a form in which it is to have all of that, from that image."""
        config = self.environment.containers.made_with.get(event.id) if event.what is What.MADE else None
        wanted = {self._of(form, one) for form, one in self._forms(event)}
        if config is None or not wanted:
            return
        named = {name for one in wanted for name, _ in one.variables}
        paths = {
            use.path
            for form in self.environment.forms.of(event.uid)
            for one in form.all_containers
            for use in one.volumes
        }
        made = _Own(
            (*config.command, *config.args),
            config.working_dir,
            config.security.user if any(one.user is not None for one in wanted) else None,
            frozenset((name, value) for name, value in config.env.items() if name in named),
            frozenset(
                (one.container_path, one.read_only) for one in config.mounts if one.container_path in paths
            ),
        )
        assert made in wanted, (
            f"{event.uid}/{event.name} is made with {_words(made)}; "
            f"it is to have {' or '.join(map(_words, wanted))}"
        )
        strange = [
            one.host_path
            for one in config.mounts
            if one.container_path == f"/{OWN}" and event.uid not in one.host_path.split("/")
        ]
        assert not strange, f"{event.uid}/{event.name} is made with {strange[0]}, which is another pod's"

    def _forms(self, event: Event) -> Iterator[tuple[Pod, Container]]:
        image = self.environment.containers.image_of(event.id)
        for form in self.environment.forms.of(event.uid):
            for one in (*form.all_containers, *form.ephemeral_containers):
                if (one.name, one.image) == (event.name, image):
                    yield form, one

    def _of(self, form: Pod, container: Container) -> _Own:
        return _Own(
            container.command,
            container.working_dir,
            _user(form, container),
            frozenset((one.name, one.value) for one in container.variables),
            frozenset((use.path, is_for_reading(form, use)) for use in container.volumes),
        )


def _words(own: _Own) -> str:
    variables = (f"{name}={value}" for name, value in sorted(own.variables))
    volumes = (f"{path} to read" if reads else path for path, reads in sorted(own.volumes))
    where = (f"in {own.directory}",) * bool(own.directory)
    who = () if own.user is None else (f"as {own.user}",)
    return " ".join([*own.words, *where, *who, *variables, *volumes]) or "nothing"


def _user(pod: Pod, container: Container) -> int | None:
    """As whom it runs: as it says itself, or as its pod does."""
    for said in (container.security_context, pod.security_context):
        if said is not None and said.run_as_user is not None:
            return said.run_as_user
    return None


class SandboxesAreTheirs(Guarantee):
    """Guarantee 3, of what all of a pod's containers share."""

    words = "a sandbox is made with its pod's name and the ports of the node that one form of it takes"

    def heard(self, event: Event, /) -> None:
        """There is a form that takes just these."""
        config = (
            self.environment.containers.boxes_with.get(event.id) if event.what is What.SANDBOX_MADE else None
        )
        forms = self.environment.forms.of(event.uid)
        if config is None or not forms or event.asked_s is None:
            return
        assert config.hostname == forms[-1].name, (
            f"a sandbox of {event.uid} is named {config.hostname!r}, and its pod {forms[-1].name!r}"
        )
        made = {(one.host_port, one.container_port) for one in config.ports if one.host_port}
        taken = [
            {(port.host_port, port.container_port) for port in _ports(form) if port.host_port}
            for form in forms
        ]
        assert made in taken, f"a sandbox of {event.uid} has the ports {made}, and takes {taken[-1]}"


def _ports(pod: Pod) -> Iterator[ContainerPort]:
    return (port for one in pod.all_containers for port in one.ports)


class CommandsAreTheirs(Guarantee):
    """Guarantee 4."""

    words = "probes and hooks run in the container that they are written for"

    def heard(self, event: Event, /) -> None:
        """A command that names a container runs in no other one."""
        if isinstance(event.value, Ran):
            whose = event.value.whose
            assert whose in {"", event.name}, (
                f"{event.value.command} of {whose} is run in {event.uid}/{event.name}"
            )
