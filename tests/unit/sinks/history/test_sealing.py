"""Files of the history as a disk may spoil them: whatever byte it is, nobody is accused of what it changes."""

from __future__ import annotations

import random
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from prober.core.verdict import Verdict
from prober.sinks.history.arrow import is_damaged, sealed
from prober.sinks.history.reader import HistoryReader
from prober.sinks.history.reverify import HistorySelection, reverify
from prober.sinks.history.store import HistoryError
from tests.notation import history
from tests.unit.sinks.history.recording import Recorder

BYTES_TRIED = 150


def verdict(location: Path) -> Verdict | None:
    """The verdict of the only run; None if the history cannot be read."""
    try:
        (verified,) = reverify(HistoryReader(str(location), skip_unreadable=True), HistorySelection())
    except HistoryError:
        return None
    return verified.verification.verdict


def damaged(content: bytes) -> bool:
    return is_damaged(pa.BufferReader(content))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The file of the events of one run in which everything is right."""
    recorder = Recorder(tmp_path)
    recorder.record(history("P1,2,3 A<1,2,3@1 A ack 1,2,3@1.5 end @500"))
    recorder.save()
    recorder.kill()
    (path,) = tmp_path.glob("events/*/*/*.parquet")
    return path


def test_no_byte_that_a_disk_spoils_makes_a_finding(path: Path, tmp_path: Path) -> None:
    content = path.read_bytes()
    assert verdict(tmp_path) is Verdict.PASS
    rng = random.Random(7)
    name = content.rindex(b"message_id")
    places = [name, *range(len(content) - 8, len(content)), *(rng.randrange(len(content)) for _ in range(BYTES_TRIED))]
    for place in places:
        path.write_bytes(content[:place] + bytes([content[place] ^ 1 << rng.randrange(8)]) + content[place + 1 :])
        assert verdict(tmp_path) is not Verdict.FAIL, place


def test_every_byte_is_sealed_but_those_that_find_the_seal(path: Path) -> None:
    content = path.read_bytes()
    assert not damaged(content)
    seal = content.rindex(b"OKP-SEAL")
    unnoticed = {
        place for place in range(len(content)) if not damaged(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
    }
    assert unnoticed <= {*range(seal, seal + 8), *range(len(content) - 8, len(content) - 4)}


@pytest.mark.parametrize("content", [b"", b"PAR1", b"\xff" * 8, b"\x00" * 100, b"\xff" * 100])
def test_what_has_no_seal_is_not_said_to_be_damaged(content: bytes) -> None:
    assert not damaged(content)


def test_other_readers_do_not_notice_the_seal(tmp_path: Path) -> None:
    rows, sink = pa.table({"n": list(range(1000))}), pa.BufferOutputStream()
    pq.write_table(rows, sink, write_page_index=True, write_page_checksum=True)
    path = tmp_path / "sealed.parquet"
    path.write_bytes(sealed(sink.getvalue()))
    assert pq.read_table(path, page_checksum_verification=True) == rows
    assert duckdb.connect().execute("SELECT sum(n) FROM read_parquet(?)", [str(path)]).fetchall() == [(499_500,)]
