"""The model that recorded rows of kind `status_merge` are replayed on."""

from __future__ import annotations

from nodealloc.testing.conformance import replay
from nodealloc.testing.conformance._status_merge import status_merge


def condition(last_transition: object) -> dict[str, object]:
    """That a pod is a victim, since then."""
    return {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "TerminationByKubelet",
        "last_transition": last_transition,
    }


def status(phase: str, *conditions: dict[str, object]) -> dict[str, object]:
    """Of a pod without containers."""
    return {"phase": phase, "conditions": list(conditions), "start_time": 3}


def test_what_is_sent_of_a_victim_is_what_is_kept_of_it() -> None:
    """A kubelet takes over since when somebody else says so, and writes that into its own status too."""
    pod = {"uid": "u", "name": "p", "namespace": "ns", "restart_policy": "Never", "containers": []}
    others, mine = status("Running", condition(44)), status("Failed", condition("now"))
    sent = status("Failed", condition(44))

    def kept(of: dict[str, object], *, differs: bool) -> dict[str, object]:
        return {"u": {"version": 1, "finished": False, "needs_reconcile": differs, "status": of}}

    row: dict[str, object] = {
        "kind": "manager",
        "pods": [{"pod": pod, "mirror_uid": None, "api_status": status("Running")}],
        "steps": [
            {"op": "set", "uid": "u", "status": mine, "signalled": True, "cached": kept(mine, differs=True)},
            {"op": "drift", "uid": "u", "status": others, "signalled": False, "cached": {}},
            {
                "op": "sync",
                "all": False,
                "signalled": False,
                "synced": 1,
                "api": [{"do": "patch", "name": "p", "uid": "u", "status": sent}],
                "cached": kept(sent, differs=True),
            },
        ],
    }
    assert replay("status_merge", [row], status_merge).differences == ()  # type: ignore[list-item]
