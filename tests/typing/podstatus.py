"""A status decided, kept and merged."""

from __future__ import annotations

from typing import assert_type

from nodealloc.podfacts import PodStatus
from nodealloc.podspec import Container, Pod
from nodealloc.podstatus import KUBELET, Observed, Told, merge_status, status_of, take_status

web = Pod(uid="u", name="web", containers=(Container(name="app"),))
status = status_of(Observed(pod=web), rules=KUBELET)
assert_type(status, PodStatus)
told = take_status(None, web, status, now_unix_s=1.0)
assert_type(told, Told | None)
assert told is not None
assert_type(merge_status(PodStatus(), told.status, could_run=False, now_unix_s=2.0), PodStatus)
