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


def all_ended(pod: Pod, newest: Mapping[str, Latest], shown: Mapping[str, bool], /) -> bool:
    """Whether nothing of a pod runs, and its policy starts none of its main containers again.

    A sidecar that has ended does not count, though it waits to start again. What was shown and is gone
    has ended, in an unknown way if it ran: an init container of a pod that never starts again has failed.

    Args:
        pod: As it is wanted.
        newest: The newest instance of each container.
        shown: Container name to whether the instance that was shown last had ended with 0.
    """
    policy = pod.restart_policy
    if policy is _POLICY_ALWAYS:
        return False
    if policy is _POLICY_NEVER and any(
        one.name not in newest and shown.get(one.name) is False
        for one in pod.init_containers
        if not one.restartable
    ):
        return True
    for one in (*pod.init_containers, *pod.containers):
        latest = newest.get(one.name)
        if one.name not in shown if latest is None else latest.state is not _EXITED:
            return False
    return policy is _POLICY_NEVER or all(
        newest[one.name].succeeded if one.name in newest else shown[one.name] for one in pod.containers
    )
