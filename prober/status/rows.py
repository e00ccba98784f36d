"""Rows of the tables and the values they stand for, in both directions.

No number but a finite one and no NUL character can be stored everywhere, so in text a NUL becomes U+FFFD, an infinite bound among the
assumptions null, and a fact that is not finite is left out, as in the history.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from math import inf, isfinite
from typing import Any, TypeAlias

from sqlalchemy import RowMapping

from prober.core.findings import Fact, Finding, Kind, Status
from prober.core.indicators import Indicator
from prober.core.slo import Tally
from prober.core.verdict import Verdict
from prober.results import Durations, RunResult
from prober.snapshot import RunSummary, Site, SiteKey, SkippedRun
from prober.status.records import (
    Beginning,
    Evidence,
    FindingRecord,
    JobReport,
    ProberRecord,
    ProberState,
    RunRecord,
    Slice,
    Standing,
)

Values: TypeAlias = dict[str, Any]


def text_of(value: str) -> str:
    """The text as it is stored: what no database takes is replaced."""
    return value.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode()


def run_values(record: RunRecord) -> Values:
    """The row of a run."""
    result = record.result
    return _texts(
        {
            "run_id": result.run_id,
            "target": result.target,
            "probe": result.probe,
            "vantage": result.vantage,
            "part": result.part,
            "environment": record.environment,
            "region": record.region,
            "verdict": result.verdict.value,
            "reason": result.reason,
            "started_at": result.started_at,
            "ended_at": record.ended_at,
            "duration_s": result.duration_s,
            "seed": result.seed,
            "topic": result.topic,
            "subscription": result.subscription,
            "counts": [[kind.value, status.value, count] for (kind, status), count in result.counts.items()],
            "counters": dict(result.counters),
            "checks": {name.value: [tally.good, tally.bad, tally.undecided] for name, tally in result.checks.items()},
            "durations": {name.value: asdict(durations) for name, durations in result.durations.items()},
            "internal_error": result.internal_error,
            "findings_omitted": record.findings_omitted,
            "prober": asdict(record.prober),
        }
    )


def run_of(row: RowMapping) -> RunRecord:
    """The run of a row."""
    result = RunResult(
        run_id=row["run_id"],
        probe=row["probe"],
        target=row["target"],
        vantage=row["vantage"],
        part=row["part"],
        verdict=Verdict(row["verdict"]),
        reason=row["reason"],
        started_at=row["started_at"],
        duration_s=row["duration_s"],
        seed=row["seed"],
        topic=row["topic"],
        subscription=row["subscription"],
        counts={(Kind(kind), Status(status)): count for kind, status, count in row["counts"]},
        counters=row["counters"],
        checks={Indicator(name): Tally(*tally) for name, tally in row["checks"].items()},
        durations={Indicator(name): Durations(**durations) for name, durations in row["durations"].items()},
        internal_error=row["internal_error"],
    )
    return RunRecord(
        result, row["environment"], row["region"], row["ended_at"], ProberState(**row["prober"]), row["findings_omitted"]
    )


def finding_values(record: FindingRecord) -> Values:
    """The row of a finding, without its evidence."""
    finding = record.finding
    return _texts(
        {
            "finding_id": record.finding_id,
            "run_id": record.run_id,
            "target": record.site.target,
            "probe": record.site.probe,
            "vantage": record.site.vantage,
            "part": record.site.part,
            "instance": record.instance,
            "found_at": record.found_at,
            "kind": finding.kind.value,
            "status": finding.status.value,
            "subscription": finding.subscription,
            "key": finding.key,
            "t": finding.t,
            "after": record.after,
            "witnesses": finding.witnesses,
            "facts": {
                name: _storable(fact) for name, fact in finding.facts.items() if not isinstance(fact, float) or isfinite(fact)
            },
            "doubt": finding.doubt,
            "assumptions": {name: bound if isfinite(bound) else None for name, bound in finding.assumptions.items()},
            "explanation": record.explanation,
            "unproven_because": record.unproven_because,
            "closed_at": record.closed_at,
        }
    )


def finding_of(row: RowMapping, evidence: Evidence | None = None) -> FindingRecord:
    """The finding of a row."""
    finding = Finding(
        Kind(row["kind"]),
        Status(row["status"]),
        row["subscription"],
        row["key"],
        row["t"],
        tuple(row["witnesses"]),
        {name: _fact(value) for name, value in row["facts"].items()},
        row["doubt"],
        {name: inf if bound is None else bound for name, bound in row["assumptions"].items()},
    )
    return FindingRecord(
        row["finding_id"],
        row["run_id"],
        SiteKey(row["target"], row["probe"], row["vantage"], row["part"]),
        row["instance"],
        row["found_at"],
        finding,
        row["after"],
        row["explanation"],
        evidence,
        row["unproven_because"],
        row["closed_at"],
    )


def evidence_values(finding_id: str, evidence: Evidence) -> Values:
    """The row of a finding's evidence."""
    return {
        "finding_id": finding_id,
        "trace": evidence.trace,
        "proven": evidence.proven,
        "complete": evidence.complete,
        "among": evidence.among,
        "witnesses": evidence.witnesses,
        "opened": [[begun.subscription, begun.session, begun.subscriber] for begun in evidence.opened],
    }


def evidence_of(row: RowMapping) -> Evidence:
    """The evidence of a row."""
    opened = tuple(Beginning(*begun) for begun in row["opened"])
    return Evidence(row["trace"], row["proven"], row["complete"], row["among"], tuple(row["witnesses"]), opened)


def summary_of(row: RowMapping) -> RunSummary:
    """The run of a row, in short: of a row with these columns alone."""
    return RunSummary(
        row["run_id"], Verdict(row["verdict"]), row["reason"], row["started_at"], row["duration_s"], row["internal_error"]
    )


def standing_values(told: Standing) -> Values:
    """The row of a site."""
    site, skip = told.site, told.last_skip
    return _texts(
        {field.name: getattr(site, field.name) for field in fields(site)}
        | {
            "labels": dict(site.labels),
            "instance": told.instance,
            "told_at": told.told_at,
            "verdict": None if told.verdict is None else told.verdict.value,
            "standing": None if told.standing is None else told.standing.value,
            "since": told.since,
            "last_run_id": told.last_run_id,
            "last_pass_at": told.last_pass_at,
            "next_run_at": told.next_run_at,
            "running_since": told.running_since,
            "overdue_s": told.overdue_s,
            "runs": {verdict.value: count for verdict, count in told.runs.items()},
            "runs_expected": told.runs_expected,
            "runs_skipped": told.runs_skipped,
            "last_skip_reason": None if skip is None else skip.reason,
            "last_skip_at": None if skip is None else skip.at,
            "maintenance": told.maintenance,
        }
    )


def standing_of(row: RowMapping) -> Standing:
    """How a prober said that a site stands."""
    site = Site(
        target=row["target"],
        probe=row["probe"],
        vantage=row["vantage"],
        part=row["part"],
        interval_s=row["interval_s"],
        schedule=row["schedule"],
        environment=row["environment"],
        region=row["region"],
        endpoint=row["endpoint"],
        promise=row["promise"],
        topic=row["topic"],
        subscription=row["subscription"],
        labels=row["labels"],
    )
    return Standing(
        instance=row["instance"],
        told_at=row["told_at"],
        site=site,
        verdict=_verdict(row["verdict"]),
        standing=_verdict(row["standing"]),
        since=row["since"],
        last_run_id=row["last_run_id"],
        last_pass_at=row["last_pass_at"],
        next_run_at=row["next_run_at"],
        running_since=row["running_since"],
        overdue_s=row["overdue_s"],
        runs={Verdict(verdict): count for verdict, count in row["runs"].items()},
        runs_expected=row["runs_expected"],
        runs_skipped=row["runs_skipped"],
        last_skip=None if row["last_skip_at"] is None else SkippedRun(row["last_skip_reason"], row["last_skip_at"]),
        maintenance=row["maintenance"],
    )


def prober_values(prober: ProberRecord) -> Values:
    """The row of a prober."""
    return _texts(asdict(prober) | {"troubles": [text_of(trouble) for trouble in prober.troubles]})


def prober_of(row: RowMapping) -> ProberRecord:
    """The prober of a row."""
    return ProberRecord(row["instance"], row["version"], row["started_at"], row["told_at"], tuple(row["troubles"]))


def slice_values(one: Slice) -> Values:
    """The row of a slice of time."""
    counted = {"good": one.tally.good, "bad": one.tally.bad, "undecided": one.tally.undecided}
    return _texts(
        {
            "process": one.process,
            "target": one.target,
            "objective": one.objective,
            "definition": one.definition,
            "length_s": one.length_s,
            "begins_at": one.begins_at,
        }
        | counted
    )


def report_values(report: JobReport) -> Values:
    """The row of a job's report."""
    return _texts(asdict(report) | {"verdict": report.verdict.value})


def report_of(row: RowMapping) -> JobReport:
    """The report of a row."""
    return JobReport(
        row["job"], row["day"], Verdict(row["verdict"]), row["finished_at"], row["duration_s"], row["location"], row["summary"]
    )


def _texts(values: Mapping[str, Any]) -> Values:
    return {name: text_of(value) if isinstance(value, str) else value for name, value in values.items()}


def _storable(fact: Fact) -> Fact:
    return text_of(fact) if isinstance(fact, str) else fact


def _fact(value: Any) -> Fact:
    return tuple(value) if isinstance(value, list) else value


def _verdict(value: str | None) -> Verdict | None:
    return None if value is None else Verdict(value)
