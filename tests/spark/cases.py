"""The runs of a day on which everything that counts must be the same however it is counted: one for each case."""

from __future__ import annotations

from typing import Final

from prober.core.events import (
    Acked,
    Delivered,
    Event,
    LeaseModified,
    Nacked,
    Opened,
    Published,
    PublishFailed,
    PublishInvoked,
    PublishUnknown,
)
from prober.core.findings import Finding, Kind, Status
from prober.core.verdict import Verdict
from prober.runs.result import RunResult
from prober.slo.indicators import Indicator
from prober.slo.objectives import SliCounts
from tests.spark.taped import S, Taped

CUT: Final = "cut"
"""The target of the run that was cut short; all others are on `prod`."""


def cases() -> list[Taped]:
    """A run for each case, all on one target."""
    return [
        _undecided_verdict(),
        _stood_still(),
        _lost(),
        _failed_inside(),
        _refused_and_republished(),
        _redelivered(),
        _disturbed(),
        _cut_short(),
        _under_maintenance(),
        _at_the_threshold(),
        _unreachable(),
        _kept_from_publishing(),
        lagged(),
    ]


def _message(run: Taped, at: float, seq: int, *, confirmed: float | None = 0.05, received: float | None = 0.2) -> list[Event]:
    events: list[Event] = [PublishInvoked(at, "k", run.run_id, seq)]
    if confirmed is not None:
        events.append(Published(at + confirmed, "k", run.run_id, seq, f"{run.run_id}-{seq}"))
    if received is not None:
        events.append(Delivered(at + received, S, "k", "A", run.run_id, seq, f"{run.run_id}-{seq}"))
    return events


def _check(indicator: Indicator, good: int, bad: int, undecided: int) -> dict[str, object]:
    return {"indicator": indicator.value, "good": good, "bad": bad, "undecided": undecided}


def _undecided_verdict() -> Taped:
    """What it verified is verified, although a message is still pending in the end; one publish has no answer."""
    run = Taped("ordering-pending").add(Opened(100.0, S, "A", "A"))
    for seq in range(1, 5):
        run.add(*_message(run, 100.0 + seq, seq))
    run.add(*_message(run, 106.0, 5, received=None), *_message(run, 107.0, 6, confirmed=None, received=None))
    return run.ended(100.0, 130.0, "UNKNOWN", checks=[_check(Indicator.ORDER, 4, 0, 1), _check(Indicator.COMPLETENESS, 4, 0, 1)])


def _stood_still() -> Taped:
    """It stopped verifying, which the service may have caused: what it saw later is not verified, and is measured."""
    run = Taped("ordering-still").add(Opened(200.0, S, "A", "A"))
    for seq in range(1, 4):
        run.add(*_message(run, 200.0 + seq, seq))
    run.add(PublishInvoked(205.0, "k", run.run_id, 4), PublishInvoked(205.1, "k", run.run_id, 5))
    verified = len(run.events)
    run.add(
        Published(211.0, "k", run.run_id, 4, f"{run.run_id}-4"),
        PublishUnknown(211.0, "k", run.run_id, 5),
        Delivered(211.1, S, "k", "A", run.run_id, 4, f"{run.run_id}-4"),
        Nacked(211.2, S, "k", "A", f"{run.run_id}-4"),
        Delivered(219.0, S, "k", "A", run.run_id, 4, f"{run.run_id}-4"),
        *_message(run, 220.0, 6),
    )
    return run.ended(200.0, 230.0, "UNKNOWN", verified_events=verified, checks=[_check(Indicator.ORDER, 0, 0, 3)])


def _lost() -> Taped:
    """A confirmed message never comes: it is missing, which completeness says, and later than any threshold."""
    run = Taped("ordering-lost").add(Opened(300.0, S, "A", "A"))
    run.add(*_message(run, 301.0, 1), *_message(run, 302.0, 2, received=None))
    run.found(_stuck(490.0), 4)
    return run.ended(300.0, 500.0, "FAIL", checks=[_check(Indicator.ORDER, 1, 0, 0), _check(Indicator.COMPLETENESS, 1, 1, 0)])


def _stuck(at: float) -> Finding:
    return Finding(Kind.STUCK, Status.LIVENESS, S, "k", at, (2,), {})


CUT_SHORT = RunResult(
    "",
    "ordering",
    CUT,
    "wire",
    Verdict.FAIL,
    "ORDER_INVERSION, STUCK",
    0.0,
    1.0,
    checks={
        Indicator.ORDER: SliCounts(3, 1, 0),
        Indicator.COMPLETENESS: SliCounts(4, 1, 0),
        Indicator.PUBLISH_AVAILABILITY: SliCounts(undecided=100),
    },
)
"""As its recorder would have it."""


def _cut_short() -> Taped:
    """The prober was stopped; a violation had been found, and a message had passed its deadline."""
    run = Taped("ordering-cut", target=CUT).add(Opened(1300.0, S, "A", "A"))
    for seq in range(1, 5):
        run.add(*_message(run, 1300.0 + seq, seq))
    run.add(*_message(run, 1306.0, 5, received=None))
    inversion = Finding(Kind.ORDER_INVERSION, Status.VIOLATION, S, "k", 1304.5, (9, 10), {})
    return run.found(inversion, 10).found(_stuck(1430.0), 14).began(1300.0)


def _under_maintenance() -> Taped:
    """It ended, or was cut short, while its target was under maintenance: what it found does not count, nor what never came."""
    run = Taped("ordering-maintained").add(Opened(1500.0, S, "A", "A"))
    run.add(*_message(run, 1501.0, 1), *_message(run, 1502.0, 2, received=None))
    inversion = Finding(Kind.ORDER_INVERSION, Status.VIOLATION, S, "k", 1501.5, (3, 4), {})
    return run.found(inversion, 4).found(_stuck(1690.0), 6).ended(1500.0, 1700.0, "FAIL")


def _failed_inside() -> Taped:
    """A fault of the prober's own ended it; what it had measured is measured."""
    run = Taped("ordering-fault").add(Opened(600.0, S, "A", "A"))
    run.add(*_message(run, 601.0, 1), *_message(run, 602.0, 2, received=1.5))
    return run.ended(600.0, 610.0, "UNKNOWN", internal_error=True, checks=[_check(Indicator.ORDER, 0, 0, 2)])


def _refused_and_republished() -> Taped:
    run = Taped("ordering-again").add(
        Opened(700.0, S, "A", "A"),
        PublishInvoked(701.0, "k", "ordering-again", 1, intended_t=700.5),
        PublishFailed(701.2, "k", "ordering-again", 1),
        PublishInvoked(702.0, "k", "ordering-again", 2),
        PublishUnknown(703.0, "k", "ordering-again", 2),
        PublishInvoked(703.5, "k", "ordering-again", 2, generation=1),
        Published(703.6, "k", "ordering-again", 2, "b", generation=1),
        Delivered(703.7, S, "k", "A", "ordering-again", 2, "b", generation=1),
        Delivered(703.8, S, "k", "A", "ordering-again", 2, "a"),
        PublishInvoked(704.0, "k", "ordering-again", 3),
        PublishUnknown(705.0, "k", "ordering-again", 3),
    )
    return run.ended(700.0, 720.0)


def _redelivered() -> Taped:
    """Of its own messages one is redelivered in time, one late, one early; one of an earlier run is redelivered as well."""
    run = Taped("ordering-rewound").add(Opened(800.0, S, "A", "A"))
    for seq in range(1, 6):
        run.add(*_message(run, 800.0 + seq, seq))

    def again(at: float, seq: int) -> Delivered:
        return Delivered(at, S, "k", "A", run.run_id, seq, f"{run.run_id}-{seq}")

    def refused(at: float, seq: int) -> Nacked:
        return Nacked(at, S, "k", "A", f"{run.run_id}-{seq}")

    run.add(refused(807.0, 1), again(807.2, 1), refused(808.0, 2), again(809.0, 2))
    run.add(LeaseModified(810.0, S, "k", "A", f"{run.run_id}-3", 60.0), again(811.0, 3))
    run.add(refused(812.0, 4), Acked(812.1, S, "k", "A", f"{run.run_id}-4"), again(813.0, 4))
    old = Delivered(814.0, S, "k", "A", "ordering-before", 9, "old")
    run.add(old, Nacked(815.0, S, "k", "A", "old"), Delivered(818.0, S, "k", "A", "ordering-before", 9, "old"))
    return run.ended(800.0, 830.0, checks=[_check(Indicator.REDELIVERY, 2, 1, 1)])


def _disturbed() -> Taped:
    """An experiment that holds messages back itself."""
    run = Taped("affinity-1", probe="affinity").add(Opened(900.0, S, "A", "A"))
    run.add(*_message(run, 901.0, 1, received=8.0), *_message(run, 902.0, 2, received=None))
    return run.ended(900.0, 930.0, checks=[_check(Indicator.AFFINITY, 1, 1, 1)])


def _unreachable() -> Taped:
    """The target was gone after two messages: what was to follow, in this run and in those that it kept waiting, was never sent."""
    run = Taped("ordering-outage").add(Opened(1200.0, S, "A", "A"))
    run.add(*_message(run, 1201.0, 1), *_message(run, 1202.0, 2))
    checks = [_check(Indicator.ORDER, 2, 0, 0), _check(Indicator.PUBLISH_AVAILABILITY, 0, 1198, 0)]
    return run.ended(1200.0, 1260.0, "UNKNOWN", reason="nobody answers", checks=checks)


def _kept_from_publishing() -> Taped:
    """Nothing was sent either, which may be the prober's own doing."""
    return Taped("ordering-kept").ended(1270.0, 1271.0, "UNKNOWN", checks=[_check(Indicator.PUBLISH_AVAILABILITY, 0, 0, 400)])


def _at_the_threshold() -> Taped:
    """Messages that take as long as they may, to the microsecond, at times that are no round numbers; and one that takes one more."""
    run = Taped("ordering-limit").add(Opened(1100.0, S, "A", "A"))
    for seq in range(1, 20):
        run.add(*_message(run, round(1100.0 + 1.1 * seq, 6), seq, confirmed=0.5, received=1.0))
    run.add(*_message(run, 1130.0, 20, confirmed=0.500001, received=1.000001))
    return run.ended(1100.0, 1140.0)


def lagged() -> Taped:
    """What lag of the event loop may have made late; the last message was published twice, so that Spark, no executor, finishes it."""
    run = Taped("ordering-lagged").add(Opened(1200.0, S, "A", "A"))
    for seq, took, lagged_s in (
        (1, 3.0, 2.95),
        (2, 3.0, 2.0),
        (3, 0.05, 0.04),
        (4, 0.3, 0.25),
        (5, 1.2, 0.1),
        (6, 1.000001, 0.000001),
    ):
        at = 1200.0 + 5 * seq
        run.add(PublishInvoked(at, "k", run.run_id, seq))
        run.add(Published(at + took, "k", run.run_id, seq, f"{run.run_id}-{seq}"), lagged_s=lagged_s)
        run.add(Delivered(at + took, S, "k", "A", run.run_id, seq, f"{run.run_id}-{seq}"), lagged_s=lagged_s)
    run.add(PublishInvoked(1240.0, "k", run.run_id, 7), PublishUnknown(1241.0, "k", run.run_id, 7))
    run.add(PublishInvoked(1241.1, "k", run.run_id, 7, generation=1))
    run.add(Published(1241.3, "k", run.run_id, 7, "again", generation=1), lagged_s=1.25)
    run.add(Delivered(1241.4, S, "k", "A", run.run_id, 7, "again", generation=1), lagged_s=1.35)
    for at, again, lagged_s in ((1250.0, 2.0, 1.9), (1255.0, 2.0, 1.0), (1260.0, 0.2, 0.2)):
        run.add(Nacked(at, S, "k", "A", f"{run.run_id}-1"))
        run.add(Delivered(at + again, S, "k", "A", run.run_id, 1, f"{run.run_id}-1"), lagged_s=lagged_s)
    return run.ended(1200.0, 1270.0)
