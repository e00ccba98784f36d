"""One guarded verifier for runs, trace files and the history: what a fault of ours, a hole and an early end make of the verdict."""

from __future__ import annotations

import pytest

from prober.core.events import Event
from prober.core.findings import Finding
from prober.core.guarded_verifier import GuardedVerifier
from prober.core.rules import Rules
from prober.core.verdict import Verdict
from prober.core.verifier import Verifier
from prober.traces.header import TraceHeader
from prober.traces.verification import verify_trace
from tests.notation import history
from tests.unit.sinks.status.examples import SKIPPED

SKIPPED_LONG_AGO = SKIPPED.replace("stop @5", "open B of client B@60 stop @61")
IN_ORDER = "P1,2 A<1@1 A<2@1.1 A ack 1@1.2 A ack 2@1.3 stop @5"


def verified(text: str) -> tuple[GuardedVerifier, int]:
    """A verifier that has seen a history, but not its end."""
    one, events = GuardedVerifier({"s": Rules()}), history(text)
    for number, event in enumerate(events, 1):
        one.observe(event, number)
    return one, len(events)


def fail_at(monkeypatch: pytest.MonkeyPatch, doomed: Event) -> None:
    """Lets the checker fail at an event."""
    observe = Verifier.observe

    def failing(self: Verifier, event: Event) -> list[Finding]:
        if event is doomed:
            raise ZeroDivisionError
        return list(observe(self, event))

    monkeypatch.setattr(Verifier, "observe", failing)


@pytest.mark.parametrize(("text", "verdict"), [(IN_ORDER, Verdict.PASS), (SKIPPED, Verdict.FAIL)])
def test_what_it_says_is_what_the_checker_says(text: str, verdict: Verdict) -> None:
    one, count = verified(text)
    one.finish(count)
    assert one.verdict() is verdict
    assert verify_trace("path", TraceHeader("s", "k"), history(text)).verdict is verdict


def test_a_history_of_which_more_may_follow_is_unknown_unless_a_guarantee_is_violated() -> None:
    for text, verdict in ((IN_ORDER, Verdict.UNKNOWN), (SKIPPED_LONG_AGO, Verdict.FAIL)):
        one, count = verified(text)
        one.stop("nobody answers", count)
        one.stop("something later", 0)
        assert (one.finish(count), one.stopped_because, one.verified) == ((), "nobody answers", count)
        assert one.verdict() is verdict
        other, count = verified(text)
        other.finish(count)
        assert other.verdict(incomplete=True) is verdict


def test_a_fault_of_the_checker_makes_everything_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also what was found before it: whoever fails cannot be believed."""
    events = history(SKIPPED_LONG_AGO)
    fail_at(monkeypatch, events[-1])
    one = GuardedVerifier({"s": Rules()})
    for number, event in enumerate(events, 1):
        one.observe(event, number)
    assert one.findings.failed
    assert (one.finish(len(events)), one.verdict()) == ((), Verdict.UNKNOWN)
    assert one.stopped_because.startswith(f"the checker failed at event {len(events)}: ZeroDivisionError(), so later events")
    whole = verify_trace("path", TraceHeader("s", "k"), events)
    assert (whole.verdict, whole.crash) == (Verdict.UNKNOWN, f"path: {one.stopped_because} with the file")


def test_a_fault_at_the_end_is_one_too(monkeypatch: pytest.MonkeyPatch) -> None:
    one, count = verified(IN_ORDER)
    monkeypatch.setattr(Verifier, "finish", lambda _: 1 / 0)
    assert (one.finish(count), one.verdict()) == ((), Verdict.UNKNOWN)
    assert isinstance(one.fault, ZeroDivisionError)
