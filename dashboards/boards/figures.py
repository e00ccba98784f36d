"""Panels of the measurements that probes make once a run, on the dashboard of keys: the highest of all selected subscriptions."""

from __future__ import annotations

from typing import Final

from dashboards.panels import BYTES_PER_SECOND, COUNT, PER_SECOND, SECONDS, SHARE, Look, Panel, Words, graph_panel
from dashboards.queries import Query, select
from prober.alerting.promql import aggregate
from prober.sinks.metrics import families
from prober.slo.figures import Figure, name_of

_PANELS: Final[tuple[tuple[str, str, str, tuple[Figure, ...]], ...]] = (
    (
        "Load on a key (hot_key)",
        "The rates at which a backlog began and from which on publishes were refused, if so; published, acknowledged, and by "
        "how much the backlog grew there, or at the top of the ramp; and how fast a backlog drained.",
        BYTES_PER_SECOND,
        (
            Figure.BACKLOG_BEGINS,
            Figure.REFUSALS_BEGIN,
            Figure.HOT_KEY_PUBLISHED,
            Figure.HOT_KEY_ACKNOWLEDGED,
            Figure.HOT_KEY_BACKLOG_GROWTH,
            Figure.HOT_KEY_DRAINED,
        ),
    ),
    (
        "Others of a held or slow key, or a held subscription (isolation)",
        "The median latency of the other keys before one key was held unacknowledged, meanwhile, while another subscription was "
        "held, while the key was held and subscribers restarted, while a consumer was slow, and after; and the 99 % quantile of "
        "the delay during restarts.",
        SECONDS,
        (
            Figure.LATENCY_BEFORE_HOLD,
            Figure.LATENCY_DURING_HOLD,
            Figure.LATENCY_DURING_SIBLING_HOLD,
            Figure.LATENCY_DURING_RESTARTS,
            Figure.LATENCY_WHILE_SLOW,
            Figure.LATENCY_AFTER_HOLD,
            Figure.DELAY_DURING_RESTARTS,
        ),
    ),
    (
        "Age of messages at a slow consumer (isolation)",
        "How old the oldest message became until the slow consumer acknowledged it.",
        SECONDS,
        (Figure.SLOW_OLDEST,),
    ),
    (
        "Backlog of a slow consumer (isolation)",
        "Messages that the slow consumer had not acknowledged when publishing ended.",
        COUNT,
        (Figure.SLOW_BACKLOG,),
    ),
    (
        "What order costs (control_group)",
        "How much later messages come on an ordered subscription than on its unordered twin, with the 95 % interval.",
        SECONDS,
        (Figure.ORDER_LATENCY, Figure.ORDER_LATENCY_LOW, Figure.ORDER_LATENCY_HIGH),
    ),
    (
        "What a key costs the publisher (control_group)",
        "How much longer a publish request with an ordering key took than the same request without one, with the 95 % interval.",
        SECONDS,
        (Figure.KEY_PUBLISH_LATENCY, Figure.KEY_PUBLISH_LATENCY_LOW, Figure.KEY_PUBLISH_LATENCY_HIGH),
    ),
    (
        "Publish requests lost to keys (control_group)",
        "Publish requests that failed with an ordering key only, less those that failed without one only, of all pairs, with "
        "the 95 % interval.",
        SHARE,
        (Figure.KEY_PUBLISH_FAILURES, Figure.KEY_PUBLISH_FAILURES_LOW, Figure.KEY_PUBLISH_FAILURES_HIGH),
    ),
    (
        "What order buys (control_group)",
        "On the unordered twin: messages that came reordered (RFC 4737), messages that a resequencer would have held back, and "
        "what more came in time there, with the 95 % interval.",
        SHARE,
        (
            Figure.UNORDERED_REORDERED,
            Figure.UNORDERED_HELD_BACK,
            Figure.ORDER_UNAVAILABILITY,
            Figure.ORDER_UNAVAILABILITY_LOW,
            Figure.ORDER_UNAVAILABILITY_HIGH,
        ),
    ),
    (
        "How far out of order without ordering (control_group)",
        "The largest reordering extent (RFC 4737) on the unordered twin, in messages.",
        COUNT,
        (Figure.UNORDERED_EXTENT,),
    ),
    (
        "What a consumer gets done with more keys (scale)",
        "Messages a second on one key, a few, many and all keys of the probe, with more and more subscribers.",
        PER_SECOND,
        (Figure.SCALE_ONE_KEY, Figure.SCALE_FEW_KEYS, Figure.SCALE_MANY_KEYS, Figure.SCALE_ALL_KEYS),
    ),
    (
        "How much only keys bound a consumer (scale)",
        "Messages a second with a few keys over those with one, for each key; 1 if only keys bound a consumer.",
        SHARE,
        (Figure.SCALE_PARALLELISM,),
    ),
    (
        "What push keeps up with on one key (push)",
        "Messages a second on one key: the highest rate at which push kept up, and the lowest at which it fell behind, if it did.",
        PER_SECOND,
        (Figure.PUSH_KEPT_UP, Figure.PUSH_FELL_BEHIND),
    ),
    (
        "How long messages waited, and how old their keys are (long_lived)",
        "For how long messages had waited that a run received and the run before had published; the age of topic and keys.",
        SECONDS,
        (Figure.LONG_LIVED_WAITED, Figure.LONG_LIVED_AGE),
    ),
    (
        "How far out of order a key of two regions is (region)",
        "Of the key that is published alternately in two regions, which are not ordered with each other: messages that were "
        "received reordered (RFC 4737).",
        SHARE,
        (Figure.REGIONS_REORDERED,),
    ),
    (
        "Redeliveries before the minimum backoff (redelivery)",
        "Of messages that were nacked on a subscription with a retry policy, which is best effort.",
        SHARE,
        (Figure.BACKOFF_EARLY,),
    ),
    (
        "Time from a nack to the redelivery (redelivery)",
        "On a subscription whose retry policy has a minimum backoff of 1 s and a maximum of 4 s.",
        SECONDS,
        (Figure.BACKOFF_MEDIAN, Figure.BACKOFF_LONGEST),
    ),
    (
        "How far out of order a dead-letter topic is (dead_letter)",
        "Of messages of a key that were nacked together: those that arrived at the dead-letter topic reordered (RFC 4737). "
        "Order might not be kept there.",
        SHARE,
        (Figure.DEAD_LETTERS_REORDERED,),
    ),
    (
        "A new subscription (control_plane)",
        "How long the request to create a subscription took, and from that request to the first receipt.",
        SECONDS,
        (Figure.SUBSCRIPTION_CREATION, Figure.CREATION_TO_RECEIPT),
    ),
    (
        "Wait of joining subscribers (affinity)",
        "The median time of subscribers from asking to join to their first message.",
        SECONDS,
        (Figure.JOINER_SERVED_AFTER,),
    ),
    (
        "Share of joining subscribers (affinity)",
        "Joining subscribers that got a message, and keys whose last message came to one of them.",
        SHARE,
        (Figure.JOINERS_SERVED, Figure.KEYS_AT_JOINERS),
    ),
)
"""Title, description, unit and measurements of each panel."""


def figure_panels() -> tuple[Panel, ...]:
    """Return all panels of measurements."""
    return tuple(
        graph_panel(
            Words(title, f"{text} The last run of each."),
            Look(unit),
            *(Query(aggregate(select(families.FIGURES[figure]), how="max"), name_of(figure)) for figure in figures),
        )
        for title, text, unit, figures in _PANELS
    )
