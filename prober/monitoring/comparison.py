"""Comparison of the user's subscriptions with the prober's own messages.

The late side is the subscription, the prober's messages on the same target, both, or none (`nobody`); or it is unknown.

Cloud Monitoring samples a subscription each minute and shows a point minutes later, sometimes with gaps. So the two are compared at the
time of the newest point and not now, and a point that is too old, missing or unreadable proves nothing: unknown is never `nobody`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final, NamedTuple

from prober.durations import write_duration

POINT_AGE_MAX_S: Final = 600.0
"""The age from which a point says nothing about the present, in seconds.

Points are sampled each 60 s and visible after up to 120 s, and "may have occasional gaps" of "up to several minutes" (Google, "Monitor
Pub/Sub in Cloud Monitoring"; list of metrics).
"""
SAMPLE_S: Final = 60.0
RUN_WITHIN_S: Final = 300.0
"""The period before a time in which a run must have received messages to prove that the prober was in time, in seconds."""
KEPT_S: Final = 1_800.0
AGES_MAX, RUNS_MAX = 3_600, 10_000


class Side(StrEnum):
    """The state of one of the two at a time."""

    LATE = "late"
    IN_TIME = "in time"
    UNKNOWN = "unknown"


class Late(StrEnum):
    """The side that is late."""

    ONLY_YOURS = "only_yours"
    SERVICE = "service"
    BOTH = "both"
    NOBODY = "nobody"
    UNKNOWN = "unknown"


class ReadFailure(StrEnum):
    """The cause of a failed read of own subscriptions."""

    PERMISSION = "permission"
    CREDENTIALS = "credentials"
    UNAVAILABLE = "unavailable"
    REFUSED = "refused"
    NOT_INSTALLED = "not_installed"


class Point(NamedTuple):
    """A value of Cloud Monitoring, and the end of its period, in seconds since 1970."""

    value: float
    at: float


@dataclass(frozen=True, slots=True)
class Reading:
    """Cloud Monitoring's data about a subscription: the newest point of each metric; None: it has none.

    oldest_unacked_age   seconds. `undelivered`: messages. `acked`, `expired`: messages, and acknowledgement deadlines, in one minute.
    gap_s                the longest time between points of the age, among the last ones, in seconds.
    """

    oldest_unacked_age: Point | None = None
    undelivered: Point | None = None
    acked: Point | None = None
    expired: Point | None = None
    gap_s: float = 0.0


@dataclass(frozen=True, slots=True)
class ProberSide:
    """State of the prober's own messages on the target at the time of a point.

    `why`: why that is unknown.
    `here`: the prober had runs there; a prober without runs does not contribute.
    """

    side: Side = Side.UNKNOWN
    age_s: float | None = None
    why: str = ""
    here: bool = False


@dataclass(frozen=True, slots=True)
class OwnSubscriptionStatus:
    """A prober's state of a subscription of the user. Times are seconds since 1970.

    read_at   the last attempt to read it; None: none yet. `failure`: why that failed; empty: it did not.
    reading   the last successful one.
    """

    name: str
    target: str
    late_after_s: float
    read_at: float | None = None
    failure: str = ""
    reading: Reading = Reading()
    prober: ProberSide = ProberSide()

    def unknown(self, why: str) -> OwnSubscriptionStatus:
        """Return the status with an unreliable reading, for this reason."""
        return replace(self, failure=why, prober=ProberSide(why=why))


@dataclass(frozen=True, slots=True)
class OwnSubscriptionSnapshot:
    """A subscription of the user for display: its reading, the late side, and a sentence about that."""

    status: OwnSubscriptionStatus
    late: Late
    sentence: str


class ProberAges:
    """The age of the prober's oldest unacknowledged message on a target during the last half hour, and the runs then."""

    def __init__(self) -> None:
        self._ages: deque[Point] = deque(maxlen=AGES_MAX)
        self._runs: deque[tuple[float, float, bool]] = deque(maxlen=RUNS_MAX)

    def aged(self, age_s: float, at: float) -> None:
        """Note the age of a message at a time, not before the last one; of each second the oldest is kept."""
        if self._ages and int(self._ages[-1].at) == int(at):
            age_s = max(age_s, self._ages.pop().value)
        self._ages.append(Point(age_s, at))
        while self._ages and self._ages[0].at < at - KEPT_S:
            self._ages.popleft()

    def ran(self, begun_at: float, ended_at: float, *, received: bool) -> None:
        """Note the end of a run, which received messages or not."""
        self._runs.append((begun_at, ended_at, received))
        while self._runs and self._runs[0][1] < ended_at - KEPT_S:
            self._runs.popleft()

    def side(self, at: float, late_after_s: float) -> ProberSide:
        """Return the state of the prober in the minute before a time. IN_TIME needs a watched age and received messages."""
        ages = [point.value for point in self._ages if at - SAMPLE_S <= point.at <= at]
        runs = [received for begun, ended, received in self._runs if begun <= at and ended >= at - RUN_WITHIN_S]
        here = bool(self._runs)
        if ages and max(ages) >= late_after_s:
            return ProberSide(Side.LATE, max(ages), here=True)
        if not ages:
            return ProberSide(why="the prober did not watch at that time", here=here)
        if not any(runs):
            what = "its runs at that time received no message" if runs else "it had no run at that time"
            return ProberSide(age_s=max(ages), why=what, here=here)
        return ProberSide(Side.IN_TIME, max(ages), here=True)


def shown(statuses: Iterable[OwnSubscriptionStatus], now: float) -> tuple[OwnSubscriptionSnapshot, ...]:
    """Return each subscription once, by name: the newest reading of all probers, and the worst state of their own messages."""
    by_name: dict[str, list[OwnSubscriptionStatus]] = {}
    for status in statuses:
        by_name.setdefault(status.name, []).append(status)
    return tuple(_snapshot(by_name[name], now) for name in sorted(by_name))


def _snapshot(reported: list[OwnSubscriptionStatus], now: float) -> OwnSubscriptionSnapshot:
    newest = max(reported, key=lambda one: (not one.failure, one.read_at or 0.0))
    sides = [one.prober for one in reported if one.prober.here] or [newest.prober]
    order = (Side.LATE, Side.UNKNOWN, Side.IN_TIME)
    prober = min(sides, key=lambda one: order.index(one.side))
    status = OwnSubscriptionStatus(
        newest.name, newest.target, newest.late_after_s, newest.read_at, newest.failure, newest.reading, prober
    )
    late, sentence = _decided(status, now)
    return OwnSubscriptionSnapshot(status, late, sentence)


def _decided(status: OwnSubscriptionStatus, now: float) -> tuple[Late, str]:
    yours, why = _yours(status, now)
    prober = status.prober
    if yours is Side.UNKNOWN or prober.side is Side.UNKNOWN:
        about = f"of yours: {why}" if yours is Side.UNKNOWN else f"of the prober's: {prober.why or 'it has not said'}"
        return Late.UNKNOWN, f"Unknown. Nothing is known {about}."
    point = status.reading.oldest_unacked_age
    assert point is not None  # else `_yours` is unknown
    late = _TOGETHER[yours is Side.LATE, prober.side is Side.LATE]
    own, theirs = _in_words(point.value), _in_words(prober.age_s or 0.0)
    return late, f"{_SENTENCES[late].format(own=own, theirs=theirs, target=status.target)} As of {_clock(point.at)}."


_TOGETHER: Final = {
    (True, False): Late.ONLY_YOURS,
    (False, True): Late.SERVICE,
    (True, True): Late.BOTH,
    (False, False): Late.NOBODY,
}
_SENTENCES: Final = {
    Late.ONLY_YOURS: "Only yours is late: its oldest message waits for {own}, the prober's on {target} for {theirs}. Look at your "
    "subscribers first.",
    Late.SERVICE: "The service is late, and yours does not show it: the prober's oldest message on {target} waits for {theirs}, yours "
    "for {own}.",
    Late.BOTH: "Both are late: your oldest message waits for {own}, the prober's on {target} for {theirs}. Look at the service first.",
    Late.NOBODY: "Nobody is late: your oldest message waits for {own}, the prober's on {target} for {theirs}.",
}


def _yours(status: OwnSubscriptionStatus, now: float) -> tuple[Side, str]:
    if status.failure:
        return Side.UNKNOWN, status.failure
    if status.read_at is None:
        return Side.UNKNOWN, "it was not read yet"
    point = status.reading.oldest_unacked_age
    if point is None:
        return Side.UNKNOWN, "Cloud Monitoring has no point of it (does it exist?)"
    if now - point.at > POINT_AGE_MAX_S:
        return Side.UNKNOWN, f"its newest point is of {_clock(point.at)}"
    return (Side.LATE if point.value >= status.late_after_s else Side.IN_TIME), ""


def _in_words(seconds: float) -> str:
    return write_duration(timedelta(seconds=round(seconds)))


def _clock(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%H:%M} UTC"
