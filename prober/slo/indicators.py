"""What is measured about a service: the indicators (SLIs), what each of them counts, and when a counted thing is bad.

Every indicator counts things that end good, bad or undecided. Some count messages, some count slices of time; those that compare a
duration with a threshold need one. What an indicator is expected to reach is an objective (`slo`), never part of the indicator.

This is the one definition. The metrics, the recorded rules, the status store and the nightly jobs derive from it and count alike:

* What a run *verifies* (`counts.BREACHES`) is counted when the run has ended, by `counts.checks_of` and nowhere else. Each thing is decided
  by itself: a run whose verdict is UNKNOWN may have good ones.
* What was *proven* to be bad stays so if the run is cut short, or verification stops: its violations count, and nothing of it is good. Only
  a fault of the checker, or maintenance, takes them back.
* What *takes time* is counted when it is over: late is what `Objective.is_late` says, in whole microseconds. A confirmed message that was
  not received when the run ends is late for every threshold if the checker has found that what is missing on its key passed its deadline
  (`counts.is_overdue`), and else undecided, as is a publish without an answer. Other things that never come have no latency.
* An administration call that *failed*, since the target did not answer or answered with an error of its own, is late for every threshold;
  so is one that a run was to make and could not since the target was unreachable. One that was refused (no permission, no such topic)
  says nothing about how fast the target is, and is not counted.
* What the schedule wanted and *could not be done* because the target was unreachable is bad for availability: two hours without the
  target are two hours of bad publishes, although none was sent (`counts.unsent_of`). It is counted when the run has ended that was to
  send them.
* What is late, perhaps only because the prober's own event loop *lagged* meanwhile (`runs.recorder`), is undecided: it would be in time
  without the time in which the loop lagged (`Objective.is_doubtful`). Lag only adds, so what is in time is good, and what would be late
  even without the lag is bad. If one objective about an indicator cannot be decided for a thing, none about it is, since a histogram has a
  thing or does not have it.
* *Slices of time* are sampled once a minute, as a scraper samples gauges: a minute is bad if at its sample the oldest message was too old,
  or the key stood still. What begins and ends between two samples is not seen. The history has no samples; there the end of the minute
  counts, or that of the run.
* Durations and publishes are facts, without a checker: they count also where a run stopped verifying, since it may be the service that was
  silent then, and in a run that a fault of ours ended.
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
    """What one counted thing is."""

    MESSAGE = "message"
    CALL = "call"
    SUBSCRIPTION = "subscription"
    REDELIVERY = "redelivery"
    SLICE = "minute"
    KEY_SLICE = "key-minute"


@dataclass(frozen=True, slots=True)
class Meaning:
    """What an indicator counts. `thresholded`: bad means "longer than the objective's threshold"."""

    unit: Unit
    bad: str
    thresholded: bool = False


MEANINGS: Final = MappingProxyType(
    {
        Indicator.ORDER: Meaning(Unit.MESSAGE, "it was first received out of order"),
        Indicator.REDELIVERY: Meaning(Unit.REDELIVERY, "it passed over messages that should have been redelivered"),
        Indicator.AFFINITY: Meaning(Unit.MESSAGE, "it went to a subscriber while another provably held its key"),
        Indicator.COMPLETENESS: Meaning(Unit.MESSAGE, "it was confirmed and not delivered by the deadline"),
        Indicator.PUBLISH_AVAILABILITY: Meaning(
            Unit.MESSAGE, "its publish was rejected, nobody answered, or it could not be sent because the target was unreachable"
        ),
        Indicator.PUBLISH_LATENCY: Meaning(Unit.MESSAGE, "its confirmation took longer", thresholded=True),
        Indicator.END_TO_END_LATENCY: Meaning(
            Unit.MESSAGE, "from its intended send time to its first receipt it took longer", thresholded=True
        ),
        Indicator.PULL_LATENCY: Meaning(
            Unit.MESSAGE,
            "the first of its key, from its intended send time to its receipt by pull it took longer",
            thresholded=True,
        ),
        Indicator.PUSH_LATENCY: Meaning(
            Unit.MESSAGE,
            "the first of its key, from its intended send time to its receipt by push it took longer",
            thresholded=True,
        ),
        Indicator.REDELIVERY_LATENCY: Meaning(Unit.REDELIVERY, "it was redelivered later", thresholded=True),
        Indicator.CONTROL_PLANE_LATENCY: Meaning(Unit.CALL, "it failed, or took longer", thresholded=True),
        Indicator.CREATION_TO_RECEIPT_LATENCY: Meaning(
            Unit.SUBSCRIPTION, "from the request to create it to the first receipt there it took longer", thresholded=True
        ),
        Indicator.OLDEST_UNACKED_MESSAGE_AGE: Meaning(
            Unit.SLICE, "the oldest message without an acknowledgement was older", thresholded=True
        ),
        Indicator.STALLED_KEYS: Meaning(Unit.KEY_SLICE, "the key stalled although messages were pending"),
        Indicator.HEAD_OF_LINE_DELAY: Meaning(
            Unit.MESSAGE,
            "while another key, or another subscription, was held unacknowledged it was delayed for longer",
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
