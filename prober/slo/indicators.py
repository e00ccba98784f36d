"""The measurements of a service: the indicators (SLIs), the events that each of them counts, and when an event is bad.

Every indicator counts events that end good, bad or undecided. Some count messages, some count slices of time; those that compare a
duration with a threshold need one. The expected level of an indicator is an objective (`slo`), never part of the indicator.

This is the only definition. The metrics, the recorded rules, the status store and the nightly jobs derive from it and count alike:

* Events that a run *verifies* (`counts.BREACHES`) are counted when the run has ended, only by `counts.checks_of`. Each event is decided
  by itself: a run whose verdict is UNKNOWN may have good ones.
* *Proven* bad events stay bad if the run is cut short, or verification stops: its violations count, and none of its events is good. Only
  a fault of the checker, or maintenance, revokes them.
* *Durations* are counted when they are over: `Objective.is_late` decides, in whole microseconds. A confirmed message that was not received
  when the run ends is late for every threshold if the checker has found that the messages missing on its key missed their deadline
  (`counts.is_overdue`), and else undecided, as is a publish without an answer. Other missing events have no latency.
* A *failed* administration call, without an answer of the target or with an error of its own, is late for every threshold; so is a planned
  call of a run that was impossible since the target was unreachable. A refused call (no permission, no such topic) says nothing about the
  speed of the target, and is not counted.
* Scheduled publishes that were *impossible* because the target was unreachable are bad for availability: two hours without the
  target are two hours of bad publishes, although none was sent (`counts.unsent_of`). They are counted when their run has ended.
* Events that are late perhaps only because the prober's own event loop *lagged* meanwhile (`runs.recorder`) are undecided: they would be in
  time without the lag (`Objective.is_doubtful`). Lag only adds, so an event in time is good, and an event that would be late even without
  the lag is bad. If one objective about an indicator cannot be decided for an event, none about it is, since a histogram contains an
  event or does not.
* *Slices of time* are sampled once a minute, as a scraper samples gauges: a minute is bad if at its sample the oldest message was too old,
  or the key was stalled. A state between two samples is not observed. The history has no samples; there the end of the minute
  counts, or that of the run.
* Durations and publishes are facts, without a checker: they also count if a run stopped verifying, since the service may have been
  silent then, and in a run that a fault of the prober ended.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from prober.core.events import PublishFailed, PublishUnknown

SLICE_S: Final = 60.0  # indicators of time are counted in slices of this length


class Indicator(StrEnum):
    """The indicators by name."""

    ORDER = "order"
    REDELIVERY = "redelivery"
    AFFINITY = "affinity"
    COMPLETENESS = "completeness"
    PUBLISH_AVAILABILITY = "publish_availability"
    PUBLISH_LATENCY = "publish_latency"
    END_TO_END_LATENCY = "end_to_end_latency"
    PULL_LATENCY = "pull_latency"
    PUSH_LATENCY = "push_latency"
    REDELIVERY_LATENCY = "redelivery_latency"
    CONTROL_PLANE_LATENCY = "control_plane_latency"
    CREATION_TO_RECEIPT_LATENCY = "creation_to_receipt_latency"
    OLDEST_UNACKED_MESSAGE_AGE = "oldest_unacked_message_age"
    STALLED_KEYS = "stalled_keys"
    HEAD_OF_LINE_DELAY = "head_of_line_delay"


class Unit(StrEnum):
    """The unit of an indicator's events."""

    MESSAGE = "message"
    CALL = "call"
    SUBSCRIPTION = "subscription"
    REDELIVERY = "redelivery"
    SLICE = "minute"
    KEY_SLICE = "key-minute"


@dataclass(frozen=True, slots=True)
class Meaning:
    """The meaning of an indicator. `thresholded`: bad means "longer than the objective's threshold"."""

    unit: Unit
    bad: str
    thresholded: bool = False


MEANINGS: Final = MappingProxyType(
    {
        Indicator.ORDER: Meaning(Unit.MESSAGE, "it was first received out of order"),
        Indicator.REDELIVERY: Meaning(Unit.REDELIVERY, "it skipped messages that should have been redelivered"),
        Indicator.AFFINITY: Meaning(Unit.MESSAGE, "it went to a subscriber while another provably held its key"),
        Indicator.COMPLETENESS: Meaning(Unit.MESSAGE, "it was confirmed and not delivered by the deadline"),
        Indicator.PUBLISH_AVAILABILITY: Meaning(
            Unit.MESSAGE, "its publish was rejected or unanswered, or was not sent because the target was unreachable"
        ),
        Indicator.PUBLISH_LATENCY: Meaning(Unit.MESSAGE, "its confirmation took longer", thresholded=True),
        Indicator.END_TO_END_LATENCY: Meaning(
            Unit.MESSAGE, "the time from its intended send to its first receipt was longer", thresholded=True
        ),
        Indicator.PULL_LATENCY: Meaning(
            Unit.MESSAGE,
            "it is the first of its key, and the time from its intended send to its receipt by pull was longer",
            thresholded=True,
        ),
        Indicator.PUSH_LATENCY: Meaning(
            Unit.MESSAGE,
            "it is the first of its key, and the time from its intended send to its receipt by push was longer",
            thresholded=True,
        ),
        Indicator.REDELIVERY_LATENCY: Meaning(Unit.REDELIVERY, "it took longer", thresholded=True),
        Indicator.CONTROL_PLANE_LATENCY: Meaning(Unit.CALL, "it failed, or took longer", thresholded=True),
        Indicator.CREATION_TO_RECEIPT_LATENCY: Meaning(
            Unit.SUBSCRIPTION, "the time from the request to create it to its first receipt was longer", thresholded=True
        ),
        Indicator.OLDEST_UNACKED_MESSAGE_AGE: Meaning(Unit.SLICE, "the oldest unacknowledged message was older", thresholded=True),
        Indicator.STALLED_KEYS: Meaning(Unit.KEY_SLICE, "the key stalled although messages were pending"),
        Indicator.HEAD_OF_LINE_DELAY: Meaning(
            Unit.MESSAGE,
            "its delay during the hold of another key or subscription was longer",
            thresholded=True,
        ),
    }
)

DURATIONS: Final = tuple(indicator for indicator, meaning in MEANINGS.items() if meaning.thresholded)
"""Indicators that measure a duration or an age."""

UNRECORDED: Final = frozenset(
    {Indicator.PULL_LATENCY, Indicator.PUSH_LATENCY, Indicator.CREATION_TO_RECEIPT_LATENCY, Indicator.HEAD_OF_LINE_DELAY}
)
"""Indicators that the history does not contain: no event shows these durations, or which events count. Their probes measure them."""

UNPUBLISHED: Final = (PublishFailed, PublishUnknown)
"""The events of a failed publish: rejected, or no answer in time."""
