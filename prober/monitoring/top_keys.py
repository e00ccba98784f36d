"""The keys with the highest current load on observed streams, as immutable values.

An observed stream is published by others and read by the probe `observe`. Counts come from sketches of bounded size, so each number is
an interval that contains the exact one. Both ends are equal as long as a stream has few keys. This module reads no clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from prober.slo.hot_keys import HotKeyClass


class Interval(NamedTuple):
    """An interval that contains the exact value, both ends included."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class KeyLoad:
    """The load on one key in one window of time. `share` is its part of the messages of the stream, 0 to 1."""

    bytes_per_s: Interval
    messages_per_s: Interval
    share: Interval


@dataclass(frozen=True, slots=True)
class TopKey:
    """A key with much load.

    key          plain or hashed, as configured.
    heat         its class by load; None if the load does not make it hot.
    score        its heat (`prober.slo.hot_keys.score_of_load`). Class and score derive from the lower ends of the newest known load.
    minute       its load in the last minute; None if the stream was hardly observed in it.
    ten_minutes  its load in the last ten minutes.
    age_s        the largest age of its messages on delivery in the last minute, by publish time; None if none was measured.
    """

    key: str
    heat: HotKeyClass | None
    score: float
    minute: KeyLoad | None
    ten_minutes: KeyLoad
    age_s: float | None


@dataclass(frozen=True, slots=True)
class StreamKeys:
    """An observed stream and its top keys, those with the highest score first.

    subscription     the prober's own subscription, by its name in metrics.
    observed_at      when the stream was last observed, seconds since 1970.
    observed_s       for how long it was observed in the last ten minutes.
    keys             the number of keys with messages in the last ten minutes, at least; all of them if `exact`.
    exact            whether every number is exact, so that both ends of each interval are equal.
    bytes_per_s      data of the whole stream in the last ten minutes; `messages_per_s` likewise.
    """

    target: str
    environment: str
    region: str
    topic: str
    subscription: str
    observed_at: float
    observed_s: float
    keys: int
    exact: bool
    bytes_per_s: float
    messages_per_s: float
    top: tuple[TopKey, ...]
