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
        "    elif intent is not None:\n",
        "    elif intent is not None and intent.sandbox_id == sandbox_id:\n",
        "outages",
    ),
}
