"""One-line changes of the library that show where a runtime is away, refuses, or tells strange things."""

# ruff: noqa: E501 - the library's text, line by line as it stands there

from __future__ import annotations

from tests.unit.node.simulated_changes import Change

__all__ = ["OUTAGES"]

OUTAGES = {
    "retry-at-once": Change(
        "what failed is tried again at once",
        "dsw_asw/_failures.py",
        "        wait = self._policy.after(tries) if after_s is None else after_s\n",
        "        wait = 0.0 if after_s is None else after_s\n",
        "outages",
    ),
    "back-off-of-engine-flat": Change(
        "what fails waits half a second each time",
        "_back_off.py",
        "return min(self.max_s, self.initial_s * self.factor ** min(tries - 1, 64))",
        "return min(self.max_s, self.initial_s)",
        "outages",
    ),
    "never-made-counts": Change(
        "a start that never came to be counts as a restart once its sandbox is lost",
        "podlife/_starting.py",
        "    attempt = _attempt(turn, record, name, made)\n",
        "    intent = record.starting.get(name)\n"
        "    lost = not made and intent is not None and intent.sandbox_id != sandbox_id\n"
        "    attempt = record.attempts.get(name, -1) + 1 if lost else _attempt(turn, record, name, made)\n",
        "outages",
    ),
    "doubt-ends-early": Change(
        "a listing that began before a call counts as one that shows what it did",
        "podlife/_observed.py",
        "is_sure = shown is not None and record.doubt is not None and shown >= record.doubt",
        "is_sure = shown is not None and record.doubt is not None and shown + 1 >= record.doubt",
        "outages",
    ),
    "memory-before-disk": Change(
        "what a store could not write stands in its memory as if it were written",
        "checkpoint/_base_store.py",
        "            if fresh or settled or writer is not None:\n                self._write(fresh, settled, writer)\n            self._note(changes, fresh, settled)\n",
        "            self._note(changes, fresh, settled)\n            if fresh or settled or writer is not None:\n                self._write(fresh, settled, writer)\n",
        "disks",
    ),
    "unsure-mount-is-right": Change(
        "a mount of which nobody knows whether it was made counts as made",
        "volumes/_plan.py",
        "        mount is not None\n        and mount.state is MountState.MOUNTED\n",
        "        mount is not None\n",
        "disks",
    ),
    "vanished-untold": Change(
        "whose record was gone before anybody read how it ended counts as one that never ran",
        "runtime/_known.py",
        "            ends=_kept({**ends, **_vanished(ran, there, ends)}, there),",
        "            ends=_kept(ends, there),",
        "runtimes",
    ),
    "failed-inspection-counts": Change(
        "an inspection that failed counts as made, and is not tried again",
        "runtime/_relist.py",
        "return attrs.evolve(known, fault=error_words(outcome.error))",
        "return attrs.evolve(known, marks=step.detail.marks)",
        "runtimes",
    ),
    "oldest-ends-kept": Change(
        "of a container's ends the oldest are kept, not the newest",
        "runtime/_known.py",
        "sorted(those)[-_ENDS:]}",
        "sorted(those)[:_ENDS]}",
        "calm",
    ),
    "phase-of-waiting": Change(
        "a pod of which a container waits for its first start counts as one that runs",
        "podstatus/_phase.py",
        "                self.waiting += not has_run\n",
        "                self.running += not has_run\n",
        "calm",
    ),
    "runs-again-in-another-sandbox": Change(
        "what succeeded is run again once its sandbox was lost",
        "podlife/_actions.py",
        "    if not starting and _was_initialized(draft):",
        "    if False:",
        "outages",
    ),
    "fetch-again-at-once": Change(
        "an image that could not be fetched is asked for again as soon as anything else is",
        "podlife/_pull_calls.py",
        "        told.again_after_s = again_s\n",
        "        told.again_after_s = 0.0\n",
        "runtimes",
    ),
    "fetch-waits-never-longer": Change(
        "an image that could not be fetched waits ten seconds each time",
        "podlife/_images.py",
        "            delay_s = self._policy.after(before, now_s)\n",
        "            delay_s = self._policy.after(None, now_s)\n",
        "runtimes",
    ),
}
