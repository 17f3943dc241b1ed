"""nodealloc: the reconcilers that run a machine, for node agents, schedulers and policy writers.

```text
desired ──┐
          ├─▶ plan() ─▶ Plan ─▶ apply() ─▶ your adapter ─▶ node
actual  ──┘   pure      value   only I/O         │
   ▲──────────────── read() ◀────────────────────┘
```

| package       | desired                    | actual                      | adapter you write          |
|---------------|----------------------------|-----------------------------|----------------------------|
| `verdicts`    | admitted, refused, not yet | –                           | –                          |
| `dirwatch`    | –                          | that a directory changed    | `Watcher`                  |
| `podspec`     | pods, quantities, QoS      | –                           | –                          |
| `checkpoint`  | –                          | what was decided before     | `Store`                    |
| `dsw_asw`     | any keyed records          | any keyed records           | `Domain`, `Clock`          |
| `allocatable` | what is reserved           | what is left to give        | –                          |
| `podfacts`    | –                          | a pod's status, life, node  | `PodSource`                |
| `machine`     | –                          | CPUs, caches, NUMA nodes    | –                          |
| `topology`    | a workload of claims       | a snapshot of a node        | `Allocator`, `Comparison`  |
| `volumes`     | the pods' volumes          | mounts, attached devices    | `Mounter`, volume plugins  |
| `pluginreg`   | sockets below a directory  | registered plugins          | `PluginHandler`            |
| `cgroups`     | the pods' cgroups, limits  | the cgroup file system      | `CgroupDriver`             |
| `podsources`  | pods, by source            | what is told of them        | `Source`                   |
| `runtime`     | –                          | sandboxes, containers       | `Looks`, `Containers`      |
| `probes`      | probes of containers       | verdicts: started, ready    | `Prober`                   |
| `admission`   | pods that want to come in  | a view of the node          | handlers                   |
| `cpuset`      | exclusive and shared CPUs  | cpusets of containers       | `CpusetWriter`, `Picker`   |
| `memblocks`   | memory and huge pages      | free bytes per NUMA node    | –                          |
| `devices`     | devices by resource        | what plugins report         | –                          |
| `podlife`     | pods that are to live here | what runs of them           | `Preparer`                 |
| `podstatus`   | what is true of a pod      | what was told of it         | a sink                     |
| `node`        | pods or claims             | everything that is held     | `Runtime`, `Store`         |
| `cri`         | –                          | containerd, CRI-O           | a runtime's socket         |
| `agent`       | all of the above           | all of the above            | a sink, sources, a runtime |
| `kubeconfig`  | a KubeletConfiguration     | –                           | –                          |
| `testing`     | –                          | –                           | fakes, `check_*`, replay   |

Lowest layer first: a package imports from lower layers only. Import the package
that you need; nothing is imported here. `idset` holds the sets of CPUs and nodes
that all of them speak of, `errors` answers "retry or not?", `verdicts` "may it or
not?".
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    __version__: str
else:

    def __getattr__(name: str) -> str:
        """The version is looked up when somebody asks: what looks takes longer to load than all of this."""
        if name != "__version__":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415

        try:
            return version(__name__)
        except PackageNotFoundError:
            return "0+source"


__all__: list[str] = []
