"""The columns of the history: other programs read them, so what is there stays."""

from __future__ import annotations

from dataclasses import fields
from math import inf

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prober.core.events import EVENT_TYPES
from prober.core.rules import Mode, Rules
from prober.sinks.history.arrow import schema_of, version_in
from prober.sinks.history.schema import (
    EVENT_FIELDS,
    EVENTS,
    FINDINGS,
    MESSAGES,
    RUNS,
    TABLES,
    VERSION,
    VERSION_KEY,
    check_version,
    decode_rules,
    encode_rules,
    folder_of,
    history_file_name,
    is_file_name,
)
from tests.unit.sinks.history.recording import event_of
from tests.unit.traces.test_trace import HISTORIES, RULES, TEXTS

# Adding a line is free. Changing or removing one breaks what others built, and needs a new version of the schema.
COLUMNS = """
events time timestamp[us, UTC], required
events t float64, required
events number int64, required
events run_id string, required
events process string, required
events target string, required
events environment string, required
events region string, required
events probe string, required
events vantage string, required
events topic string, required
events subscription string
events key string
events event string, required
events epoch string
events seq int64
events generation int64
events message_id string
events session string
events subscriber string
events delivery_attempt int64
events seconds float64
events defect string
events matches_filter bool
events publish_time float64
events invoked_t float64
events intended_t float64
events message_bytes int64
events settle_s float64
events drained bool
events publish_region string
events publish_time_ns int64
events max_outstanding_messages int64
events max_outstanding_bytes int64
events lost bool
events lagged_s float64
events since_t float64
runs time timestamp[us, UTC], required
runs run_id string, required
runs process string, required
runs target string, required
runs environment string, required
runs region string, required
runs probe string, required
runs vantage string, required
runs topic string, required
runs subscription string, required
runs verdict string
runs reason string
runs duration_s float64
runs internal_error bool
runs events int64
runs events_dropped int64
runs verified_events int64
runs finding_counts list<struct<kind: string, status: string, count: int64>>
runs counters map<string, int64>
runs checks list<struct<indicator: string, good: int64, bad: int64, undecided: int64>>
runs started_at timestamp[us, UTC], required
runs seed int64, required
runs clock_offset_s float64, required
runs rules string, required
runs messages int64
runs schema_version int64
runs stopped bool
findings time timestamp[us, UTC], required
findings t float64, required
findings run_id string, required
findings process string, required
findings target string, required
findings environment string, required
findings region string, required
findings probe string, required
findings vantage string, required
findings kind string, required
findings status string, required
findings subscription string, required
findings key string, required
findings after int64, required
findings witnesses list<int64>, required
findings facts string, required
findings doubt string, required
findings assumptions map<string, float64>, required
findings reasons list<string>, required
findings explanation string, required
messages run_id string, required
messages process string, required
messages target string, required
messages environment string, required
messages region string, required
messages probe string, required
messages vantage string, required
messages topic string, required
messages subscription string, required
messages key string, required
messages epoch string
messages seq int64
messages message_id string
messages own bool, required
messages bytes int64
messages attempts int64, required
messages confirmed int64, required
messages rejected int64, required
messages unknown int64, required
messages deliveries int64, required
messages nacks int64, required
messages subscriber_changes int64, required
messages intended_at timestamp[us, UTC], required
messages published_at timestamp[us, UTC]
messages confirmed_at timestamp[us, UTC]
messages received_at timestamp[us, UTC]
messages acked_at timestamp[us, UTC]
messages waited_until timestamp[us, UTC]
messages confirmed_lagged_us int64
messages received_lagged_us int64
messages outcome string, required
messages redeliveries list<struct<received_at: timestamp[us, UTC], due_at: timestamp[us, UTC], lagged_us: int64>>
"""


def plain(kind: pa.DataType) -> str:
    return str(kind).replace("tz=", "").replace("item: ", "").replace("double", "float64")


def test_the_columns_stay() -> None:
    listed = [
        f"{table.name} {column.name} {plain(column.type)}{', required' if column.required else ''}"
        for table in TABLES.values()
        for column in table.columns
    ]
    assert listed == COLUMNS.split("\n")[1:-1]
    assert VERSION == 1


def test_the_order_of_rows_and_the_folders_stay() -> None:
    assert EVENTS.sorted_by == ("subscription", "key", "run_id", "number")
    assert RUNS.sorted_by == ("time", "run_id")
    assert FINDINGS.sorted_by == ("subscription", "key", "run_id", "after")
    assert folder_of(EVENTS, "2026-01-02", 3) == "events/date=2026-01-02/hour=03"
    assert MESSAGES.sorted_by == ("subscription", "key", "intended_at")
    assert folder_of(RUNS, "2026-01-02", 3) == "runs/date=2026-01-02"
    assert folder_of(MESSAGES, "2026-01-02", 3) == "messages/date=2026-01-02"


def test_every_column_has_a_meaning_and_one_place() -> None:
    for table in TABLES.values():
        assert all(column.meaning for column in table.columns)
        assert len(set(table.column_names)) == len(table.columns)
        assert {table.time, *table.sorted_by} <= set(table.column_names)


def test_the_schema_of_a_file_carries_the_version_and_what_may_be_null() -> None:
    schema = schema_of(EVENTS)
    assert schema.metadata == {VERSION_KEY.encode(): b"1"}
    assert not schema.field("run_id").nullable
    assert schema.field("key").nullable
    assert schema.field("time").type == pa.timestamp("us", "UTC")


# --- events ------------------------------------------------------------------------------------------------------------------


def test_every_field_of_every_event_has_a_column() -> None:
    names = set(EVENTS.column_names)
    for name, event_type in EVENT_TYPES.items():
        assert list(EVENT_FIELDS[name]) == [field.name for field in fields(event_type)]
        assert set(EVENT_FIELDS[name].values()) <= names


@given(HISTORIES)
def test_a_row_gives_its_event_back(history: list[object]) -> None:
    names = {event_type: name for name, event_type in EVENT_TYPES.items()}
    for event in history:
        name = names[type(event)]  # type: ignore[index]
        row = dict.fromkeys(EVENTS.column_names) | {"event": name}
        row |= {column: getattr(event, field) for field, column in EVENT_FIELDS[name].items()}
        assert event_of(row) == event


# --- rules -------------------------------------------------------------------------------------------------------------------


@given(st.dictionaries(TEXTS, RULES))
def test_rules_are_read_as_they_were_written(rules: dict[str, Rules]) -> None:
    assert decode_rules(encode_rules(rules)) == rules


def test_no_bound_is_null() -> None:
    assert '"delivery_delay_max_s":null' in encode_rules({"s": Rules(delivery_delay_max_s=inf, mode=Mode.PULL)})


NO_RULES = ["[]", '{"s": 1}', '{"s": {}}', '{"s": {"mode": "streaming", "speed": 1}}', '{"s": {"mode": "sideways"}}', "{"]


@pytest.mark.parametrize("text", NO_RULES)
def test_what_are_no_rules_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not the rules of a run"):
        decode_rules(text)


# --- files -------------------------------------------------------------------------------------------------------------------


def test_only_files_of_a_history_have_the_names_of_one() -> None:
    for table in TABLES.values():
        assert is_file_name(history_file_name(table, "20260102t030405z-00ff", 17))
    others = ["part-0001.parquet", ".events-a-1.parquet.tmp", "events-a-1.parquet.tmp", "events-a.parquet", "eventsx-a-1.parquet"]
    assert not any(map(is_file_name, others))


@pytest.mark.parametrize("metadata", [None, {}, {b"ARROW:schema": b"x"}, {VERSION_KEY.encode(): b"one"}])
def test_a_file_without_a_version_is_none_of_a_history(metadata: dict[bytes, bytes] | None) -> None:
    with pytest.raises(ValueError, match="not a file of a probe history"):
        check_version(version_in(metadata))


def test_the_version_may_stand_in_what_spark_says_about_a_column() -> None:
    described = (
        b'{"type":"struct","fields":[{"name":"time","metadata":{"ordering_prober_schema_version":"2"}},{"name":"t","metadata":{}}]}'
    )
    with pytest.raises(ValueError, match="version 2"):
        check_version(version_in({b"org.apache.spark.sql.parquet.row.metadata": described}))
