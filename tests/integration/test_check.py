"""`ordering-prober check` over real gRPC: it passes on a right service, finds each fault of a wrong one, and judges Google's emulator.

Each fault is tried with the probe that it is for; `FULL_FAULTS=1` tries all of them with twenty seeds.
"""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import redirect_stdout
from io import StringIO

import pytest

from prober.brokers.base import Vantage
from prober.cli import main
from prober.cli.check import CheckRequest, results_as_json, run_checks
from prober.cli.process import code_of, overall
from prober.config.loading import load
from prober.core.findings import Status
from prober.core.verdict import Verdict
from prober.embedded.faults import CATALOGUE
from prober.runs.result import RunResult
from tests.integration import test_benign

SEEDS = range(20) if os.environ.get("FULL_FAULTS") else range(1)

TRIALS = {
    "drop": ("ordering", "p=0.02"),
    "lose_write": ("ordering", "p=0.02"),
    "swap_in_batch": ("ordering", "p=0.2"),
    "duplicate_id": ("ordering", "p=0.02"),
    "redeliver_single": ("redelivery", "p=1"),
    "redeliver_unacked_only": ("redelivery", "p=1"),
    "stall_run": ("redelivery", "p=1"),
    "never_redeliver": ("redelivery", "p=1"),
    "split_holder": ("ordering", "p=0.5"),
    "publish_unavailable": ("ordering", "p=0.3"),
    "reply_lost": ("ordering", "p=0.1"),
    "partial_batch": ("ordering", "p=0.3"),
    "stream_break": ("ordering", "p=0.01"),
    "stall_key": ("ordering", "p=0.05"),
    "stall_all": ("ordering", "start=0.2"),
    "slow_delivery": ("ordering", "p=0.3"),
    "jitter": ("ordering", "p=0.5"),
    "ack_lost": ("ordering", "p=0.1"),
}


def run(order: CheckRequest, environ: dict[str, str] | None = None) -> list[RunResult]:
    """The results of one check with the default configuration."""
    environ = environ or {}
    return asyncio.run(run_checks(load(None, environ), order, environ, lambda _: None))


def failures(results: list[RunResult]) -> set[str]:
    """The kinds of the findings that failed a run."""
    failing = (Status.VIOLATION, Status.LIVENESS)
    return {made.finding.kind for result in results for made in result.findings if made.finding.status in failing}


def test_every_fault_has_a_trial() -> None:
    """Those that the documents allow have theirs in `test_benign`."""
    assert TRIALS.keys() | test_benign.TRIALS.keys() | test_benign.PULL_TRIALS.keys() == CATALOGUE.keys()


@pytest.mark.timeout(180)
@pytest.mark.parametrize("vantage", Vantage)
def test_a_right_service_passes(vantage: Vantage) -> None:
    results = run(CheckRequest(vantage=vantage))
    assert [(result.probe, result.verdict, result.reason) for result in results] == [
        ("ordering", Verdict.PASS, ""),
        ("redelivery", Verdict.PASS, ""),
        ("affinity", Verdict.PASS, ""),
    ]
    assert code_of(overall(results)) == 0


@pytest.mark.timeout(180)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("fault", TRIALS)
def test_each_fault_ends_as_announced(fault: str, seed: int) -> None:
    probe, options = TRIALS[fault]
    announced = CATALOGUE[fault]
    environ = {"ORDERING_PROBER_EMBEDDED__FAULTS": json.dumps([f"{fault}:{options},seed={seed}"])}
    results = run(CheckRequest(probes=(probe,), seed=seed), environ)
    assert overall(results) in announced.verdicts, results[0].reason
    assert bool(failures(results) & set(announced.findings)) == bool(announced.findings)


def test_the_document_has_the_promised_fields() -> None:
    document = json.loads(results_as_json(run(CheckRequest(probes=("ordering",)))))
    assert document["verdict"] == "PASS"
    assert document["runs"][0].keys() >= {
        "probe",
        "target",
        "vantage",
        "verdict",
        "reason",
        "duration_s",
        "findings",
        "counters",
    }


@pytest.mark.timeout(240)
def test_the_emulator_keeps_order_and_redelivers_one_message_only(emulator_address: str) -> None:
    """What docs/emulator.md reports: a refused message comes again alone, the later ones of its key do not."""
    for _ in range(3):  # on a machine under load it may not even answer in time
        results = run(CheckRequest(), {"PUBSUB_EMULATOR_HOST": emulator_address})
        if all(result.verdict is not Verdict.UNKNOWN for result in results):
            break
    by_probe = {result.probe: result for result in results}
    assert by_probe["ordering"].verdict is Verdict.PASS, by_probe["ordering"].reason
    assert by_probe["affinity"].verdict is Verdict.PASS, by_probe["affinity"].reason
    assert by_probe["redelivery"].verdict is Verdict.FAIL
    assert "REDELIVERY_SKIP" in failures([by_probe["redelivery"]])


def test_nobody_answers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--probe", "ordering", "--endpoint", "127.0.0.1:1"]) == 3
    assert "UNKNOWN" in capsys.readouterr().out


def test_wrong_usage_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--probe", "walking"]) == 2
    assert main(["check", "--endpoint", "nowhere"]) == 2
    assert main(["embedded", "--fault", "nonsense"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 3


def test_lists_explain() -> None:
    said = StringIO()
    with redirect_stdout(said):
        assert [main(["faults"]), main(["probes"]), main(["config", "show"])] == [0, 0, 0]
    assert {"drop", "ordering", "targets:"} <= set(said.getvalue().split())
