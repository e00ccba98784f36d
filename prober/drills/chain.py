"""Where drills are followed to, and how long: the configuration turned into somebody to ask."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from prober.config.drills import Drills
from prober.drills.alerts import Alertmanager, Conversation, Prometheus
from prober.drills.following import Patience
from prober.drills.receiver import Expose, Receiver
from prober.sinks.metrics import DrillMetrics


@dataclass(frozen=True, slots=True)
class Chain:
    """Everybody who is asked about a drill. Who is None is not asked."""

    metrics: DrillMetrics
    patience: Patience
    prometheus: Prometheus | None = None
    alertmanager: Alertmanager | None = None
    receiver: Receiver | None = None


@asynccontextmanager
async def opened(settings: Drills, metrics: DrillMetrics, expose: Expose | None = None) -> AsyncIterator[Chain]:
    """The chain of a configuration. With `expose`, who listens for pages is also to be scraped. Raises ConfigError for a port taken."""
    async with AsyncExitStack() as resources:
        conversation = await resources.enter_async_context(Conversation())
        receiver = None if settings.port is None else Receiver(settings.host, settings.port, expose)
        if receiver is not None:
            resources.push_async_callback(receiver.stop)
            await receiver.start()
        yield Chain(
            metrics,
            Patience(settings.deadline.total_seconds(), settings.silence.total_seconds()),
            None if settings.prometheus is None else Prometheus(conversation, settings.prometheus),
            None if settings.alertmanager is None else Alertmanager(conversation, settings.alertmanager),
            receiver,
        )
