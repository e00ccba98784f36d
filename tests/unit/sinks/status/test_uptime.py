"""Monthly uptime from the minute slices of the store."""

from __future__ import annotations

from datetime import UTC, datetime

from prober.sinks.status.database import Database
from prober.sinks.status.over_time import monthly_uptime
from prober.sinks.status.prober_records import ProberRecord, Slice
from prober.sinks.status.store import StatusStore
from prober.slo.objectives import DAY_S, MINUTE_S, SliCounts
from prober.slo.uptime import MonthlyUptime
from tests.unit.sinks.status.examples import RETENTION, START

GOOD, BAD, BOTH, UNDECIDED = SliCounts(good=3), SliCounts(bad=3), SliCounts(3, 3), SliCounts(undecided=3)
MARCH = datetime(2026, 3, 1, tzinfo=UTC).timestamp()
NOW = MARCH + 10 * MINUTE_S + 5.0


def count(store: StatusStore, *minutes: SliCounts, begin: float = MARCH, target: str = "europe", process: str = "p") -> None:
    """What was counted in these minutes, one after another."""
    slices = [
        Slice(process, target, "availability", "publish_availability", 60, begin + number * MINUTE_S, counts)
        for number, counts in enumerate(minutes)
    ]
    store.heartbeat(ProberRecord(process, "1.2.3", START, START), (), slices)


def march(minutes: int, up: int, down: int) -> MonthlyUptime:
    return MonthlyUptime("europe", "2026-03", minutes, up, down, is_over=False)


def test_minutes_are_up_down_or_unknown(database: Database, store: StatusStore) -> None:
    count(store, GOOD, BOTH, BAD, BAD, BAD, UNDECIDED, BAD, GOOD)
    assert monthly_uptime(database, NOW) == (march(10, up=3, down=1),)


def test_one_confirmed_publish_of_any_process_is_enough(database: Database, store: StatusStore) -> None:
    count(store, BAD, BAD, BAD, BAD, BAD)
    count(store, UNDECIDED, UNDECIDED, GOOD, process="q")
    assert monthly_uptime(database, NOW) == (march(10, up=1, down=0),)


def test_the_minute_that_is_not_over_does_not_count(database: Database, store: StatusStore) -> None:
    count(store, BAD, BAD, BAD, begin=MARCH + 8 * MINUTE_S)
    assert monthly_uptime(database, NOW) == (march(10, up=0, down=1),)


def test_each_month_and_target_has_its_own(database: Database, store: StatusStore) -> None:
    """An outage over the end of the month is down on both sides."""
    count(store, BAD, BAD, BAD, BAD, begin=MARCH - 2 * MINUTE_S)
    count(store, GOOD, begin=MARCH, target="us")
    found = [(one.month, one.target, one.minutes, one.up, one.down, one.is_over) for one in monthly_uptime(database, NOW)]
    assert found == [
        ("2026-03", "europe", 10, 0, 1, False),
        ("2026-03", "us", 10, 1, 0, False),
        ("2026-02", "europe", 28 * 1440, 0, 1, True),
    ]


def test_minute_slices_of_publishes_are_kept_for_as_long(database: Database, store: StatusStore) -> None:
    count(store, GOOD)
    other = Slice("p", "europe", "order", "order", 60, MARCH, GOOD)
    store.heartbeat(ProberRecord("p", "1.2.3", START, START), (), [other])
    for days, kept in ((1.0, 1), (62.0, 1), (64.0, 0)):
        store.tidy(RETENTION, MARCH + days * DAY_S)
        with database.reading() as connection:
            assert connection.exec_driver_sql("SELECT COUNT(*) FROM slices").scalar() == kept
