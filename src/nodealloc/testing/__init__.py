"""The kit with which policies, adapters and ports are tested, for users as for us.

| module                 | holds                                                                |
|------------------------|----------------------------------------------------------------------|
| `testing.topology`     | a fake allocator; `check_allocator` for any `Allocator`              |
| `testing.machine`      | recorded machines; a sysfs tree written from any machine             |
| `testing.cpuset`       | a fake writer; `check_cpuset_writer`                                 |
| `testing.memblocks`    | checks of memory states                                              |
| `testing.checkpoint`   | `check_store`, faults at every system call, a disk that loses power  |
| `testing.dsw_asw`      | a clock that stands still, an executor that waits, `check_transitions` |
| `testing.cgroups`      | a fake driver; `check_cgroup_driver`                                 |
| `testing.volumes`      | a fake host of mounts; `check_mounter`                               |
| `testing.volume_plugins`| fakes of block tools; `check_plugin`                                |
| `testing.volume_sources`| fakes and checks of who tells of claims, attachments, content       |
| `testing.pluginreg`    | fakes of watchers and handlers; `check_watcher`                      |
| `testing.devices`      | fakes of the plugin side                                             |
| `testing.node`         | fakes of runtime and advisor; `check_runtime`, `check_keeper`        |
| `testing.device_plugin`| `python -m`: a real device plugin that misbehaves on demand          |
| `testing.pytest_plugin`| pytest fixtures: machines, nodes, a restart, a clock; needs pytest   |
| `testing.conformance`  | `python -m`: replay of recorded decisions                            |
| `testing.strategies`   | Hypothesis strategies, one module a package; needs Hypothesis        |

Machines are described in one line by `nodealloc.machine.machine_from_text`.
"""

__all__: list[str] = []
