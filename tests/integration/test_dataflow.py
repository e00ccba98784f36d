"""The example pipeline for Dataflow: what sequence numbers say, and, where Apache Beam is installed, the files that `export` reads."""

from __future__ import annotations

import importlib.util
import json
import random
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.forking import called

FOLDER = Path(__file__).parents[2] / "examples" / "dataflow"
NUMBERS = range(1, 151)
SECONDS_SINCE_1970 = 1_767_323_040.0


def loaded() -> ModuleType:
    """The module of plain functions, which needs no Beam."""
    spec = importlib.util.spec_from_file_location("sequences", FOLDER / "sequences.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("numbers", "order", "seen"),
    [
        ([1], [1], (1, 0, 0, 0)),
        ([4, 5, 6], [4, 5, 6], (3, 0, 0, 0)),
        ([3, 1, 2], [1, 2, 3], (3, 0, 2, 0)),
        ([1, 2, 2, 1, 3], [1, 2, 3], (3, 2, 0, 0)),
        ([2, 9, 5], [2, 5, 9], (3, 0, 1, 5)),
    ],
)
def test_what_sequence_numbers_say(numbers: list[int], order: list[int], seen: tuple[int, ...]) -> None:
    sequences = loaded()
    rows, counted = sequences.in_order([sequences.Row("k", number, f"m{number}", 0.0) for number in numbers])
    assert [row.number for row in rows] == order
    assert tuple(counted) == seen


def messages(missing: int) -> list[str]:
    """Lines of messages of three keys in any order: one number of a key is missing, one message is there twice, one has no key."""
    lines = [
        json.dumps(
            {
                "ordering_key": f"customer-{key}",
                "attributes": {"sequence": str(number)},
                "message_id": f"{key}-{number}",
                "publish_time": SECONDS_SINCE_1970 + number,
            }
        )
        for key in range(3)
        for number in NUMBERS
        if (key, number) != (1, missing)
    ]
    random.Random(7).shuffle(lines)
    return [*lines, lines[0], json.dumps({"ordering_key": "", "attributes": {}, "message_id": "m", "publish_time": 0.0})]


@pytest.mark.parametrize(("missing", "verdict"), [(0, "PASS"), (77, "UNKNOWN")])
def test_the_pipeline_restores_order_and_export_reads_what_it_wrote(tmp_path: Path, missing: int, verdict: str) -> None:
    pytest.importorskip("apache_beam", reason="the example needs Apache Beam, on which the project does not depend")
    source, output = tmp_path / "messages.jsonl", tmp_path / "out"
    source.write_text("\n".join(messages(missing)) + "\n", encoding="utf-8")
    command = [sys.executable, "pipeline.py", "--file", str(source), "--output", str(output), "--runner", "DirectRunner"]
    done = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    counted = dict(line.split(": ") for line in done.stdout.splitlines())
    assert (counted["distinct"], counted["again"], counted["without_key_or_number"]) == (str(450 - bool(missing)), "1", "1")
    assert (int(counted["late"]) > 0, counted["missing"]) == (True, str(int(bool(missing))))
    assert len(list(output.glob("*.jsonl"))) > 1
    exported = called("export", f"{output}/*.jsonl", "--key", "json:key", "--number", "json:number", "--format", "json")
    assert json.loads(exported.stdout)["verdict"] == verdict
