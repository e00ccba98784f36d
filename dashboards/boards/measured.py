"""What probes measure once a run: the load on a key, a held key, and an ordered subscription beside an unordered one."""

from __future__ import annotations

from dashboards.panels import BYTES_PER_SECOND, SECONDS, SHARE, Look, Panel, Words, graph_panel
from dashboards.promql import Query, select, total
from prober.sinks.metrics import families
from prober.slo.figures import Figure, name_of


def measured_panels() -> tuple[Panel, ...]:
    """Of all subscriptions that are selected above, the highest."""
    return (
        _panel(
            "Load on a key (hot_key)",
            "The rate at which a backlog began, if one did; published, acknowledged, and by how much the backlog grew there, or at the top "
            "of the ramp; and how fast a backlog drained. The last run of each.",
            BYTES_PER_SECOND,
            Figure.BACKLOG_BEGINS,
            Figure.HOT_KEY_PUBLISHED,
            Figure.HOT_KEY_ACKNOWLEDGED,
            Figure.HOT_KEY_BACKLOG_GROWTH,
            Figure.HOT_KEY_DRAINED,
        ),
        _panel(
            "Others of a held key (isolation)",
            "The median latency of the other keys before one key was held unacknowledged, meanwhile, and after. The last run of each.",
            SECONDS,
            Figure.LATENCY_BEFORE_HOLD,
            Figure.LATENCY_DURING_HOLD,
            Figure.LATENCY_AFTER_HOLD,
        ),
        _panel(
            "What order costs (control_group)",
            "How much later messages come on an ordered subscription than on its unordered twin, with the 95 % interval. The last run "
            "of each.",
            SECONDS,
            Figure.ORDER_LATENCY,
            Figure.ORDER_LATENCY_LOW,
            Figure.ORDER_LATENCY_HIGH,
        ),
        _panel(
            "What order buys (control_group)",
            "On the unordered twin: messages that came reordered (RFC 4737), messages that a resequencer would have held back, and what "
            "more came in time there. The last run of each.",
            SHARE,
            Figure.UNORDERED_REORDERED,
            Figure.UNORDERED_HELD_BACK,
            Figure.ORDER_UNAVAILABILITY,
        ),
    )


def _panel(title: str, text: str, unit: str, *figures: Figure) -> Panel:
    asked = [Query(total(select(families.FIGURES[figure]), how="max"), name_of(figure)) for figure in figures]
    return graph_panel(Words(title, text), Look(unit, width=12), *asked)
