"""Runs as OpenTelemetry traces, created from the recorded events after the run: during a run, tracing costs nothing.

One trace per run. Its root span is the run, with the verdict, the counts, and the findings as events. Its children are the publishes and
deliveries (`episodes`); a delivery links to its publish. Names and attributes are those of the semantic conventions for messaging and
Google Cloud Pub/Sub (in development; opentelemetry.io/docs/specs/semconv/messaging), and `prober.*` where these have none. Payloads are not
included. The only names of spans are `run PROBE`, `publish` and `process`. Facts about a single run are attributes; the attributes of every
span include the run's id.

A run without a PASS is always traced, other runs with a probability. Both are decided at the end of the run, but measurements refer to the
trace earlier. So the id of a trace is derived from the run's id: `prober.logs.span_context_of`.

The number of spans is bounded, per trace and in the queue.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import BoundedSemaphore, local
from typing import Final, TypeAlias

from opentelemetry.context import Context
from opentelemetry.sdk.resources import SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, Decision, TraceIdRatioBased
from opentelemetry.trace import Link, Span, SpanContext, SpanKind, StatusCode, set_span_in_context

from prober.clock import monotonic_s, wall_s
from prober.core.events import Delivered, Event, PublishInvoked
from prober.core.findings import FAILING
from prober.core.guarded_verifier import RecordedFinding
from prober.core.verdict import Verdict
from prober.evidence.explain import explain
from prober.logs import span_context_of
from prober.runs.classification import Observation
from prober.runs.lifetimes import steady_name
from prober.runs.result import RunResult
from prober.runs.sink import RunBegun, RunEnded
from prober.sinks.metrics.health import ProberHealth
from prober.sinks.metrics.label_values import PublishOutcome, Signal
from prober.sinks.otlp.exporters import Exports, exports_of, sampled_share
from prober.sinks.tracing.episodes import Episode, EpisodeIdentity, episodes_of, publish_identity

SPANS_MAX: Final = 1000
"""Publishes and deliveries per trace; others are only counted."""
FINDINGS_MAX: Final = 100
"""Findings per trace; others are only counted."""
QUEUE_MAX: Final = 4 * (SPANS_MAX + 1)
"""Spans that wait for the collector. Beyond this number the oldest are dropped, which is logged."""
PUBLISH: Final = "publish"
PROCESS: Final = "process"
TEXT_MAX: Final = 4096
"""Characters of an attribute."""
SHARE: Final = 0.1
"""Default share of passed runs that are traced."""

Attributes: TypeAlias = dict[str, str | bool | int | float]


class Tracing:
    """Exporter of traces of finished runs; without `exports` it does nothing.

    share   share of passed runs that are traced.
    `record` is safe in any thread.
    """

    def __init__(
        self,
        exports: Exports | None,
        resource: Resource,
        share: float = SHARE,
        *,
        monotonic: Callable[[], float] = monotonic_s,
        wall: Callable[[], float] = wall_s,
    ) -> None:
        self._share = TraceIdRatioBased(share)
        self._monotonic, self._wall = monotonic, wall
        self._ids = _RunIds()
        self._exports = exports
        if exports is not None:
            self._provider = _provider(exports, resource, self._ids)
            self._tracer = self._provider.get_tracer("prober", str(resource.attributes[SERVICE_VERSION]))

    def record(self, result: RunResult, events: Sequence[Event]) -> None:
        """Create the trace of a run that has just ended, from all its events.

        Computes for tens of milliseconds, up to half a second for the longest recording: best called in a separate thread.
        """
        if self._exports is None or not self._wanted(result):
            return
        run = _RunTrace(result, self._wall() - self._monotonic())
        episodes = episodes_of(events)
        chosen = chosen_of(episodes, result.findings)
        context = span_context_of(result.run_id)
        self._ids.trace_id, self._ids.root_id = context.trace_id, context.span_id
        root = self._tracer.start_span(f"run {result.probe}", Context(), start_time=run.started_ns)
        root.set_attributes(run.attributes())
        root.set_attributes({"prober.events": len(events), "prober.spans_omitted": len(episodes) - len(chosen)})
        if result.verdict is Verdict.FAIL:
            root.set_status(StatusCode.ERROR, result.reason)
        run.add_findings(root)
        self._add_episodes(run, chosen, set_span_in_context(root, Context()))
        root.end(run.ended_ns)

    def shutdown(self) -> None:
        """Export the remaining spans and close the connection. Blocks at most for about the timeout of a call, 10 s by default."""
        if self._exports is not None:
            self._exports.hurry()
            self._provider.shutdown()

    def _wanted(self, result: RunResult) -> bool:
        if result.verdict is not Verdict.PASS:
            return True
        return self._share.should_sample(None, span_context_of(result.run_id).trace_id, "").decision is Decision.RECORD_AND_SAMPLE

    def _add_episodes(self, run: _RunTrace, episodes: Iterable[Episode], inside: Context) -> None:
        publishes: dict[EpisodeIdentity, SpanContext] = {}
        for episode in episodes:
            began = episode.began
            origin = publishes.get(publish_identity(began)) if isinstance(began, Delivered) else None
            span = self._tracer.start_span(
                PROCESS if isinstance(began, Delivered) else PUBLISH,
                inside,
                SpanKind.CONSUMER if isinstance(began, Delivered) else SpanKind.PRODUCER,
                run.attributes_of(episode),
                [Link(origin)] if origin else [],
                run.ns(began.t),
            )
            if isinstance(began, PublishInvoked):
                publishes[publish_identity(began)] = span.get_span_context()
            if episode.outcome is PublishOutcome.REJECTED:
                span.set_status(StatusCode.ERROR)
            span.end(run.ns(episode.end_t))


def chosen_of(episodes: Sequence[Episode], findings: Iterable[RecordedFinding]) -> list[Episode]:
    """Return at most `SPANS_MAX` episodes, selected by importance, in the order of their starts.

    Proofs of violations come first, then proofs of other findings, then the earliest episodes.
    """
    if len(episodes) <= SPANS_MAX:
        return list(episodes)
    ranks: dict[int, int] = {}
    for made in findings:
        rank = 0 if made.finding.status in FAILING else 1
        for number in made.finding.witnesses:
            ranks[number] = min(rank, ranks.get(number, rank))
    by_rank = sorted(episodes, key=lambda episode: min(ranks.get(episode.number, 2), ranks.get(episode.end_number, 2)))
    return sorted(by_rank[:SPANS_MAX], key=lambda episode: episode.number)


class _RunTrace:
    """Attributes and times of a run's spans. `offset_s` converts the monotonic seconds of its events to seconds since 1970.

    A time outside the run, possible after a change of the system's clock, is moved to the nearest end of the run.
    """

    def __init__(self, result: RunResult, offset_s: float) -> None:
        self._result = result
        self._offset_s = offset_s
        self._topic = _ResourceName(result.topic)
        self.started_ns = _ns(result.started_at)
        self.ended_ns = _ns(result.started_at + result.duration_s)

    def ns(self, t: float) -> int:
        """Return the time of an event in nanoseconds since 1970."""
        result = self._result
        return _ns(min(max(self._offset_s + t, result.started_at), result.started_at + result.duration_s))

    def attributes(self) -> Attributes:
        """Return the attributes of the run."""
        result = self._result
        by_status = Counter[str]()
        for (_, status), count in result.counts.items():
            by_status[status] += count
        return {
            "prober.run_id": result.run_id,
            "prober.probe": result.probe,
            "prober.target": result.target,
            "prober.vantage": result.vantage,
            "prober.verdict": result.verdict,
            "prober.reason": result.reason,
            "prober.internal_error": result.internal_error,
            "prober.seed": str(result.seed),  # may have more than 64 bits
            "prober.topic": result.topic,
            "prober.subscription": result.subscription,
            **{f"prober.findings.{status}": count for status, count in by_status.items()},
            **{f"prober.counters.{name}": count for name, count in result.counters.items()},
        }

    def add_findings(self, root: Span) -> None:
        """Add an event for each finding, violations first; count findings beyond the limit."""
        shown = sorted(self._result.findings, key=lambda made: made.finding.status not in FAILING)[:FINDINGS_MAX]
        for finding in (made.finding for made in shown):
            attributes: Attributes = {
                "prober.status": finding.status,
                "prober.explanation": explain(finding, self._offset_s),
                "messaging.destination.subscription.name": finding.subscription,
                "messaging.gcp_pubsub.message.ordering_key": finding.key,
            }
            root.add_event(finding.kind, attributes, self.ns(finding.t))
        root.set_attribute("prober.findings_omitted", sum(self._result.counts.values()) - len(shown))

    def attributes_of(self, episode: Episode) -> Attributes:
        """Return the attributes of a publish or a delivery, without empty ones."""
        began = episode.began
        attributes: Attributes = {
            "messaging.system": "gcp_pubsub",
            "messaging.destination.name": self._topic.name,
            "gcp.project_id": self._topic.project,
            "messaging.gcp_pubsub.message.ordering_key": began.key,
            "messaging.message.id": episode.message_id,
            "prober.run_id": self._result.run_id,
            "prober.epoch": began.epoch,
            "prober.seq": began.seq,
            "prober.generation": began.generation,
            "prober.outcome": episode.outcome,
        }
        if self._topic.template is not None:
            attributes |= {"messaging.destination.template": self._topic.template, "messaging.destination.temporary": True}
        attributes |= self._of_delivery(episode, began) if isinstance(began, Delivered) else _of_publish(episode, began)
        return {name: value for name, value in attributes.items() if value != ""}

    def _of_delivery(self, episode: Episode, began: Delivered) -> Attributes:
        attributes: Attributes = {
            "messaging.operation.name": PROCESS,
            "messaging.operation.type": "process",
            "messaging.destination.subscription.name": _ResourceName(began.subscription).name,
            "messaging.client.id": episode.subscriber,
            "prober.session": began.session,
            "prober.defect": began.defect or "",
        }
        if began.delivery_attempt:
            attributes["messaging.gcp_pubsub.message.delivery_attempt"] = began.delivery_attempt
        return attributes


def _of_publish(episode: Episode, began: PublishInvoked) -> Attributes:
    attributes: Attributes = {"messaging.operation.name": PUBLISH, "messaging.operation.type": "send"}
    if began.size:
        attributes["messaging.message.body.size"] = began.size
    if episode.outcome is PublishOutcome.REJECTED:
        attributes["error.type"] = episode.outcome
    return attributes


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)


class _ResourceName:
    """A topic or subscription by the parts of its name.

    `template` is common to all successive resources of a probe instance; None: the prober did not create the resource.
    """

    def __init__(self, full_name: str) -> None:
        self.project = full_name.removeprefix("projects/").partition("/")[0]
        self.name = full_name.rpartition("/")[2]
        steady = steady_name(self.name)
        self.template = None if steady is None else f"{steady}-{{made}}"


# --- to the collector --------------------------------------------------------------------------------------------------------


class _RunIds(RandomIdGenerator, local):
    """Id generator: the root of a trace gets the ids of its run, set before in the same thread; other spans get random ids."""

    trace_id = 0
    root_id = 0

    def generate_trace_id(self) -> int:
        """Return the trace id of the run."""
        return self.trace_id

    def generate_span_id(self) -> int:
        """Return the id of the root once, then random ids."""
        root_id, self.root_id = self.root_id, 0
        return root_id or super().generate_span_id()


class _RunExporter(SpanExporter):
    """Adapter of `Exports` to the exporter interface of the SDK."""

    def __init__(self, exports: Exports) -> None:
        self._exports = exports

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Export spans, each once."""
        return SpanExportResult.SUCCESS if self._exports.export(spans) else SpanExportResult.FAILURE

    def shutdown(self) -> None:
        """Close the exporter."""
        self._exports.close()


def _provider(exports: Exports, resource: Resource, ids: _RunIds) -> TracerProvider:
    provider = TracerProvider(
        sampler=ALWAYS_ON,
        resource=resource,
        shutdown_on_exit=False,
        id_generator=ids,
        span_limits=SpanLimits(max_events=FINDINGS_MAX, max_attribute_length=TEXT_MAX),
    )
    provider.add_span_processor(BatchSpanProcessor(_RunExporter(exports), max_queue_size=QUEUE_MAX))
    return provider


WAITING_MAX: Final = 32
"""Runs that wait for their trace; further runs are not traced, which is logged."""

_log = logging.getLogger(__name__)


def tracing_sink(resource: Resource, health: ProberHealth) -> TracingSink:
    """Return the sink that the environment configures (`prober.sinks.otlp.exporters`). Raises ConfigError for a wrong value."""
    share = sampled_share(SHARE)
    return TracingSink(Tracing(exports_of(Signal.TRACES, health), resource, share))


class TracingSink:
    """Sink that traces the runs that count. All methods except `close` are for the event loop."""

    def __init__(self, tracing: Tracing) -> None:
        self._tracing = tracing
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="tracing")
        self._room = BoundedSemaphore(WAITING_MAX)

    def begin(self, run: RunBegun) -> TracedRun:
        """Return the listener of a run that starts; its trace is created after its end."""
        return TracedRun(self)

    def trace(self, result: RunResult, events: Sequence[Event]) -> None:
        """Queue the trace of a run; never wait. Its events must not change any more."""
        if not self._room.acquire(blocking=False):
            _log.warning("run %s is not traced: %d others wait for their trace", result.run_id, WAITING_MAX)
            return
        self._thread.submit(self._trace, result, events)

    def close(self) -> None:
        """Create the queued traces and export them. Blocks."""
        self._thread.shutdown()
        self._tracing.shutdown()

    def _trace(self, result: RunResult, events: Sequence[Event]) -> None:
        try:
            self._tracing.record(result, events)
        except Exception:
            _log.exception("internal error: run %s could not be traced", result.run_id)
        finally:
            self._room.release()


class TracedRun:
    """Listener of one run. The trace needs only the events that the recorder keeps."""

    def __init__(self, sink: TracingSink) -> None:
        self._sink = sink

    def event(self, seen: Observation) -> None:
        """Ignore the event: the recorder keeps it."""

    def ended(self, end: RunEnded) -> None:
        """Queue the trace of the run, if it counts."""
        if end.is_counted:
            self._sink.trace(end.result, end.recorded.events)
