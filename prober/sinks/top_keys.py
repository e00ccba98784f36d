"""Load by ordering key on observed streams: a sink that finds the top keys of the last minute and of the last ten minutes.

Apache DataSketches' frequent-items sketches count the load, one for messages and one for bytes in each part of a window. A sketch follows
at most 768 keys, whatever the number of keys, and returns an interval that contains the exact count (`Interval`). With more keys the
interval is at most as wide as 0.35 % of the weight that the sketch has counted.

Redeliveries do not count as load. A rate is per second of observed time: a stream is observed from the first session of a run to its end.
Ages are measured on delivery, only for the top keys of the latest snapshot.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from datasketches import frequent_items_error_type, frequent_strings_sketch

from prober.clock import wall_s
from prober.core.events import Delivered, Opened
from prober.monitoring.top_keys import Interval, KeyLoad, StreamKeys, TopKey
from prober.probes.context import DeliveryKind
from prober.runs.classification import Observation
from prober.runs.probe_instance import ProbeInstance
from prober.runs.sink import RunBegun, RunEnded
from prober.slo.hot_keys import class_of_load, score_of_load

SHOWN: Final = 10
"""Number of top keys of a stream."""
SKETCH_LG_SIZE: Final = 10
"""Binary logarithm of the size of a sketch's table; three quarters of it are used."""
MINUTE_S: Final = 60.0
TEN_MINUTES_S: Final = 600.0
PARTS: Final = 6
"""Number of parts of the last minute; the window of ten minutes has a part for each minute."""
OBSERVED_MIN_S: Final = 10.0
"""Minimum of observed time for rates of a window."""
FRESH_S: Final = 1.0
"""An answer younger than this is returned again."""

_CANDIDATES: Final = frequent_items_error_type.NO_FALSE_NEGATIVES
_ABSENT: Final = ""
"""A key that is never counted; its upper bound is the error of a sketch."""
_NANOS: Final = 1e9


def _sketch() -> frequent_strings_sketch:
    return frequent_strings_sketch(SKETCH_LG_SIZE)


class KeyTraffic:
    """Messages and bytes by key, in two sketches of bounded size."""

    def __init__(self) -> None:
        self._messages, self._bytes = _sketch(), _sketch()

    def event(self, seen: Observation) -> None:
        """Count an event of a run if it is a first delivery."""
        event = seen.event
        if isinstance(event, Delivered) and seen.kind is not DeliveryKind.REDELIVERY:
            self.came(event.key, event.data_size or 0)

    def came(self, key: str, size: int) -> None:
        """Count a received message with `size` bytes of data."""
        self._messages.update(key)
        if size:
            self._bytes.update(key, size)

    def merge(self, other: KeyTraffic) -> None:
        """Add the counts of `other`. The intervals of the sum contain the exact counts."""
        self._messages.merge(other._messages)
        self._bytes.merge(other._bytes)

    def heaviest(self, count: int) -> set[str]:
        """Return the keys with the most messages and those with the most bytes, `count` of each."""
        return {key for sketch in (self._messages, self._bytes) for key, *_ in sketch.get_frequent_items(_CANDIDATES)[:count]}

    def messages_of(self, key: str) -> Interval:
        """Return the number of messages on a key."""
        return _within(key, self._messages)

    def bytes_of(self, key: str) -> Interval:
        """Return the bytes of data on a key."""
        return _within(key, self._bytes)

    @property
    def messages(self) -> int:
        """Number of all messages."""
        return int(self._messages.total_weight)

    @property
    def bytes(self) -> int:
        """Bytes of all data."""
        return int(self._bytes.total_weight)

    @property
    def keys(self) -> int:
        """Minimum number of keys with messages."""
        return int(self._messages.num_active_items)

    @property
    def exact(self) -> bool:
        """Whether every count is exact: no sketch received more keys than it follows."""
        return all(sketch.get_upper_bound(_ABSENT) == 0 for sketch in (self._messages, self._bytes))


def _within(key: str, sketch: frequent_strings_sketch) -> Interval:
    return Interval(sketch.get_lower_bound(key), min(sketch.get_upper_bound(key), sketch.total_weight))


@dataclass(slots=True)
class _Part:
    """Messages in one part of a window, from `begin` on, and the ages on followed keys."""

    begin: float
    traffic: KeyTraffic = field(default_factory=KeyTraffic)
    ages: dict[str, float] = field(default_factory=dict)


class ObservedTime:
    """Times at which a stream was observed: intervals in seconds since 1970, back to the start of the longest window."""

    def __init__(self) -> None:
        self._spans: deque[tuple[float, float]] = deque()
        self._since: float | None = None

    @property
    def under_way(self) -> bool:
        """Whether the stream is observed now."""
        return self._since is not None

    def begin(self, now: float) -> None:
        """Start the observation, unless it is in progress."""
        if self._since is None:
            self._since = now

    def end(self, now: float) -> None:
        """End the observation."""
        if self._since is not None:
            self._spans.append((self._since, now))
        self._since = None
        while self._spans and self._spans[0][1] < now - TEN_MINUTES_S - MINUTE_S:
            self._spans.popleft()

    def last(self, now: float) -> float:
        """Return the last time at which the stream was observed; 0 if never."""
        return now if self.under_way else max((until for _, until in self._spans), default=0.0)

    def seconds(self, since: float, now: float) -> float:
        """Return the observed time between two times, in seconds."""
        spans = (*self._spans, *(() if self._since is None else ((self._since, now),)))
        return sum((max(0.0, min(until, now) - max(begin, since)) for begin, until in spans), 0.0)


class Window:
    """Messages by key in the last `span_s`, in `parts` that expire individually."""

    def __init__(self, span_s: float, parts: int) -> None:
        self._parts: deque[_Part] = deque(maxlen=parts)
        self._span_s, self._part_s = span_s, span_s / parts

    def clear(self) -> None:
        """Discard all messages."""
        self._parts.clear()

    def came(self, key: str, size: int, now: float) -> None:
        """Count a received message with `size` bytes of data."""
        self._part(now).traffic.came(key, size)

    def aged(self, key: str, age_s: float, now: float) -> None:
        """Record the age of a message on a followed key."""
        ages = self._part(now).ages
        ages[key] = max(age_s, ages.get(key, 0.0))

    def since(self, now: float) -> float:
        """Return the start of the window: `span_s` before `now`, or up to one part less."""
        return now - now % self._part_s - self._span_s + self._part_s

    def leave(self, now: float) -> None:
        """Drop the parts that are older than the window."""
        while self._parts and self._parts[0].begin < self.since(now):
            self._parts.popleft()

    def traffic(self) -> KeyTraffic:
        """Return the sum of all parts."""
        merged = KeyTraffic()
        for part in self._parts:
            merged.merge(part.traffic)
        return merged

    def load(self, key: str, observed_s: float) -> KeyLoad:
        """Return the load on a key per second of observed time. Sums over parts have narrower intervals than merged sketches."""
        traffics = [part.traffic for part in self._parts]
        messages = _sum(traffic.messages_of(key) for traffic in traffics)
        everything = max(1, sum(traffic.messages for traffic in traffics))
        data = _sum(traffic.bytes_of(key) for traffic in traffics)
        return KeyLoad(_over(data, observed_s), _over(messages, observed_s), _over(messages, everything))

    def age_s(self, key: str) -> float | None:
        """Return the largest age on a followed key; None if not measured."""
        return max((part.ages[key] for part in self._parts if key in part.ages), default=None)

    @property
    def exact(self) -> bool:
        """Whether the load on every key is exact."""
        return all(part.traffic.exact for part in self._parts)

    def _part(self, now: float) -> _Part:
        begin = now - now % self._part_s
        if not self._parts or self._parts[-1].begin < begin:  # otherwise the clock may have been set back
            self._parts.append(_Part(begin))
        return self._parts[-1]


def _sum(intervals: Iterable[Interval]) -> Interval:
    lows, highs = zip((0.0, 0.0), *intervals, strict=True)
    return Interval(sum(lows), sum(highs))


def _over(count: Interval, by: float) -> Interval:
    return Interval(count.low / by, count.high / by)


class ObservedKeys:
    """The keys of one observed stream. Pure: every time is an argument, in seconds since 1970."""

    def __init__(self, instance: ProbeInstance, subscription: str) -> None:
        self._instance, self._subscription = instance, subscription
        self._minute, self._ten_minutes = Window(MINUTE_S, PARTS), Window(TEN_MINUTES_S, int(TEN_MINUTES_S / MINUTE_S))
        self._followed: frozenset[str] = frozenset()
        self.time: Final = ObservedTime()

    def follow(self, instance: ProbeInstance) -> None:
        """Record the probe instance of a run that starts on the stream."""
        self._instance = instance

    def came(self, key: str, size: int, age_s: float | None, now: float) -> None:
        """Count a received message with `size` bytes of data and the age `age_s`; None: unknown."""
        for window in (self._minute, self._ten_minutes):
            window.came(key, size, now)
        if age_s is not None and key in self._followed:
            self._minute.aged(key, age_s, now)

    def clear(self) -> None:
        """Discard all messages."""
        for window in (self._minute, self._ten_minutes):
            window.clear()

    def is_forgotten(self, now: float) -> bool:
        """Return whether the stream was not observed in any window."""
        return self.time.last(now) < now - TEN_MINUTES_S

    def snapshot(self, now: float) -> StreamKeys:
        """Return the top keys, and measure ages on these keys from now on."""
        for window in (self._minute, self._ten_minutes):
            window.leave(now)
        observed_s = self._observed_s(self._ten_minutes, now)
        found = self._loaded(now) if observed_s >= OBSERVED_MIN_S else ()
        top = tuple(sorted(found, key=lambda one: (-one.score, one.key))[:SHOWN])
        self._followed = frozenset(one.key for one in top)
        instance, traffic = self._instance, self._ten_minutes.traffic()
        return StreamKeys(
            instance.target,
            instance.environment,
            instance.region,
            instance.topic,
            self._subscription,
            observed_at=self.time.last(now),
            observed_s=observed_s,
            keys=traffic.keys,
            exact=self._minute.exact and self._ten_minutes.exact,
            bytes_per_s=traffic.bytes / max(OBSERVED_MIN_S, observed_s),
            messages_per_s=traffic.messages / max(OBSERVED_MIN_S, observed_s),
            top=top,
        )

    def _observed_s(self, window: Window, now: float) -> float:
        return self.time.seconds(window.since(now), now)

    def _loaded(self, now: float) -> Iterator[TopKey]:
        minute_s, ten_minutes_s = (self._observed_s(window, now) for window in (self._minute, self._ten_minutes))
        is_known = minute_s >= OBSERVED_MIN_S
        traffic = (self._minute if is_known else self._ten_minutes).traffic()
        for key in traffic.heaviest(SHOWN):
            ten_minutes = self._ten_minutes.load(key, ten_minutes_s)
            minute = self._minute.load(key, minute_s) if is_known else None
            least = (minute or ten_minutes).bytes_per_s.low, (minute or ten_minutes).share.low
            age_s = self._minute.age_s(key)
            yield TopKey(key, class_of_load(*least, traffic.keys), score_of_load(*least), minute, ten_minutes, age_s)


class _Listener:
    """Listener that counts the messages of one run."""

    def __init__(self, keys: ObservedKeys, opened: Callable[[], None], clock: Callable[[], float]) -> None:
        self._keys, self._opened, self._clock = keys, opened, clock

    def event(self, seen: Observation) -> None:
        """Count a first delivery, and record the start of the observation."""
        event = seen.event
        if isinstance(event, Opened):
            self._opened()
        elif isinstance(event, Delivered) and seen.kind is not DeliveryKind.REDELIVERY:
            now, published = self._clock(), event.publish_time
            age_s = max(0.0, now - published / _NANOS) if isinstance(published, int) else None
            self._keys.came(event.key, event.data_size or 0, age_s, now)

    def ended(self, end: RunEnded) -> None:
        """Record the end of the observation."""
        del end
        self._keys.time.end(self._clock())


class _StreamSink:
    """Sink of the runs that observe one stream."""

    def __init__(self, top_keys: TopKeys, subscription: str) -> None:
        self._top_keys, self._subscription = top_keys, subscription

    def begin(self, run: RunBegun) -> _Listener:
        """Return the listener of a run that starts."""
        return self._top_keys.listener(run.probe_instance, self._subscription)


class TopKeys:
    """Top keys of all streams that a prober observes. For the event loop only."""

    def __init__(self, clock: Callable[[], float] = wall_s) -> None:
        self._clock = clock
        self._streams: dict[tuple[str, str], ObservedKeys] = {}
        self._answer: tuple[float, tuple[StreamKeys, ...]] = (float("-inf"), ())

    def sink(self, subscription: str) -> _StreamSink:
        """Return the sink of the runs that observe a stream through a subscription, by its name in metrics."""
        return _StreamSink(self, subscription)

    def listener(self, instance: ProbeInstance, subscription: str) -> _Listener:
        """Return the listener of a run that starts now."""
        name = instance.target, subscription
        keys = self._streams.get(name) or ObservedKeys(instance, subscription)
        keys.follow(instance)

        def opened() -> None:
            self._streams[name] = keys
            keys.time.begin(self._clock())

        return _Listener(keys, opened, self._clock)

    def snapshot(self) -> tuple[StreamKeys, ...]:
        """Return every stream that was observed in the last ten minutes, by target and subscription."""
        now = self._clock()
        if not 0.0 <= now - self._answer[0] < FRESH_S:
            for name in [name for name, keys in self._streams.items() if keys.is_forgotten(now)]:
                del self._streams[name]
            self._answer = now, tuple(self._streams[name].snapshot(now) for name in sorted(self._streams))
        return self._answer[1]

    def close(self) -> None:
        """Discard all data: the library reports sketches that still exist at the end of the interpreter as leaks."""
        for keys in self._streams.values():
            keys.clear()
        self._streams.clear()
