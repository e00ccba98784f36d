"""Rows of the tables and the values they stand for, in both directions.

A column is called like the field that it holds, so only what a column cannot hold as it is is said here, on its way in and out.

No number but a finite one and no NUL character can be stored everywhere, so in text a NUL becomes U+FFFD, an infinite bound among the
assumptions null, and a fact that is not finite is left out, as in the history.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, astuple, fields
from math import inf, isfinite
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from sqlalchemy import ColumnElement, RowMapping, Table, func

from prober.config.following import ConfigurationStatus
from prober.core.findings import Fact, Finding, Kind, Status
from prober.core.kinds import Symptom
from prober.core.verdict import Verdict
from prober.monitoring.comparison import OwnSubscriptionStatus, Point, ProberSide, Reading, Side
from prober.monitoring.top_keys import Interval, KeyLoad, StreamKeys, TopKey
from prober.runs.result import Durations, RunResult
from prober.runs.site import Site, SiteKey
from prober.sinks.live.condition import Condition
from prober.sinks.live.incidents import Acknowledgement, Exemplar, Incident
from prober.sinks.live.snapshot import RunSummary, SkippedRun
from prober.sinks.status import tables
from prober.sinks.status.records import (
    Evidence,
    FindingRecord,
    OpenSession,
    ProberRecord,
    ProberState,
    RunRecord,
    SiteStatus,
    Slice,
)
from prober.slo.figures import Figure
from prober.slo.hot_keys import HotKeyClass
from prober.slo.indicators import Indicator
from prober.slo.objectives import SliCounts

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Values: TypeAlias = dict[str, Any]
Named: TypeAlias = RowMapping | Mapping[str, Any]
"""A row by the names of its columns."""
Kept = TypeVar("Kept", bound="DataclassInstance")


def site_key_from_row(row: Named) -> SiteKey:
    """The site that a row is about."""
    return SiteKey(row["target"], row["probe"], row["vantage"], row["part"])


def of_site(table: Table, site: SiteKey) -> list[ColumnElement[bool]]:
    """That a row is about this site."""
    return [table.c[name] == text_of(value) for name, value in site._asdict().items()]


def text_of(value: str) -> str:
    """The text as it is stored: what no database takes is replaced."""
    return value.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode()


def run_values(record: RunRecord) -> Values:
    """The row of a run."""
    result = record.result
    return _row(tables.runs, record, result) | {
        "counts": [[kind.value, status.value, count] for (kind, status), count in result.counts.items()],
        "counters": dict(result.counters),
        "checks": {name.value: astuple(counts) for name, counts in result.checks.items()},
        "durations": {name.value: asdict(durations) for name, durations in result.durations.items()},
        "figures": {name.value: value for name, value in result.figures.items()},
        "prober": asdict(record.prober),
        "instance": text_of(record.instance),
    }


def run_from_row(row: Named) -> RunRecord:
    """The run of a row, without its findings."""
    result = _value(
        RunResult,
        row,
        verdict=Verdict(row["verdict"]),
        findings=(),
        counts={(Kind(kind), Status(status)): count for kind, status, count in row["counts"]},
        checks={Indicator(name): SliCounts(*counts) for name, counts in row["checks"].items()},
        durations={Indicator(name): Durations(**durations) for name, durations in row["durations"].items()},
        figures={Figure(name): value for name, value in row["figures"].items()},
        clock_offset_s=None,
    )
    return _value(RunRecord, row, result=result, prober=ProberState(**row["prober"]))


def finding_values(record: FindingRecord) -> Values:
    """The row of a finding, without its evidence."""
    finding = record.finding
    facts = {name: fact for name, fact in finding.facts.items() if not isinstance(fact, float) or isfinite(fact)}
    changed = {
        "facts": _texts(facts),
        "assumptions": {name: bound if isfinite(bound) else None for name, bound in finding.assumptions.items()},
        "reasons": [text_of(reason) for reason in finding.reasons],
    }
    return _row(tables.findings, record, finding) | _texts(record.site._asdict()) | changed


def finding_from_row(row: Named, evidence: Evidence | None = None, on_key: Evidence | None = None) -> FindingRecord:
    """The finding of a row."""
    finding = _value(
        Finding,
        row,
        kind=Kind(row["kind"]),
        status=Status(row["status"]),
        witnesses=tuple(row["witnesses"]),
        facts={name: _fact(value) for name, value in row["facts"].items()},
        assumptions={name: inf if bound is None else bound for name, bound in row["assumptions"].items()},
        reasons=tuple(row["reasons"]),
    )
    site = site_key_from_row(row)
    return _value(FindingRecord, row, site=site, finding=finding, evidence=evidence, on_key=on_key)


def evidence_values(finding_id: str, evidence: Evidence) -> Values:
    """The row of a finding's evidence."""
    opened = [astuple(begun) for begun in evidence.opened]
    return _row(tables.evidence, evidence) | {"finding_id": finding_id, "opened": opened}


def evidence_from_row(row: Named) -> Evidence:
    """The evidence of a row."""
    opened = tuple(OpenSession(*begun) for begun in row["opened"])
    return _value(Evidence, row, witnesses=tuple(row["witnesses"]), opened=opened)


def key_evidence_values(finding_id: str, evidence: Evidence) -> Values:
    """The row of everything on a finding's key: events of one key are much alike, so they are packed."""
    opened = [astuple(begun) for begun in evidence.opened]
    packed = zlib.compress(evidence.trace.encode())
    return _row(tables.key_evidence, evidence) | {"finding_id": finding_id, "opened": opened, "packed": packed}


def key_evidence_from_row(row: Named) -> Evidence:
    """Everything on a finding's key, of a row."""
    opened = tuple(OpenSession(*begun) for begun in row["opened"])
    trace = zlib.decompress(row["packed"]).decode()
    return Evidence(trace, row["proven"], complete=False, among=row["among"], witnesses=tuple(row["witnesses"]), opened=opened)


def incident_values(incident: Incident) -> Values:
    """The row of an incident, without its acknowledgement."""
    affected = [
        [*map(text_of, (site.probe, site.vantage, site.part)), {kind.value: count for kind, count in kinds.items()}]
        for site, kinds in incident.affected.items()
    ]
    shown = {"exemplar_id": text_of(incident.exemplar.finding_id), "exemplar_events": incident.exemplar.events}
    return _row(tables.incidents, incident) | {"affected": affected} | shown


def incident_from_row(row: Named) -> Incident:
    """The incident of a row."""
    return _value(
        Incident,
        row,
        symptom=Symptom(row["symptom"]),
        affected={
            SiteKey(row["target"], *site): Counter({Kind(kind): count for kind, count in kinds.items()})
            for *site, kinds in row["affected"]
        },
        exemplar=Exemplar(row["exemplar_id"], row["exemplar_events"]),
        acknowledged=None
        if row["acknowledged_at"] is None
        else Acknowledgement(row["acknowledged_at"], row["acknowledged_by"], row["acknowledged_note"], row["acknowledged_until"]),
    )


def acknowledgement_values(said: Acknowledgement) -> Values:
    """What people say of an incident, as columns of its row."""
    return _texts({f"acknowledged_{name}": value for name, value in said._asdict().items()})


def summary_from_row(row: Named) -> RunSummary:
    """The run of a row, in short: of a row with these columns alone."""
    return _value(RunSummary, row, verdict=Verdict(row["verdict"]))


def site_values(told: SiteStatus) -> Values:
    """The row of a site."""
    skip = told.last_skip
    return _row(tables.sites, told, told.site) | {
        "labels": dict(told.site.labels),
        "runs": {verdict.value: count for verdict, count in told.runs.items()},
        "last_skip_reason": None if skip is None else text_of(skip.reason),
        "last_skip_at": None if skip is None else skip.at,
    }


def site_from_row(row: Named) -> SiteStatus:
    """How a prober said that a site stands."""
    return _value(
        SiteStatus,
        row,
        site=_value(Site, row),
        verdict=_verdict(row["verdict"]),
        status=Condition(row["status"]),
        runs={Verdict(verdict): count for verdict, count in row["runs"].items()},
        last_skip=None if row["last_skip_at"] is None else SkippedRun(row["last_skip_reason"], row["last_skip_at"]),
    )


def prober_values(prober: ProberRecord) -> Values:
    """The row of a prober."""
    told = None if prober.configuration is None else _texts(asdict(prober.configuration))
    return _row(tables.probers, prober) | {
        "troubles": [text_of(trouble) for trouble in prober.troubles],
        "configuration": told,
        "own": [_texts(asdict(one)) for one in prober.own],
        "streams": [_texts(asdict(one)) | {"top": [_texts(asdict(key)) for key in one.top]} for one in prober.streams],
    }


def prober_from_row(row: Named) -> ProberRecord:
    """The prober of a row."""
    told = row["configuration"]
    status = None if told is None else ConfigurationStatus(**{**told, "restart": tuple(told["restart"])})
    own = tuple(map(_own_from_json, row["own"]))
    streams = tuple(map(_stream_from_json, row["streams"]))
    return _value(ProberRecord, row, troubles=tuple(row["troubles"]), configuration=status, own=own, streams=streams)


def _own_from_json(told: Mapping[str, Any]) -> OwnSubscriptionStatus:
    reading: dict[str, Any] = {name: Point(*value) if isinstance(value, list) else value for name, value in told["reading"].items()}
    prober = {**told["prober"], "side": Side(told["prober"]["side"])}
    return OwnSubscriptionStatus(**{**told, "reading": Reading(**reading), "prober": ProberSide(**prober)})


def _stream_from_json(told: Mapping[str, Any]) -> StreamKeys:
    return StreamKeys(**{**told, "top": tuple(map(_top_key_from_json, told["top"]))})


def _top_key_from_json(told: Mapping[str, Any]) -> TopKey:
    loads = {name: None if told[name] is None else _load_from_json(told[name]) for name in ("minute", "ten_minutes")}
    return TopKey(**{**told, **loads, "heat": None if told["heat"] is None else HotKeyClass(told["heat"])})


def _load_from_json(told: Mapping[str, Any]) -> KeyLoad:
    return KeyLoad(**{name: Interval(*value) for name, value in told.items()})


def slice_values(one: Slice) -> Values:
    """The row of a slice of time."""
    return _row(tables.slices, one, one.counts)


def count_columns() -> list[ColumnElement[Any]]:
    """What to select to add up slices of time."""
    slices = tables.slices.c
    return [func.sum(column).label(column.name) for column in (slices.good, slices.bad, slices.undecided)]


def counts_from_row(row: Named) -> SliCounts:
    """What the slices of a row add up to."""
    return SliCounts(int(row["good"]), int(row["bad"]), int(row["undecided"]))


def _row(table: Table, *values: DataclassInstance) -> Values:
    """The fields that are called like columns of the table; texts, also those of enumerations, as they are stored."""
    names = frozenset(table.columns.keys())
    return _texts({field.name: getattr(value, field.name) for value in values for field in fields(value) if field.name in names})


def _value(kind: type[Kept], row: Named, /, **given: Any) -> Kept:
    """A value whose fields, but for those given, are columns of a row."""
    return kind(**{field.name: row[field.name] for field in fields(kind) if field.name not in given}, **given)


def _texts(values: Mapping[str, Any]) -> Values:
    return {name: text_of(value) if isinstance(value, str) else value for name, value in values.items()}


def _fact(value: Any) -> Fact:
    return tuple(value) if isinstance(value, list) else value


def _verdict(value: str | None) -> Verdict | None:
    return None if value is None else Verdict(value)
