from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from prober.errors import ConfigError
from prober.exports.sources import ExportError, MessageFields, field_path, places, rows
from tests.exports import write_avro


def names(*sources: str | Path) -> list[str]:
    return [Path(place.name).name for place in places(map(str, sources))]


def test_files_patterns_and_folders(tmp_path: Path) -> None:
    for name in ("a.avro", "b.avro", "c.txt"):
        (tmp_path / name).touch()
    assert names(tmp_path) == ["a.avro", "b.avro", "c.txt"]
    assert names(tmp_path / "*.avro", tmp_path / "a.avro") == ["a.avro", "b.avro"]


def test_a_name_may_look_like_a_pattern(tmp_path: Path) -> None:
    (tmp_path / "2026[1].avro").touch()
    assert names(tmp_path / "2026[1].avro") == ["2026[1].avro"]


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="there is no such file"):
        places([str(tmp_path / "*.avro")])


def test_avro_whatever_the_file_is_called(tmp_path: Path) -> None:
    file = write_avro(tmp_path / "x", ["1", "2"])
    [place] = places([str(file)])
    assert [row["attributes"]["n"] for row in rows(place)] == ["1", "2"]


def test_text_has_a_message_a_line(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_bytes(b"one\ntwo\r\n")
    [place] = places([str(file)])
    assert [row["data"] for row in rows(place)] == [b"one", b"two"]


@pytest.mark.parametrize("kept", [30, 200])
def test_half_a_file_is_an_error(tmp_path: Path, kept: int) -> None:
    file = write_avro(tmp_path / "x", list(map(str, range(100))))
    file.write_bytes(file.read_bytes()[:kept])
    [place] = places([str(file)])
    with pytest.raises(ExportError, match="is not a whole Avro file"):
        list(rows(place))


def test_a_file_that_cannot_be_opened(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.touch()
    [place] = places([str(file)])
    file.unlink()
    with pytest.raises(ExportError, match="cannot be read"):
        list(rows(place))


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
