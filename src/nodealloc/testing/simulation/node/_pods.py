"""Pods that a simulated node is asked to run, drawn from a seed."""

from __future__ import annotations

import random
from collections.abc import Mapping

import attrs

from nodealloc.podspec import (
    Container,
    ContainerPort,
    ExecAction,
    Json,
    Lifecycle,
    LifecycleHandler,
    Pod,
    PodSecurityContext,
    Probe,
    PullPolicy,
    Quantity,
    RestartPolicy,
    SecurityContext,
    Variable,
    Volume,
    VolumeUse,
)
from nodealloc.testing.simulation.node._behaviour import IMAGE, Behaviour
from nodealloc.testing.simulation.node._resources import RESOURCES

__all__ = [
    "LIVE",
    "MEMORY",
    "OWN",
    "POST_START",
    "PRE_STOP",
    "READY",
    "SHARED",
    "STARTED",
    "asked_again",
    "behaviour",
    "found_pod",
    "from_image",
    "is_for_reading",
    "last_pod",
    "over_pod",
    "random_pod",
    "rest_pod",
    "sized",
    "whole_pod",
]

_FOREVER = float("inf")
_HOOKS_S = (0.0, 0.0, 0.3, 1.5, 12.0, 90.0)
"""What hooks take; the last one longer than any pod may."""
READY, LIVE, STARTED = "ready", "live", "started"
PRE_STOP, POST_START = "pre-stop", "post-start"
"""Commands of probes and hooks."""
OWN, SHARED = "own", "shared"
"""Names of volumes: the pod's own, and the one that pods share."""
MEMORY = ("64Mi", "64Mi", "6Gi", "11Gi")
"""What a container asks for; a NUMA node of the simulated machine has 16 GiB."""
_SHARED = (("100m", "64Mi"), ("100m", "64Mi"), ("1900m", "64Mi"), ("100m", "13Gi"))
"""The same, and CPUs, of who has none of its own."""
_LOOPS = ("5", "9")
"""How uids end of pods whose first container ends soon after each start, so that it waits ever longer."""
_READERS = ("3", "7")
"""How uids end of pods that may only read the volume that pods share."""
_DEVICES_FIRST = ("0", "2", "4", "6", "8")
"""How uids end of pods whose init containers want a device each where the first main one does."""
_USER = 1000
"""The least number of a user as whom anything runs."""
_FROM = "FROM"
"""A variable that says from which image a container is made: both are of one form."""
_ALWAYS, _NEVER, _ONCE = 0.12, 0.1, 0.25
"""Of pods so many have their first container's image fetched for each start, or wait until it is there."""
_SAYS_STARTED, _STARTS_BADLY = 0.8, 0.5
"""Of sidecars so many say when they have started, and of their instances so many never do."""
_LASTS = 0.82
"""Of pods so many may be there for as long as anybody wants them; the others take their time to end then."""
_PORTS = (8080, 8080, 8081)
"""Ports of the node that a pod takes."""


def random_pod(
    rng: random.Random,
    name: str,
    uid: str,
    *,
    device_pods: float = 0.0,
    hooks: float = 0.3,
    is_critical: bool = False,
) -> Pod:
    """A pod of one to three containers, some with init containers, sidecars or CPUs of their own.

    One that is critical may ask for so much that others have to go.
    """
    policy = rng.choice(
        (RestartPolicy.ALWAYS, RestartPolicy.ALWAYS, RestartPolicy.ON_FAILURE, RestartPolicy.NEVER)
    )
    exclusive = rng.random() < 0.4
    own = (rng.choice((1, 1, 2, 3)), rng.choice(MEMORY))
    size = own if exclusive else rng.choice(_SHARED)
    if is_critical and rng.random() < 0.4:
        size = ("2100m", "64Mi")
    devices = (
        {rng.choice(list(RESOURCES)): Quantity.of(rng.choice((1, 1, 2)))}
        if rng.random() < device_pods
        else {}
    )
    init = tuple(
        _started(rng, sized(f"init-{place}", size, sidecar=rng.random() < 0.4))
        for place in range(rng.choice((0, 0, 1, 3)))
    )
    main = tuple(_watched(rng, sized(f"app-{place}", size), hooks) for place in range(rng.choice((1, 1, 2))))
    ports = (ContainerPort(container_port=80, host_port=rng.choice(_PORTS)),) * (rng.random() < 0.15)
    main = (attrs.evolve(_with(main[0], devices), ports=ports), *main[1:])
    if uid.endswith(_DEVICES_FIRST):
        # Theirs are the next ones' afterwards, but for those of a sidecar, which keeps them.
        init = tuple(_with(one, dict.fromkeys(devices, Quantity.of(1))) for one in init)
    lasts = rng.random() < _LASTS
    volumes = (OWN,) * (rng.random() < 0.3) + (SHARED,) * (rng.random() < 0.35)
    uses = tuple(VolumeUse(name=one, path=f"/{one}") for one in volumes)
    reads = tuple(attrs.evolve(one, read_only=True) for one in uses)
    # The first container may write, the others may not.
    main = tuple(attrs.evolve(one, volumes=reads if place else uses) for place, one in enumerate(main))
    init = tuple(attrs.evolve(one, volumes=reads[:1]) if rng.random() < 0.5 else one for one in init)
    main = (_fetched(rng, main[0], uid), *main[1:])
    return Pod(
        uid=uid,
        name=name,
        namespace="sim",
        containers=main,
        init_containers=init,
        volumes=tuple(_volume(one, uid) for one in volumes),
        restart_policy=policy,
        security_context=PodSecurityContext(run_as_user=_USER + int(uid[-1])),
        termination_grace_period_seconds=rng.choice((0, 1, 5, 30, 30) if lasts else (1, 30, 30)),
        active_deadline_seconds=None if lasts else rng.choice((5, 20, 60)),
    )


def _volume(name: str, uid: str) -> Volume:
    """One of a pod's volumes: of some pods the shared one is for reading, whoever uses it."""
    if name == SHARED and uid.endswith(_READERS):
        return Volume(name=name, kind="csi", spec={"driver": "sim.example", "readOnly": True})
    return Volume(name=name, kind="emptyDir")


def is_for_reading(pod: Pod, use: VolumeUse) -> bool:
    """Whether a container may not write there."""
    return use.read_only or any(
        one.name == use.name and one.spec.get("readOnly") is True for one in pod.volumes
    )


def _fetched(rng: random.Random, container: Container, uid: str) -> Container:
    """The same, perhaps with another policy of fetching its image, and then with one of its own."""
    lot = rng.random()
    if lot < _ALWAYS:
        return attrs.evolve(from_image(container, f"for-{uid}:0"), image_pull_policy=PullPolicy.ALWAYS)
    if lot < _ALWAYS + _NEVER:
        return attrs.evolve(from_image(container, f"of-{uid}:0"), image_pull_policy=PullPolicy.NEVER)
    if lot < _ALWAYS + _NEVER + _ONCE:
        return from_image(container, f"for-{uid}:0")
    return container


def from_image(container: Container, image: str) -> Container:
    """The same from another image, which is fetched where it is not there."""
    policy = container.image_pull_policy
    return attrs.evolve(
        container,
        image=image,
        variables=(Variable(name=_FROM, value=image),),
        image_pull_policy=None if policy is PullPolicy.NEVER else policy,
    )


def found_pod(uid: str) -> Pod:
    """A plain pod that ran here before the agent came."""
    amounts = {"cpu": Quantity.of("100m"), "memory": Quantity.of(MEMORY[0])}
    one = Container(name="app-0", image=IMAGE, requests=amounts)
    return Pod(uid=uid, name=f"found-{uid}", namespace="sim", containers=(one,))


def over_pod(uid: str) -> Pod:
    """A pod that ran here once and for all before the agent came, as its source has it; nothing is left."""
    at = "2026-01-01T00:00:00Z"
    ended: dict[str, Json] = {"exitCode": 0, "reason": "Completed", "startedAt": at, "finishedAt": at}
    state: dict[str, Json] = {"terminated": ended}
    told: dict[str, Json] = {
        "name": "app-0",
        "image": IMAGE,
        "state": state,
        "ready": False,
        "restartCount": 0,
    }
    status: dict[str, Json] = {"phase": "Succeeded", "containerStatuses": [told]}
    return attrs.evolve(found_pod(uid), restart_policy=RestartPolicy.NEVER, status=status)


def rest_pod(uid: str, *, cpus: str, priority: int | None = None) -> Pod:
    """A pod that takes so much of the CPUs that are shared for as long as anybody wants it."""
    amounts = {"cpu": Quantity.of(cpus), "memory": Quantity.of(MEMORY[0])}
    one = Container(name="app-0", image=IMAGE, requests=amounts)
    return Pod(
        uid=uid,
        name=uid,
        namespace="sim",
        containers=(one,),
        priority=priority,
        termination_grace_period_seconds=1,
    )


def last_pod(name: str, uid: str, *, cpus: str, ports: tuple[ContainerPort, ...] = ()) -> Pod:
    """A pod that runs once, and soon has to leave what it takes."""
    amounts = {"cpu": Quantity.of(cpus), "memory": Quantity.of(MEMORY[0])}
    one = Container(name="app-0", image=IMAGE, requests=amounts, ports=ports)
    return Pod(
        uid=uid,
        name=name,
        namespace="sim",
        containers=(one,),
        restart_policy=RestartPolicy.NEVER,
        termination_grace_period_seconds=1,
        active_deadline_seconds=60,
    )


def whole_pod(uid: str, *, cpus: int, memory_bytes: int, devices: int) -> Pod:
    """A pod of one container that has so much for itself; so many devices of each kind.

    An init container has had the same before it: there is no more than that.
    """
    amounts = {"cpu": Quantity.of(cpus), "memory": Quantity.of(memory_bytes)}
    amounts |= dict.fromkeys(RESOURCES, Quantity.of(devices)) if devices else {}
    one = Container(name="app-0", image=IMAGE, requests=amounts, limits=amounts)
    first = attrs.evolve(one, name="init-0")
    return Pod(uid=uid, name=uid, namespace="sim", containers=(one,), init_containers=(first,))


def behaviour(rng: random.Random, pod: Pod, container: str, *, is_calm: bool) -> Behaviour:
    """What an instance of a container does; a calm one runs until it is asked to end."""
    leaves_s = rng.choice((0.0, 0.1, 3.0, 20.0, _FOREVER, _FOREVER))
    answers_s = rng.choice((0.0, 0.0, 0.3, 1.5))
    init = next((one for one in pod.init_containers if one.name == container), None)
    if init is not None and not init.restartable:
        fails = not is_calm and rng.random() < 0.2
        return Behaviour(runs_s=rng.uniform(0.1, 20.0), code=1 if fails else 0, leaves_s=leaves_s)
    leaves_with = rng.choice((143, 143, 0))
    if pod.active_deadline_seconds is not None:
        leaves_s = rng.choice((3.0, 20.0, _FOREVER, _FOREVER))
    if is_calm:
        hooks_s = ((PRE_STOP, rng.choice(_HOOKS_S)),)
        return Behaviour(
            runs_s=_FOREVER,
            code=0,
            leaves_s=leaves_s,
            leaves_with=leaves_with,
            answers_s=answers_s,
            hooks_s=hooks_s,
        )
    ends, mean_s = rng.random() < 0.4, rng.choice((60.0, 60.0, 60.0, 0.5))
    if pod.uid.endswith(_LOOPS) and container == "app-0":
        ends, mean_s = True, 0.5
    return Behaviour(
        runs_s=rng.expovariate(1 / mean_s) if ends else _FOREVER,
        code=rng.choice((0, 0, 1, 2)),
        leaves_s=leaves_s,
        leaves_with=leaves_with,
        answers_s=answers_s,
        hooks_s=((PRE_STOP, rng.choice(_HOOKS_S)), (POST_START, rng.choice(_HOOKS_S[:-1]))),
        fails=frozenset(
            one
            for one in (STARTED, POST_START, PRE_STOP)
            if rng.random() < (_STARTS_BADLY if one == STARTED and init is not None else 0.2)
        ),
    )


def asked_again(pod: Pod, container: str) -> list[str]:
    """Commands that one of a pod's main containers, or a sidecar, is asked again and again."""
    return [
        command
        for one in pod.all_containers
        if one.name == container
        for command, probe in ((READY, one.readiness_probe), (LIVE, one.liveness_probe))
        if probe is not None
    ]


def sized(name: str, size: tuple[int | str, str], *, sidecar: bool = False) -> Container:
    """One with CPUs of its own and memory, or, without such CPUs, one that shares."""
    cpus, memory = size
    amounts = {"cpu": Quantity.of(cpus), "memory": Quantity.of(memory)}
    return Container(
        name=name,
        image=IMAGE,
        entrypoint=("work",),
        args=(name,),
        working_dir=f"/{name}",
        variables=(Variable(name=_FROM, value=IMAGE),),
        requests=amounts,
        limits=amounts if isinstance(cpus, int) else {},
        restartable=sidecar,
        # The first one runs as its pod says.
        security_context=None if name == "app-0" else SecurityContext(run_as_user=_USER + len(name)),
    )


def _with(container: Container, devices: Mapping[str, Quantity]) -> Container:
    """The same with devices of its own."""
    if not devices:
        return container
    return attrs.evolve(
        container,
        requests={**container.requests, **devices},
        limits={**container.limits, **devices},
    )


def _watched(rng: random.Random, container: Container, hooks: float) -> Container:
    """The same, perhaps with probes and hooks."""
    wants, name = rng.random, container.name
    return attrs.evolve(
        container,
        readiness_probe=(
            attrs.evolve(
                _probe(READY, name, period_s=5, failures=rng.choice((1, 2))),
                success_threshold=rng.choice((1, 1, 3)),
                initial_delay_seconds=rng.choice((0, 0, 7)),
            )
            if wants() < 0.4
            else None
        ),
        liveness_probe=(
            attrs.evolve(
                _probe(LIVE, name, period_s=rng.choice((3, 10)), failures=3),
                termination_grace_period_seconds=rng.choice((None, 2)),
            )
            if wants() < 0.4
            else None
        ),
        startup_probe=(
            _probe(STARTED, name, period_s=2, failures=rng.choice((3, 30))) if wants() < 0.25 else None
        ),
        lifecycle=Lifecycle(
            pre_stop=_hook(PRE_STOP, name) if wants() < hooks else None,
            post_start=_hook(POST_START, name) if wants() < hooks / 1.5 else None,
        ),
    )


def _started(rng: random.Random, container: Container) -> Container:
    """The same; a sidecar perhaps with probes that say when it has started, and whether it is well."""
    if not container.restartable:
        return container
    name = container.name
    started = _probe(STARTED, name, period_s=2, failures=3) if rng.random() < _SAYS_STARTED else None
    alive = _probe(LIVE, name, period_s=3, failures=3) if rng.random() < 0.6 else None
    return attrs.evolve(container, startup_probe=started, liveness_probe=alive)


def _hook(command: str, whose: str) -> LifecycleHandler:
    return LifecycleHandler(exec=ExecAction(command=(command, whose)))


def _probe(command: str, whose: str, *, period_s: int, failures: int) -> Probe:
    return Probe(
        exec=ExecAction(command=(command, whose)),
        period_seconds=period_s,
        failure_threshold=failures,
        timeout_seconds=2,
    )
