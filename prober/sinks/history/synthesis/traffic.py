"""The traffic of a synthetic history: one long run per target and day with all its keys, computed column by column.

Message n of a key is published near (n + phase) / rate, delivered a little later, and acknowledged at once; so its times follow from n,
and any stretch of the day can be computed by itself. What is delivered later than its stretch ends is carried over to the next one.
Everything that happens to a message is legal, and happens to the messages of a key in order: what moves a delivery later never grows
smaller by more than time passes.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from math import ceil
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from prober.sinks.history.synthesis.plan import PUBLISH_UNTIL_S, KeyTraffic, TroubleKind, TroubleWindow
from prober.slo.objectives import DAY_S, HOUR_S

SUBSCRIBERS: Final = 4
BEGINS_S: Final = 5.0
"""From midnight; everything else happens later."""
ROWS_PER_CHUNK: Final = 250_000
_ACK_S: Final = 0.02
_REFUSED_S, _AGAIN_S, _AGAIN_ACKED_S = 0.02, 0.3, 0.35
_QUIET_S: Final = 1.0
"""Only a message that is followed by none for so long is refused: later ones would have to come again as well."""
_RECOVERY: Final = 0.5
"""Seconds by which a delay shrinks per second after a window of slow delivery."""


@dataclass(slots=True)
class Totals:
    """What happened on one day on one target, by key where a key is asked for."""

    counters: Counter[str] = field(default_factory=Counter)
    messages: Counter[str] = field(default_factory=Counter)
    undelivered: Counter[str] = field(default_factory=Counter)


class SyntheticTraffic:
    """One day of one target. `t0` is what the recorder's clock says at midnight, `stamp` makes message ids unique."""

    def __init__(
        self,
        keys: Sequence[KeyTraffic],
        windows: Sequence[TroubleWindow],
        messages: int,
        *,
        epoch: str,
        t0: float,
        stamp: int,
        seed: str,
    ) -> None:
        self.totals = Totals()
        self._keys = keys
        self._windows = windows
        self._epoch = epoch
        self._t0 = t0
        self._stamp = stamp
        self._seed = seed
        chance = random.Random(seed)
        self._rates = [key.share * messages / key.until_s for key in keys]
        self._phases = [chance.random() for _ in keys]
        self._confirm_s = [chance.uniform(0.01, 0.04) for _ in keys]
        self._deliver_s = [chance.uniform(0.03, 0.12) for _ in keys]
        rows_per_s = 4.0 * messages / PUBLISH_UNTIL_S
        self._chunk_s = HOUR_S / max(1, ceil(HOUR_S * rows_per_s / ROWS_PER_CHUNK))

    def chunks(self) -> Iterator[pa.Table]:
        """The events in recorder order, in parts; without their numbers and what the run is about."""
        carried = pa.concat_tables([self._sessions(), self._end()], promote_options="default")
        for number in range(round(DAY_S / self._chunk_s)):
            begin, end = number * self._chunk_s, (number + 1) * self._chunk_s
            rows = pa.concat_tables([carried, *self._events(begin, end, number)], promote_options="default")
            now = pc.less(rows["t"], pa.scalar(self._t0 + end))
            ready, carried = rows.filter(now).combine_chunks(), rows.filter(pc.invert(now))
            if ready.num_rows:
                yield ready.take(pc.sort_indices(ready, sort_keys=[("t", "ascending", "at_start")]))

    # --- events --------------------------------------------------------------------------------------------------------------

    def _sessions(self) -> pa.Table:
        return pa.table(
            {
                "t": pa.array([self._t0 + BEGINS_S] * SUBSCRIBERS, pa.float64()),
                "event": pa.array(["opened"] * SUBSCRIBERS),
                "session": self._streams,
                "subscriber": self._streams,
                "on_subscription": pa.array([True] * SUBSCRIBERS),
            }
        )

    def _end(self) -> pa.Table:
        return pa.table({"t": [self._t0 + DAY_S - 1.0], "event": ["ended"], "drained": [True]})

    @cached_property
    def _streams(self) -> pa.Array:
        return pa.array([f"{self._epoch}-stream-{number}" for number in range(SUBSCRIBERS)])

    def _events(self, begin: float, end: float, chunk: int) -> Iterator[pa.Table]:
        """What happens to the messages of a part of the day, a table for each kind of event."""
        messages = self._messages(begin, end, chunk)
        if not messages.num_rows:
            return
        rejected = messages["rejected"]
        confirmed = messages.filter(pc.invert(rejected))
        delivered = confirmed.filter(confirmed["arrives"])
        refused = delivered.filter(delivered["refused"])
        once = delivered.filter(pc.invert(delivered["refused"]))
        size = self._of_key(messages["k"], [key.size for key in self._keys], pa.int64())
        yield self._kind("publish", messages, "published_s", 0.0, message_bytes=size)
        yield self._kind("publish_failed", messages.filter(rejected), "confirmed_s", 0.0)
        yield self._kind("published", confirmed, "confirmed_s", 0.0, message=True)
        yield self._kind("delivered", delivered, "delivered_s", 0.0, message=True, session=True)
        yield self._kind("acked", once, "delivered_s", _ACK_S, message=True, session=True)
        yield self._kind("nacked", refused, "delivered_s", _REFUSED_S, message=True, session=True)
        yield self._kind("delivered", refused, "delivered_s", _AGAIN_S, message=True, session=True)
        yield self._kind("acked", refused, "delivered_s", _AGAIN_ACKED_S, message=True, session=True)
        self._count(messages, confirmed, delivered, refused)

    def _kind(
        self,
        event: str,
        messages: pa.Table,
        clock: str,
        later_s: float,
        *,
        message: bool = False,
        session: bool = False,
        **more: pa.Array,
    ) -> pa.Table:
        rows = messages.num_rows
        columns = {
            "t": pc.add(messages[clock], self._t0 + later_s),
            "event": pa.repeat(event, rows),
            "key": self._of_key(messages["k"], [key.name for key in self._keys], pa.string()),
        }
        if event not in ("acked", "nacked"):
            columns |= {"epoch": pa.repeat(self._epoch, rows), "seq": messages["seq"], "generation": pa.repeat(0, rows)}
        if event == "delivered":
            columns |= {"delivery_attempt": pa.repeat(0, rows), "matches_filter": pa.repeat(True, rows)}
        if message:
            columns["message_id"] = messages["id"].cast(pa.string())
        if session:
            columns |= {"session": self._streams.take(messages["stream"]), "on_subscription": pa.repeat(True, rows)}
        return pa.table(columns | more)

    # --- messages ------------------------------------------------------------------------------------------------------------

    def _messages(self, begin: float, end: float, chunk: int) -> pa.Table:
        """The messages of a part of the day by key and number, each with when what happens to it, in seconds from midnight."""
        k, n = self._numbered(begin, end)
        chance = pc.random(len(k), initializer=_seed(f"{self._seed} {chunk}"))
        jitter = pc.multiply(0.5, chance)
        published = pc.divide(pc.add(pc.add(n, self._of_key(k, self._phases)), jitter), self._of_key(k, self._rates))
        published = pc.add(published, 2 * BEGINS_S)
        confirmed = pc.add(published, self._of_key(k, self._confirm_s))
        stretched = pc.multiply(published, self._of_key(k, [key.stretch for key in self._keys]))
        delivered = pc.add(pc.add(stretched, self._of_key(k, self._confirm_s)), self._of_key(k, self._deliver_s))
        delivered = pc.add(delivered, self._slowness(published))
        roams = self._of_key(k, [key.roams for key in self._keys], pa.bool_())
        stream = pc.if_else(roams, pc.add(k, n), k)
        return pa.table(
            {
                "k": k,
                "seq": pc.add(n, 1),
                "id": pc.add(pc.add(pc.multiply(k.cast(pa.int64()), 10**9), n), (self._stamp + 1) * 10**14),
                "stream": pc.subtract(stream, pc.multiply(pc.divide(stream, SUBSCRIBERS), SUBSCRIBERS)),
                "published_s": published,
                "confirmed_s": confirmed,
                "delivered_s": delivered,
                "arrives": pc.less(published, self._of_key(k, [key.stalls_at_s for key in self._keys])),
                "rejected": self._rejected(k, published, _seed(f"{self._seed} {chunk} rejected")),
                "refused": self._refused(k, delivered, _seed(f"{self._seed} {chunk} refused")),
            }
        )

    def _numbered(self, begin: float, end: float) -> tuple[pa.Array, pa.Array]:
        """Index of the key and number of each message whose turn is in that time, by key and number."""
        first, counts = [], []
        for key, rate, phase in zip(self._keys, self._rates, self._phases, strict=True):
            low, high = begin * rate - phase, min(end * rate, key.until_s * rate - 0.5) - phase
            first.append(max(0, ceil(low)))
            counts.append(max(0, ceil(high) - first[-1]))
        present = [index for index, count in enumerate(counts) if count]
        ends = list(accumulate(counts[index] for index in present))
        if not ends:
            return pa.array([], pa.int64()), pa.array([], pa.int64())
        offsets = [first[index] - (end - counts[index]) for index, end in zip(present, ends, strict=True)]
        k = pc.run_end_decode(pa.RunEndEncodedArray.from_arrays(pa.array(ends, pa.int32()), pa.array(present, pa.int64())))
        offset = pc.run_end_decode(pa.RunEndEncodedArray.from_arrays(pa.array(ends, pa.int32()), pa.array(offsets, pa.int64())))
        return k, pc.add(pa.arange(0, ends[-1]), offset)

    def _of_key(self, k: pa.Array, values: Sequence[object], kind: pa.DataType | None = None) -> pa.Array:
        return pa.array(values, kind or pa.float64()).take(k)

    def _slowness(self, published: pa.Array) -> pa.Array:
        """By how much deliveries are late: at once the whole amount, and less and less after the window."""
        late = pc.multiply(published, 0.0)
        for window in self._windows:
            if window.trouble is TroubleKind.SLOW_DELIVERY:
                over = pc.subtract(window.amount, pc.multiply(_RECOVERY, pc.subtract(published, window.end_s)))
                shrinking = pc.max_element_wise(pc.min_element_wise(over, window.amount), 0.0)
                late = pc.add(late, pc.if_else(pc.greater_equal(published, window.begin_s), shrinking, 0.0))
        return late

    def _rejected(self, k: pa.Array, published: pa.Array, seed: int) -> pa.Array:
        """Never of a key whose consumer is slow: with a message less it would seem to stand still."""
        rejectable = self._of_key(k, [key.stretch == 1.0 for key in self._keys], pa.bool_())
        chance = pc.random(len(published), initializer=seed)
        rejected = pc.less(chance, 0.0)
        for window in self._windows:
            if window.trouble is TroubleKind.PUBLISHES_REJECTED:
                within = pc.and_(pc.greater_equal(published, window.begin_s), pc.less(published, window.end_s))
                rejected = pc.or_(rejected, pc.and_(within, pc.less(chance, window.amount)))
        return pc.and_(rejected, rejectable)

    def _refused(self, k: pa.Array, delivered: pa.Array, seed: int) -> pa.Array:
        if not len(k):
            return pa.array([], pa.bool_())
        same_key = pc.equal(k.slice(1), k.slice(0, len(k) - 1))
        gap = pc.subtract(delivered.slice(1), delivered.slice(0, len(k) - 1))
        alone = pc.and_(same_key, pc.greater(gap, _QUIET_S))
        wanted = pc.less(pc.random(len(k), initializer=seed), self._of_key(k, [key.refused for key in self._keys]))
        return pc.and_(pa.concat_arrays([alone, pa.array([False])]), wanted)

    # --- totals --------------------------------------------------------------------------------------------------------------

    def _count(self, messages: pa.Table, confirmed: pa.Table, delivered: pa.Table, refused: pa.Table) -> None:
        again = refused.num_rows
        self.totals.counters.update(
            {
                "publishes_invoked": messages.num_rows,
                "publishes_confirmed": confirmed.num_rows,
                "publishes_rejected": messages.num_rows - confirmed.num_rows,
                "deliveries_first": delivered.num_rows,
                "deliveries_redelivery": again,
                "deliveries_among_several": delivered.num_rows + again,
                "rewinds": again,
                "acks": delivered.num_rows,
                "nacks": again,
            }
        )
        self.totals.messages.update(self._by_key(messages))
        self.totals.undelivered.update(self._by_key(confirmed.filter(pc.invert(confirmed["arrives"]))))

    def _by_key(self, messages: pa.Table) -> dict[str, int]:
        counted = pc.value_counts(messages["k"]).to_pylist()
        return {self._keys[one["values"]].name: one["counts"] for one in counted}


def _seed(text: str) -> int:
    """A seed for Arrow's generator."""
    return random.Random(text).getrandbits(63)
