"""Observed streams with top keys, as a prober shows them."""

from __future__ import annotations

from prober.monitoring.top_keys import Interval, KeyLoad, StreamKeys, TopKey
from prober.slo.hot_keys import HotKeyClass

NOON = 1772366400.0  # 2026-03-01T12:00:00Z
SUBSCRIPTION = "okp-prober-0-shop-observe-wire"
HOSTILE = "<script>alert(1)</script>\u202e\"'&" + "long-" * 40
"""A key that wants to be more than text."""


def load(bytes_per_s: float, messages_per_s: float, share: float, *, error: float = 0.0) -> KeyLoad:
    """A load whose upper ends are larger by a share."""
    low = (bytes_per_s, messages_per_s, share)
    return KeyLoad(*(Interval(value, value * (1 + error)) for value in low))


def top_key(
    key: str, bytes_per_s: float, share: float, heat: HotKeyClass | None = None, age_s: float | None = 0.2, *, error: float = 0.0
) -> TopKey:
    """A key with the same load in both windows."""
    same = load(bytes_per_s, 200 * share, share, error=error)
    return TopKey(key, heat, max(bytes_per_s / 1e6, share), same, same, age_s)


def stream(*top: TopKey, target: str = "europe", subscription: str = SUBSCRIPTION, exact: bool = True) -> StreamKeys:
    """A stream of 200 messages a second that was observed until noon."""
    return StreamKeys(
        target=target,
        environment="production",
        region="europe-west1",
        topic="projects/shop/topics/orders",
        subscription=subscription,
        observed_at=NOON,
        observed_s=480.0,
        keys=1_000,
        exact=exact,
        bytes_per_s=1_400_000.0,
        messages_per_s=200.0,
        top=top,
    )


ORDERS_STREAM = stream(
    top_key("acct-7", 840_000.0, 0.31, HotKeyClass.THROUGHPUT_BOUND, 12.0),
    top_key("acct-42", 20_000.0, 0.2, HotKeyClass.SKEWED),
    top_key(HOSTILE, 9_000.0, 0.01, age_s=None),
)


def course_of_a_day(height: float) -> list[dict[str, float]]:
    """A key on 28 February from 6:00 on: busiest at noon; what waits follows."""
    begin = NOON - 36 * 3600.0
    parts = []
    for part in range(12, 48):
        rise = max(0.0, 1.0 - abs(part - 26) / 10)
        waits = max(0.0, 1.0 - abs(part - 30) / 8) ** 2
        reported = {"bytes_per_s": 900_000.0 * height * (0.1 + 0.9 * rise), "age_s": 1340.0 * height * waits}
        parts.append({"at": begin + 1800.0 * part, "backlog": round(5200 * height * waits), **reported})
    return parts
