"""The section about comparisons: the two targets, the period, and the tolerated differences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Annotated, Final, Self

from pydantic import AfterValidator, BeforeValidator, PlainSerializer, model_validator

from prober.config.problems import Problem
from prober.config.values import DnsLabel, Positive, Section, Written, read_ratio
from prober.durations import read_duration, write_duration
from prober.errors import no_such
from prober.slo.comparison import ASPECTS, Aspect

WINDOW_MIN: Final = timedelta(minutes=1)
WINDOW_MAX: Final = timedelta(days=1)
COMPARISONS_MAX: Final = 20


def _share(value: float) -> float:
    if not 0.0 <= value < 1.0:
        raise ValueError(f"must be at least 0 and less than 1, not {value:g}: write 0.1% or 0.001")
    return value


def _bounded(value: timedelta) -> timedelta:
    if not WINDOW_MIN <= value <= WINDOW_MAX:
        raise ValueError(f"must be from {write_duration(WINDOW_MIN)} to {write_duration(WINDOW_MAX)}")
    return value


ShareMargin = Annotated[float, BeforeValidator(read_ratio), AfterValidator(_share), Written("share")]
DurationMargin = Annotated[
    timedelta, BeforeValidator(read_duration), PlainSerializer(write_duration, when_used="json"), Written("duration")
]


def _ms(milliseconds: int) -> timedelta:
    return timedelta(milliseconds=milliseconds)


class Margins(Section):
    """Tolerated difference of the candidate, by aspect."""

    order: ShareMargin = 0.001
    """First deliveries out of order."""
    redelivery: ShareMargin = 0.01
    """Redeliveries that skipped messages."""
    affinity: ShareMargin = 0.01
    """Deliveries while another subscriber provably held the key."""
    completeness: ShareMargin = 0.001
    """Confirmed messages without delivery."""
    publish_availability: ShareMargin = 0.001
    """Failed or unsent publishes."""
    publish_latency_p50: DurationMargin = _ms(50)
    """Publish to confirmation."""
    publish_latency_p99: DurationMargin = _ms(250)
    """As `_p50`."""
    end_to_end_latency_p50: DurationMargin = _ms(100)
    """Intended send time to first receipt."""
    end_to_end_latency_p99: DurationMargin = _ms(500)
    """As `_p50`."""
    pull_latency_p50: DurationMargin = _ms(100)
    """The same by pull, for the first message of a key."""
    pull_latency_p99: DurationMargin = _ms(500)
    """As `_p50`."""
    push_latency_p50: DurationMargin = _ms(100)
    """The same by push, for the first message of a key."""
    push_latency_p99: DurationMargin = _ms(500)
    """As `_p50`."""
    redelivery_latency_p50: DurationMargin = _ms(1000)
    """Wait for a redelivery."""
    redelivery_latency_p99: DurationMargin = _ms(5000)
    """As `_p50`."""
    control_plane_latency_p50: DurationMargin = _ms(500)
    """Administration calls."""
    control_plane_latency_p99: DurationMargin = _ms(2000)
    """As `_p50`."""
    creation_to_receipt_latency_p50: DurationMargin = _ms(500)
    """Creation of a subscription to its first receipt."""
    creation_to_receipt_latency_p99: DurationMargin = _ms(2000)
    """As `_p50`."""
    oldest_unacked_message_age_p50: DurationMargin = _ms(1000)
    """Age of the oldest unacknowledged message."""
    oldest_unacked_message_age_p99: DurationMargin = _ms(5000)
    """As `_p50`."""
    head_of_line_delay_p50: DurationMargin = _ms(100)
    """Delay while another key or subscription was held."""
    head_of_line_delay_p99: DurationMargin = _ms(500)
    """As `_p50`."""

    @property
    def by_aspect(self) -> Mapping[Aspect, float]:
        """All margins by aspect, of durations in seconds."""
        return {aspect: _number(getattr(self, aspect.name)) for aspect in ASPECTS}


def _number(margin: float | timedelta) -> float:
    return margin.total_seconds() if isinstance(margin, timedelta) else margin


class ComparisonSettings(Section):
    """Two compared targets, such as a canary and production."""

    baseline: DnsLabel
    """Target that sets the standard."""
    candidate: DnsLabel
    """Target that must be no worse."""
    window: Annotated[Positive, AfterValidator(_bounded)] = timedelta(minutes=30)
    """Period of the compared runs; 1m to 1d."""
    margins: Margins = Margins()
    """Tolerated differences."""

    @model_validator(mode="after")
    def _two(self) -> Self:
        if self.baseline == self.candidate:
            raise ValueError("candidate must be another target than baseline")
        return self


def comparison_problems(comparisons: Sequence[ComparisonSettings], targets: Iterable[str]) -> Iterator[Problem]:
    """Report unknown targets, and pairs that are listed twice."""
    known, seen = set(targets), set()
    for number, comparison in enumerate(comparisons):
        for key in ("baseline", "candidate"):
            if (name := getattr(comparison, key)) not in known:
                yield Problem(("comparisons", number, key), no_such("target", name, known))
        pair = comparison.baseline, comparison.candidate
        if pair in seen:
            yield Problem(("comparisons", number), f"{pair[0]} and {pair[1]} are compared already")
        seen.add(pair)
