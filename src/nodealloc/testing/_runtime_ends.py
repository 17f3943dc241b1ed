"""What a container runtime is held to about ends: nobody else can say how a container ended."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final, Protocol

from nodealloc.podfacts import Exited, ExitUnknown
from nodealloc.runtime import (
    ContainerConfig,
    ContainerReport,
    Containers,
    Exit,
    Looks,
    PodReport,
    RunState,
    SandboxConfig,
)

__all__ = ["check_ends", "check_known", "check_reported"]

_LONG_S: Final = 30.0
"""How long a container that ends by itself may take on a machine that is busy otherwise."""


def check_reported(report: PodReport, container_id: str) -> ContainerReport:
    """That of one container, which is there once."""
    found = [one for one in report.containers if one.record.id == container_id]
    assert len(found) == 1, f"{container_id} is there, and reported {len(found)} times"
    return found[0]


def check_known(ended: ContainerReport) -> Exit:
    """It has ended, and the runtime, which ended it, knows how and when."""
    assert ended.exit is not None, "it has exited without an exit"
    assert not isinstance(ended.exit, ExitUnknown), (
        "it was stopped, and how it ended is not known; whoever ends a container keeps its exit status"
    )
    assert ended.finished_unix_s is not None, "it was stopped, and nobody knows when it ended"
    assert ended.finished_unix_s >= (ended.started_unix_s or 0.0), (
        f"started at {ended.started_unix_s}, and said to have ended at {ended.finished_unix_s}"
    )
    return ended.exit


class _Runtime(Looks, Containers, Protocol):
    """What is asked of it here."""


def check_ends(
    runtime: _Runtime, box: str, sandbox: SandboxConfig, ends: Mapping[int, ContainerConfig]
) -> None:
    """Containers that end by themselves are told with the exit status that they left."""
    assert len(ends) != 1, "give containers that leave with different statuses, such as 0 and 3"
    for code, config in ends.items():
        made = runtime.create_container(box, config, sandbox)
        runtime.start_container(made)
        told = _ended(runtime, sandbox.pod.uid, made).exit
        left = told.code if isinstance(told, Exited) else told
        assert left == code, f"{config.name} left with {code}, and is said to have ended with {told}"
        runtime.stop_container(made, 0.0)
        again = check_reported(runtime.inspect(sandbox.pod.uid), made).exit
        assert again == told, f"{config.name} ended with {told}, and with {again} once it was stopped"
        runtime.remove_container(made)


def _ended(runtime: _Runtime, uid: str, made: str) -> ContainerReport:
    until_s = time.monotonic() + _LONG_S
    while (report := check_reported(runtime.inspect(uid), made)).record.state is not RunState.EXITED:
        assert time.monotonic() < until_s, (
            f"{made} should end by itself, and is {report.record.state.value} after {_LONG_S:g} s"
        )
        time.sleep(0.02)
    return report
