"""The report of `ordering-prober check`: the result of each run, and the summary at the end."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from prober.cli.findings import finding_lines, finding_row
from prober.cli.process import overall_verdict
from prober.core.findings import FAILING
from prober.core.guarded_verifier import RecordedFinding, Sort
from prober.core.kinds import OF_PUBLISHERS
from prober.core.verdict import Verdict
from prober.runs.result import RunResult
from prober.slo.figures import figures_as_text, seconds_as_text
from prober.slo.indicators import Indicator


def result_as_text(result: RunResult, place: str = "", *, undisturbed: bool = True) -> str:
    """Return a run as text: verdict, latencies, measurements, and each kind of finding once, with an example.

    place        the address of the target, if its name does not contain it.
    undisturbed  no other probe changed its latencies; otherwise they are omitted.
    """
    head = f"{result.probe} on {place or result.target} ({result.vantage}): {result.verdict}"
    lines = [f"{head} after {result.duration_s:.1f} s" + (f"; {result.reason}" if result.reason else "")]
    lines += [
        f"  {indicator.replace('_', ' ')}: median {seconds_as_text(took.p50_s)}, p99 {seconds_as_text(took.p99_s)} of {took.count:,}"
        for indicator, took in (result.durations.items() if undisturbed else ())
        if indicator is not Indicator.OLDEST_UNACKED_MESSAGE_AGE
    ]
    lines += [f"  {name}: {value}" for name, value in figures_as_text(result.figures).items()]
    for sort, made in _examples(result.findings).items():
        lines += finding_lines(made.finding, result.clock_offset_s, count=result.counts.get(sort, 1))
    return "\n".join(lines)


def _examples(findings: Sequence[RecordedFinding]) -> Mapping[Sort, RecordedFinding]:
    """Return the first finding of each kind and status that decided the verdict, or that publishers caused."""
    found: dict[Sort, RecordedFinding] = {}
    for made in findings:
        if made.finding.status in FAILING or made.finding.kind in OF_PUBLISHERS:
            found.setdefault(made.sort, made)
    return found


def summary(results: Sequence[RunResult], places: Sequence[str], took_s: float) -> str:
    """Return the last line: the overall verdict, the number of runs by verdict, and the places."""
    counted = []
    for verdict in Verdict:
        ended = [result.probe for result in results if result.verdict is verdict]
        if ended:
            named = "" if verdict is Verdict.PASS else f" ({', '.join(dict.fromkeys(ended))})"
            counted.append(f"{len(ended)} {verdict}{named}")
    runs = "1 run" if len(results) == 1 else f"{len(results)} runs"
    return f"{overall_verdict(results)}: {runs} on {', '.join(places)} in {took_s:.0f} s: {', '.join(counted)}"


def results_as_json(results: Sequence[RunResult], endpoints: Mapping[str, str]) -> str:
    """Return one JSON document: the overall verdict, the address of each target, and every run."""
    document = {"verdict": overall_verdict(results), "endpoints": endpoints, "runs": [_row(result) for result in results]}
    return json.dumps(document, allow_nan=False)


def _row(result: RunResult) -> dict[str, object]:
    return {
        "run_id": result.run_id,
        "probe": result.probe,
        "target": result.target,
        "vantage": result.vantage,
        "verdict": result.verdict,
        "reason": result.reason,
        "duration_s": round(result.duration_s, 3),
        "findings": [finding_row(made.finding, result.clock_offset_s) for made in result.findings],
        "counters": dict(result.counters),
        "durations": {indicator: asdict(took) for indicator, took in result.durations.items()},
        "figures": dict(result.figures),
    }
