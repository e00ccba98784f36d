"""Targets that are compared, such as a canary with production."""

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
    """One aspect of a comparison: of an indicator that counts things the share that is bad, of one that measures durations seconds."""

    aspect: Annotated[str, Field(examples=["end_to_end_latency_p99"])]
    """An indicator, or with `_p50` the median of its durations, with `_p99` their 99th percentile."""
    standing: Standing
    """How the candidate stands beside the baseline in this."""
    baseline: Measurement | None
    """The measurement of the baseline; null: nothing."""
    candidate: Measurement | None
    """The measurement of the candidate."""
    difference: Measurement | None
    """The mean difference of pairs, candidate less baseline; null: too few pairs."""
    low: Measurement | None
    """The true difference is at least this."""
    high: Measurement | None
    """And at most this: all intervals of a comparison hold together with 95 % confidence."""
    margin: Annotated[FiniteFloat, Field(examples=[0.5])]
    """How much worse counts as no worse."""
    pairs: Count
    """How many pairs of runs say so."""
    pairs_needed: Annotated[FiniteFloat | None, Field(examples=[24.2])]
    """How many pairs would probably decide; null: already decided, or unknown."""


class ComparisonAnswer(Answer, schema="Comparison"):
    """A candidate beside a baseline, by the newest runs of both."""

    baseline: Target
    """Name of the target that is the measure."""
    candidate: Target
    """Name of the target that must be no worse."""
    standing: Standing
    """`worse` in anything is worse, and only `no worse` in everything is no worse."""
    took_s: Seconds
    """Over how long a time the runs were gathered."""
    needed_s: Seconds | None
    """Duration of runs that would probably decide; null: decided, or unknown."""
    missing: Annotated[tuple[str, ...], Field(examples=[["seek (wire)"]])]
    """Probes without a pair of runs, which leave the comparison open."""
    left_out: Count
    """Pairs of runs of which an internal error of the prober ended one."""
    aspects: tuple[ComparedAspectAnswer, ...]
    """The compared aspects."""


class ComparisonList(Answer):
    """All comparisons of the configuration."""

    items: tuple[ComparisonAnswer, ...]
    """In the order of the configuration."""

    def timeless(self) -> Self:
        """Without how long it took, which grows with time."""
        return self.model_copy(
            update={"items": tuple(one.model_copy(update={"took_s": 0.0, "needed_s": None}) for one in self.items)}
        )


@router.get("/comparisons", response_description="The comparisons.")
def comparisons(archive: Stored, now: Snapshot, response: Response, _: Annotated[QueryParameters, Query()]) -> ComparisonList:
    """Every comparison of the configuration: no worse, worse, or undecided."""
    documents = map(comparison_as_document, archive.compared(now.at))
    found = ComparisonList(items=tuple(map(ComparisonAnswer.model_validate, documents)))
    response.headers["ETag"] = tag_of(found.timeless().model_dump_json().encode())
    return found
