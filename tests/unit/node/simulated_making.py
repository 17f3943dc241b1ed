"""Bugs of what containers are made from, of what starts again, and of what never comes: each is found."""

from __future__ import annotations

from tests.unit.node.simulated_changes import Change

__all__ = ["MAKING"]

MAKING = {
    "reason-overwritten": Change(
        "a later reason of an end takes the place of the first",
        "podlife/_ending.py",
        "ending=record.ending or next(iter(reasons), None)",
        "ending=next(iter(reasons), None) or record.ending",
        "calm",
    ),
    "always-policy-ignored": Change(
        "an image that is to be fetched for each start is taken as it is",
        "podlife/_images.py",
        "found = None if policy is PullPolicy.ALWAYS else self._found(name)",
        "found = self._found(name)",
        "calm",
    ),
    "never-policy-pulls": Change(
        "an image that is never to be fetched is",
        "podlife/_images.py",
        "if found is None and policy is PullPolicy.NEVER:",
        "if found is None and policy is None:",
        "calm",
    ),
    "image-of-start-before": Change(
        "the image that was found for one start is used for the next ones",
        "podlife/_settling.py",
        "images = reduced(after.images, name) if name in after.images else after.images",
        "images = after.images",
        "calm",
    ),
    "owed-restart-forgotten": Change(
        "who was stopped to start again and leaves with 0 stays ended under OnFailure",
        "podlife/_syncing.py",
        "            if _starts_again(plan, stop):\n                owed",
        "            if False:\n                owed",
        "outages",
    ),
    "two-sandboxes-fine": Change(
        "several sandboxes of a pod that are ready are fine",
        "runtime/_reports.py",
        "        if len(self.sandboxes) > 1 and sum([one.record.is_ready for one in self.sandboxes]) > 1:",
        "        if len(self.sandboxes) > 9:",
        "outages",
    ),
    "init-done-in-any-sandbox": Change(
        "init containers that succeeded in one sandbox are over in the next",
        "podlife/_syncing.py",
        "for name, sandbox in record.completed.items() if sandbox == box.record.id)",
        "for name, sandbox in record.completed.items() if sandbox)",
        "outages",
    ),
    "hook-failure-survived": Change(
        "a container whose post-start hook failed runs on",
        "podlife/_settling.py",
        "    if cid in after.stopping:\n        return after  # it",
        "    if cid:\n        return after  # it",
        "kills",
    ),
    "hooks-swapped": Change(
        "the hook before an end is run after a start, and the other way round",
        "podlife/_performing.py",
        "lifecycle.post_start if is_post else lifecycle.pre_stop",
        "lifecycle.pre_stop if is_post else lifecycle.post_start",
        "calm",
    ),
    "resize-not-noted": Change(
        "that a container was given other amounts is not noted",
        "podlife/_settling.py",
        "            return have.but(resized=resized)",
        "            return have",
        "calm",
    ),
    "unknown-main-doubled": Change(
        "beside a main container of which nobody knows how it is another one starts",
        "podlife/_actions.py",
        "    if starts and latest is not None and latest.state is _UNKNOWN:",
        "    if False and latest is not None and latest.state is _UNKNOWN:",
        "outages",
    ),
    "begun-not-noted": Change(
        "the newest instance that was told to start is not noted",
        "podlife/_settling.py",
        "    return have.but(begun=extended(have.begun, detail.container, begun))",
        "    return have",
        "runtimes",
    ),
    "ends-lost-with-records": Change(
        "ends are forgotten with the last record of a pod",
        "runtime/_relist.py",
        "        if not left.ends or view.of(self._told).get(view.key):",
        "        if left.uid:",
        "outages",
    ),
    "gone-before-heard": Change(
        "of remembered pods it is told that they are gone before sources were heard",
        "podstatus/_telling.py",
        "        return view.key in view.of(self._unheard)",
        "        return False",
        "kills",
    ),
    "gone-untold-after-kill": Change(
        "of pods that went while nobody looked nobody is told",
        "agent/_agent.py",
        "            yield lambda: status.heard(wanted.snapshot().keys())",
        "            pass",
        "kills",
    ),
    "delay-of-first-instance": Change(
        "the initial delay of a probe counts from the start of the first instance",
        "probes/_asker.py",
        "            line.started_s, line.is_first, line.due_s = self._began(ask, now_s), True, None",
        "            line.is_first, line.due_s = True, None",
        "hangs",
    ),
    "device-variables-lost": Change(
        "what a plugin gives as variables is lost",
        "agent/_granted.py",
        "        env=launch.env,",
        "        env={},",
        "plugins",
    ),
}
