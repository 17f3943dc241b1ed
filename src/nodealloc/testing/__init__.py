"""The kit with which policies, adapters and ports are tested, for users as for us.

| module                 | holds                                                                |
|------------------------|----------------------------------------------------------------------|
| `testing.topology`     | a fake allocator; checks of allocators, comparisons and reports      |
| `testing.machine`      | recorded machines; a sysfs tree written from any machine             |
| `testing.cpuset`       | a fake writer; checks of writers and pickers                         |
| `testing.memblocks`    | `check_books`: no byte granted twice, lost, or counted wrongly       |
| `testing.checkpoint`   | `check_store`, faults at every system call, a disk that loses power  |
| `testing.dsw_asw`      | a clock that stands still, an executor that waits, `check_transitions` |
| `testing.simulation`   | a program in virtual time: a seed is a life with faults and restarts |
| `testing.podfacts`     | a fake source of pods; its check                                     |
| `testing.admission`    | `check_admission_handler`, with pods and nodes to judge                        |
| `testing.podsources`   | a fake source and waker; their checks                                |
| `testing.podlife`      | fakes and checks of who prepares, configures and runs hooks          |
| `testing.podstatus`    | a fake sink of statuses that fails on demand; its check              |
| `testing.cgroups`      | a fake driver; checks of limits, processes and trees                 |
| `testing.volumes`      | a fake host, mounter and claims; `check_mounter`                     |
| `testing.volume_plugins`| fakes of block tools; `check_plugin`                                |
| `testing.volume_sources`| fakes and checks of who tells of claims, attachments, content       |
| `testing.pluginreg`    | fakes and checks of watchers, registrations and handlers             |
| `testing.runtime`      | a container runtime in memory that misbehaves on demand; its checks  |
| `testing.probes`       | a prober that says what a test wants; checks of probers              |
| `testing.devices`      | a plugin as an object or a process; checks of connections and keepers |
| `testing.abilities`    | an allocator that can do all; checks of what allocators can do       |
| `testing.node`         | fakes of runtime and advisor; checks of both, and of a kubelet's files |
| `testing.device_plugin`| `python -m`: a real device plugin that misbehaves on demand          |
| `testing.pytest_plugin`| pytest fixtures: machines, nodes, a restart, a clock; needs pytest   |
| `testing.conformance`  | `python -m`: replay of recorded decisions                            |
| `testing.strategies`   | Hypothesis strategies, one module a package; needs Hypothesis        |

Machines are described in one line by `nodealloc.machine.machine_from_text`.
"""

__all__: list[str] = []
