"""`ordering-prober observe --record`: what an observation and the records of publishers prove together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from prober.config.sections import Observe
from prober.core.events import Delivered, Opened, Published
from prober.core.judge import RecordedFinding
from prober.core.rules import Rules
from prober.errors import ConfigError
from prober.evidence.explain import explain
from prober.probes.observe import observed_key
from prober.probes.observed import ObservedStream
from prober.runs.recorder import Recording
from prober.runs.result import RunResult
from prober.traces.header import TraceHeader
from prober.traces.record import RecordJudgement, judge_with, read_records
from prober.traces.trace import TraceError, write_trace

FINDINGS_SHOWN: Final = 20
_LEFT_OUT: Final = {
    "early": "publishes that began before the subscription was there",
    "beyond": "publishes beyond what there is room for",
    "unread": "lines that are no events",
}


class Records(NamedTuple):
    """The files of publishers' records, and how far the clocks that they were written by may differ from this machine's."""

    paths: tuple[str, ...] = ()
    clock_error_s: float = 1.0


NO_RECORDS: Final = Records()


def judged_with_records(
    records: Records, recording: Recording, rules: Rules, settings: Observe, stream: ObservedStream, result: RunResult
) -> RecordJudgement | None:
    """What the records prove; None without any, or if nothing was observed. Raises ConfigError if one cannot be read.

    `recording`: that of the run, `rules` those of its subscription.
    """
    events = recording.events[: recording.judge.judged]
    opened_t = next((event.t for event in events if isinstance(event, Opened)), None)
    if not records.paths or opened_t is None:
        return None
    offset_s = result.clock_offset_s or 0.0  # it is known of a run of this process
    rules = replace(rules, clock_error_s=records.clock_error_s, keys_max=0)
    until_s = stream.observed_until
    if not until_s or len(events) < recording.events_seen:  # what came last is not there
        until_s = events[-1].t + offset_s - rules.delivery_delay_max_s
    try:
        since_s = opened_t + offset_s + rules.clock_error_s
        known = read_records(records.paths, result.topic, since_s, until_s, lambda key: observed_key(key, settings))
    except TraceError as error:
        raise ConfigError(f"--record {error}") from error
    return judge_with(known, events, result.subscription, rules, offset_s)


def write_judged(path: str, subscription: str, judgement: RecordJudgement) -> None:
    """Writes the joined history beside the trace of the observation, `NAME.record.jsonl`. Raises ConfigError."""
    beside = str(Path(path).with_suffix(".record.jsonl"))
    try:
        write_trace(beside, TraceHeader(subscription, "", rules=judgement.rules), judgement.events)
    except OSError as error:
        raise ConfigError(f"{beside}: cannot be written: {error.strerror or error}") from error


def record_as_text(judgement: RecordJudgement, offset_s: float | None) -> Iterator[str]:
    """What is printed of it, line by line."""
    counts = judgement.counts
    told = f"{counts['received']:,} of {counts['confirmed']:,} confirmed publishes came"
    yield f"  by the publishers' record: {judgement.verdict}, {told}{f'; {judgement.reason}' if judgement.reason else ''}"
    for made in judgement.findings[:FINDINGS_SHOWN]:
        finding = made.finding
        yield f"  {finding.kind} ({finding.status}), key {finding.key}"
        yield f"    {explain(finding, offset_s)}"
        yield f"    by message id: {', '.join(_named(made, judgement))}"
    if len(judgement.findings) > FINDINGS_SHOWN:
        yield f"  and {len(judgement.findings) - FINDINGS_SHOWN:,} more"
    left = [f"{counts[name]:,} {what}" for name, what in _LEFT_OUT.items() if counts.get(name)]
    if left:
        yield f"  not judged by the record: {', '.join(left)}"


def record_as_json(judgement: RecordJudgement, offset_s: float | None) -> dict[str, object]:
    """The same as values."""
    return {
        "verdict": judgement.verdict,
        "reason": judgement.reason,
        "counts": dict(judgement.counts),
        "findings": [
            {
                "kind": made.finding.kind,
                "status": made.finding.status,
                "key": made.finding.key,
                "facts": dict(made.finding.facts),
                "explanation": explain(made.finding, offset_s),
                "messages": list(_named(made, judgement)),
                "witnesses": list(made.finding.witnesses),
            }
            for made in judgement.findings
        ],
    }


def _named(made: RecordedFinding, judgement: RecordJudgement) -> Iterator[str]:
    """The messages that prove a finding, by the number that the record gives them and their id: `3 is 1795414482446262`."""
    proof = [judgement.events[number - 1] for number in made.finding.witnesses]
    named = {event.message_id: event.seq for event in proof if isinstance(event, Published | Delivered)}
    return (f"{seq or 'one that nobody recorded'} is {message_id}" for message_id, seq in named.items())
