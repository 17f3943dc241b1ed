"""Real containers: the ports of `nodealloc.runtime` spoken to containerd, CRI-O and others over CRI v1.

    runtime = CriRuntime("/run/containerd/containerd.sock")
    watch = RuntimeWatch(runtime, events=runtime)

`CriRuntime` is every port in one. Labels and annotations are a kubelet's: its
containers are seen as its pods, and it sees ours.

`CriCpusetWriter` confines containers through the runtime, which then does not
undo it; `read_log`, `follow_log` and `last_output` read what containers wrote.
"""

from nodealloc.cri._cpusets import CriCpusetWriter
from nodealloc.cri._logs import LogLine, follow_log, last_output, read_log
from nodealloc.cri._runtime import CriDeadlines, CriRuntime

__all__ = [
    "CriCpusetWriter",
    "CriDeadlines",
    "CriRuntime",
    "LogLine",
    "follow_log",
    "last_output",
    "read_log",
]
