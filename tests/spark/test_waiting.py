"""Messages and waits of which several files tell, put together on executors, against a count message by message. Without Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given, settings
from hypothesis import strategies as st

from prober.sinks.history.arrow import schema_of
from prober.sinks.history.schema import EVENTS
from prober.slo.indicators import Indicator
from spark_jobs.history import MINUTE_US
from spark_jobs.messages import FINISHED, MESSAGE_COLUMNS, UNFINISHED, WAIT_COLUMNS, Question, meeting, messages_of
from spark_jobs.scan import Chunk
from spark_jobs.waiting import WAIT, Limit, WaitQuestion

R = "r"
QUESTIONS = (Question(Indicator.END_TO_END_LATENCY, MINUTE_US),)
ASKED_US = (2 * MINUTE_US, 3 * MINUTE_US + 1)
ENDED_US = 30 * MINUTE_US
WAITING = WaitQuestion({R: Limit(ASKED_US[0], ENDED_US, ASKED_US)})

Row = dict[str, Any]


class Life(NamedTuple):
    """A message: when it is published, how long each step takes until the next, None for steps that never come, and whether twice."""

    key: str
    at_us: int
    confirmed_us: int | None
    received_us: int | None
    acked_us: int | None
    again: bool


LATER = st.none() | st.integers(0, 10 * MINUTE_US) | st.sampled_from((MINUTE_US, *ASKED_US))
LIVES = st.lists(
    st.builds(Life, st.sampled_from(("a", "b")), st.integers(0, 15 * MINUTE_US), LATER, LATER, LATER, st.booleans()), max_size=15
)


def events_of(lives: Sequence[Life]) -> list[Row]:
    rows: list[Row] = []
    for seq, one in enumerate(lives, 1):
        about: Row = {"run_id": R, "epoch": R, "key": one.key, "seq": seq, "generation": 0, "message_id": f"m{seq}"}
        rows.append(about | {"event": "publish", "time": one.at_us})
        if one.again:
            rows.append(about | {"event": "publish_unknown", "time": one.at_us})
            rows.append(about | {"event": "publish", "time": one.at_us, "generation": 1})
        steps = (("published", one.confirmed_us), ("delivered", one.received_us), ("acked", one.acked_us))
        rows += [about | {"event": event, "time": one.at_us + later} for event, later in steps if later is not None]
    return [dict.fromkeys(EVENTS.column_names) | row for row in sorted(rows, key=lambda row: row["time"])]


def told(rows: Sequence[Row], cuts: Iterable[int], buckets: int) -> list[Row]:
    """What is said where everything has met, if files end at these rows."""
    bounds = [0, *sorted({cut % (len(rows) + 1) for cut in cuts}), len(rows)]
    reduction = messages_of(QUESTIONS, WAITING, buckets, several=False)
    files = [pa.Table.from_pylist(list(rows[low:high]), schema_of(EVENTS)) for low, high in pairwise(bounds)]
    chunks = [Chunk(file.select((*MESSAGE_COLUMNS, *WAIT_COLUMNS)).sort_by("key")) for file in files]
    sent = pa.Table.from_batches([batch for chunk in chunks for batch in reduction(chunk)])
    met = [meeting(QUESTIONS, WAITING, buckets)(sent.filter(pc.equal(sent["bucket"], bucket))) for bucket in range(buckets)]
    found: list[Row] = pa.concat_tables(met).to_pylist()
    return found


def late(waits: Iterable[tuple[str, int, int]]) -> dict[object, int]:
    """What is asked of waits: which began to be too long when and ended when, and when the first of those was confirmed."""
    first: dict[object, int] = {}
    for key, since_us, until_us in waits:
        for asked_us in ASKED_US:
            if until_us - since_us > asked_us:
                name = key, asked_us, (since_us + asked_us) // MINUTE_US, until_us // MINUTE_US, until_us == ENDED_US
                first[name] = min(since_us, first.get(name, since_us))
    return first


@settings(max_examples=60, deadline=None)
@given(LIVES.filter(bool), st.lists(st.integers(0, 100), max_size=4), st.integers(1, 3))
def test_however_files_divide_messages_the_same_is_said_of_them(lives: list[Life], cuts: list[int], buckets: int) -> None:
    found = told(events_of(lives), cuts, buckets)
    whole = [one for one in lives if not one.again and one.confirmed_us is not None and one.received_us is not None]
    finished: Counter[tuple[int, str]] = Counter()
    for row in found:
        if row["part"] == FINISHED:
            finished.update({(row["minute"], name): row[f"{name}_0"] for name in ("good", "bad") if row[f"{name}_0"]})
    in_time = {True: "good", False: "bad"}
    assert finished == Counter((one.at_us // MINUTE_US, in_time[(one.received_us or 0) <= MINUTE_US]) for one in whole)
    left = {row["seq"] for row in found if row["part"] == UNFINISHED}
    assert left == {seq for seq, one in enumerate(lives, 1) if one not in whole}


@settings(max_examples=60, deadline=None)
@given(LIVES.filter(bool), st.lists(st.integers(0, 100), max_size=4), st.integers(1, 3))
def test_one_wait_stands_for_all_that_questions_answer_alike(lives: list[Life], cuts: list[int], buckets: int) -> None:
    found = [row for row in told(events_of(lives), cuts, buckets) if row["part"] == WAIT]
    waits = [
        (one.key, one.at_us + one.confirmed_us, ENDED_US if one.acked_us is None else one.at_us + one.acked_us)
        for one in lives
        if one.confirmed_us is not None
    ]
    said = [(row["key"], row["since_us"], ENDED_US if row["until_us"] is None else row["until_us"]) for row in found]
    assert late(said) == late(waits)
    assert len(said) <= len([None for _, since_us, until_us in waits if until_us - since_us > ASKED_US[0]])
