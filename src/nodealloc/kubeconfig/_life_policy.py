"""How patient an agent is with containers and the runtime, from a configuration; pure."""

from __future__ import annotations

from typing import Final

from nodealloc._typed import typed
from nodealloc.errors import ConfigurationError
from nodealloc.kubeconfig._configuration import KubeletConfig
from nodealloc.podlife import LifePolicy, RestartBackOff

__all__ = ["life_policy"]

_LONGEST_S: Final = 300.0
_BASE_S: Final = 10.0
"""A container's first wait, unless the longest is shorter."""


@typed
def life_policy(config: KubeletConfig, /) -> LifePolicy:
    """How patient a configuration is with containers and the runtime.

    Raises:
        ConfigurationError: Images are to be fetched one at a time and several at once; the longest wait
            between restarts is out of bounds, or without its feature.

    Source: kubelet ``kubelet.go``; client-go ``flowcontrol/backoff.go``, where twice the longest wait
    after a start an end begins anew.
    """
    most, serial = config.max_parallel_image_pulls, config.serialize_image_pulls
    several = most is not None and most > 1
    if serial and several:
        raise ConfigurationError(
            f"maxParallelImagePulls is {most} where serializeImagePulls is true; leave one of them out"
        )
    cap_s = _longest_wait_s(config)
    return LifePolicy(
        restarts=RestartBackOff(base_s=min(_BASE_S, cap_s), cap_s=cap_s, reset_after_s=2 * cap_s),
        call_s=config.runtime_request_timeout_s,
        pulls_at_once=most if several or serial is False else 1,
    )


def _longest_wait_s(config: KubeletConfig) -> float:
    said = config.crash_loop_back_off.max_container_restart_period_s
    if said is None:
        return _LONGEST_S
    if not config.feature_gates.get("KubeletCrashLoopBackOffMax", False):
        raise ConfigurationError("crashLoopBackOff needs featureGates: KubeletCrashLoopBackOffMax: true")
    if not 1 <= said <= _LONGEST_S:
        raise ConfigurationError(f"crashLoopBackOff: maxContainerRestartPeriod is {said} s; give 1s to 300s")
    return said
