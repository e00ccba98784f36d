"""`ordering-prober observe --own`: who is late, a subscription of the user's or the one that observes beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from prober.brokers.endpoint import parse_endpoint
from prober.clock import wall_s
from prober.config.sections import Monitoring, OwnSubscription
from prober.monitoring.cloud import CloudMonitoring, MonitoringError
from prober.monitoring.comparison import OwnSubscriptionSnapshot, OwnSubscriptionStatus, Reading, shown
from prober.probes.observed import ObservedStream
from prober.runs.result import RunResult

ENDPOINT_VARIABLE: Final = "ORDERING_PROBER_MONITORING__ENDPOINT"
"""Where Cloud Monitoring is, as in the configuration of the service."""


async def beside(
    own: OwnSubscription, environ: Mapping[str, str], stream: ObservedStream, result: RunResult
) -> OwnSubscriptionSnapshot:
    """What Cloud Monitoring says of it now, beside the messages that were observed. It is only read about, never used.

    That Cloud Monitoring says nothing makes it unknown who is late, and is no error.
    """
    now = wall_s()
    stream.waits.ran(result.started_at, now, received=bool(stream.ages.count))
    failure, reading = "", Reading()
    cloud = CloudMonitoring(parse_endpoint(environ.get(ENDPOINT_VARIABLE) or Monitoring().endpoint))
    try:
        reading = (await asyncio.to_thread(cloud.read, [own.name], now))[own.name]
    except MonitoringError as error:
        failure = str(error)
    finally:
        await asyncio.to_thread(cloud.close)
    point, late_after_s = reading.oldest_unacked_age, own.late_after.total_seconds()
    side = stream.waits.side(now if point is None else point.at, late_after_s)
    topic = result.topic.rpartition("/")[2]
    (snapshot,) = shown([OwnSubscriptionStatus(own.name, topic, late_after_s, now, failure, reading, side)], now)
    return snapshot
