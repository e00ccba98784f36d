"""Clocks of liveness (docs/model.md, section 8), one line per case. Deadlines are 120 s, leases 60 s, deliveries take up to 5 s.

What a clock waits for is what the reference waits for: a lost answer leaves a lease running, so a refused message is overdue only after
its lease and its deadline.
"""

# ruff: noqa: E501 - a case is one line

from __future__ import annotations

from typing import Any

import pytest
from _pytest.mark import ParameterSet

from prober.core.clocks import BACKED_OFF_KEPT
from prober.core.events import Event
from prober.core.excuses import UNSEEN_ATTEMPTS
from prober.core.findings import Finding, Kind, Status
from prober.core.overdue import HELD_ELSEWHERE
from prober.core.rules import Mode, Rules
from prober.core.runs import LOST
from prober.core.verifier import Verifier
from tests.notation import history
from tests.unit.core.cases import LETTERS, PULL, PUSH, merged, rules_of

LIVENESS = {Kind.STUCK, Kind.LOST_OVERTAKEN, Kind.REDELIVERY_STALL, Kind.UNACKED_STALL}


def verified(rules: Rules, events: list[Event], *subscriptions: str) -> tuple[list[Finding], Verifier]:
    """The liveness findings of a history, and the checker after it."""
    verifier = Verifier(rules, subscriptions=subscriptions or ("s",))
    found = [finding for event in events for finding in verifier.observe(event)]
    found += verifier.finish()
    return [finding for finding in found if finding.kind in LIVENESS], verifier


def findings(line: str, **rules: Any) -> list[Finding]:
    whole = rules_of(**rules)
    return verified(whole, history(line, whole.mode))[0]


def say(line: str, **rules: Any) -> list[str]:
    """What is said about waiting, with the times, in the order in which it is said."""
    return [f"{LETTERS[one.status]}:{one.kind}@{one.t:g}" for one in findings(line, **rules)]


def case(what: str, line: str, expected: str = "", **rules: Any) -> ParameterSet:
    return pytest.param(line, expected.split(), rules, id=what)


def kept(session: str, seq: int, last: int, seconds: int = 60) -> str:
    """A lease that is prolonged every 50 s."""
    return " ".join(f"{session} modack {seq} {seconds}s@{t}" for t in range(50, last, 50))


DONE = "P1,2,3 A<1@1 A ack 1@1.1"
OPEN = "open A of client A"


@pytest.mark.parametrize(
    ("line", "expected", "rules"),
    [
        case("the tail never comes", f"{DONE} end @500", "L:STUCK@121"),
        case("not yet", f"{DONE} end @121"),
        case("just now, within the clock error", f"{DONE} end @121.1", clock_error_s=0.2),
        case("it comes in time", f"{DONE} A<2@110 A ack 2@110.1 A<3@220 A ack 3@220.1 end @500"),
        case("it comes late", f"{DONE} A<2,3@200 A ack 2,3@201 end @500", "L:STUCK@121"),
        case("progress restarts the deadline", f"{DONE} A<1@100 A<1@200 A<2,3@300 A ack 1,2,3@301 end @400"),
        case("stuck again after some movement", f"{DONE} A<2@200 A ack 2@200.1 end @500", "L:STUCK@121 L:STUCK@320"),
        case("it is reported while time passes, once", f"{DONE} " + " ".join(f"open B{t} of client A@{t}" for t in range(100, 900, 50)), "L:STUCK@121"),
        case("confirmed later than the last movement", "P1 A<1@1 A ack 1@1.1 P2@50 ok2=m2@100 end @230", "L:STUCK@220"),
        case("the outcome is unknown", "P1 A<1@1 A ack 1@1.1 P2@0.5 info2@0.6 end @500"),
        case("nothing was stored", "P1 A<1@1 A ack 1@1.1 P2@0.5 fail2@0.6 end @500"),
        case("the end was not waited for", f"{DONE} stop @500"),
        case("it left for the dead letters", "P1,2 A<1@1 A ack 1@1.1 dlq m2@2 end @500"),
        case("the subscription has a filter", f"{DONE} end @500", filtered=True),
        case("it may have expired before", f"{DONE} end @500", message_retention_s=100),
        case("it was late before it expired", f"{DONE} end @500", "L:STUCK@121", message_retention_s=200),
        case("published before the first delivery of an older subscription", "P1,2 A<2@1 A ack 2@1.1 end @500", subscription_predates_first_publish=False),
        case("published after it", "P1,2 A<1@1 A ack 1@1.1 end @500", "L:STUCK@121", subscription_predates_first_publish=False),
        case("a seek had not settled", f"{DONE} seek 10@2 end @500"),
        case("a seek had settled", f"{DONE} seek 10@2 P4@100 ok4=m4@100.1 end @500", "L:STUCK@220.1"),
        case("its epoch is forgotten", "P1,2 A<1@1 A ack 1@1.1 " + " ".join(f"P1[f{n}]@{10 + n} info1@{10 + n}.1" for n in range(70)) + " end @500"),
    ],
)  # fmt: skip
def test_a_confirmed_message_is_delivered(line: str, expected: list[str], rules: dict[str, Any]) -> None:
    assert say(line, **rules) == expected


@pytest.mark.parametrize(
    ("line", "expected", "rules"),
    [
        case("nobody was ever there", "P1 end @500"),
        case("nobody is there any more", f"{DONE} close A@2 end @500"),
        case("somebody came back just now", f"{DONE} close A@2 open B of client B@400 end @500"),
        case("somebody came back long ago", f"{DONE} close A@2 open B of client B@300 end @500", "L:STUCK@420"),
        case("it may have been lost with a stream that broke, and leased", f"{OPEN} P1 close A@100 open B of client A@101 end @186"),
        case("its lease is over, and a part of the deadline", f"{OPEN} P1 open B of client A@1 close A@110 end @300", "L:STUCK@180.05"),
        case("a stream may have been dead for long", f"{OPEN} P1 close A@130 end @160", close_detection_max_s=30.0),
        case("no pull waits", "P1,2 pull b@0.9 b<1@1 b ack 1@1.1 end @400", mode=PULL),
        case("pulls wait now and then", "P1 pull b@2 close b@62 pull c@200 close c@263 end @400", "L:STUCK@260", mode=PULL),
        case("a pull was lost, and what it carried was leased", "P1 pull b@10 lose b@100 pull c@101 close c@200 end @400", mode=PULL),
        case("push, once anything came", "P1,2 a<1@1 a ack 1@1.1 end @500", "L:STUCK@186", mode=PUSH),
        case("push, never heard of", "P1 end @500", mode=PUSH),
        case("the record has a hole, and no stream is new", f"{OPEN} P1@0 hole @1 P2@5 ok2=m2@5.1 end @500"),
        case("the record has a hole, and a stream is new", f"{OPEN} P1@0 hole @1 close A@2 open B of client A@4 P2@5 ok2=m2@5.1 end @900", "L:STUCK@726"),
    ],
)  # fmt: skip
def test_clocks_run_while_somebody_is_there(line: str, expected: list[str], rules: dict[str, Any]) -> None:
    assert say(line, **rules) == expected


@pytest.mark.parametrize(
    ("line", "expected", "rules"),
    [
        case("a batch is held", f"P1,2 pull b@0.9 b<1@1 pull c@2 {kept('b', 1, 310)} b ack 1@310 c<2@311 c ack 2@312 end @420", mode=PULL),
        case("a batch is held no more", f"P1,2 pull b@0.9 b<1@1 pull c@2 {kept('b', 1, 110)} b ack 1@110 end @400", "L:STUCK@285", mode=PULL),
        case("a request may be held as long as its lease", "P1,2 a<1@1 a ack 1@1.1 b<2@180 b ack 2@180.1 end @250", mode=PUSH),
        case("a stream gets more while it holds one", f"P1,2 A<1@1 {kept('A', 1, 310)} A ack 1@310 end @320", "L:STUCK@121"),
        case("another key uses it up", f"{OPEN} limit 1 P1 A<1@1 on k2 P1@2 ok1=k2m1@2.1 end @500", ack_deadline_s=600.0),
        case("attributes count beside its bytes", f"{OPEN} limit 0/500 P1*300@0 ok1=m1@0.1 P2@0.2 ok2=m2@0.3 A<1@1 {kept('A', 1, 310)} A ack 1@310 A<2@311 A ack 2@312 end @700"),
        case("a message of unknown size counts as the largest", f"{OPEN} limit 0/500 P1@0 ok1=m1@0.1 P2@0.2 ok2=m2@0.3 A<1@1 {kept('A', 1, 310)} A ack 1@310 A<2@311 A ack 2@312 end @700"),
        case("it was given back", f"{OPEN} limit 1 P1,2 A<1@1 A ack 1@2 end @300", "L:STUCK@137"),
        case("a message that comes twice is outstanding once", f"{OPEN} limit 2 P1,2 A<1@1 A<1@1.5 {kept('A', 1, 310)} A ack 1@310 end @320", "L:STUCK@121.5"),
        case("another subscriber came, and waits until all is acknowledged", f"{OPEN} P1,2 A<1@1 open B of client B@2 {kept('A', 1, 150)} A ack 1@150 B<2@284 B ack 2@285 end @390"),
        case("it gets nothing then either", f"{OPEN} P1,2 A<1@1 open B of client B@2 A ack 1@2.1 end @700", "L:STUCK@185"),
        case("the retry policy waits", "P1,2 A<1@1 A nack 1@1.1 A<1,2@700 A ack 1,2@701 end @800", retry_backoff_max_s=600.0),
        case("the retry policy has waited", "P1 A<1@1 A nack 1@1.1 end @800", "L:UNACKED_STALL@786", retry_backoff_max_s=600.0),
    ],
)  # fmt: skip
def test_clocks_do_not_run_while_something_is_in_the_way(line: str, expected: list[str], rules: dict[str, Any]) -> None:
    assert say(line, **rules) == expected


@pytest.mark.parametrize(
    ("line", "expected", "rules"),
    [
        case("it never comes", "P1,2,3 A<1@1 A<3@1.1 A ack 1,3@1.2 end @500", "L:LOST_OVERTAKEN@121.1"),
        case("progress does not restart this deadline", "P1,2,3,4 A<1@1 A<3@1.1 A ack 1,3@1.2 A<4@100 A ack 4@100.1 end @130", "L:LOST_OVERTAKEN@121.1"),
        case("it comes late", "P1,2,3 A<1@1 A<3@1.1 A<2@100 A ack 1,2,3@101 A<3@102 A ack 3@103 end @500", "I:REDELIVERY_STALL@222"),
        case("nobody is there", "P1,2,3 A<1@1 A<3@1.1 A ack 1,3@1.2 close A@2 end @500"),
    ],
)  # fmt: skip
def test_what_was_overtaken_comes(line: str, expected: list[str], rules: dict[str, Any]) -> None:
    assert say(line, **rules) == expected


STALLED = "P1,2,3 A<1,2,3@1 A ack 1,3@1.4 A nack 2@1.5 A<2@2 A ack 2@2.1"


@pytest.mark.parametrize(
    ("line", "expected", "rules"),
    [
        case("it stops short", f"{STALLED} end @500", "L:REDELIVERY_STALL@122"),
        case("not yet", f"{STALLED} end @122"),
        case("it is finished", f"{STALLED} A<3@100 A ack 3@101 end @500"),
        case("it is finished late", f"{STALLED} A<3@200 A ack 3@201 end @500", "L:REDELIVERY_STALL@122"),
        case("its last has left for the dead letters", f"{STALLED} dlq m3@3 end @500"),
        case("with a dead-letter policy it need not be finished", f"{STALLED} end @500", "I:REDELIVERY_STALL@122", dead_letter_max_attempts=5),
        case("its end had been acknowledged, and may be lost with a stream", f"{STALLED} close A@3 open B of client A@4 end @500", "I:REDELIVERY_STALL@124"),
        case("its end may have come elsewhere before", "P1,2,3 A<1,2,3@1 A ack 1,2,3@1.4 B<2,3@21 B ack 2,3@21.2 A<1@21.3 A ack 1@21.4 end @500"),
        case("a seek had not settled", f"{STALLED} seek 10@3 end @500"),
        case("a seek back brings nothing", "P1,2 A<1,2@1 A ack 1,2@1.4 seek 10/0@20 end @500", "L:REDELIVERY_STALL@150"),
        case("a seek back brings everything", "P1,2 A<1,2@1 A ack 1,2@1.4 seek 10/0@20 A<1@25 A<2@40 A ack 1,2@41 end @500"),
        case("what it brings is acknowledged, in part, before it settles", "P1,2 A<1,2@1 A ack 1,2@1.4 seek 10/0@20 A<1@25 A ack 1@26 end @500", "L:REDELIVERY_STALL@150"),
    ],
)  # fmt: skip
def test_a_run_is_finished(line: str, expected: list[str], rules: dict[str, Any]) -> None:
    assert say(line, **rules) == expected


UNACKED = "P1,2 A<1,2@1 A ack 2@1.2"


@pytest.mark.parametrize(
    ("line", "expected", "rules"),
    [
        case("its lease is over", f"{UNACKED} end @500", "L:UNACKED_STALL@186"),
        case("not yet", f"{UNACKED} end @186"),
        case("the refusal may be lost", f"{UNACKED} A nack 1@1.5 end @180"),
        case("refused", f"{UNACKED} A nack 1@1.5 end @500", "L:UNACKED_STALL@186"),
        case("it is redelivered, and is left alone", f"{UNACKED} A<1,2@80 A ack 2@80.2 end @500", "L:UNACKED_STALL@265"),
        case("it is redelivered late", f"{UNACKED} A<1,2@200 A ack 1,2@201 end @500", "L:UNACKED_STALL@186"),
        case("acknowledged", f"{UNACKED} A ack 1@1.3 end @500"),
        case("acknowledged once, it is never pending again", "P1 A<1@1 A ack 1@1.1 A<1@5 A nack 1@5.1 end @500"),
        case("acknowledged where it was not delivered", "P1 A<1@1 open B of client B B ack 1@2 end @500"),
        case("acknowledged on another stream", "P1 A<1@1 B<1@70 B ack 1@70.1 end @500"),
        case("the key moves on without it", f"{UNACKED} P3@100 ok3=m3@100.1 A<3@150 A ack 3@150.1 end @500", "L:UNACKED_STALL@186"),
        case("its lease was prolonged", f"{UNACKED} A modack 1 100s@1.5 end @500", "L:UNACKED_STALL@226.5"),
        case("its stream is gone", f"{UNACKED} open B of client A@2 close A@10 end @500", "L:UNACKED_STALL@130"),
        case("it left for the dead letters", f"{UNACKED} dlq m1@2 end @500"),
        case("it may have left for the dead letters", f"{UNACKED} end @500", "I:UNACKED_STALL@186", dead_letter_max_attempts=2),
        case("it expires", f"{UNACKED} end @500", message_retention_s=100),
        case("a seek came", f"{UNACKED} seek 1@3 end @500"),
        case("nobody is there", f"{UNACKED} close A@2 end @500"),
    ],
)  # fmt: skip
def test_what_is_not_acknowledged_is_redelivered(line: str, expected: list[str], rules: dict[str, Any]) -> None:
    assert say(line, **rules) == expected


HOLE = "P1@0.1 ok1=m1@0.15 A<1@0.2 A ack 1@0.3 hole @5"
THEN = "P3@9 ok3=m3@9.1 end @1500"


@pytest.mark.parametrize(
    ("line", "expected", "rules"),
    [
        case("it may have ended in the hole", f"{HOLE} open B of client B@6 P2@7 ok2=m2@7.05 B<2@7.1 B ack 2@7.2 close B@8 {THEN}"),
        case("it delivered behind the hole", f"{HOLE} P2@7 ok2=m2@7.05 A<2@7.1 A ack 2@7.2 {THEN}", "L:STUCK@730"),
        case("another one is there", f"{HOLE} open B of client B@6 P2@7 ok2=m2@7.05 B<2@7.1 B ack 2@7.2 {THEN}", "L:STUCK@730"),
    ],
)  # fmt: skip
def test_a_stream_from_before_a_hole_is_there_once_it_delivered_again(
    line: str, expected: list[str], rules: dict[str, Any]
) -> None:
    assert say(line, **rules) == expected


OTHER = f"on k2 P1 A<1@0.2 {kept('A', 1, 310)} A ack 1@310"


@pytest.mark.parametrize(
    ("line", "expected", "rules"),
    [
        case("it comes when the other is free", f"{OTHER} on k P1@1 ok1=m1@1.1 A<1@330 A ack 1@331 end @600", "I:STUCK@121.1"),
        case("it does not come then either", f"{OTHER} on k P1@1 ok1=m1@1.1 end @600", "I:STUCK@121.1 L:STUCK@445"),
        case("the other was held only later", "on k2 P1@49 ok1=k2m1@49.1 A<1@49.5 A ack 1@200 on k P1@1 ok1=m1@1.1 A<1@140 A ack 1@141 end @200", "I:STUCK@121.1"),
        case("a refused message as well", f"{OTHER} on k P1@0.1 ok1=m1@0.15 A<1@1 A nack 1@2 A<1@330 A ack 1@331 end @600", "I:UNACKED_STALL@186"),
    ],
)  # fmt: skip
def test_another_key_that_is_held_may_delay_it(line: str, expected: list[str], rules: dict[str, Any]) -> None:
    assert say(line, **rules) == expected


def test_what_was_overtaken_is_reported_once_however_far_its_key_moves_on() -> None:
    further = (
        "A<1@1.2 P2@1.3 P3@1.31 P4@1.32 ok2=m2@1.4 ok3=m3@1.41 ok4=m4@1.42 A<3@1.5 A ack 1,3@1.6 A<4@150 A ack 4@150.1 end @280"
    )
    found = findings(f"{OTHER} on k P1@0.1 ok1=m1@0.15 {further}")
    lost = [(one.status, one.doubt) for one in found if one.kind is Kind.LOST_OVERTAKEN]
    assert lost == [(Status.INDETERMINATE, HELD_ELSEWHERE)]


def test_what_another_subscription_received_is_pending() -> None:
    unknown = history("P1@0 info1@0.1 A<1@1 A ack 1@1.1 end @500", subscription="t")
    mine = history("open B of client B", subscription="s")
    found, _ = verified(rules_of(), merged(mine, unknown), "s", "t")
    assert [(one.kind, one.subscription, one.t, one.status) for one in found] == [(Kind.STUCK, "s", 121, Status.LIVENESS)]


def test_not_if_it_came_there_as_well() -> None:
    unknown = history("P1@0 info1@0.1 A<1@1 A ack 1@1.1 end @500", subscription="t")
    for t in ("0.5", "5"):
        mine = history(f"B<1@{t} B ack 1@{t}1", subscription="s")
        assert verified(rules_of(), merged(mine, unknown), "s", "t")[0] == []


def test_why_something_is_in_doubt() -> None:
    (held,) = findings(f"{OTHER} on k P1@1 ok1=m1@1.1 A<1@330 A ack 1@331 end @600")
    (lost,) = findings(f"{STALLED} close A@3 open B of client A@4 end @500")
    pulls = "P1 pull b@0.5 lose b@1 pull c@1 lose c@2 pull d@2 lose d@3 pull f@4 end @500"
    (unseen,) = findings(pulls, mode=PULL, dead_letter_max_attempts=5)
    assert (held.doubt, lost.doubt, unseen.doubt) == (HELD_ELSEWHERE, LOST, UNSEEN_ATTEMPTS)


@pytest.mark.parametrize(
    ("line", "expected", "rules"),
    [
        pytest.param(f"{DONE} stop @2", True, {}, id="a message"),
        pytest.param(f"{DONE} A<2,3@2 A ack 2,3@3 stop @4", False, {}, id="nothing"),
        pytest.param(f"{STALLED} stop @3", True, {}, id="a run"),
        pytest.param(f"{UNACKED} stop @3", True, {}, id="what was not acknowledged"),
        pytest.param(f"{DONE} stop @200", False, {"message_retention_s": 100.0}, id="what expired"),
    ],
)  # fmt: skip
def test_what_is_pending(line: str, expected: bool, rules: dict[str, Any]) -> None:
    whole = rules_of(**rules)
    assert verified(whole, history(line, whole.mode))[1].pending is expected


def test_a_key_that_moves_is_looked_at_once_in_a_deadline() -> None:
    """However much is published and delivered meanwhile."""
    line = " ".join(f"P{n}@{n} ok{n}=m{n}@{n}.1 A<{n}@{n}.2 A ack {n}@{n}.3" for n in range(1, 500))
    verifier = Verifier(rules_of(), subscriptions=("s",))
    queued = 0
    for event in history(line):
        assert verifier.observe(event) == ()
        queued = max(queued, len(verifier._queue))
    assert queued == 1
    assert verifier._queued < 10


def test_memory_is_bounded_however_long_a_key_moves() -> None:
    """A thousand messages and more that may be held back by the retry policy, each acknowledged."""
    count = 3 * BACKED_OFF_KEPT
    line = " ".join(
        f"P{n}@{n / 10} ok{n}=m{n}@{n / 10 + 0.01:g} A<{n}@{n / 10 + 0.02:g} A ack {n}@{n / 10 + 0.03:g}" for n in range(1, count)
    )
    _, verifier = verified(Rules(mode=Mode.STREAMING, retry_backoff_max_s=5.0), history(line))
    clock = verifier._groups["k"].checkers[0].liveness.clock
    assert len(clock._backed_off) == BACKED_OFF_KEPT
    assert not clock.holds.unacked
    assert len(list(clock.holds.spans())) < 10
