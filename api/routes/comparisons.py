"""Comparisons of targets, such as a canary with production."""

from __future__ import annotations

from typing import Annotated, Self

from fastapi import APIRouter, Query, Response
from pydantic import Field, FiniteFloat

from api.dependencies import Snapshot, Stored
from api.middleware import tag_of
from api.models.base import Answer, Count, Seconds, Target
from api.query_parameters import QueryParameters
from prober.comparison.comparison import comparison_as_document
from prober.slo.comparison import Standing

router = APIRouter(tags=["comparisons"])

Measurement = Annotated[FiniteFloat, Field(examples=[0.0021])]


class ComparedAspectAnswer(Answer, schema="ComparedAspect"):
    """One aspect of a comparison: the share of bad events of a counting indicator, or seconds of a measuring one."""

    aspect: Annotated[str, Field(examples=["end_to_end_latency_p99"])]
    """An indicator, or with `_p50` the median of its durations, with `_p99` their 99th percentile."""
    standing: Standing
    """Result of the candidate for this aspect."""
    baseline: Measurement | None
    """Measurement of the baseline; null: none."""
    candidate: Measurement | None
    """The measurement of the candidate."""
    difference: Measurement | None
    """Mean difference of pairs, candidate less baseline; null: too few pairs."""
    low: Measurement | None
    """Lower bound of the true difference."""
    high: Measurement | None
    """Upper bound of the true difference; all intervals of a comparison hold together with 95 % confidence."""
    margin: Annotated[FiniteFloat, Field(examples=[0.5])]
    """Difference up to which the candidate counts as no worse."""
    pairs: Count
    """Number of pairs of runs with this aspect."""
    pairs_needed: Annotated[FiniteFloat | None, Field(examples=[24.2])]
    """Number of pairs that would probably decide; null: already decided, or unknown."""


class ComparisonAnswer(Answer, schema="Comparison"):
    """Comparison of a candidate with a baseline, from the newest runs of both."""

    baseline: Target
    """Name of the reference target."""
    candidate: Target
    """Name of the target that must be no worse."""
    standing: Standing
    """`worse` if any aspect is; `no worse` only if all aspects are."""
    took_s: Seconds
    """Period of the compared runs."""
    needed_s: Seconds | None
    """Duration of runs that would probably decide; null: decided, or unknown."""
    missing: Annotated[tuple[str, ...], Field(examples=[["seek (wire)"]])]
    """Probes without a pair of runs, which leave the comparison undecided."""
    left_out: Count
    """Number of pairs of runs in which an internal error of the prober ended one."""
    aspects: tuple[ComparedAspectAnswer, ...]
    """The compared aspects."""


class ComparisonList(Answer):
    """All comparisons of the configuration."""

    items: tuple[ComparisonAnswer, ...]
    """Comparisons in the order of the configuration."""

    def timeless(self) -> Self:
        """Return a copy without durations of comparisons, which grow with time."""
        return self.model_copy(
            update={"items": tuple(one.model_copy(update={"took_s": 0.0, "needed_s": None}) for one in self.items)}
        )


@router.get("/comparisons", response_description="The comparisons.")
def comparisons(archive: Stored, now: Snapshot, response: Response, _: Annotated[QueryParameters, Query()]) -> ComparisonList:
    """Return all comparisons of the configuration: no worse, worse, or undecided."""
    documents = map(comparison_as_document, archive.compared(now.at))
    found = ComparisonList(items=tuple(map(ComparisonAnswer.model_validate, documents)))
    response.headers["ETag"] = tag_of(found.timeless().model_dump_json().encode())
    return found
