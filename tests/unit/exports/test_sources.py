from __future__ import annotations

from pathlib import Path

import pytest

from prober.exports.message import ExportError
from prober.exports.sources import places, rows
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
