"""The command `ordering-prober observe`: read a stream of other publishers once, and report what can be proven about its order.

A terminal shows the progress; the report is printed at the end. docs/probes/observe.md states what it can and cannot prove.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

import typer
from rich.live import Live
from rich.table import Table

from prober.brokers.endpoint import Endpoint, parse_endpoint, resolve_endpoint
from prober.brokers.nats_stream import NATS, NatsStream, is_nats
from prober.cli.options import EndpointOption, Output
from prober.cli.process import Format, save_trace
from prober.cli.terminal import progress_console, show
from prober.clock import wall_s
from prober.core.events import Opened
from prober.core.findings import Kind
from prober.core.rules import Rules
from prober.durations import duration_s
from prober.errors import ConfigError
from prober.evidence.explain import PUBSUB
from prober.monitoring.comparison import OwnSubscriptionSnapshot, OwnSubscriptionStatus, Reading, shown
from prober.probes.catalogue import ProbeName
from prober.probes.observe import observed_key, observing, stream_of
from prober.runs.resources import Provisioner
from prober.traces.header import TraceHeader
from prober.traces.trace import TraceError

if TYPE_CHECKING:
    from prober.brokers.base import Broker
    from prober.cli.observe_report import StreamObservation
    from prober.config.sections import Observe, OwnSubscription
    from prober.probes.observe import ObservedStream
    from prober.runs.recorder import Recording
    from prober.runs.result import RunResult
    from prober.runs.runner import Run
    from prober.schedule.instances import PlannedInstance
    from prober.traces.verification import RecordVerification

SHOWN_EVERY_S: Final = 0.5
INSTANCE: Final = "observe"
EVERYWHERE: Final = "global"
NO_PROJECT: Final = "nats-stream"
ENDPOINT_VARIABLE: Final = "ORDERING_PROBER_MONITORING__ENDPOINT"
"""Environment variable with the address of Cloud Monitoring, as for the service."""


class Beside(NamedTuple):
    """Data to compare an observation with.

    records        files of publishers' records.
    clock_error_s  maximum difference of the clocks of the publishers and of this machine.
    own            a subscription of the user's.
    """

    records: tuple[str, ...] = ()
    clock_error_s: float = 1.0
    own: OwnSubscription | None = None


ALONE: Final = Beside()


def observe(  # noqa: PLR0913, PLR0917  # every option is a parameter
    topic: Annotated[
        str, typer.Option(metavar="TOPIC", help="The topic: projects/PROJECT/topics/NAME; or the name of a stream of NATS.")
    ],
    group: Annotated[
        str, typer.Option(metavar="PATH", help="What messages are numbered by: ordering_key, attributes.NAME or json.FIELD.FIELD.")
    ] = "ordering_key",
    sequence: Annotated[
        str, typer.Option(metavar="PATH", help="The number of a message within its group: attributes.NAME or json.FIELD.FIELD.")
    ] = "",
    duration: Annotated[str, typer.Option("--for", metavar="DURATION", help="For how long, such as 30s or 5m.")] = "1m",
    endpoint: EndpointOption = "",
    setting: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Any key of probes.observe.observe, such as share=10%; may be given several times."
        ),
    ] = None,
    record: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="What a publisher recorded with prober.client; may be given several times."),
    ] = None,
    record_clock_error: Annotated[
        str, typer.Option(metavar="DURATION", help="How far the clocks of the publishers and of this machine may differ.")
    ] = "1s",
    own: Annotated[
        str,
        typer.Option(metavar="SUBSCRIPTION", help="A subscription of yours, of which Cloud Monitoring says whether it is late."),
    ] = "",
    late_after: Annotated[str, typer.Option(metavar="DURATION", help="How old its oldest message may be.")] = "60s",
    trace: Annotated[str, typer.Option(metavar="FILE", help="Write what was recorded to a trace file, for verify.")] = "",
    output: Output = Format.TEXT,
) -> None:
    """Read a stream that others publish, through a subscription of its own, and print what can be proven about its order.

    --endpoint nats://HOST:PORT reads a stream of NATS. Ctrl-C ends the observation early. Exit code 0, PASS: nothing is out of order. 1,
    FAIL: something is, by the service or by publishers. 2: wrong usage. 3, UNKNOWN: something is and the cause is undecided, nothing was
    received, or the service does not answer.
    """
    from prober.config.problems import validated
    from prober.config.sections import Observe

    written = {"topic": topic, "group": group, "sequence": sequence or None, "duration": duration}
    settings = validated(Observe, written | dict(map(_assigned, setting or ())))
    beside_it = Beside(tuple(record or ()), duration_s(record_clock_error), _own(own, late_after))
    seen = asyncio.run(_until_interrupted(settings, endpoint, trace, beside_it))
    if output is Format.JSON:
        print(seen.as_json())
    else:
        show(seen.as_text())
    raise typer.Exit(int(seen.exit_code))


async def _until_interrupted(settings: Observe, endpoint: str, trace: str, beside_it: Beside) -> StreamObservation:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, stop.set)
    return await observe_once(settings, endpoint, os.environ, trace, stop, beside_it)


async def observe_once(
    settings: Observe,
    endpoint: str,
    environ: Mapping[str, str],
    trace: str = "",
    stop: asyncio.Event | None = None,
    beside_it: Beside = ALONE,
) -> StreamObservation:
    """Run one observation, until `stop` is set if that is sooner.

    Raises ConfigError if no message has the configured fields, or if a record cannot be read; BrokerError if the target cannot be used.
    """
    from prober.cli.observe_report import StreamObservation
    from prober.runs.runner import Run
    from prober.sinks.top_keys import KeyTraffic

    instance = _instance(settings, endpoint)
    where, broker = await _connected(settings, endpoint, environ)
    target = instance.at(where)
    if isinstance(broker, NatsStream):
        target = replace(target, rules=replace(target.rules, redelivery_promised=False))
    stream = stream_of(settings.plan)
    experiment = observing(settings.plan, stream, stop, target.rules.delivery_delay_max_s if beside_it.records else 0.0)
    try:
        name = instance.resource_name(INSTANCE)
        topic = settings.topic if isinstance(broker, NatsStream) else instance.foreign_topic
        provisioner = Provisioner(target, name, experiment.subscriptions, lasting=False, topic=topic)
        run = Run(experiment, broker, target, provisioner, instance.workload)
        traffic = KeyTraffic()
        run.recording.listen(traffic.event)
        async with _shown(run, stream):
            result = await run.carry_out()
    finally:
        await broker.close()
    if stream.unreadable:
        raise ConfigError(f"{stream.unreadable}: correct --group or --sequence")
    known = run.rules[result.subscription]
    if trace:
        save_trace(trace, TraceHeader(result.subscription, "", rules=known), run.recording.events)
    verified = _verified_with_records(beside_it, run.recording, known, settings, stream, result)
    if trace and verified is not None:
        joined = str(Path(trace).with_suffix(".record.jsonl"))
        save_trace(joined, TraceHeader(result.subscription, "", rules=verified.rules), verified.events)
    late = None if beside_it.own is None else await _who_is_late(beside_it.own, environ, stream, result)
    service = NATS if isinstance(broker, NatsStream) else PUBSUB
    return StreamObservation(result, stream, traffic, known, verified, late, service)


def _own(name: str, late_after: str) -> OwnSubscription | None:
    from prober.config.problems import validated
    from prober.config.sections import OwnSubscription

    return validated(OwnSubscription, {"name": name, "late_after": late_after}) if name else None


def _assigned(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise ConfigError(f"--set {text}: write KEY=VALUE, such as --set share=10%")
    return key.strip(), value.strip()


async def _connected(settings: Observe, endpoint: str, environ: Mapping[str, str]) -> tuple[Endpoint, Broker]:
    from prober.brokers.base import Vantage
    from prober.brokers.connect import connect

    if is_nats(endpoint):
        if settings.unordered:
            raise ConfigError("--set unordered: a stream of NATS has one order, with which every consumer reads it")
        return Endpoint(endpoint, secure=False), NatsStream(endpoint, settings.topic)
    where = resolve_endpoint(EVERYWHERE, environ, endpoint)
    return where, await connect(where, Vantage.WIRE)


def _instance(settings: Observe, endpoint: str) -> PlannedInstance:
    """Return the probe instance of the observation, in the project of the topic; a stream of NATS has no project."""
    from prober.brokers.base import Vantage
    from prober.config.models import ProbeSettings, Schedule, TargetSettings
    from prober.config.problems import validated
    from prober.schedule.instances import PlannedInstance

    _, _, project = settings.topic.rpartition("/topics/")[0].rpartition("projects/")
    project = project or (NO_PROJECT if is_nats(endpoint) else "")
    if not project:
        raise ConfigError(f"--topic {settings.topic}: write projects/PROJECT/topics/NAME")
    schedule = Schedule(interval=timedelta(days=1))
    probe = ProbeSettings(schedule=schedule, keys=1, messages=1, subscribers=1, observe=settings)
    known = {"name": INSTANCE, "endpoint": EVERYWHERE, "project": project, "probes": {ProbeName.OBSERVE: probe}}
    target = validated(TargetSettings, known)
    return PlannedInstance(target, ProbeName.OBSERVE, probe, Vantage.WIRE)


# --- on a terminal, while it reads ---------------------------------------------------------------------------------------------


@asynccontextmanager
async def _shown(run: Run, stream: ObservedStream) -> AsyncIterator[None]:
    """Show a table of the stream on standard error, on a terminal only."""
    if not sys.stderr.isatty():
        yield
        return
    with Live(_table(run, stream), console=progress_console(), transient=True, auto_refresh=False) as live:

        async def follow() -> None:
            while True:
                live.update(_table(run, stream), refresh=True)
                await asyncio.sleep(SHOWN_EVERY_S)

        following = asyncio.create_task(follow(), name="observe shown")
        try:
            yield
        finally:
            following.cancel()


def _table(run: Run, stream: ObservedStream) -> Table:
    counters, found = run.recording.counters, run.recording.verifier.findings.counts
    table = Table(
        "received", "groups", "again", "repeated", "publisher out of order", "service out of order", "median age", box=None
    )
    median_s = stream.ages.quantile_s(0.5)
    table.add_row(
        f"{stream.counts['received']:,}",
        f"{counters['numberings']:,}",
        f"{counters['deliveries_redelivery']:,}",
        f"{counters['numbers_repeated']:,}",
        f"{sum(count for (kind, _), count in found.items() if kind is Kind.PUBLISHED_OUT_OF_ORDER):,}",
        f"{sum(count for (kind, _), count in found.items() if kind is Kind.DELIVERED_OUT_OF_ORDER):,}",
        "" if median_s is None else f"{median_s:.3g} s",
    )
    return table


async def _who_is_late(
    own: OwnSubscription, environ: Mapping[str, str], stream: ObservedStream, result: RunResult
) -> OwnSubscriptionSnapshot:
    """Compare the present state of a subscription of the user's in Cloud Monitoring with the observation. Only metrics are read.

    Without an answer of Cloud Monitoring the late side is unknown; that is no error.
    """
    from prober.config.sections import Monitoring
    from prober.monitoring.cloud import CloudMonitoring, MonitoringError

    now = wall_s()
    stream.waits.ran(result.started_at, now, received=bool(stream.ages.count))
    failure, reading = "", Reading()
    cloud = CloudMonitoring(parse_endpoint(environ.get(ENDPOINT_VARIABLE) or Monitoring().endpoint))
    try:
        reading = (await asyncio.to_thread(cloud.read, [own.name], now))[own.name]
    except MonitoringError as error:
        failure = str(error)
    finally:
        await asyncio.to_thread(cloud.close)
    point, late_after_s = reading.oldest_unacked_age, own.late_after.total_seconds()
    side = stream.waits.side(now if point is None else point.at, late_after_s)
    topic = result.topic.rpartition("/")[2]
    (snapshot,) = shown([OwnSubscriptionStatus(own.name, topic, late_after_s, now, failure, reading, side)], now)
    return snapshot


def _verified_with_records(
    beside_it: Beside, recording: Recording, rules: Rules, settings: Observe, stream: ObservedStream, result: RunResult
) -> RecordVerification | None:
    """Return the findings that the records prove; None without a record, or if nothing was observed.

    `recording`: that of the run, `rules` those of its subscription. Raises ConfigError if a record cannot be read.
    """
    from prober.traces.verification import read_records, verify_with

    events = recording.events[: recording.verifier.verified]
    opened_t = next((event.t for event in events if isinstance(event, Opened)), None)
    if not beside_it.records or opened_t is None:
        return None
    offset_s = result.clock_offset_s or 0.0  # it is known of a run of this process
    rules = replace(rules, clock_error_s=beside_it.clock_error_s, keys_max=0)
    until_s = stream.observed_until
    if not until_s or len(events) < recording.events_seen:  # what came last is not there
        until_s = events[-1].t + offset_s - rules.delivery_delay_max_s
    try:
        since_s = opened_t + offset_s + rules.clock_error_s
        known = read_records(beside_it.records, result.topic, since_s, until_s, lambda key: observed_key(key, settings.plan))
    except TraceError as error:
        raise ConfigError(f"--record {error}") from error
    return verify_with(known, events, result.subscription, rules, offset_s)
