"""Objectives: targets, remaining budgets, burn rates, and the spenders."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Annotated

from fastapi import APIRouter, Path, Query

from api.dependencies import Cached, Stored, StoredSnapshot
from api.lookups import objective_of
from api.models.slos import (
    AlertDay,
    DetectableAnswer,
    Interval,
    SloAnswer,
    SloDetail,
    SloList,
    SloTarget,
    SpenderAnswer,
    UptimeAnswer,
    UptimeList,
    Window,
)
from api.query_parameters import QueryParameters
from api.view import Archive
from prober.reports.values import BurnReport
from prober.sinks.status.slices import CountedWindow, Series, counted_windows
from prober.slo.budgets import SloSnapshot
from prober.slo.indicators import MEANINGS
from prober.slo.objectives import Objective, SliCounts, windows_s

router = APIRouter(tags=["objectives"])

SloName = Annotated[str, Path(alias="name", max_length=200, description="Name of the objective.", examples=["order"])]


@router.get("/slos", response_description="The objectives.")
def slos(snapshot: StoredSnapshot, _: Annotated[QueryParameters, Query()]) -> SloList:
    """List all objectives on all targets: counts, verdicts, and remaining budgets."""
    return SloList(items=tuple(map(SloAnswer.model_validate, snapshot.slos)))


@router.get("/slos/{name}", response_description="The objective.")
def slo(archive: Stored, snapshot: StoredSnapshot, name: SloName, _: Annotated[QueryParameters, Query()]) -> SloDetail:
    """Return an objective on each target: budget, burn rates of all windows, alerts, and the spenders of the budget."""
    objective = objective_of(archive, name)
    windows = windows_s(objective)
    counted = {window: archive.queries.counts(window, snapshot.at) for window in windows}
    report = archive.newest_burn(objective.name)
    meaning = MEANINGS[objective.indicator]
    return SloDetail(
        name=objective.name,
        indicator=objective.indicator,
        counted=meaning.unit,
        bad_if=meaning.bad,
        objective=objective.target,
        budget=objective.budget,
        threshold_s=objective.threshold_s,
        window_s=objective.window_s,
        labels=objective.labels,
        report_day=None if report is None else report.summary.day,
        targets=tuple(_target(archive, slo, counted, report) for slo in snapshot.slos if slo.objective.name == objective.name),
    )


@router.get("/uptime", response_description="Uptime by target and month.")
def uptime(recent: Cached, snapshot: StoredSnapshot, _: Annotated[QueryParameters, Query()]) -> UptimeList:
    """Return the uptime of this month and the one before by Pub/Sub's service level agreement, and the resulting credit.

    At most five minutes old.
    """
    return UptimeList(items=tuple(map(UptimeAnswer.model_validate, recent.monthly_uptime(snapshot.at))))


def _target(
    archive: Archive, slo: SloSnapshot, counted: Mapping[float, Mapping[Series, SliCounts]], report: BurnReport | None
) -> SloTarget:
    windows = tuple(_window(slo.objective, window) for window in counted_windows(slo, counted))
    alerts = () if report is None else (alert for alert in report.alerts if alert.target == slo.target)
    spenders = () if report is None else (spender for spender in report.spenders if spender.target == slo.target)
    return SloTarget(
        **dict(SloAnswer.model_validate(slo)),
        windows=windows,
        alerts=tuple(map(AlertDay.model_validate, alerts)),
        spenders=tuple(map(SpenderAnswer.model_validate, spenders)),
        detectable=tuple(map(DetectableAnswer.model_validate, archive.detectable.get((slo.target, slo.objective.indicator), ()))),
    )


def _window(objective: Objective, window: CountedWindow) -> Window:
    counts, rate, exhausted_in_s = window.total, window.burn_rate, window.exhausted_in_s
    return Window(
        window_s=window.window_s,
        good=counts.good,
        bad=counts.bad,
        undecided=counts.undecided,
        error_ratio=counts.error_ratio,
        burn_rate=rate,
        burn_bounds=None if rate is None else Interval.model_validate(objective.burn_rate_confidence(counts)),
        exhausted_in_s=None if exhausted_in_s is None or not isfinite(exhausted_in_s) else exhausted_in_s,
    )
