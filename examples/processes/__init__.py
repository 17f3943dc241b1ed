"""Processes as containers: an adapter of `nodealloc.runtime`'s ports that needs no container runtime.

One *keeper* process starts all containers and outlives whoever uses it, as a
containerd's shims do: it is their parent, and the reaper of what they orphan.
It records how each ended, also while no agent runs, and leaves when nothing
runs and nobody is connected. What stands on disk is enough to find everything
again: pid, start time and boot of each container's process. What runs of one of
which nothing stands there any more is found by a variable that all its processes
begin with (`NODEALLOC_CONTAINER`), and ended: its pod would run twice.

A container is a cgroup: all processes in it end with it, also those that left
their session. Where cgroups are refused, its session takes their place; the
reason is told by `health()`. Containers see the machine's files and network.
An image is a name. A mount becomes a variable that holds the host's path
(`MOUNT_DATA` for `/data`), and a log holds what was written, without times.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from nodealloc.podfacts import PodIdentity
    >>> from nodealloc.runtime import ContainerConfig, SandboxConfig
    >>> box = SandboxConfig(pod=PodIdentity(uid="u", namespace="default", name="web"))
    >>> with tempfile.TemporaryDirectory() as folder, ProcessRuntime(Path(folder)) as runtime:
    ...     sandbox = runtime.run_sandbox(box)
    ...     config = ContainerConfig(name="app", image="", command=("true",))
    ...     app = runtime.create_container(sandbox, config, box)
    ...     runtime.start_container(app)
    ...     runtime.stop_sandbox(sandbox)
    ...     print([one.record.state.value for one in runtime.inspect("u").containers])
    ...     runtime.remove_sandbox(sandbox)
    ['exited']
"""

from __future__ import annotations

from examples.processes._cpusets import ProcessCpusets
from examples.processes._runtime import ProcessRuntime

__all__ = ["ProcessCpusets", "ProcessRuntime"]
