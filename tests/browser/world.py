"""A service that people look at: a filled status store, reports of the nightly jobs, and the real web server in front of them.

Two probers report, one has fallen silent. Most of what they watch is well; one guarantee is broken, one instance is unknown, one is under
maintenance. All findings come from the recorded traces of tests/vectors, verified as in the service, so their evidence is real. Randomness
is seeded and the time stands still at noon, so that each picture is the same.
"""

from __future__ import annotations

import asyncio
import atexit
import shutil
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Final

from api.app import create_app
from api.view import Archive
from prober.comparison.pairs import CommonExperiments, ComparedExperiment, ConfiguredComparison
from prober.config.comparisons import ComparisonSettings
from prober.config.loading import load
from prober.core.events import Event
from prober.core.findings import FAILING
from prober.core.verdict import Verdict
from prober.reports.reader import ReportReader
from prober.runs.probe_instance import ProbeInstance
from prober.runs.result import Durations, RunResult
from prober.runs.sink import KeptHistory
from prober.schedule.forecast import detectable
from prober.serving.server import listen, serve
from prober.sinks.live.state import LiveState
from prober.sinks.status.database import Database
from prober.sinks.status.entries import EndedRun, ProberIdentity, entry_of
from prober.sinks.status.prober_records import ProberRecord, Slice
from prober.sinks.status.queries import StatusQueries
from prober.sinks.status.records import Entry
from prober.sinks.status.slices import LONG_S, MINUTE_SLICE_S, SHORT_S, begin_of, definition_of
from prober.sinks.status.store import StatusStore
from prober.slo.indicators import Indicator
from prober.slo.objectives import DAY_S, HOUR_S, SliCounts
from prober.traces.header import TraceHeader
from prober.traces.trace import read_trace
from prober.traces.verification import verify_trace
from tests.browser.reports import write_reports
from tests.streams import HOSTILE, ORDERS_STREAM
from tests.unit.api.asking import NOON, StubView

VECTORS: Final = Path(__file__).parents[1] / "vectors"
STARTED: Final = NOON - 9 * HOUR_S
INTERVAL_S: Final = 60.0
RUNS: Final = 90
PATIENCE_S: Final = 30.0
VERSION: Final = "1.4.0"
ORDERS: Final = "orders-1042"  # the key on which guarantees are violated here

EUROPE: Final = ProbeInstance(
    "europe",
    "ordering",
    "wire",
    INTERVAL_S,
    schedule="every 1m",
    environment="production",
    region="europe-west1",
    endpoint="europe-west1-pubsub.googleapis.com:443",
    guarantee="Messages of a key are received in the order in which the service received them.",
    topic="projects/shop/topics/okp-europe-ordering",
    subscription="projects/shop/subscriptions/okp-europe-ordering",
)
REDELIVERY: Final = replace(
    EUROPE,
    probe="redelivery",
    guarantee="When a message is redelivered, all later ones of its key are redelivered too, acknowledged or not.",
    subscription="projects/shop/subscriptions/okp-europe-redelivery",
)
LIBRARY: Final = replace(EUROPE, vantage="library", subscription="projects/shop/subscriptions/okp-europe-ordering-library")
AFFINITY: Final = replace(
    EUROPE,
    target="us",
    probe="affinity",
    region="us-east1",
    endpoint="us-east1-pubsub.googleapis.com:443",
    guarantee="While messages of a key are outstanding, the key stays at one subscriber.",
    subscription="projects/shop/subscriptions/okp-us-affinity",
)
OKP_US: Final = "projects/shop/subscriptions/okp-us-ordering"
US: Final = replace(AFFINITY, probe="ordering", guarantee=EUROPE.guarantee, subscription=OKP_US)
STAGING: Final = replace(EUROPE, target="staging", environment="staging", endpoint="10.20.0.5:8085", region="")
ASIA: Final = replace(EUROPE, target="asia", region="asia-east1", endpoint="asia-east1-pubsub.googleapis.com:443")
OWN: Final = (EUROPE, LIBRARY, REDELIVERY, STAGING)
OTHERS: Final[Mapping[str, tuple[ProbeInstance, ...]]] = {"prober-1": (US, AFFINITY), "prober-2": (ASIA,)}


@dataclass
class World:
    """The service, as a test changes it, and where it answers."""

    view: StubView
    store: StatusStore
    url: str = ""

    def end(self, instance: ProbeInstance, verdict: Verdict, number: int) -> None:
        """One more run ends at this moment."""
        result = _result(instance, verdict, number, self.view.now - 1.0)
        self.store.record([_entry(instance, result, "prober-0")])
        self.view.live.ended(instance, result, result.started_at + result.duration_s)
        self.tell()

    def tell(self) -> None:
        """The service sends a heartbeat."""
        self.store.heartbeat(
            ProberRecord("prober-0", VERSION, STARTED, self.view.now, streams=(ORDERS_STREAM,)),
            self.view.snapshot().probe_instances,
        )


@contextmanager
def served(folder: Path, third_key: str = HOSTILE) -> Iterator[World]:
    """The world on a free port of this machine; it ends with the context. `third_key`: the last of the hot keys."""
    world = made(folder, third_key)
    with serving(world.view) as world.url:
        yield world


@contextmanager
def serving(view: StubView) -> Iterator[str]:
    """The address of a service on a free port of this machine; it ends with the context."""
    announced = threading.Event()
    urls: list[str] = []

    def announce(url: str) -> None:
        urls.append(url.rstrip("/"))
        announced.set()

    loop = asyncio.new_event_loop()

    async def server() -> None:
        with suppress(asyncio.CancelledError):
            await serve(create_app(view, view.archive, view.settings), await listen("127.0.0.1", 0), announce=announce)

    task = loop.create_task(server())
    thread = threading.Thread(target=loop.run_until_complete, args=(task,), daemon=True)
    thread.start()
    try:
        assert announced.wait(PATIENCE_S)
        yield urls[0]
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join(PATIENCE_S)
        loop.close()
    assert view.errors == []


def made(folder: Path, third_key: str = HOSTILE) -> World:
    """The world, with everything that it remembers: a copy of what is made once, which takes seconds."""
    kept, live = _kept(third_key)
    shutil.copytree(kept, folder, dirs_exist_ok=True)
    database = Database(f"sqlite:///{folder / 'status.db'}")
    found = {(EUROPE.target, Indicator.REDELIVERY): detectable(7_200.0)}
    reports = ReportReader(str(folder / "reports"))
    archive = Archive(StatusQueries(database), load(None, {}).objectives, reports, tuple(_comparisons()), found)
    return World(StubView(deepcopy(live), archive), StatusStore(database))


@cache
def _kept(third_key: str) -> tuple[Path, LiveState]:
    """The folder with the store and the reports, which goes away at the end, and what the first prober knows of itself."""
    temporary = TemporaryDirectory(prefix="okp-world-")
    atexit.register(temporary.cleanup)
    folder = Path(temporary.name)
    objectives = load(None, {}).objectives
    database = Database(f"sqlite:///{folder / 'status.db'}")
    store = StatusStore(database)
    store.prepare()
    live_states = {
        instance: LiveState(instances, objectives, version=VERSION, instance=instance, started_at=STARTED)
        for instance, instances in {"prober-0": OWN, **OTHERS}.items()
    }
    for instance, live in live_states.items():
        _live(store, live, instance, OWN if instance == "prober-0" else OTHERS[instance])
    live_states["prober-0"].under_maintenance(STAGING, "upgrade of the emulator", NOON - 600.0)
    live_states["prober-0"].started(EUROPE, NOON - 4.0)
    for probe_instance in OWN:
        live_states["prober-0"].planned(probe_instance, NOON + 21.0)
    for instance, silent_s in (("prober-1", 3.0), ("prober-2", 1500.0)):
        reported = live_states[instance].snapshot(NOON - silent_s)
        store.heartbeat(ProberRecord(instance, VERSION, STARTED, NOON - silent_s), reported.probe_instances)
    reported = live_states["prober-0"].snapshot(NOON)
    *others, last = ORDERS_STREAM.top
    orders = replace(ORDERS_STREAM, top=(*others, replace(last, key=third_key)))
    store.heartbeat(ProberRecord("prober-0", VERSION, STARTED, NOON, streams=(orders,)), reported.probe_instances, tuple(_slices()))
    database.close()
    write_reports(folder / "reports", third_key)
    return folder, live_states["prober-0"]


def _comparisons() -> Iterator[ConfiguredComparison]:
    """A candidate with runs of its own, and one of which nothing is heard any more."""
    ordering = CommonExperiments({ComparedExperiment("ordering", "wire", ""): INTERVAL_S}, ())
    for candidate, newest in (("us", timedelta(hours=1)), ("asia", timedelta(minutes=10))):
        yield ConfiguredComparison(ComparisonSettings(baseline="europe", candidate=candidate, window=newest), ordering)


# --- runs --------------------------------------------------------------------------------------------------------------------


def _live(store: StatusStore, live: LiveState, instance: str, instances: Iterable[ProbeInstance]) -> None:
    """What a prober has seen: a run a minute at each probe instance, and earlier every recorded trace once."""
    for probe_instance in instances:
        entries = []
        for number in range(RUNS):
            at = NOON - (RUNS - number) * INTERVAL_S + 10.0
            if probe_instance is ASIA and number > RUNS - 30:
                break
            entry = _entry(probe_instance, _result(probe_instance, _verdict(probe_instance, number), number, at), instance)
            entries.append(entry)
            live.ended(probe_instance, entry.run.result, entry.run.ended_at)
        if probe_instance is US:
            entries = [*_recorded(probe_instance, instance), *entries]
        store.record(entries)


def _verdict(instance: ProbeInstance, number: int) -> Verdict:
    left = RUNS - number
    if instance is REDELIVERY:
        return Verdict.FAIL if left in (1, 2, 3, 79) else Verdict.PASS
    if instance is LIBRARY:
        return Verdict.UNKNOWN if left <= 2 or 30 <= left < 42 else Verdict.PASS
    return Verdict.UNKNOWN if instance is STAGING and left < 4 else Verdict.PASS


def _result(instance: ProbeInstance, verdict: Verdict, number: int, at: float) -> RunResult:
    rng = Random(f"{instance.probe} {instance.target} {instance.vantage} {number}")
    reason = {Verdict.FAIL: "REDELIVERY_SKIP", Verdict.UNKNOWN: "the target did not answer for 12 s"}.get(verdict, "")
    name = f"{instance.probe}-{instance.target}-{instance.vantage}-{number:03}"
    place = instance.probe, instance.target, instance.vantage
    took_s, names = rng.uniform(1.5, 3.0), (instance.topic, instance.subscription)
    result = RunResult(name, *place, verdict, reason, at, took_s, 7 + number, *names)
    if verdict is Verdict.UNKNOWN:
        return result
    counters = {
        "opportunities_order": 990,
        "opportunities_redelivery": 60,
        "opportunities_redelivery_acked": 60,
        "deliveries_first": 200,
        "deliveries_again": rng.randrange(20, 60),
        "keys": 10,
        "rewinds": rng.randrange(4, 12),
    }
    bad = int(verdict is Verdict.FAIL)
    checks = {indicator: SliCounts(200) for indicator in (Indicator.ORDER, Indicator.COMPLETENESS, Indicator.AFFINITY)}
    checks[Indicator.REDELIVERY] = SliCounts(counters["rewinds"] - bad, bad)
    return replace(
        result, counters=counters, checks=checks, durations=_durations(rng, slow=instance is REDELIVERY and number > RUNS - 20)
    )


def _durations(rng: Random, *, slow: bool) -> dict[Indicator, Durations]:
    worse = 6.0 if slow else 1.0
    publish, receipt = rng.uniform(0.010, 0.014), rng.uniform(0.040, 0.055)
    known = {
        Indicator.PUBLISH_LATENCY: Durations(200, publish, publish * rng.uniform(2.0, 4.0), publish * 5.0),
        Indicator.END_TO_END_LATENCY: Durations(200, receipt, receipt * rng.uniform(2.0, 3.0) * worse, receipt * 4.0 * worse),
        Indicator.OLDEST_UNACKED_MESSAGE_AGE: Durations(12, 0.1, 0.4, rng.uniform(0.4, 0.9) * worse * worse),
    }
    spread = Random(publish)
    taken = {indicator: [one.p50_s * spread.lognormvariate(0.0, 0.45) for _ in range(200)] for indicator, one in known.items()}
    return {indicator: replace(one, histogram=Durations.of(taken[indicator]).histogram) for indicator, one in known.items()}


def _entry(probe_instance: ProbeInstance, result: RunResult, instance: str) -> Entry:
    """A run as the service keeps it; one that fails is a recorded trace."""
    if result.verdict is Verdict.FAIL:
        return _verified(probe_instance, result, instance, "t20-acked-3-not-redelivered-before-4", ORDERS)
    ended_at = result.started_at + result.duration_s
    recorded = KeptHistory((), {}, sum(result.counters.values()))
    return entry_of(EndedRun(probe_instance, result, ended_at, 0.0, recorded), ProberIdentity(instance, VERSION, STARTED))


def _recorded(probe_instance: ProbeInstance, instance: str) -> Iterator[Entry]:
    """Every recorded trace as a run of its own, some hours ago; one of them on a hostile key."""
    for number, path in enumerate(sorted(VECTORS.glob("*.jsonl"))):
        at = STARTED + 60.0 * number
        result = replace(
            _result(probe_instance, Verdict.PASS, number, at), run_id=f"{probe_instance.probe}-{path.stem.split('-')[0]}"
        )
        yield _verified(probe_instance, result, instance, path.stem, HOSTILE if path.stem.startswith("t02-") else ORDERS)


def _verified(probe_instance: ProbeInstance, result: RunResult, instance: str, stem: str, key: str) -> Entry:
    header, events = _trace(stem)
    header = replace(header, subscription=probe_instance.subscription, key=key)
    own = [_renamed(event, probe_instance.subscription, key) for event in events]
    found = verify_trace(result.run_id, header, own)
    reason = ", ".join(sorted({made.finding.kind for made in found.findings if made.finding.status in FAILING}))
    reported = replace(
        result, verdict=found.verdict, reason=reason, findings=found.findings, counts=found.counts, counters=found.counters
    )
    recorded = KeptHistory(own, {probe_instance.subscription: header.rules}, len(own))
    ended = EndedRun(probe_instance, reported, reported.started_at + reported.duration_s, 0.0, recorded)
    return entry_of(ended, ProberIdentity(instance, VERSION, STARTED))


@cache
def _trace(stem: str) -> tuple[TraceHeader, list[Event]]:
    with read_trace(VECTORS / f"{stem}.jsonl") as trace:
        return trace.header, list(trace)


def _renamed(event: Any, subscription: str, key: str) -> Event:
    named = (("subscription", subscription), ("key", key))
    renamed: Event = replace(event, **{name: value for name, value in named if hasattr(event, name)})
    return renamed


# --- counts ------------------------------------------------------------------------------------------------------


def _slices() -> Iterator[Slice]:
    """Counts for objectives: a good week, but redelivery in Europe has been bad for an hour; some things nobody counts."""
    for objective in load(None, {}).objectives:
        for target in () if objective.indicator is Indicator.STALLED_KEYS else ("europe", "us"):
            is_burning = target == "europe" and objective.indicator is Indicator.REDELIVERY
            for length_s, back_s in ((MINUTE_SLICE_S, 2 * HOUR_S), (SHORT_S, DAY_S + HOUR_S), (LONG_S, 7 * DAY_S)):
                at = begin_of(NOON - back_s, length_s)
                while at < NOON:
                    bad = length_s // 20 if is_burning and at >= NOON - HOUR_S else 0
                    counts = SliCounts(length_s * 3 - bad, bad)
                    yield Slice("process-1", target, objective.name, definition_of(objective), length_s, at, counts)
                    at += length_s
