"""The objectives that hold where nobody says otherwise: for the configuration, and for the nightly jobs without `--objectives`."""

from __future__ import annotations

from typing import Final

from prober.slo.indicators import Indicator
from prober.slo.objectives import DAY_S, Objective

PERIOD_S: Final = 30 * DAY_S
"""The period of an error budget, in seconds."""

DEFAULTS: Final = (
    Objective("order", Indicator.ORDER, 0.9999, PERIOD_S),
    Objective("redelivery", Indicator.REDELIVERY, 0.999, PERIOD_S),
    Objective("affinity", Indicator.AFFINITY, 0.99, PERIOD_S),
    Objective("completeness", Indicator.COMPLETENESS, 0.9999, PERIOD_S),
    Objective("publish_availability", Indicator.PUBLISH_AVAILABILITY, 0.9995, PERIOD_S),
    Objective("publish_latency", Indicator.PUBLISH_LATENCY, 0.99, PERIOD_S, 0.5),
    Objective("end_to_end_latency", Indicator.END_TO_END_LATENCY, 0.99, PERIOD_S, 1.0),
    Objective("oldest_unacked_message_age", Indicator.OLDEST_UNACKED_MESSAGE_AGE, 0.99, PERIOD_S, 60.0),
    Objective("control_plane_latency", Indicator.CONTROL_PLANE_LATENCY, 0.99, PERIOD_S, 5.0),
    Objective("stalled_keys", Indicator.STALLED_KEYS, 0.999, PERIOD_S),
    Objective("head_of_line_delay", Indicator.HEAD_OF_LINE_DELAY, 0.99, PERIOD_S, 1.0),
)
