"""Trace files: what is written is read again, and what is wrong is refused with file and line."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from io import BytesIO
from math import inf, nan
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prober.core import events
from prober.core.events import EVENT_TYPES, Closed, Delivered, Event, Opened, PublishInvoked
from prober.core.rules import Mode, Rules
from prober.traces.header import RULE_READERS, Expectation, TraceHeader
from prober.traces.trace import LINE_BYTES_MAX, TRACE_IN_BUNDLE, TraceError, read_trace, write_trace

HEADER: dict[str, Any] = {
    "format": "ordering-trace",
    "version": 1,
    "subscription": "s",
    "key": "k",
    "mode": "streaming",
    "rules": {},
}
PUBLISH = {"t": 0, "event": "publish", "epoch": "e", "seq": 1, "generation": 0}
DELIVERED = {"t": 1, "event": "delivered", "session": "A", "epoch": "e", "seq": 1, "message_id": "m"}


def line(row: object) -> bytes:
    return json.dumps(row).encode() + b"\n"


def trace(*rows: object, header: object = HEADER) -> bytes:
    return b"".join(map(line, (header, *rows)))


def read(content: bytes) -> list[Event]:
    return list(read_trace(BytesIO(content), "f.jsonl"))


def error(content: bytes) -> str:
    with pytest.raises(TraceError) as caught:
        read(content)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# ---------------------------------------------------------------------------------------------------------------- round trips

NUMBERS = st.floats(min_value=0, max_value=1e9)
COUNTS = st.integers(min_value=0, max_value=2**53)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "t": st.just(0.0),
    "seq": st.integers(min_value=1, max_value=2**53),
    "generation": COUNTS,
    "delivery_attempt": COUNTS,
    "seconds": NUMBERS,
    "settle_s": NUMBERS,
    **dict.fromkeys(("publish_time", "invoked_t", "intended_t", "since_t"), st.none() | NUMBERS),
    "data_size": st.none() | st.integers(min_value=0, max_value=2**63 - 1),
    "max_outstanding_messages": st.none() | COUNTS,
    "max_outstanding_bytes": st.none() | COUNTS,
    "lost": st.booleans(),
    "size": COUNTS,
    "defect": st.none() | TEXTS,
    "matches_filter": st.booleans(),
    "drained": st.booleans(),
}


OWN_FIELDS: dict[type[Event], dict[str, st.SearchStrategy[Any]]] = {
    Delivered: {"publish_time": st.none() | st.integers(min_value=0, max_value=2**63 - 1)},
}


def built(event_type: type[Event]) -> st.SearchStrategy[Event]:
    fields = FIELDS | OWN_FIELDS.get(event_type, {})
    names = event_type.__dataclass_fields__
    return st.fixed_dictionaries({name: fields.get(name, TEXTS) for name in names}).map(lambda values: event_type(**values))


HISTORIES = st.lists(st.tuples(NUMBERS, st.one_of(*map(built, EVENT_TYPES.values())))).map(
    lambda drawn: [replace(event, t=t) for (_, event), t in zip(drawn, sorted(t for t, _ in drawn), strict=True)]
)
RULES = st.builds(
    Rules,
    mode=st.sampled_from(Mode),
    delivery_delay_max_s=NUMBERS | st.just(inf),
    unacked_deadline_s=NUMBERS | st.just(inf),
    idle_after_s=NUMBERS | st.just(inf),
    window=st.integers(min_value=1, max_value=2**53),
    dead_letter_max_attempts=COUNTS,
    message_retention_s=NUMBERS | st.just(inf),
    retry_backoff_max_s=NUMBERS | st.just(inf),
    exactly_once=st.booleans(),
    attempts_observed=st.booleans(),
)
HEADERS = st.builds(
    TraceHeader,
    subscription=TEXTS,
    key=TEXTS,
    rules=RULES,
    name=TEXTS,
    expect=st.none() | st.lists(st.builds(Expectation, TEXTS, TEXTS)).map(tuple),
    extra=st.dictionaries(st.just("run") | st.just("made_by"), TEXTS | st.integers(0, 9) | st.lists(TEXTS)),
)


@given(HEADERS, HISTORIES)
def test_what_is_written_is_read_again(header: TraceHeader, history: list[Event]) -> None:
    stream = BytesIO()
    assert write_trace(stream, header, history) == len(history)
    stream.seek(0)
    again = read_trace(stream)
    assert again.header == header
    assert list(again) == history


def test_every_event_of_the_vocabulary_can_stand_in_a_file() -> None:
    declared = {value for value in vars(events).values() if isinstance(value, type) and hasattr(value, "__dataclass_fields__")}
    assert set(EVENT_TYPES.values()) == declared


def test_a_written_file_leaves_out_what_the_header_says(tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    write_trace(path, TraceHeader("s", "k"), [PublishInvoked(0.5, "k", "e", 1), PublishInvoked(1.5, "other", "e", 1)])
    _, first, second = map(json.loads, path.read_text().splitlines())
    assert first == {"t": 0.5, "event": "publish", "epoch": "e", "seq": 1, "generation": 0}
    assert second == {"t": 1.5, "event": "publish", "key": "other", "epoch": "e", "seq": 1, "generation": 0}


@pytest.mark.parametrize("publish_time", [1_767_323_045_123_456_789, 1767323045.25, "2026-01-02T03:04:05.123456789Z", None])
def test_when_a_delivered_message_was_stored_stands_in_a_file_as_the_recorder_wrote_it(publish_time: object) -> None:
    (event,) = read(trace(DELIVERED | {"publish_time": publish_time}))
    assert isinstance(event, Delivered)
    assert event.publish_time == publish_time
    assert type(event.publish_time) is type(publish_time)


def test_what_goes_without_saying_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    quiet: list[Event] = [Opened(0.0, "s", "A", "a"), PublishInvoked(0.5, "k", "e", 1), Closed(1.0, "s", "A")]
    telling: list[Event] = [
        Opened(2.0, "s", "B", "b", max_outstanding_messages=5, max_outstanding_bytes=6),
        PublishInvoked(2.5, "k", "e", 2, region="europe-west1"),
        Closed(3.0, "s", "B", lost=True),
    ]
    write_trace(path, TraceHeader("s", "k"), [*quiet, *telling])
    new = {"max_outstanding_messages": 5, "max_outstanding_bytes": 6, "region": "europe-west1", "lost": True}
    rows = list(map(json.loads, path.read_text().splitlines()))[1:]
    assert all(not new.keys() & row.keys() for row in rows[:3])
    assert {name: value for row in rows[3:] for name, value in row.items() if name in new} == new
    assert read(path.read_bytes()) == [*quiet, *telling]


@pytest.mark.parametrize("t", [nan, inf])
def test_a_time_that_json_cannot_hold_is_not_written(t: float) -> None:
    with pytest.raises(ValueError, match='"publish" cannot be written: t is'):
        write_trace(BytesIO(), TraceHeader("s", "k"), [PublishInvoked(t, "k", "e", 1)])


def test_time_that_runs_backwards_is_not_written() -> None:
    backwards = [PublishInvoked(2.0, "k", "e", 1), PublishInvoked(1.0, "k", "e", 2)]
    with pytest.raises(ValueError, match=r"backwards at event 2: 2\.0, then 1\.0"):
        write_trace(BytesIO(), TraceHeader("s", "k"), backwards)


# -------------------------------------------------------------------------------------------------------------------- reading


def test_an_event_takes_subscription_and_key_from_the_header() -> None:
    elsewhere = DELIVERED | {"subscription": "s2", "key": "k2"}
    assert read(trace(DELIVERED, elsewhere)) == [
        Delivered(1.0, "s", "k", "A", "e", 1, "m"),
        Delivered(1.0, "s2", "k2", "A", "e", 1, "m"),
    ]


def test_unknown_fields_of_an_event_are_ignored() -> None:
    assert read(trace(PUBLISH | {"subscription": "any", "colour": [1, {}]})) == [PublishInvoked(0.0, "k", "e", 1)]


def test_a_delivery_may_claim_any_number() -> None:
    (event,) = read(trace(DELIVERED | {"seq": -7}))
    assert isinstance(event, Delivered)
    assert event.seq == -7


def test_the_header_is_read() -> None:
    rules = {"delivery_delay_max_s": None, "window": 7, "exactly_once": True, "ack_deadline_s": 10}
    header = HEADER | {"mode": "pull", "rules": rules, "name": "n", "expect": [{"kind": "STUCK", "status": "liveness"}], "run": 5}
    expected = Rules(Mode.PULL, delivery_delay_max_s=inf, window=7, exactly_once=True, ack_deadline_s=10.0)
    read_header = read_trace(BytesIO(trace(header=header))).header
    assert read_header == TraceHeader("s", "k", expected, "n", (Expectation("STUCK", "liveness"),), {"run": 5})


def test_no_bound_on_a_count() -> None:
    rules = read_trace(BytesIO(trace(header=HEADER | {"rules": {"window": None, "dead_letter_max_attempts": None}}))).header.rules
    assert rules.window > 10**9
    assert rules.dead_letter_max_attempts == 0


def test_the_last_line_needs_no_line_end() -> None:
    assert len(read(trace(PUBLISH).rstrip())) == 1


def test_a_compressed_file_is_read_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl.gz"
    path.write_bytes(gzip.compress(trace(PUBLISH)))
    with read_trace(path) as opened:
        assert len(list(opened)) == 1
    path.write_bytes(gzip.compress(trace(PUBLISH))[:-12])
    with read_trace(path) as opened, pytest.raises(TraceError, match=r"f\.jsonl\.gz:\d: cannot be read any further: "):
        list(opened)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("other.txt", r"no trace\.jsonl in it: the bundle of a finding without evidence"),
        ("", r"not a support bundle .*download it again"),
    ],
)
def test_an_archive_that_is_no_bundle_is_refused(tmp_path: Path, name: str, said: str) -> None:
    path = tmp_path / "f.zip"
    path.write_bytes(trace(PUBLISH))
    if name:
        with ZipFile(path, "w") as archive:
            archive.writestr(name, trace(PUBLISH))
    with pytest.raises(TraceError, match=rf"f\.zip: {said}"):
        read_trace(path)


def test_a_bundle_that_is_broken_inside_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "f.zip"
    with ZipFile(path, "w") as archive:
        archive.writestr(TRACE_IN_BUNDLE, trace(PUBLISH))
    path.write_bytes(path.read_bytes().replace(b'"k"', b'"j"', 1))
    with pytest.raises(TraceError, match=r"f\.zip:1: cannot be read any further: Bad CRC-32"):
        read_trace(path)


def test_the_events_before_a_bad_line_are_given_out() -> None:
    seen: list[Event] = []
    with pytest.raises(TraceError) as caught:
        seen.extend(iter(read_trace(BytesIO(trace(PUBLISH, DELIVERED, {})), "f.jsonl")))
    assert caught.value.line == 4
    assert len(seen) == 2


# ------------------------------------------------------------------------------------------------------------------- refusing


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "f.jsonl:1: the file is empty; the first line must be a header"),
        (b"\n", "f.jsonl:1: an empty line; remove it (every line is one JSON object)"),
        (b"[]\n", 'f.jsonl:1: not a trace file: line 1 must be a header with "format": "ordering-trace"'),
        (b"{}\n", 'f.jsonl:1: not a trace file: line 1 must be a header with "format": "ordering-trace"'),
        (b'{"format"', "f.jsonl:1: not JSON at column 10: unexpected end of data; the last line may have been cut short"),
    ],
)
def test_what_is_no_trace_is_refused(content: bytes, expected: str) -> None:
    assert error(content) == expected


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"version": 2}, "version 2 of the trace format is unknown; this program reads version 1"),
        ({"version": True}, "version true of the trace format is unknown; this program reads version 1"),
        ({"mode": "fax"}, 'unknown mode "fax"; known are streaming, pull, push'),
        ({"mode": None}, 'the header needs a string in "mode", not null'),
        ({"key": 3}, 'the header needs a string in "key", not 3'),
        ({"name": 3}, 'the header needs a string in "name", not 3'),
        ({"rules": []}, 'the header needs an object in "rules" ({} for the defaults)'),
        ({"rules": {"delta": 1}}, f'unknown rule "delta"; known are {", ".join(RULE_READERS)}'),
        ({"rules": {"mode": "pull"}}, f'unknown rule "mode"; known are {", ".join(RULE_READERS)}'),
        (
            {"rules": {"ack_deadline_s": -1}},
            'the rule "ack_deadline_s" is -1, and a time span is at least 0 seconds (null for no bound)',
        ),
        (
            {"rules": {"ack_deadline_s": "60"}},
            'the rule "ack_deadline_s" must be a number of seconds, or null for no bound, not "60"',
        ),
        (
            {"rules": {"ack_lag_max_s": True}},
            'the rule "ack_lag_max_s" must be a number of seconds, or null for no bound, not true',
        ),
        ({"rules": {"window": 0}}, 'the rule "window" is 0, and must be at least 1 (null for no bound)'),
        ({"rules": {"window": 1.5}}, 'the rule "window" must be a whole number, or null for no bound, not 1.5'),
        (
            {"rules": {"dead_letter_max_attempts": -1}},
            'the rule "dead_letter_max_attempts" is -1, and must be at least 0 (null for no bound)',
        ),
        ({"rules": {"exactly_once": 1}}, 'the rule "exactly_once" must be true or false, not 1'),
        ({"expect": {}}, 'the header needs a list in "expect", not {}'),
        ({"expect": [{"kind": "STUCK"}]}, '"expect" lists objects with "kind" and "status", not {"kind":"STUCK"}'),
    ],
)
def test_a_bad_header_is_refused(change: dict[str, Any], expected: str) -> None:
    assert error(trace(header=HEADER | change)) == f"f.jsonl:1: {expected}"


@pytest.mark.parametrize("name", ["subscription", "key", "mode", "rules"])
def test_a_header_without_a_field_is_refused(name: str) -> None:
    incomplete = {field: value for field, value in HEADER.items() if field != name}
    assert error(trace(header=incomplete)).startswith(f'f.jsonl:1: the header needs the field "{name}"')


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (b'{"t": 1,}\n', "not JSON at column 8: "),
        (b'{"t": 1}{"t": 2}\n', "not JSON at column 9: "),
        (b'{"t": NaN, "event": "interrupted"}\n', "not JSON at column 7: "),
        (b'{"t": Infinity, "event": "interrupted"}\n', "not JSON at column 7: "),
        (b'{"t": 1e999, "event": "interrupted"}\n', "not JSON at column 7: "),
        (b'{"t": 1, "event": "\xff"}\n', "not UTF-8 at byte 20 of the line; write the file as UTF-8"),
        (b"\n", "an empty line; remove it"),
        (b'{"t": 1, "ev', "not JSON at column 13: unexpected end of data; the last line may have been cut short"),
        (b"[" * 5000 + b"\n", "not JSON at column "),
        (b" " * (LINE_BYTES_MAX + 1), "the line is longer than 1,048,576 bytes; is this a trace file?"),
    ],
)
def test_a_line_that_is_not_json_is_refused(row: bytes, expected: str) -> None:
    assert error(trace(PUBLISH) + row).startswith(f"f.jsonl:3: {expected}")


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ([], "every line is one JSON object, not []"),
        ("publish", 'every line is one JSON object, not "publish"'),
        ({"t": 1}, 'an event needs its name, a string in the field "event"'),
        ({"t": 1, "event": ["acked"]}, 'an event needs its name, a string in the field "event"'),
        ({"t": 1, "event": "eaten"}, f'unknown event "eaten"; known are {", ".join(EVENT_TYPES)}'),
        (DELIVERED | {"seq": "1"}, '"delivered" needs a whole number in "seq", not "1"'),
        (DELIVERED | {"seq": 1.0}, '"delivered" needs a whole number in "seq", not 1.0'),
        (DELIVERED | {"seq": True}, '"delivered" needs a whole number in "seq", not true'),
        (DELIVERED | {"seq": 10**30}, '"delivered" needs a whole number in "seq", not 1e+30; whole numbers have 64 bits'),
        (DELIVERED | {"t": None}, '"delivered" needs a number in "t", not null'),
        (DELIVERED | {"t": "1"}, '"delivered" needs a number in "t", not "1"'),
        (DELIVERED | {"message_id": 7}, '"delivered" needs a string in "message_id", not 7'),
        (DELIVERED | {"key": None}, '"delivered" needs a string in "key", not null'),
        (DELIVERED | {"defect": 1}, '"delivered" needs a string or null in "defect", not 1'),
        (DELIVERED | {"matches_filter": None}, '"delivered" needs true or false in "matches_filter", not null'),
        (DELIVERED | {"session": {"a": "b" * 50}}, f'"delivered" needs a string in "session", not {{"a":"{"b" * 31}...'),
        (PUBLISH | {"seq": 0}, '"publish" has 0 in "seq", which must be at least 1'),
        (PUBLISH | {"generation": -1}, '"publish" has -1 in "generation", which must be at least 0'),
        ({"t": 1, "event": "ended", "drained": 1}, '"ended" needs true or false in "drained", not 1'),
        ({"t": 1, "event": "sought", "settle_s": -1}, '"sought" has -1.0 in "settle_s", which must be at least 0'),
        ({"t": -1, "event": "interrupted"}, "time runs backwards, from 0.0 to -1.0; write events in recorder order"),
    ],
)
def test_a_bad_event_is_refused(row: object, expected: str) -> None:
    assert error(trace(PUBLISH, row)) == f"f.jsonl:3: {expected}"


@pytest.mark.parametrize("name", EVENT_TYPES)
def test_an_event_without_a_field_is_refused(name: str) -> None:
    complete: dict[str, Any] = {"t": 0, "epoch": "e", "seq": 1, "message_id": "m", "session": "A", "subscriber": "A"}
    complete |= {"event": name, "seconds": 1, "settle_s": 1, "drained": True}
    fields = EVENT_TYPES[name].__dataclass_fields__
    assert len(read(trace(complete))) == 1
    for field in complete.keys() & fields.keys():
        incomplete = {given: value for given, value in complete.items() if given != field}
        assert error(trace(incomplete)) == f'f.jsonl:2: "{name}" needs the field "{field}"'


def test_a_file_that_cannot_be_opened_is_one_clear_line(tmp_path: Path) -> None:
    path = tmp_path / "none.jsonl"
    with pytest.raises(TraceError) as caught:
        read_trace(path)
    assert str(caught.value) == f"{path}: cannot be opened: No such file or directory; check the path and its permissions"


def test_an_unreadable_stream_is_one_clear_line() -> None:
    class Torn(BytesIO):
        def read1(self, size: int | None = -1, /) -> bytes:
            raise OSError("the disk is gone")

    with pytest.raises(TraceError, match="f:1: cannot be read any further: the disk is gone; copy the file again"):
        read_trace(Torn(), "f")
