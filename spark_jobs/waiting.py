"""How long messages waited: what a chunk of events says of that, and what is left of it where all that concerns a message meets.

A wait is *over* if the confirmation and an acknowledgement of the message are in the chunk, on one run and key, and not too far apart for
any objective. Of the others what the chunk says goes on in parcels. Where these meet each wait is known as a whole; most are over then as
well. Of those that took too long one *stands for* all that every question answers alike, the one that began first: such waits begin and end
in the same minutes, also when what is allowed is added.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from spark_jobs.hashes import Hashes, hashed_names, hashes, mixed
from spark_jobs.history import MINUTE_US
from spark_jobs.parcels import parcels, starts_of
from spark_jobs.scan import NEVER_US, Chunk, Flags, Ints, earliest, rows_of, times

WAIT: Final = "wait"

_NAMES: Final = ("run_id", "subscription", "key")


class Limit(NamedTuple):
    """How long a message of a run may wait, when the run ended, and all the times that are asked about, `limit_us` the least of them."""

    limit_us: int
    ended_us: int
    asked_us: tuple[int, ...]


@dataclass(frozen=True)
class WaitQuestion:
    """What is asked about waits: of runs by their ids, the `Limit`; of other runs nothing."""

    limits: Mapping[str, Limit]

    def each(self, chunk: Chunk, schema: pa.Schema) -> pa.RecordBatch:
        """A row of the part `WAIT` for each confirmation and acknowledgement."""
        confirmed, acked = self._rows(chunk)
        return _parts(_said(chunk, confirmed, acked), schema)

    def sent(self, chunk: Chunk, buckets: int, schema: pa.Schema) -> pa.RecordBatch:
        """Parcels of what says since when and until when messages waited whose wait is not over."""
        confirmed, acked = self._rows(chunk)
        over = _over(chunk, confirmed, acked, self._of_rows(chunk)[0]) if len(confirmed) else np.zeros(len(acked), np.bool_)
        said = _said(chunk, confirmed[~over[: len(confirmed)]], acked[~over[len(confirmed) :]])
        return sent(WAIT, said, _message_hashes(said), buckets, schema)

    def met(self, said: pa.Table, schema: pa.Schema) -> pa.RecordBatch:
        """The waits that were too long, from all that is said of their messages, as rows of the part `WAIT`."""
        message = _message_hashes(said)
        order = np.argsort(message)
        starts = starts_of(message[order])
        since_us, until_us = (
            np.minimum.reduceat(said[name].fill_null(NEVER_US).to_numpy()[order], starts) for name in ("since_us", "until_us")
        )
        one_each = said.take(pa.array(order[starts]))
        for name, time_us in (("since_us", since_us), ("until_us", until_us)):
            one_each = one_each.set_column(one_each.schema.get_field_index(name), name, times(time_us))
        return _parts(one_each.take(pa.array(self._standing(Chunk(one_each), since_us, until_us))), schema)

    def _standing(self, waits: Chunk, since_us: Ints, until_us: Ints) -> Ints:
        """Which of these waits were too long, and stand for all others that are like them."""
        limit_us, ended_us, asked_us = self._of_rows(waits)
        known = np.flatnonzero(since_us != NEVER_US)
        until_us = np.minimum(until_us, ended_us)[known]
        since_us, limit_us, ended_us, asked_us = since_us[known], limit_us[known], ended_us[known], asked_us[known]
        owner = mixed(hashed_names(waits, "run_id")[known], hashed_names(waits, "key")[known])
        said = [owner, until_us // MINUTE_US, until_us == ended_us]
        for number in range(asked_us.shape[1]):
            said += [(since_us + asked_us[:, number]) // MINUTE_US, until_us - since_us > asked_us[:, number]]
        late = np.flatnonzero(until_us - since_us > limit_us)
        alike = mixed(*said)[late]
        order = np.lexsort((since_us[late], alike))
        standing: Ints = known[late[order[starts_of(alike[order])]]]
        return standing

    def _rows(self, chunk: Chunk) -> tuple[Ints, Ints]:
        """The confirmations and acknowledgements that are asked about."""
        asked = np.array([name in self.limits for name in chunk.names("run_id").to_pylist()], np.bool_)[chunk.places("run_id")]
        confirmed, acked = (rows[asked[rows]] for rows in (chunk.where("published"), chunk.where("acked")))
        return confirmed, acked

    def _of_rows(self, chunk: Chunk) -> tuple[Ints, Ints, Ints]:
        """Of each row what may wait in its run, when that ended, and what is asked about, a column each; -1 if nothing is."""
        width = max((len(one.asked_us) for one in self.limits.values()), default=0)
        nothing = Limit(-1, -1, (-1,) * width)
        limits = [self.limits.get(name, nothing) for name in chunk.names("run_id").to_pylist()]
        place = chunk.places("run_id")
        asked_us = np.array([one.asked_us for one in limits], np.int64).reshape(len(limits), width)
        return np.array([one.limit_us for one in limits])[place], np.array([one.ended_us for one in limits])[place], asked_us[place]


def sent(part: str, said: pa.Table, belonging: Hashes, buckets: int, schema: pa.Schema) -> pa.RecordBatch:
    """Rows with parcels of a part."""
    rows = pa.table({name: _plain(said[name]) for name in said.column_names}).combine_chunks().to_batches()
    if not rows:
        return rows_of(schema, {}, 0)
    bucket, contents = parcels(rows[0], belonging, buckets)
    return rows_of(schema, {"part": pa.repeat(part, len(bucket)), "bucket": bucket, "parcel": contents}, len(bucket))


def _plain(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Without a dictionary: each parcel would hold the whole of it."""
    return values.cast(pa.string()) if pa.types.is_dictionary(values.type) else values


def _said(chunk: Chunk, confirmed: Ints, acked: Ints) -> pa.Table:
    rows = pa.array(np.concatenate((confirmed, acked)))
    columns: dict[str, Any] = {name: chunk.dictionary(name).take(rows) for name in _NAMES}
    columns["since_us"] = pa.concat_arrays([pa.array(chunk.time_us[confirmed]), pa.nulls(len(acked), pa.int64())])
    columns["until_us"] = pa.concat_arrays([pa.nulls(len(confirmed), pa.int64()), pa.array(chunk.time_us[acked])])
    return pa.table(columns | {"message_id": chunk.column("message_id").take(rows).cast(pa.string())})


def _parts(said: pa.Table, schema: pa.Schema) -> pa.RecordBatch:
    columns = {name: said[name].combine_chunks() for name in ("since_us", "until_us", "message_id")}
    names = {name: _plain(said[name]).combine_chunks() for name in _NAMES}
    return rows_of(schema, columns | names | {"part": pa.repeat(WAIT, said.num_rows)}, said.num_rows)


def _message_hashes(said: pa.Table) -> Hashes:
    """Whatever the subscription: there is only one in each run where waits are put together on executors."""
    names = Chunk(said)
    return mixed(hashed_names(names, "run_id"), hashed_names(names, "key"), hashes(names.column("message_id")))


def _over(chunk: Chunk, confirmed: Ints, acked: Ints, limit_us: Ints) -> Flags:
    """Of these rows, one after the other, whether they belong to a wait that is over and was not too long."""
    rows = np.concatenate((confirmed, acked))
    encoded = chunk.column("message_id").take(pa.array(rows)).dictionary_encode()
    message, count = encoded.indices.to_numpy(zero_copy_only=False), len(encoded.dictionary)
    of_confirmed, of_acked = message[: len(confirmed)], message[len(confirmed) :]
    owner = np.full(count, -1)
    owner[of_confirmed] = chunk.owners[confirmed]
    ambiguous = np.zeros(count, np.bool_)  # one id for messages of two keys
    ambiguous[of_confirmed[owner[of_confirmed] != chunk.owners[confirmed]]] = True
    own = owner[of_acked] == chunk.owners[acked]
    since_us = earliest(of_confirmed, chunk.time_us[confirmed], count)
    until_us = earliest(of_acked[own], chunk.time_us[acked[own]], count)
    allowed_us = np.zeros(count, np.int64)
    allowed_us[of_confirmed] = limit_us[confirmed]
    known = (since_us != NEVER_US) & (until_us != NEVER_US) & ~ambiguous
    over = known & (np.where(known, until_us - np.where(known, since_us, 0), 0) <= allowed_us)
    return np.concatenate((over[of_confirmed], over[of_acked] & own))
