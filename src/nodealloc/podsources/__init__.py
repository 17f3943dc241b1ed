"""Which pods should be here: what sources say, merged; static pods, mirror pods, twins.

```text
   files, HTTP, a watch ──▶ Saying ──▶ merge_saying(…) ──▶ changes, events, MergedSayings
                                              pure                      │
   Editions: which edition of a name is which pod                       ▼
   successor(wanted, left): who has a name, one at a time        by_uid(), has_heard()
```

- A *source* is where pods come from: the API, a folder, an address.
- A *static pod* comes from a source of the node's own. A *mirror pod* stands for it
  in the API, and is never run.
- *Twins* are two pods of one source with one full name.

A source was *heard* once it has said what all its pods are. Until all have been,
nothing may be destroyed:

    >>> from nodealloc.podspec import Container, Pod
    >>> web = Pod(uid="u", name="web", containers=(Container(name="app", image="web:1"),))
    >>> first = merge_saying(MergedSayings(), Saying(source="file", pods=(web,)))
    >>> [(one.op.value, [pod.name for pod in one.pods]) for one in first.changes]
    [('add', ['web'])]
    >>> first.merged.has_heard(["file", "api"])
    False
    >>> gone = merge_saying(first.merged, Saying(source="file"))
    >>> [(one.op.value, [pod.name for pod in one.pods]) for one in gone.changes]
    [('remove', ['web'])]

`FolderSource`, `HttpSource` and a `Source` of your own are read by `PodSources`, a group
of the engine. `Rules()` is what is right, `KUBELET` is as recorded.
"""

from nodealloc.podsources._changes import MergedSayings, Merging, PodChange, Saying, SourceOp
from nodealloc.podsources._codec import SOURCE_ROWS, editions_from_checkpoint, editions_to_checkpoint
from nodealloc.podsources._editions import Editions, Successor, Unfinished, successor
from nodealloc.podsources._folder import FolderSource
from nodealloc.podsources._http import HttpSource
from nodealloc.podsources._merge import merge_saying
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
    "MergedSayings",
    "Merging",
    "PodChange",
    "PodSources",
    "Polling",
    "Reading",
    "Rules",
    "Saying",
    "Source",
    "SourceOp",
    "Successor",
    "Unfinished",
    "editions_from_checkpoint",
    "editions_to_checkpoint",
    "is_mirror_of",
    "merge_saying",
    "mirror_of",
    "successor",
]
