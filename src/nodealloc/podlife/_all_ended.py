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

    A sidecar that has ended does not count, though it waits to start again.

    Args:
        pod: As it is wanted.
        newest: The newest instance of each container.
    """
    if pod.restart_policy is _POLICY_ALWAYS:
        return False
    for one in (*pod.init_containers, *pod.containers):
        latest = newest.get(one.name)
        if latest is None or latest.state is not _EXITED:
            return False
    return pod.restart_policy is _POLICY_NEVER or all(newest[one.name].succeeded for one in pod.containers)
