"""Which pods should be here: what sources say, merged; static pods, mirror pods, twins.

```text
   files, HTTP, a watch ──▶ PodUpdate ──▶ merge_update(…) ──▶ changes, events, MergedUpdates
                                                pure                       │
   Editions: which edition of a name is which pod                          ▼
                                                                    by_uid(), has_heard()
```

- A *source* is where pods come from: the API, a folder, an address.
- A *static pod* comes from a source of the node's own. A *mirror pod* stands for it
  in the API, and is never run.
- *Twins* are two pods of one source with one full name.

A source was *heard* once it has said what all its pods are. Until all have been,
nothing may be destroyed:

    >>> from nodealloc.podspec import Container, Pod
    >>> web = Pod(uid="u", name="web", containers=(Container(name="app", image="web:1"),))
    >>> first = merge_update(MergedUpdates(), PodUpdate(source="file", pods=(web,)))
    >>> [(one.op.value, [pod.name for pod in one.pods]) for one in first.changes]
    [('add', ['web'])]
    >>> first.merged.has_heard(["file", "api"])
    False
    >>> gone = merge_update(first.merged, PodUpdate(source="file"))
    >>> [(one.op.value, [pod.name for pod in one.pods]) for one in gone.changes]
    [('remove', ['web'])]

`FolderSource`, `HttpSource` and a `Source` of your own are read by `PodSources`, a group
of the engine. `Rules()` is what is right, `KUBELET` is as recorded.
"""

from nodealloc.podsources._changes import MergedUpdates, Merging, PodChange, PodUpdate, SourceOp
from nodealloc.podsources._codec import SOURCE_ROWS, editions_from_checkpoint, editions_to_checkpoint
from nodealloc.podsources._editions import Editions
from nodealloc.podsources._folder import FolderSource
from nodealloc.podsources._http import HttpSource
from nodealloc.podsources._merge import merge_update
from nodealloc.podsources._ports import Reading, Source
from nodealloc.podsources._rules import KUBELET, Rules
from nodealloc.podsources._sources import PodSources, Polling
from nodealloc.podsources._static import is_mirror_of, mirror_of

__all__ = [
    "KUBELET",
    "SOURCE_ROWS",
    "Editions",
    "FolderSource",
    "HttpSource",
    "MergedUpdates",
    "Merging",
    "PodChange",
    "PodSources",
    "PodUpdate",
    "Polling",
    "Reading",
    "Rules",
    "Source",
    "SourceOp",
    "editions_from_checkpoint",
    "editions_to_checkpoint",
    "is_mirror_of",
    "merge_update",
    "mirror_of",
]
