"""`ordering-prober export`, on files and through Google's client libraries against stand-ins."""

from __future__ import annotations

import json
from pathlib import Path

import google.auth
import pytest
from google.auth.credentials import AnonymousCredentials

from prober.cli import main
from tests.commands import Output
from tests.exports import big_query, cloud_storage, exported, write_avro

NUMBERED = ("--number", "attribute:n")


def export(*arguments: str | Path) -> int:
    return main(["export", *map(str, arguments)])


def test_avro_in_order(tmp_path: Path, capsys: Output) -> None:
    write_avro(tmp_path / "a.avro", ["1", "2", "3"])
    assert export(tmp_path, *NUMBERED) == 0
    assert f"{tmp_path}: PASS (3 messages on 1 key)" in capsys.readouterr().out


def test_avro_out_of_order(tmp_path: Path, capsys: Output) -> None:
    file = write_avro(tmp_path / "a.avro", ["1", "3", "2", "4"])
    assert export(file, *NUMBERED) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "FAIL (4 messages on 1 key; 1 violation)" in out
    assert f"{file} has message 3 in row 2 and message 2 only in row 3." in out


def test_as_json(tmp_path: Path, capsys: Output) -> None:
    file = write_avro(tmp_path / "a.avro", ["1", "3", "2", "4"])
    assert export(file, *NUMBERED, "--format", "json") == 1
    document = json.loads(capsys.readouterr().out)
    [finding] = document["findings"]
    assert (document["verdict"], finding["kind"], finding["status"]) == ("FAIL", "ORDER_INVERSION", "violation")
    assert finding["rows"] == [
        {"source": str(file), "row": 2, "message_id": "k-3"},
        {"source": str(file), "row": 3, "message_id": "k-2"},
    ]
    assert document["counters"]["messages"] == 4


def test_text_needs_to_know_where_the_key_is(tmp_path: Path, capsys: Output) -> None:
    lines = tmp_path / "a.txt"
    lines.write_bytes(b"".join(exported(number)["data"] + b"\n" for number in "1324"))
    in_data = ("--key", "json:customer", "--number", "json:n")
    assert export(lines) == 3
    assert "no message has an ordering key" in capsys.readouterr().out
    assert export(lines, *in_data) == 3
    assert export(lines, *in_data, "--numbers-follow-publishing") == 1


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["missing.avro"], 2, "there is no such file"),
        (["bigquery:p.d.t", "a.avro"], 2, "give one table and nothing else"),
        (["a.avro", "--since", "2026-11-20"], 2, "are for tables"),
        (["a.avro", "--number", "n"], 2, "names no field"),
        (["bigquery:t"], 2, "is no table"),
    ],
)
def test_wrong_usage_is_one_line(arguments: list[str], code: int, said: str, capsys: Output) -> None:
    assert export(*arguments) == code
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1


def test_no_more_than_asked_for_is_read(tmp_path: Path, capsys: Output) -> None:
    file = write_avro(tmp_path / "a.avro", ["1", "2", "3", "4"])
    assert export(file, *NUMBERED, "--messages-max", "3") == 3
    assert "there is more than was read" in capsys.readouterr().out


# --- through Google's libraries ----------------------------------------------------------------------------------------------


@pytest.fixture
def asked() -> list[str]:
    return []


def test_a_bucket(tmp_path: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    (tmp_path / "b" / "2026").mkdir(parents=True)
    write_avro(tmp_path / "b" / "2026" / "first.avro", ["1", "2"])
    write_avro(tmp_path / "b" / "2026" / "second.avro", ["3", "5", "4", "6"])
    write_avro(tmp_path / "b" / "other.avro", ["9"])
    with cloud_storage(tmp_path, asked) as address:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", address)
        assert export("gs://b/2026/", *NUMBERED) == 1
        assert "gs://b/2026/: FAIL (6 messages" in capsys.readouterr().out
        assert export("gs://b/2026/f*.avro", *NUMBERED) == 0
    assert all(request.startswith("GET ") for request in asked)


def test_a_bucket_that_we_may_not_read(tmp_path: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    with cloud_storage(tmp_path, asked, refused=True) as address:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", address)
        assert export("gs://b/2026/") == 2
    err = capsys.readouterr().err
    assert "no permission to read it" in err
    assert "roles/storage.objectViewer" in err
    assert err.count("\n") == 1


def _anonymous(*_: object, **__: object) -> tuple[AnonymousCredentials, str]:
    return AnonymousCredentials(), "p"  # type: ignore[no-untyped-call]


@pytest.mark.parametrize(("numbers", "code"), [("312", 0), ("31", 3)])
def test_a_table(numbers: str, code: int, asked: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    monkeypatch.setattr(google.auth, "default", _anonymous)
    with big_query([exported(number) for number in numbers], asked) as address:
        monkeypatch.setenv("BIGQUERY_EMULATOR_HOST", address)
        assert export("bigquery:p.d.t", *NUMBERED, "--since", "2026-11-20T08:00:00Z") == code
    assert "A table has no order" in capsys.readouterr().out
    [query] = [text for text in asked if text.startswith("SELECT")]
    assert query == (
        "SELECT `subscription_name`, `message_id`, `publish_time`, `attributes` FROM `p.d.t` WHERE publish_time >= @since"
    )


def test_a_table_that_we_may_not_read(asked: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    monkeypatch.setattr(google.auth, "default", _anonymous)
    with big_query([], asked, refused=True) as address:
        monkeypatch.setenv("BIGQUERY_EMULATOR_HOST", address)
        assert export("bigquery:p.d.t") == 2
    assert "roles/bigquery.dataViewer and roles/bigquery.jobUser" in capsys.readouterr().err
