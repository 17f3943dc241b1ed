"""When a container that ended starts again."""

from __future__ import annotations

import pytest

from nodealloc.podfacts import Exited, ExitUnknown, PodIdentity
from nodealloc.podlife import ExitRule, RestartBackOff, Restarts
from nodealloc.podlife._restarts import back_off_event, back_off_held, without_old_definitions

ME = PodIdentity(uid="u", namespace="default", name="web")
BAD, CLEAN = Exited(code=1), Exited(code=0)


def delays(policy: RestartBackOff, *exits: Exited | ExitUnknown, lives_s: float = 1.0) -> list[float]:
    """Seconds from each end to the start that follows, of a container that ends so again and again."""
    restarts, now_s, found = Restarts(), 0.0, list[float]()
    for one in exits:
        now_s = ended_s = now_s + lives_s
        answer = restarts.asked("app", "v1", policy, ended_s=ended_s, now_s=now_s, exit=one)
        if answer.held_until_s is not None:
            now_s = answer.held_until_s
            answer = restarts.asked("app", "v1", policy, ended_s=ended_s, now_s=now_s, exit=one)
        assert answer.held_until_s is None
        restarts = answer.restarts
        found.append(now_s - ended_s)
    return found


def test_the_figures_of_the_kubelet_are_the_default() -> None:
    """At once, then 10 s, doubled up to five minutes."""
    assert delays(RestartBackOff(), *[BAD] * 8) == [0, 10, 20, 40, 80, 160, 300, 300]


def test_a_policy_has_other_figures() -> None:
    """Base, factor and cap are the caller's."""
    assert delays(RestartBackOff(base_s=1, factor=3, cap_s=10), *[BAD] * 6) == [0, 1, 3, 9, 10, 10]


def test_a_long_life_begins_anew() -> None:
    """What ran longer than the reset after its last start waits for nothing."""
    assert delays(RestartBackOff(), *[BAD] * 4, lives_s=601.0) == [0, 0, 0, 0]
    assert delays(RestartBackOff(), *[BAD] * 3, lives_s=600.0) == [0, 10, 20]


def test_exits_may_have_delays_of_their_own() -> None:
    """A clean exit starts at once; an end that nobody saw follows the general rule."""
    policy = RestartBackOff(exits=(ExitRule(codes=frozenset({0}), base_s=0, cap_s=0),))
    assert delays(policy, *[CLEAN] * 5) == [0] * 5
    assert delays(policy, *[ExitUnknown()] * 3) == [0, 10, 20]
    assert delays(policy, BAD, BAD, CLEAN, BAD) == [0, 10, 0, 0]


def test_another_definition_begins_anew() -> None:
    """So does another container; neither touches the entries of the first."""
    policy = RestartBackOff()
    once = Restarts().asked("app", "v1", policy, ended_s=0, now_s=0).restarts
    assert once.asked("app", "v1", policy, ended_s=1, now_s=1).held_until_s == 11
    for name, definition in (("app", "v2"), ("db", "v1")):
        assert once.asked(name, definition, policy, ended_s=1, now_s=1).held_until_s is None
    assert once.asked("app", "v1", policy, ended_s=None, now_s=1).held_until_s is None


def test_a_poke_starts_now() -> None:
    """Of one container, or of all."""
    policy = RestartBackOff()
    both = Restarts()
    for name in ("app", "db"):
        both = both.asked(name, "v1", policy, ended_s=0, now_s=0).restarts

    def held(restarts: Restarts) -> list[bool]:
        return [
            restarts.asked(name, "v1", policy, ended_s=1, now_s=1).held_until_s is not None
            for name in ("app", "db")
        ]

    assert held(both) == [True, True]
    assert held(both.poked(["app"])) == [False, True]
    assert held(both.poked()) == [False, False]


def test_old_entries_are_forgotten() -> None:
    """Those that cannot count any more; the same value where all still can."""
    policy = RestartBackOff()
    restarts = Restarts().asked("app", "v1", policy, ended_s=0, now_s=0).restarts
    assert restarts.forgotten(600, policy) is restarts
    assert restarts.forgotten(601, policy).entries == {}


def test_definitions_that_were_edited_away_are_not_kept_for_ever() -> None:
    """A container that is edited each quarter of an hour has one entry; another one keeps its own."""
    policy = RestartBackOff()
    restarts = Restarts().asked("db", "v1", policy, ended_s=0, now_s=0).restarts
    for edition in range(100):
        now_s = 900.0 * edition
        restarts = restarts.asked("app", f"v{edition}", policy, ended_s=now_s, now_s=now_s).restarts
        restarts = without_old_definitions(restarts, "app", policy, now_s=now_s)
    assert set(restarts.entries) == {("db", "v1"), ("app", "v99")}


def test_an_end_of_long_ago_finds_what_was_before_it() -> None:
    """What a container was made from before stays in force until somebody forgets it."""
    policy = RestartBackOff()
    restarts = Restarts().asked("app", "v1", policy, ended_s=0, now_s=0).restarts
    restarts = restarts.asked("app", "v2", policy, ended_s=700, now_s=700).restarts
    again = restarts.asked("app", "v1", policy, ended_s=500, now_s=705)
    assert (again.held_until_s, again.delay_s) == (None, 20)
    assert restarts.asked("app", "v1", policy, ended_s=None, now_s=705).delay_s == 10


def test_what_is_told_of_it() -> None:
    """Reason, words and event are those that users know."""
    held = back_off_held(ME, "app", 80.0, 91.0)
    assert (held.until_s, held.reason) == (91.0, "CrashLoopBackOff")
    assert held.message == "back-off 1m20s restarting failed container=app pod=web_default(u)"
    event = back_off_event(ME, "app")
    assert (event.reason, event.container) == ("BackOff", "app")
    assert event.message == "Back-off restarting failed container app in pod web_default(u)"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"base_s": 10, "cap_s": 1}, "cap_s 1 is below base_s 10"),
        ({"factor": 0.5}, "factor"),
        ({"base_s": -1}, "base_s"),
    ],
)
def test_policies_that_make_no_sense_are_refused(fields: dict[str, float], words: str) -> None:
    """With the figures."""
    with pytest.raises(ValueError, match=words):
        RestartBackOff(**fields)  # type: ignore[arg-type]


@pytest.mark.parametrize("codes", [[], [256], [-1]])
def test_rules_for_exits_that_nothing_has_are_refused(codes: list[int]) -> None:
    """A rule names exit statuses."""
    with pytest.raises(ValueError, match="exit status"):
        ExitRule(codes=frozenset(codes), base_s=0, cap_s=0)
