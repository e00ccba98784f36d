"""What `check` prints of runs: each kind of finding once, latencies that no other probe changed, and a summary."""

from __future__ import annotations

from prober.cli.check_report import result_as_text, summary
from prober.core.findings import Facts, Finding, Kind, Status
from prober.core.guarded_verifier import RecordedFinding
from prober.core.verdict import Verdict
from prober.runs.result import Durations, RunResult
from prober.slo.figures import Figure
from prober.slo.indicators import Indicator

PHANTOM = Kind.PHANTOM, Status.VIOLATION


def result(probe: str, verdict: Verdict, keys: str = "") -> RunResult:
    """A run with a violation on each key."""
    facts: Facts = {"subscriber": "A", "message_id": "17", "seq": 3, "epoch": "e1"}
    found = tuple(RecordedFinding(Finding(*PHANTOM, "s", key, 1.0, (1,), facts), 1) for key in keys)
    return RunResult(
        f"{probe}-1",
        probe,
        "shop",
        "wire",
        verdict,
        "",
        0.0,
        2.0,
        findings=found,
        counts={PHANTOM: 12},
        durations={Indicator.PUBLISH_LATENCY: Durations(3, 0.1, 0.2, 0.3)},
        figures={Figure.JOINERS_SERVED: 0.5},
    )


def test_a_kind_of_finding_stands_once_with_its_number_and_an_example() -> None:
    text = result_as_text(result("redelivery", Verdict.FAIL, "abc"))
    assert text.count("PHANTOM") == 1
    assert "  PHANTOM (violation), 12 times, for example key a\n" in text


def test_latencies_are_those_that_no_other_probe_changed() -> None:
    run = result("ordering", Verdict.PASS)
    assert "  publish latency: median 100 ms, p99 200 ms of 3\n" in result_as_text(run)
    assert "latency" not in result_as_text(run, undisturbed=False)


def test_a_ratio_says_that_it_is_one() -> None:
    assert "  joiners served: 0.5 (ratio)" in result_as_text(result("affinity", Verdict.PASS))


def test_an_address_stands_in_place_of_the_target() -> None:
    assert result_as_text(result("pull", Verdict.PASS), "127.0.0.1:8085").startswith(
        "pull on 127.0.0.1:8085 (wire): PASS after 2.0 s"
    )


def test_the_summary_names_what_did_not_pass() -> None:
    ended = {"ordering": Verdict.PASS, "pull": Verdict.PASS, "push": Verdict.UNKNOWN, "seek": Verdict.FAIL}
    results = [result(probe, verdict) for probe, verdict in ended.items()]
    assert summary(results, ["shop"], 12.3) == "FAIL: 4 runs on shop in 12 s: 2 PASS, 1 FAIL (seek), 1 UNKNOWN (push)"
