"""A runtime over CRI is every port in one; nothing is dialled before the first call."""

from __future__ import annotations

from typing import assert_type

from nodealloc.cpuset import CpusetWriter
from nodealloc.cri import CriCpusetWriter, CriDeadlines, CriRuntime, LogLine
from nodealloc.runtime import CommandRunner, Images, RuntimeUnavailableError, RuntimeWatch
from nodealloc.testing.runtime import ContainerRuntime

runtime = CriRuntime("/nowhere/containerd.sock", deadlines=CriDeadlines(look_s=5.0))
ports: tuple[ContainerRuntime, Images, CommandRunner] = (runtime, runtime, runtime)
writer: CpusetWriter = CriCpusetWriter(runtime)
watch = RuntimeWatch(runtime, events=runtime)
assert_type(LogLine.of(b"").unix_s, float | None)
try:
    ports[0].listing()
    refused = ""
except RuntimeUnavailableError as error:
    assert_type(error.after_s, float)
    refused = error.call
assert refused == "ListPodSandbox"
