"""What ports of others answered: of the kind that they promise, or an error that says whose answer it was."""

from __future__ import annotations

from collections.abc import Mapping

from nodealloc._arguments import check, is_other, wrong
from nodealloc.dsw_asw import Cancel
from nodealloc.podlife._ports import CanStopConfiguring, Configures, Provided
from nodealloc.podlife._record import PodRecord
from nodealloc.podspec import Container, Pod
from nodealloc.runtime import ContainerConfig, LinuxResources, PodReport, SandboxConfig
from nodealloc.verdicts import Admitted, NotYet, Refused

__all__ = ["CheckedConfigures", "heard_of_hook", "made_id", "prepared", "taken_back"]

_PREPARED = (Admitted, Provided, NotYet, Refused)


def prepared(
    name: str, answer: Admitted | Provided | NotYet | Refused, /
) -> Admitted | Provided | NotYet | Refused:
    """What `make_ready` of a preparation answered; what it forgot to answer does not let a pod in.

    Raises:
        ConfigurationError: It is no answer.
    """
    expected = "an answer: Admitted(), Provided(…), NotYet(…) or Refused(…)"
    return check(f"preparation {name}: make_ready", answer, _PREPARED, expected)


def taken_back(name: str, answer: NotYet | None, /) -> NotYet | None:
    """What `take_back` of a preparation answered.

    Raises:
        ConfigurationError: It is no answer.
    """
    if answer is None:
        return None
    return check(f"preparation {name}: take_back", answer, NotYet, "None, or NotYet(…) to be asked again")


def made_id(call: str, answer: str, /) -> str:
    """The id of what a runtime has made.

    Raises:
        ConfigurationError: It is none.
    """
    if is_other(answer, str) or not answer:
        raise wrong(f"the runtime's {call}", answer, "the id of what was made, a text that is not empty")
    return answer


def heard_of_hook(answer: str, /) -> str:
    """Why a hook failed; "" where it did not.

    Raises:
        ConfigurationError: It says neither.
    """
    return check("run_hook", answer, str, 'a text that says why the hook failed, "" where it did not')


def unless_stopped(configures: Configures, cancel: Cancel, /) -> Configures:
    """One that hears of `cancel`, where it can; else the very same."""
    can: object = configures
    return can.unless_stopped(cancel) if isinstance(can, CanStopConfiguring) else configures


class CheckedConfigures:
    """Calls a `Configures`, which has to answer what it promises."""

    def __init__(self, configures: Configures) -> None:
        self._configures = configures

    def sandbox(self, pod: Pod, attempt: int, provided: Mapping[str, object], /) -> SandboxConfig:
        """See `Configures.sandbox`."""
        answer = self._configures.sandbox(pod, attempt, provided)
        return check("configuring: sandbox", answer, SandboxConfig, "a SandboxConfig")

    def sandbox_of(self, record: PodRecord, /) -> SandboxConfig | None:
        """What the sandbox of a pod is made from; None where that cannot be said, and none is made either."""
        try:
            return self.sandbox(record.pod, max(0, record.sandbox_attempt), record.provided)
        except Exception:  # noqa: BLE001 - who makes the sandbox tells why
            return None

    def container(  # noqa: PLR0917 - those of the port
        self,
        record: PodRecord,
        container: Container,
        attempt: int,
        image_id: str,
        report: PodReport,
        cancel: Cancel,
        /,
    ) -> ContainerConfig:
        """See `Configures.container`; one that can be stopped (`CanStopConfiguring`) hears of `cancel`."""
        answer = unless_stopped(self._configures, cancel).container(
            record, container, attempt, image_id, report
        )
        return check("configuring: container", answer, ContainerConfig, "a ContainerConfig")

    def resources(self, record: PodRecord, container: Container, /) -> LinuxResources:
        """See `Configures.resources`."""
        answer = self._configures.resources(record, container)
        return check("configuring: resources", answer, LinuxResources, "LinuxResources")
