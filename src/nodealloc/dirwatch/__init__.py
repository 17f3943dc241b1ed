"""When to look at a directory again: one room for whoever watches.

::

    watcher = InotifyWatcher("/etc/manifests", below=False)
    while watcher.wait(60.0):
        look()

A `Watcher` says when; what is there, the look finds out. `pluginreg` looks for
sockets, `podsources` for manifests; `nodealloc.testing.dirwatch` has one that a
test pokes, and `check_watcher`.
"""

from nodealloc.dirwatch._inotify import InotifyWatcher
from nodealloc.dirwatch._ports import Watcher

__all__ = ["InotifyWatcher", "Watcher"]
