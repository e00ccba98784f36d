from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from prober.errors import ConfigError
from prober.exports.message import ExportError, MessageFields, field_path

ROW = {
    "subscription_name": "projects/p/subscriptions/s",
    "message_id": "7",
    "publish_time": datetime(2026, 11, 20, 8, tzinfo=UTC),
    "attributes": {"ordering_key": "customer-1", "n": "12"},
    "data": b'{"order": {"step": 3}, "customer": "c"}',
}


def test_as_pubsub_writes_it() -> None:
    message = MessageFields(number=field_path("attribute:n")).message(ROW, "f.avro", 4)
    assert message == ("f.avro", 4, "projects/p/subscriptions/s", "customer-1", "7", 1_795_161_600.0, 12)


def test_attributes_of_a_table_are_text() -> None:
    row = {**ROW, "attributes": json.dumps(ROW["attributes"])}
    assert MessageFields().message(row, "t", 1).key == "customer-1"


@pytest.mark.parametrize("written", [1_795_161_600_000_000, "2026-11-20T08:00:00Z", datetime(2026, 11, 20, 8)])
def test_publish_times(written: object) -> None:
    assert MessageFields().message({"publish_time": written}, "t", 1).published_s == 1_795_161_600.0


def test_key_and_number_in_the_data() -> None:
    message = MessageFields(field_path("json:customer"), field_path("json:order.step")).message(ROW, "f", 1)
    assert (message.key, message.number) == ("c", 3)


def test_columns_of_a_schema() -> None:
    assert field_path("column:order.step").find({"order": {"step": 5}}) == 5


def test_a_row_may_have_nothing() -> None:
    assert MessageFields(number=field_path("json:n")).message({"data": b"no JSON"}, "f", 1) == ("f", 1, "", "", "", None, None)


@pytest.mark.parametrize("number", ["x", "1.5", "", "9" * 31, "²"])
def test_a_number_that_is_none(number: str) -> None:
    with pytest.raises(ExportError, match=r"f, row 3: .* is not a whole number"):
        MessageFields(number=field_path("attribute:n")).message({"attributes": {"n": number}}, "f", 3)


@pytest.mark.parametrize("text", ["n", "attribute:", "field:n"])
def test_no_field(text: str) -> None:
    with pytest.raises(ConfigError, match="write attribute:NAME"):
        field_path(text)
