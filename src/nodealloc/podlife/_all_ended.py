"""Whether a pod is over by its phase, as a kubelet asks before it decides anything of its containers.

Source: kubelet ``kubelet_pods.go``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nodealloc.podspec import RestartPolicy
from nodealloc.runtime import RunState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nodealloc.podlife._newest import Latest
    from nodealloc.podspec import Pod

__all__ = ["all_ended"]

# A member of an enum costs a call at each use before Python 3.12, and these are used for every container.
_EXITED: Final = RunState.EXITED
_POLICY_ALWAYS: Final = RestartPolicy.ALWAYS
_POLICY_NEVER: Final = RestartPolicy.NEVER


def all_ended(pod: Pod, newest: Mapping[str, Latest], /) -> bool:
    """Whether nothing of a pod runs, and its policy starts none of its main containers again.

    A sidecar that has ended does not count, though it waits to start again; nor does an init container
    or a sidecar without a record: as main containers have run, it ran before them.

    Args:
        pod: As it is wanted.
        newest: The newest instance of each container.
    """
    if pod.restart_policy is _POLICY_ALWAYS:
        return False
    if any(one.name in newest and newest[one.name].state is not _EXITED for one in pod.init_containers):
        return False
    mains = [newest.get(one.name) for one in pod.containers]
    return all(
        one is not None and one.state is _EXITED and (pod.restart_policy is _POLICY_NEVER or one.succeeded)
        for one in mains
    )
