"""Administration calls are timed where they are made: by an experiment, and by whoever makes its topics and subscriptions.

A call that succeeded took some time. One that *failed*, because the target did not answer or answered with an error of its own, is too
late for every threshold: what was wanted of it did not happen. One that was refused (no permission, no such topic, a request that the
target does not take) says nothing about how fast the target is, and is not told.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from prober.brokers.base import AdminOperation
from prober.clock import monotonic_s
from prober.errors import BrokerUnavailable


class Administered(Protocol):
    """Told how long an administration call took, in seconds, and whether it failed."""

    def __call__(self, operation: AdminOperation, latency_s: float, *, failed: bool) -> None:
        """A call ended."""


def nobody_times(operation: AdminOperation, latency_s: float, *, failed: bool) -> None:
    """For calls whose time nobody counts."""


@contextmanager
def timed(operation: AdminOperation, administered: Administered) -> Iterator[None]:
    """Tells how the call inside ended; what it raises is raised on."""
    began_t = monotonic_s()
    try:
        yield
    except BrokerUnavailable:
        administered(operation, monotonic_s() - began_t, failed=True)
        raise
    administered(operation, monotonic_s() - began_t, failed=False)
