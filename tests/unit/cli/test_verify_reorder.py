"""`ordering-prober verify --reorder`: what is printed besides the verdict, and that it never touches the verdict."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from prober.cli import main
from prober.cli.reorder import SHOWN_IN_JSON, SHOWN_IN_TEXT
from prober.core.events import Delivered, Event
from prober.core.rules import Rules
from tests.commands import FAILING, PASSING, VECTORS, Output, broken, rows, run, saved

NUMBERS = ("in_order", "early", "late", "duplicates", "late_or_duplicate", "before_start")


def keys(count: int) -> list[Event]:
    """Deliveries on so many keys; on the last one 2 comes before 1."""
    last = f"k{count - 1:04}"
    return [
        Delivered(float(t), "s", f"k{n:04}", "A", "e1", 3 - t if f"k{n:04}" == last else t, f"{n}-{t}")
        for t in (1, 2)
        for n in range(count)
    ]


def table(text: str) -> list[dict[str, str]]:
    """The rows of the printed table by column; no name in it has two spaces or is empty but in the row of all."""
    lines = [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in text.splitlines()]
    header = next(line for line in lines if "in order" in line)
    return [dict(zip(reversed(header), reversed(line), strict=False)) for line in lines if any(cell.endswith("%") for cell in line)]


def test_the_table_stands_below_the_findings(capsys: Output) -> None:
    assert main(["verify", "--reorder", FAILING]) == 1
    out = capsys.readouterr().out
    assert out.startswith(f"{FAILING}: FAIL (10 events; 3 violations)\n  ORDER_GAP")
    (row,) = table(out)
    assert (row["deliveries"], row["in order"], row["early"], row["late"]) == ("3", "2", "1", "0")
    assert (row["reordered"], row["ratio"], row["extent"], row["n"]) == ("1", "33.33%", "1", "1")


def test_a_shorter_wait_gives_up(capsys: Output) -> None:
    main(["verify", "--reorder", "--wait-timeout", "50ms", FAILING])
    (row,) = table(capsys.readouterr().out)
    assert (row["in order"], row["early"], row["late"], row["gave up"]) == ("1", "1", "1", "1")


def test_without_the_option_nothing_is_measured(capsys: Output) -> None:
    main(["verify", "--format", "json", PASSING])
    assert "order" not in rows(capsys)[0]


@pytest.mark.parametrize("path", sorted(VECTORS.glob("*.jsonl")), ids=lambda path: path.stem)
def test_every_delivery_of_a_vector_is_accounted_for_and_its_verdict_stays(path: Path, capsys: Output) -> None:
    code = main(["verify", "--format", "json", str(path)])
    (plain,) = rows(capsys)
    assert main(["verify", "--format", "json", "--reorder", str(path)]) == code
    (row,) = rows(capsys)
    order = row.pop("order")
    assert row == plain
    for each in [order["total"], *order["worst_streams"]]:
        assert each["deliveries"] == sum(each[name] for name in NUMBERS)
        assert 0 <= each["overtook"] + each["waiting"] <= each["early"]
    deliveries = len(re.findall(r'"event": ?"delivered"', path.read_text(encoding="utf-8")))
    assert order["total"]["deliveries"] + sum(order["not_measured"].values()) == deliveries


def test_json_has_the_documented_fields(capsys: Output) -> None:
    main(["verify", "--format", "json", "--reorder", "--wait-timeout", "2m", "--idle-timeout", "1h", FAILING])
    order: dict[str, Any] = rows(capsys)[0]["order"]
    assert (order["wait_timeout_s"], order["idle_timeout_s"]) == (120.0, 3600.0)
    assert (order["streams_measured"], order["streams_omitted"]) == (1, 0)
    (stream,) = order["worst_streams"]
    assert (stream["subscription"], stream["key"], stream["epoch"]) == ("s", "k", "e1")
    assert stream["reordering"]["n_reordered"] == {"1": 1}
    assert stream["reordering"]["extents"] == {"1": 1}
    assert stream["reordering"]["late_max_s"] == pytest.approx(0.1)
    page = (VECTORS.parents[1] / "docs" / "trace-files.md").read_text(encoding="utf-8")
    named = {*order, *order["total"], *stream, *stream["reordering"]} - {"subscription", "key", "epoch", "undecided"}
    assert {name for name in named if f"`{name}`" not in page} == set()


def test_of_many_keys_the_worst_are_shown_and_the_rest_is_counted(tmp_path: Path, capsys: Output) -> None:
    count = SHOWN_IN_JSON + 7
    path = saved(tmp_path / "f.jsonl", keys(count))
    main(["verify", "--reorder", path])
    out = capsys.readouterr().out
    shown = table(out)
    assert len(shown) == SHOWN_IN_TEXT + 1
    assert (shown[0]["key"], shown[0]["ratio"]) == (f"k{count - 1:04}", "50.00%")
    assert f"    all {count} streams " in out
    assert (shown[-1]["deliveries"], shown[-1]["reordered"]) == (str(2 * count), "1")
    assert f"streams left out here, which did better than those above: {count - SHOWN_IN_TEXT}" in out
    main(["verify", "--reorder", "--format", "json", path])
    order = rows(capsys)[0]["order"]
    assert (len(order["worst_streams"]), order["streams_omitted"]) == (SHOWN_IN_JSON, 7)
    assert order["total"]["deliveries"] == 2 * count


def test_what_cannot_be_measured_is_said(tmp_path: Path, capsys: Output) -> None:
    path = saved(tmp_path / "f.jsonl", [Delivered(1.0, "s", "", "A", "e1", 1, "m1"), Delivered(2.0, "s", "k", "A", "e1", 0, "m2")])
    main(["verify", "--reorder", path])
    out = capsys.readouterr().out
    assert "deliveries not measured, because they have no ordering key: 1\n" in out
    assert "deliveries not measured, because they have no sequence number: 1\n" in out
    assert "nothing to measure: no delivery has both an ordering key and a sequence number\n" in out


def test_a_malformed_file_is_measured_as_far_as_it_goes(tmp_path: Path, capsys: Output) -> None:
    bad = broken(tmp_path / "bad.jsonl", "P1,2 A<1@1")
    assert main(["verify", "--reorder", "--format", "json", bad, "missing.jsonl"]) == 2
    first, second = rows(capsys)
    assert first["order"]["total"]["deliveries"] == 1
    assert "order" not in second


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--reorder", "--wait-timeout", "0s", PASSING], "must be longer than 0s"),
        (["--reorder", "--idle-timeout", "soon", PASSING], "soon"),
        (["--reorder", str(VECTORS)], "--reorder reads trace files"),
    ],
)
def test_wrong_usage_is_one_line(arguments: list[str], words: str, capsys: Output) -> None:
    assert main(["verify", *arguments]) == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n")) == ("", 1)
    assert words in captured.err


def test_the_process_measures_what_comes_through_a_pipe() -> None:
    with open(FAILING, encoding="utf-8") as stream:
        done = run("verify", "--reorder", "-", PASSING, stdin=stream)
    assert (done.returncode, done.stderr) == (1, "")
    assert [row["ratio"] for row in table(done.stdout)] == ["33.33%", "0.00%"]


def test_a_stream_of_other_publishers_begins_with_its_first_delivery(tmp_path: Path, capsys: Output) -> None:
    events = [Delivered(float(seq), "s", "k", "A", "e1", seq, f"m{seq}") for seq in (7, 8, 9)]
    path = saved(tmp_path / "observed.jsonl", events, Rules(publishes_recorded=False))
    main(["verify", "--reorder", "--format", "json", str(path)])
    (measured,) = rows(capsys)
    assert (measured["order"]["total"]["in_order"], measured["order"]["total"]["early"]) == (3, 0)
