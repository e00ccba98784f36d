"""Cost of the nightly jobs against a bare Spark `groupBy(key).count()` of the same events.

Both read a legal day as probers write it: 576 runs of four probers with two probe instances each, in a file per prober and hour. Ratios
are of the CPU seconds of all processes involved, each in a session of its own, since a night runs each job once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from operator import attrgetter
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks.figures import Figure
from benchmarks.processes import in_process, processor_s
from prober.config.sections import HistorySettings
from prober.core.events import Acked, Delivered, Ended, Event, Nacked, Opened, Published, PublishInvoked
from prober.core.rules import Rules
from prober.core.verdict import Verdict
from prober.runs.result import RunResult
from prober.sinks.history.encoding import RunContext
from prober.sinks.history.schema import EVENTS
from prober.sinks.history.writer import HistoryWriter
from prober.slo.indicators import Indicator
from prober.slo.objectives import SliCounts
from spark_jobs import hot_keys, reverify, slo_burn
from spark_jobs.history import History
from spark_jobs.session import session
from spark_jobs.tables import Tables
from spark_jobs.work import Exit, Reports, Work

DAY: Final = date(2026, 1, 5)
MIDNIGHT: Final = datetime.combine(DAY, time(), UTC).timestamp()
PROBERS: Final = 4
INSTANCES_EACH: Final = 2
EVERY_S, RUN_S = 1_190.0, 1_180.0
LATER_S: Final = 60.0
"""Distance of the runs of one probe instance from those of the next, in seconds: runs cross the hour."""
RUNS_AN_HOUR, HOURS = 3, 24
KEYS: Final = 16
MESSAGES: Final = 54
"""Messages of a key in a run: 2 million events a day."""
NACKED_OF: Final = 97
ROUNDS: Final = 2
MASTER: Final = "local[2]"
PLAIN_JAVA: Final = "-XX:+UseParallelGC"
"""Options of Java for the bare count: those of an ordinary start of Spark."""
UNIT: Final = "times groupBy(key).count()"
GOAL: Final = 3.0


def run_events(began_t: float, run_id: str, subscription: str) -> list[Event]:
    """Return the events of a legal run: a message is received and acknowledged at once; one of 97 is nacked and redelivered."""
    events: list[Event] = [Opened(began_t, subscription, "stream", "prober")]
    for number in range(KEYS * MESSAGES):
        key, seq, message_id = f"key-{number % KEYS:02}", number // KEYS + 1, f"{began_t:.0f}{number:06}"
        t = began_t + 1.0 + number * (RUN_S - 5.0) / (KEYS * MESSAGES)
        received = Delivered(t + 0.06, subscription, key, "stream", run_id, seq, message_id)
        events += [PublishInvoked(t, key, run_id, seq, size=256), Published(t + 0.02, key, run_id, seq, message_id), received]
        if number % NACKED_OF == 0:
            events += [Nacked(t + 0.08, subscription, key, "stream", message_id), replace(received, t=t + 0.3)]
        events.append(Acked(t + 0.35, subscription, key, "stream", message_id))
    return [*sorted(events, key=attrgetter("t")), Ended(began_t + RUN_S - 1.0, drained=True)]


@dataclass
class Clock:
    """A clock that is set by its owner, in seconds since midnight."""

    t: float = 0.0

    def __call__(self) -> float:
        """Return the time."""
        return self.t


def write_day(location: str) -> None:
    """Write the day by the service's own writer."""
    for prober in range(PROBERS):
        write_prober_day(location, prober)


def write_prober_day(location: str, prober: int) -> None:
    """Write the runs of one prober, hour by hour."""
    clock, settings = Clock(), HistorySettings(location=location)
    writer = HistoryWriter(settings, process=f"prober-{prober}", clock=clock, wall_clock=lambda: MIDNIGHT + clock.t)
    for number in range(HOURS * RUNS_AN_HOUR):
        for instance in range(prober * INSTANCES_EACH, (prober + 1) * INSTANCES_EACH):
            clock.t = number * EVERY_S + instance * LATER_S
            write_run(writer, clock, f"run-{instance}-{number}", instance)
        writer.flush()
        if number % RUNS_AN_HOUR == RUNS_AN_HOUR - 1:
            writer.end_segment()
            assert writer.ship(), writer.state().store_error
    writer.close()


def write_run(writer: HistoryWriter, clock: Clock, run_id: str, instance: int) -> None:
    """Write a run that begins now."""
    topic, subscription = f"projects/benchmark/topics/t-{instance}", f"projects/benchmark/subscriptions/s-{instance}"
    about = ("benchmark", "production", "europe-west1", f"probe-{instance}", "wire", topic)
    run = RunContext(run_id, *about, {subscription: Rules()}, MIDNIGHT + clock.t)
    log = writer.begin(run)
    for event in run_events(clock.t, run_id, subscription):
        clock.t = event.t
        log.record(event)
    checks = {indicator: SliCounts(KEYS * MESSAGES) for indicator in (Indicator.ORDER, Indicator.COMPLETENESS)}
    log.ended(
        RunResult(
            run_id, run.probe, run.target, run.vantage, Verdict.PASS, "", run.started_at, RUN_S - 1.0,
            counters={"keys": KEYS}, checks=checks,
        )
    )  # fmt: skip


def bare_s(folder: str) -> float:
    """Return the CPU seconds of the bare count."""
    with session(MASTER, java_options=PLAIN_JAVA) as spark:
        began_s = processor_s()
        rows = Tables(spark, folder).read(EVENTS, DAY, DAY)
        rows.groupBy("key").count().write.format("noop").mode("overwrite").save()
        return processor_s() - began_s


def jobs_s(folder: str) -> Mapping[str, float]:
    """Return the CPU seconds of each job; they run one after the other."""
    spent_s = {}
    with session(MASTER) as spark, TemporaryDirectory() as reports:
        work = Work(spark, History(spark, folder), Reports(spark, reports), DAY, MIDNIGHT + 1.5 * HOURS * 3600.0)
        for job in (hot_keys, slo_burn, reverify):
            before_s = processor_s()
            outcome = job.run(work)
            assert outcome.exit is Exit.PASS, outcome.line
            spent_s[job.JOB] = processor_s() - before_s
    return spent_s


def figures() -> Iterator[Figure]:
    """Yield the figures of the jobs."""
    with TemporaryDirectory() as folder:
        write_day(folder)
        rounds = [(in_process(bare_s, folder), in_process(jobs_s, folder)) for _ in range(ROUNDS)]
    for name in rounds[0][1]:
        yield Figure(f"{name}, CPU after Spark has started", UNIT, [spent_s[name] / bare for bare, spent_s in rounds], GOAL)


if __name__ == "__main__":
    for figure in figures():
        print(f"{figure.name}: {figure.best:.2f} {figure.unit}", flush=True)
