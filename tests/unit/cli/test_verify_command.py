"""`ordering-prober verify`: exit codes, text, JSON, what goes where, and what happens when things go wrong."""

from __future__ import annotations

import gzip
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from prober.cli import main, verify
from prober.core.events import Event
from prober.core.findings import Finding
from prober.core.rules import Rules
from prober.core.verifier import Verifier
from tests.commands import DOUBTFUL, FAILING, MOVED, PASSING, STUCK, VECTORS, Output, broken, rows, run, saved
from tests.notation import history

# ----------------------------------------------------------------------------------------------------------------- exit codes


@pytest.mark.parametrize(
    ("files", "code"),
    [
        ([PASSING], 0),
        ([DOUBTFUL], 0),
        ([FAILING], 1),
        ([STUCK], 1),
        ([PASSING, FAILING, PASSING], 1),
        (["missing.jsonl"], 2),
        (["missing.jsonl", FAILING], 2),
        ([FAILING, str(VECTORS)], 2),
    ],
)
def test_the_exit_code_is_that_of_the_worst_file(files: Sequence[str], code: int) -> None:
    assert main(["verify", *files]) == code


def test_an_undecided_history_is_3_and_a_failed_one_wins(tmp_path: Path, capsys: Output) -> None:
    undecided = saved(tmp_path / "undecided.jsonl", "P1,2 A<1@1 stop @2")
    assert main(["verify", PASSING, undecided]) == 3
    assert "UNKNOWN (7 events; the history ended while messages were pending" in capsys.readouterr().out
    assert main(["verify", undecided, FAILING]) == 1


def test_a_history_that_says_it_drained_but_has_pending_messages_is_undecided(tmp_path: Path) -> None:
    assert main(["verify", saved(tmp_path / "f.jsonl", "P1,2 A<1@1 end @2")]) == 3


@pytest.mark.parametrize("events", ["", "open A of client A end @500"])
def test_a_pass_without_a_delivery_says_that_there_was_nothing_to_verify(tmp_path: Path, capsys: Output, events: str) -> None:
    assert main(["verify", saved(tmp_path / "f.jsonl", events)]) == 0
    assert "nothing to verify: no delivery is on record)" in capsys.readouterr().out


def test_a_drained_history_passes(tmp_path: Path) -> None:
    assert main(["verify", saved(tmp_path / "f.jsonl", "P1,2 A<1@1 A<2@2 A ack 1@3 A ack 2@4 end @500")]) == 0


# ----------------------------------------------------------------------------------------------------------------------- text


def test_text_names_the_finding_its_words_and_its_witnesses(capsys: Output) -> None:
    main(["verify", FAILING])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{FAILING}: FAIL (10 events; 3 violations)"
    assert lines[1] == "  ORDER_GAP (violation) at 1.1 s, key k, subscription s"
    assert lines[2].startswith("    Pub/Sub delivered message 3 but had not delivered message 2, published before it")
    assert f"    witnesses: {FAILING}:5 {FAILING}:6 {FAILING}:8 {FAILING}:10" in lines


def test_information_is_only_counted_in_text(capsys: Output) -> None:
    main(["verify", MOVED])
    assert capsys.readouterr().out == f"{MOVED}: PASS (13 events; AFFINITY_MOVE 1)\n"


def test_indeterminate_findings_are_listed(capsys: Output) -> None:
    main(["verify", DOUBTFUL])
    out = capsys.readouterr().out
    assert out.startswith(f"{DOUBTFUL}: PASS (13 events; 1 indeterminate finding)\n  AFFINITY_SPLIT (indeterminate) at 1.6 s")


def test_of_many_findings_of_a_kind_three_are_printed_and_the_others_counted(tmp_path: Path, capsys: Output) -> None:
    gap = "A<3@1 A<2@1.1"
    phantoms = saved(tmp_path / "f.jsonl", f"P1,2,3 A<1@0.9 {gap} " + " ".join(f"A<q{seq}({seq})@{seq}" for seq in range(7, 157)))
    assert main(["verify", phantoms]) == 1
    listed = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("    ")]
    assert [line.split()[0] for line in listed[1:-2]] == ["ORDER_GAP", "ORDER_INVERSION", "REALTIME_INVERSION", *["PHANTOM"] * 3]
    assert listed[-2:] == [
        "  and 97 more PHANTOM (violation), on 1 key, the last at 106 s",
        "  and 50 more of that kind, which are only counted",
    ]
    assert main(["verify", "--all", phantoms]) == 1
    out = capsys.readouterr().out
    assert out.count("  PHANTOM (violation)") == 100
    assert out.splitlines()[-1] == "  and 50 more of that kind, which are only counted"
    main(["verify", "--format", "json", phantoms])
    (row,) = rows(capsys)
    assert len(row["findings"]) == 103
    assert row["counters"]["findings_omitted"] == 50
    assert row["omitted"] == [{"kind": "PHANTOM", "status": "violation", "count": 50}]


def test_each_file_has_its_own_examples(tmp_path: Path, capsys: Output) -> None:
    phantoms = "P1 A<1@1 " + " ".join(f"A<q{seq}({seq})@2" for seq in range(7, 17))
    main(["verify", saved(tmp_path / "a.jsonl", phantoms), saved(tmp_path / "b.jsonl", phantoms)])
    assert capsys.readouterr().out.count("  PHANTOM (violation) at") == 6


def test_a_key_cannot_steer_the_terminal(tmp_path: Path, capsys: Output) -> None:
    main(["verify", saved(tmp_path / "f.jsonl", history("P1 A<q7(7)@1", key="\x1b[31m\rk"))])
    assert r"key \x1b[31m\rk, subscription s" in capsys.readouterr().out


def test_a_key_cannot_forge_a_line(tmp_path: Path, capsys: Output) -> None:
    path = saved(tmp_path / "f.jsonl", history("P1 A<q7(7)@1", key="k\nother.jsonl: PASS (17 events)"))
    main(["verify", "--reorder", "--explain", path])
    assert not [line for line in capsys.readouterr().out.splitlines() if line.startswith("other.jsonl")]


# ----------------------------------------------------------------------------------------------------------------------- JSON


def test_json_has_the_documented_fields_and_one_line_per_file(capsys: Output) -> None:
    main(["verify", "--format", "json", FAILING, PASSING])
    failed, passed = rows(capsys)
    assert set(failed) == set(passed) == {"trace", "verdict", "findings", "counters"}
    assert (failed["trace"], failed["verdict"]) == (FAILING, "FAIL")
    assert (passed["trace"], passed["verdict"], passed["findings"]) == (PASSING, "PASS", [])
    gap = failed["findings"][0]
    assert set(gap) == {"kind", "status", "subscription", "key", "t", "explanation", "reasons", "witnesses"}
    assert (gap["kind"], gap["status"], gap["subscription"], gap["key"], gap["t"]) == ("ORDER_GAP", "violation", "s", "k", 1.1)
    assert gap["witnesses"] == [5, 6, 8, 10]
    assert "message 2" in gap["explanation"]
    assert all(isinstance(count, int) for count in failed["counters"].values())
    assert failed["counters"]["events"] == 10


def test_json_lists_information_too(capsys: Output) -> None:
    main(["verify", "--format", "json", MOVED])
    (row,) = rows(capsys)
    assert [(one["kind"], one["status"]) for one in row["findings"]] == [("AFFINITY_MOVE", "info")]


# -------------------------------------------------------------------------------------------------------------------- explain


def test_explain_draws_the_smallest_history(capsys: Output) -> None:
    main(["verify", "--explain", FAILING])
    expected = """\
    minimal reproduction (6 of 9 events):
        line        time  publisher                 Pub/Sub                   A
           2       0.000    |                         |  opened                 o
           5       0.100    |-- publish 2 ----------->|                         |   <-- witness
           6       0.150    |<- ok 2 = m2 ------------|                         |   <-- witness
           7       0.200    |-- publish 3 ----------->|                         |
           8       0.250    |<- ok 3 = m3 ------------|                         |   <-- witness
                            |                         |.. 2 missing ...........>|
          10       1.100    |                         |-- 3 ------------------->|   X <-- wrong
"""
    assert expected in capsys.readouterr().out


def test_everything_on_the_key_is_drawn_when_it_is_asked_for(capsys: Output) -> None:
    main(["verify", "--explain", FAILING])
    smallest = capsys.readouterr().out
    assert main(["verify", "--on-key", FAILING]) == 1
    on_key = capsys.readouterr().out
    assert "minimal reproduction" in smallest
    assert "everything on this key until then" in on_key
    assert "X <-- wrong" in on_key
    assert on_key.count(" publish ") > smallest.count(" publish ")


def test_explain_names_the_alternatives_and_what_rules_each_out(capsys: Output) -> None:
    main(["verify", "--explain", FAILING])
    explained = capsys.readouterr().out
    main(["verify", FAILING])
    plain = capsys.readouterr().out
    assert "    Excluded explanations:\n    - not " in explained
    assert "Alternatives" not in plain


def test_explain_in_json(capsys: Output) -> None:
    main(["verify", "--explain", "--format", "json", FAILING])
    (row,) = rows(capsys)
    assert [one["minimal_trace"] for one in row["findings"]] == [[2, 5, 6, 7, 8, 10], [5, 6, 7, 8, 10, 11], [5, 6, 7, 8, 10, 11]]
    assert all("X <-- wrong" in one["diagram"] for one in row["findings"])
    assert all(reason.startswith("not ") for one in row["findings"] for reason in one["reasons"])


def test_explain_takes_the_first_few_of_each_kind(tmp_path: Path, capsys: Output) -> None:
    phantoms = "P1 A<1@1 " + " ".join(f"A<q{seq}({seq})@2" for seq in range(7, 17))
    main(["verify", "--explain", saved(tmp_path / "f.jsonl", phantoms)])
    out = capsys.readouterr().out
    assert out.count("  PHANTOM (violation) at") == 3
    assert out.count("minimal reproduction") == 3


def test_explain_finds_its_events_in_a_long_history(tmp_path: Path, capsys: Output) -> None:
    last = 9_000
    events = history(f"P{','.join(map(str, range(1, last + 1)))}")
    deliveries = [*range(1, last - 2), last, last - 2]
    events += history(" ".join(f"A<{seq}@{1_000 + n * 0.01:.2f}" for n, seq in enumerate(deliveries)))
    rules = Rules(unacked_deadline_s=float("inf"), ack_deadline_s=600.0)
    path = saved(tmp_path / "f.jsonl", sorted(events, key=lambda event: event.t), rules)
    assert main(["verify", "--explain", "--format", "json", path]) == 1
    (row,) = rows(capsys)
    gap = next(one for one in row["findings"] if one["kind"] == "ORDER_GAP")
    assert set(gap["witnesses"]) <= set(gap["minimal_trace"])
    assert len(gap["minimal_trace"]) < 12


def test_explain_reads_standard_input_twice() -> None:
    with open(FAILING, encoding="utf-8") as stream, subprocess.Popen(["cat"], stdin=stream, stdout=subprocess.PIPE) as pipe:
        done = run("verify", "--explain", "-", stdin=pipe.stdout)
    assert done.returncode == 1
    assert done.stdout.startswith("<stdin>: FAIL (10 events; 3 violations)")
    assert "X <-- wrong" in done.stdout
    assert done.stderr == ""


# ----------------------------------------------------------------------------------------------------------- unreadable files


def test_a_malformed_file_is_one_line_and_the_others_are_verified(tmp_path: Path, capsys: Output) -> None:
    bad = broken(tmp_path / "bad.jsonl", "P1,2,3 A<1@1")
    assert main(["verify", PASSING, bad, FAILING]) == 2
    captured = capsys.readouterr()
    assert captured.err == f"{bad}:10: not JSON at column 8: unexpected end of data\n"
    verdicts = [line for line in captured.out.splitlines() if not line.startswith(" ")]
    assert verdicts[0] == f"{PASSING}: PASS (10 events)"
    assert verdicts[1] == f"{bad}: UNKNOWN (8 events; verified up to a malformed line)"
    assert verdicts[2] == f"{FAILING}: FAIL (10 events; 3 violations)"


def test_what_was_proven_before_a_malformed_line_stands(tmp_path: Path, capsys: Output) -> None:
    bad = broken(tmp_path / "bad.jsonl", "P1,2,3 A<1@1 A<3@1.1")
    assert main(["verify", "--explain", bad]) == 2
    out = capsys.readouterr().out
    assert out.startswith(f"{bad}: FAIL (9 events; 1 violation; verified up to a malformed line)\n  ORDER_GAP (violation)")
    assert "X <-- wrong" in out
    assert main(["verify", "--format", "json", bad]) == 2
    (row,) = rows(capsys)
    assert row["verdict"] == "FAIL"
    assert row["error"].startswith(f"{bad}:11: not JSON")


def test_a_missing_file_a_folder_and_an_empty_file(tmp_path: Path, capsys: Output) -> None:
    missing, empty = str(tmp_path / "missing.jsonl"), tmp_path / "empty.jsonl"
    empty.touch()
    assert main(["verify", "--format", "json", missing, str(tmp_path), str(empty)]) == 2
    captured = capsys.readouterr()
    assert captured.err.splitlines() == [
        f"{missing}: cannot be opened: No such file or directory; check the path and its permissions",
        f"{tmp_path}: is a folder; give trace files, or one history and nothing else",
        f"{empty}:1: the file is empty; the first line must be a header",
    ]
    printed = [json.loads(line) for line in captured.out.splitlines()]
    assert [(row["verdict"], row["findings"]) for row in printed] == [("UNKNOWN", [])] * 3
    assert [row["error"] for row in printed] == captured.err.splitlines()


def test_a_compressed_file(tmp_path: Path, capsys: Output) -> None:
    path = tmp_path / "f.jsonl.gz"
    path.write_bytes(gzip.compress(Path(FAILING).read_bytes()))
    assert main(["verify", "--explain", str(path)]) == 1
    assert "X <-- wrong" in capsys.readouterr().out


def test_a_fault_of_the_checker_is_undecided_and_says_so(monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    class Faulty(Verifier):
        def observe(self, event: Event) -> Sequence[Finding]:
            if event.t > 1.15:
                raise KeyError("position")
            return super().observe(event)

    monkeypatch.setattr("prober.core.guarded_verifier.Verifier", Faulty)
    assert main(["verify", "--explain", FAILING]) == 3
    captured = capsys.readouterr()
    assert captured.out.startswith(f"{FAILING}: UNKNOWN (10 events; 1 violation; the checker failed)\n")
    assert captured.err.startswith(f"{FAILING}: the checker failed at event 10: KeyError('position'), so later events were not")


def test_a_fault_of_the_explanation_does_not_touch_the_verdict(monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    def faulty(*_: object) -> None:
        raise KeyError("lane")

    monkeypatch.setattr(verify, "proof_of", faulty)
    assert main(["verify", "--explain", STUCK]) == 1
    captured = capsys.readouterr()
    assert captured.out.startswith(f"{STUCK}: FAIL (10 events; 1 liveness finding)\n  STUCK (liveness)")
    assert captured.err == f"{STUCK}: cannot explain the findings: KeyError('lane'); please report this with the file\n"


# ---------------------------------------------------------------------------------------------------------------- wrong usage


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["verify", "--key", "k", PASSING], "--key selects runs of a history"),
        (["verify", "--since", "2026-01-01T00:00:00Z", PASSING], "--since selects runs of a history"),
        (["verify"], "Missing argument"),
        (["verify", "--format", "xml", PASSING], "'xml' is not one of 'text', 'json'"),
        (["verify", "--nonsense", PASSING], "No such option"),
        (["fly"], "No such command"),
    ],
)
def test_wrong_usage_is_one_line_on_stderr(arguments: list[str], words: str, capsys: Output) -> None:
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("ordering-prober: ")
    assert words in captured.err


def test_help_and_version(capsys: Output) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("ordering-prober ")
    assert main(["verify", "--help"]) == 0
    assert "--explain" in capsys.readouterr().out


def test_explain_is_refused_for_a_history(capsys: Output) -> None:
    assert main(["verify", str(VECTORS), "--explain"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "--explain reads trace files" in line
    assert "ordering-prober history export" in line
