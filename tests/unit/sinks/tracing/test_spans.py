"""Runs become traces: what the spans say, which runs are traced, and what is left out."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import messaging_attributes
from opentelemetry.trace import SpanKind, StatusCode

from prober.core.events import Event, PublishInvoked
from prober.core.findings import Finding, Kind, Status
from prober.core.guarded_verifier import RecordedFinding
from prober.core.rules import Rules
from prober.core.verdict import Verdict
from prober.evidence.explain import explain
from prober.logs import span_context_of, trace_id_of
from prober.runs.result import RunResult
from prober.sinks.metrics.label_values import PublishOutcome, Signal
from prober.sinks.otlp.exporters import Exports, resource_of
from prober.sinks.tracing.episodes import Episode
from prober.sinks.tracing.spans import FINDINGS_MAX, SPANS_MAX, TEXT_MAX, Tracing, chosen_of
from prober.traces.header import TraceHeader
from prober.traces.verification import verify_trace
from tests.notation import history

RUN = "ordering-5eed"
STARTED_AT = 1_797_768_000.0
WAKING_T = 50.0  # what the monotonic clock showed then
FAILING = "P1,2,3 A<1@60 A ack 1@60.1 A<3@60.2 A nack 3@60.3 end @400"


def verified(events: Sequence[Event], **changes: Any) -> RunResult:
    """The result of a run with these events."""
    verification = verify_trace("run", TraceHeader("s", "k", Rules()), events)
    result = RunResult(
        run_id=RUN,
        probe="ordering",
        target="production",
        vantage="wire",
        verdict=verification.verdict,
        reason="because",
        started_at=STARTED_AT,
        duration_s=400.0,
        seed=2**80,
        topic="projects/p/topics/t",
        subscription="projects/p/subscriptions/s",
        findings=verification.findings,
        counts=verification.counts,
        counters=verification.counters,
    )
    return replace(result, **changes)


def tracing(exporter: SpanExporter, sampling: float = 1.0) -> Tracing:
    return Tracing(
        Exports(Signal.TRACES, exporter, failed=pytest.fail),
        resource_of("here", "1.2.3"),
        sampling,
        monotonic=lambda: 1000.0,
        wall=lambda: STARTED_AT + 1000.0 - WAKING_T,
    )


def spans_of(result: RunResult, events: Sequence[Event], sampling: float = 1.0) -> list[ReadableSpan]:
    """What is exported, the root first, then in the order of time."""
    exporter = InMemorySpanExporter()
    traced = tracing(exporter, sampling)
    traced.record(result, events)
    traced.shutdown()
    return sorted(exporter.get_finished_spans(), key=lambda span: (span.parent is not None, span.start_time or 0))


def later(text: str) -> list[Event]:
    """A history that begins when the run does."""
    return [replace(event, t=event.t + WAKING_T) for event in history(text)]


def seconds(ns: int | None) -> float:
    """Since the run started."""
    assert ns is not None
    return round(ns / 1e9 - STARTED_AT, 3)


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def test_the_root_is_the_run() -> None:
    events = later(FAILING)
    result = verified(events)
    root = spans_of(result, events)[0]
    said = attributes(root)
    assert (root.name, root.kind, root.parent) == ("run ordering", SpanKind.INTERNAL, None)
    assert (seconds(root.start_time), seconds(root.end_time)) == (0, 400)
    assert (
        said.items()
        >= {
            "prober.run_id": RUN,
            "prober.probe": "ordering",
            "prober.target": "production",
            "prober.vantage": "wire",
            "prober.verdict": "FAIL",
            "prober.reason": "because",
            "prober.seed": str(2**80),
            "prober.internal_error": False,
            "prober.topic": "projects/p/topics/t",
            "prober.subscription": "projects/p/subscriptions/s",
            "prober.events": len(events),
            "prober.spans_omitted": 0,
            "prober.findings_omitted": 0,
            "prober.findings.violation": 1,
            "prober.counters.publishes_confirmed": 3,
        }.items()
    )
    assert root.resource.attributes["service.name"] == "ordering-prober"
    assert root.resource.attributes["service.version"] == "1.2.3"
    assert root.resource.attributes["service.instance.id"] == "here"


def test_the_trace_id_is_known_from_the_run_id() -> None:
    events = later(FAILING)
    spans = spans_of(verified(events), events)
    assert {format(span.context.trace_id, "032x") for span in spans if span.context} == {trace_id_of(RUN)}
    assert len({span.context.span_id for span in spans if span.context}) == len(spans)
    assert spans[0].context is not None
    assert spans[0].context.span_id == span_context_of(RUN).span_id
    assert trace_id_of(RUN) == trace_id_of(RUN) != trace_id_of("other")
    assert len(trace_id_of("")) == 32


@pytest.mark.parametrize(
    ("verdict", "code", "description"),
    [
        (Verdict.PASS, StatusCode.UNSET, None),
        (Verdict.UNKNOWN, StatusCode.UNSET, None),
        (Verdict.FAIL, StatusCode.ERROR, "because"),
    ],
)
def test_only_a_failed_run_is_an_error(verdict: Verdict, code: StatusCode, description: str | None) -> None:
    root = spans_of(verified([], verdict=verdict), [])[0]
    assert (root.status.status_code, root.status.description) == (code, description)


def test_findings_are_events_of_the_root() -> None:
    events = later(FAILING)
    result = verified(events)
    (finding,) = [event for event in spans_of(result, events)[0].events if event.name == "ORDER_GAP"]
    assert seconds(finding.timestamp) == 60.2
    assert dict(finding.attributes or {}) == {
        "prober.status": "violation",
        "prober.explanation": explain(result.findings[0].finding, STARTED_AT - WAKING_T),
        "messaging.destination.subscription.name": "s",
        "messaging.gcp_pubsub.message.ordering_key": "k",
    }


def test_a_delivery_names_its_own_subscription() -> None:
    second = "projects/p/subscriptions/s-second"
    events = later("P1@0") + history("A<1@61", subscription=second)
    spans = spans_of(verified(events), events)
    (delivery,) = [span for span in spans if span.name == "process"]
    assert attributes(delivery)[messaging_attributes.MESSAGING_DESTINATION_SUBSCRIPTION_NAME] == "s-second"


def test_a_publish_is_a_span_of_a_producer() -> None:
    events = [replace(event, size=7) if isinstance(event, PublishInvoked) else event for event in later("P2@1 ok2=m2@1.5 end @9")]
    root, span = spans_of(verified(events), events)
    assert (span.name, span.kind, span.links) == ("publish", SpanKind.PRODUCER, ())
    assert span.parent == root.context
    assert (seconds(span.start_time), seconds(span.end_time)) == (1, 1.5)
    assert attributes(span) == {
        messaging_attributes.MESSAGING_SYSTEM: "gcp_pubsub",
        messaging_attributes.MESSAGING_OPERATION_NAME: "publish",
        messaging_attributes.MESSAGING_OPERATION_TYPE: "send",
        messaging_attributes.MESSAGING_DESTINATION_NAME: "t",
        messaging_attributes.MESSAGING_GCP_PUBSUB_MESSAGE_ORDERING_KEY: "k",
        messaging_attributes.MESSAGING_MESSAGE_ID: "m2",
        messaging_attributes.MESSAGING_MESSAGE_BODY_SIZE: 7,
        "gcp.project_id": "p",
        "prober.run_id": RUN,
        "prober.epoch": "e1",
        "prober.seq": 2,
        "prober.generation": 0,
        "prober.outcome": "confirmed",
    }


@pytest.mark.parametrize(("outcome", "code", "error"), [("fail1", StatusCode.ERROR, "rejected"), ("info1", StatusCode.UNSET, None)])
def test_only_a_rejected_publish_is_an_error(outcome: str, code: StatusCode, error: str | None) -> None:
    events = later(f"P1@1 {outcome}@2 end @9")
    _, span = spans_of(verified(events), events)
    assert span.status.status_code is code
    assert attributes(span).get("error.type") == error


def test_a_delivery_is_a_span_of_a_consumer_and_links_to_its_publish() -> None:
    events = later("P1@1 ok1=m1@1.1 P2@1.2 ok2=m2@1.3 open A of client c A<2#4@2 A ack 2@3 end @9")
    _, _, publish, span = spans_of(verified(events), events)
    assert (span.name, span.kind) == ("process", SpanKind.CONSUMER)
    assert [link.context for link in span.links] == [publish.context]
    assert (seconds(span.start_time), seconds(span.end_time)) == (2, 3)
    assert attributes(span) == {
        messaging_attributes.MESSAGING_SYSTEM: "gcp_pubsub",
        messaging_attributes.MESSAGING_OPERATION_NAME: "process",
        messaging_attributes.MESSAGING_OPERATION_TYPE: "process",
        messaging_attributes.MESSAGING_DESTINATION_NAME: "t",
        messaging_attributes.MESSAGING_DESTINATION_SUBSCRIPTION_NAME: "s",
        messaging_attributes.MESSAGING_GCP_PUBSUB_MESSAGE_ORDERING_KEY: "k",
        messaging_attributes.MESSAGING_GCP_PUBSUB_MESSAGE_DELIVERY_ATTEMPT: 4,
        messaging_attributes.MESSAGING_MESSAGE_ID: "m2",
        messaging_attributes.MESSAGING_CLIENT_ID: "c",
        "gcp.project_id": "p",
        "prober.run_id": RUN,
        "prober.epoch": "e1",
        "prober.seq": 2,
        "prober.generation": 0,
        "prober.outcome": "acked",
        "prober.session": "A",
    }


def test_a_message_that_nobody_published_links_to_nothing() -> None:
    events = later("A<1!checksum@1 end @9")
    _, span = spans_of(verified(events), events)
    assert span.links == ()
    assert attributes(span).items() >= {"prober.outcome": "unanswered", "prober.defect": "checksum"}.items()


def test_spans_have_a_few_names_whatever_topics_and_runs_are_called() -> None:
    names = set()
    for number in range(20):
        events = later("P1@1 ok1=m1@1.1 A<1@2 end @9")
        resources = f"okp-me-production-ordering-wire-{0x6B02DF00 + number:08x}-{number:06x}"
        run_id = f"ordering-{number:012x}"
        topic, subscription = f"projects/p/topics/{resources}", f"projects/p/subscriptions/{resources}"
        spans = spans_of(verified(events, run_id=run_id, topic=topic, subscription=subscription), events)
        names |= {span.name for span in spans}
        assert {attributes(span)["prober.run_id"] for span in spans} == {run_id}
        assert [attributes(span)[messaging_attributes.MESSAGING_DESTINATION_NAME] for span in spans[1:]] == [resources] * 2
    assert names == {"run ordering", "publish", "process"}


def test_the_topics_of_an_instance_have_one_template() -> None:
    events = later("P1@1 ok1=m1@1.1 A<1@2 end @9")
    result = verified(events, topic="projects/p/topics/okp-me-here-ordering-wire-6b02df77-b6ceca")
    for span in spans_of(result, events)[1:]:
        assert (
            attributes(span).items()
            >= {
                messaging_attributes.MESSAGING_DESTINATION_TEMPLATE: "okp-me-here-ordering-wire-{made}",
                messaging_attributes.MESSAGING_DESTINATION_TEMPORARY: True,
            }.items()
        )


def test_nothing_lies_outside_of_its_run() -> None:
    events = later("P1@1 ok1=m1@2 A<1@500 end @501")
    result = verified(events)
    made = verified(later(FAILING)).findings[0]
    late = replace(made, finding=replace(made.finding, t=inf))
    root, *spans = spans_of(replace(result, findings=(late,), counts={late.sort: 1}), events)
    assert {seconds(span.end_time) for span in spans} == {2, 400}
    assert [seconds(event.timestamp) for event in root.events] == [400]


def test_passed_runs_are_sampled_and_others_are_not() -> None:
    def share(verdict: Verdict, sampling: float) -> float:
        exporter = InMemorySpanExporter()
        traced = tracing(exporter, sampling)
        for number in range(2000):
            traced.record(verified([], run_id=f"run-{number}", verdict=verdict), [])
        traced.shutdown()
        return len(exporter.get_finished_spans()) / 2000

    assert 0.2 < share(Verdict.PASS, 0.25) < 0.3
    assert share(Verdict.PASS, 0.0) == 0.0
    assert share(Verdict.PASS, 1.0) == share(Verdict.FAIL, 0.0) == share(Verdict.UNKNOWN, 0.0) == 1.0


def test_of_many_messages_those_that_prove_a_finding_stay_and_the_rest_is_counted() -> None:
    last = SPANS_MAX + 500
    words = [f"P{seq}@{seq / 1000} ok{seq}=m{seq}@{seq / 1000}" for seq in range(1, last + 1)]
    events = later(f"{' '.join(words)} A<1@10 A<{last}@11 end @400")
    result = verified(events)
    assert result.verdict is Verdict.FAIL
    root, *spans = spans_of(result, events)
    assert len(spans) == SPANS_MAX
    assert attributes(root)["prober.spans_omitted"] == last + 2 - SPANS_MAX
    kept = {(attributes(span)["messaging.operation.name"], attributes(span)["prober.seq"]) for span in spans}
    proof = {number for made in result.findings for number in made.finding.witnesses}
    assert ("publish", last) in kept
    assert ("process", last) in kept
    assert len(proof) > 2
    assert {("publish", seq) for seq in range(1, 900)} <= kept, "then the earliest"


def test_what_proves_a_violated_guarantee_goes_before_what_proves_less() -> None:
    episodes = [
        Episode(PublishInvoked(float(seq), "k", "e", seq), seq, PublishOutcome.CONFIRMED) for seq in range(1, 2 * SPANS_MAX)
    ]
    last = len(episodes)
    broken = Finding(Kind.ORDER_GAP, Status.VIOLATION, "s", "k", 0.0, (last - 1, last))
    doubtful = Finding(Kind.ORDER_GAP, Status.INDETERMINATE, "s", "k", 0.0, (*range(7, SPANS_MAX + 7), last - 1))
    chosen = [episode.number for episode in chosen_of(episodes, [RecordedFinding(broken, 0), RecordedFinding(doubtful, 0)])]
    assert chosen == [*range(7, SPANS_MAX + 5), last - 1, last]


def test_of_many_findings_those_that_violated_a_guarantee_stay_and_the_rest_is_counted() -> None:
    made = verified(later(FAILING)).findings[0]
    info = replace(made, finding=replace(made.finding, status=Status.INFO))
    result = verified([], findings=(*[info] * FINDINGS_MAX, made), counts={made.sort: 1, info.sort: 250}, verdict=Verdict.FAIL)
    root = spans_of(result, [])[0]
    assert len(root.events) == FINDINGS_MAX
    assert [dict(event.attributes or {})["prober.status"] for event in root.events].count("violation") == 1
    assert attributes(root)["prober.findings_omitted"] == 251 - FINDINGS_MAX


def test_long_texts_are_cut() -> None:
    root = spans_of(verified([], verdict=Verdict.UNKNOWN, reason="x" * 10 * TEXT_MAX), [])[0]
    assert len(attributes(root)["prober.reason"]) == TEXT_MAX


def test_the_environment_may_name_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=staging")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "my-prober")
    resource = spans_of(verified([], verdict=Verdict.FAIL), [])[0].resource.attributes
    assert resource.items() >= {"service.name": "my-prober", "deployment.environment.name": "staging"}.items()


def test_without_exports_nothing_happens_and_no_exporter_is_loaded() -> None:
    code = """
import sys
from prober.core.verdict import Verdict
from prober.runs.result import RunResult
from prober.sinks.metrics import Metrics
from prober.sinks.otlp.exporters import resource_of
from prober.sinks.tracing.spans import tracing_sink
sink = tracing_sink(resource_of("here", "1"), Metrics().health)
sink.trace(RunResult("r", "p", "t", "wire", Verdict.FAIL, "", 0.0, 1.0), [])
sink.close()
print([name for name in sys.modules if name.startswith(("opentelemetry.exporter", "opentelemetry.proto", "requests"))])
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
