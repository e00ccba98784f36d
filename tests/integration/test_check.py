"""`ordering-prober check`: it passes on a right service, finds each fault of a wrong one, and verifies Google's emulator.

That every probe works over real gRPC, from both vantages, is shown on a right service, and so is for one fault of each way in which a
service answers that it gets across. Every fault is then tried in virtual time (`tests.virtual_time`), with the probe that it is for: what
is verified there is verified alike here, and no deadline has to be waited for. `FULL_FAULTS=1` tries all of them with twenty seeds. By day
a right service is met by one probe of each way to the client and vantage; all of them run in virtual time in `test_forecast`.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from prober.brokers.base import Vantage
from prober.cli import main
from prober.cli.check_report import results_as_json
from prober.cli.check_runs import CheckRequest, run_checks
from prober.cli.process import code_of, overall_verdict
from prober.config.loading import load
from prober.core.findings import Status
from prober.core.verdict import Verdict
from prober.embedded.catalogue import CATALOGUE
from prober.probes.catalogue import PROBES
from prober.probes.experiment import Company
from prober.probes.push import NO_KEYS
from prober.runs.result import RunResult
from prober.schedule.instances import PlannedInstance
from tests.integration import test_benign
from tests.nightly import nightly_but
from tests.virtual_time import in_virtual_time

SEEDS = range(20) if os.environ.get("FULL_FAULTS") else range(1)

TRIALS = {
    "drop": ("ordering", "p=0.02"),
    "lose_write": ("ordering", "p=0.02"),
    "swap_in_batch": ("ordering", "p=0.2"),
    "swap_across_batches": ("ordering", "p=0.2"),
    "hole": ("ordering", "p=0.02"),
    "late_fill": ("ordering", "p=0.02"),
    "skip_waiting": ("long_lived", "p=0.1"),
    "diverge_subscriptions": ("publish", "p=0.2"),
    "filter_leaks": ("publish", "p=0.05"),
    "filter_drops": ("publish", "p=0.05"),
    "phantom": ("ordering", "p=0.02"),
    "wrong_key": ("ordering", "p=0.02"),
    "corrupt_payload": ("ordering", "p=0.02"),
    "duplicate_id": ("ordering", "p=0.02"),
    "redeliver_single": ("redelivery", "p=1"),
    "redeliver_unacked_only": ("redelivery", "p=1"),
    "reorder_run": ("redelivery", "p=1"),
    "lone_duplicate": ("ordering", "p=0.2"),
    "resume_past_unacked": ("redelivery", "p=1"),
    "forget_holds": ("ordering", "p=0.2"),
    "lease_short": ("redelivery", "p=0.5"),
    "half_open_stream": ("ordering", "p=0.01"),
    "overlap_pull": ("pull", "p=0.2"),
    "overlap_push": ("push", "key=push-[34],p=0.2"),  # on all keys, seconds of search for an explanation
    "push_past_failure": ("push", "count=2"),
    "throttle_push": ("push", "p=1"),
    "stall_run": ("redelivery", "p=1"),
    "never_redeliver": ("redelivery", "p=1"),
    "split_holder": ("ordering", "p=0.5"),
    "publish_unavailable": ("ordering", "p=0.3"),
    "publish_slow": ("publish", "p=0.02"),
    "head_of_line": ("isolation", "p=1"),
    "few_keys_at_once": ("scale", "p=1"),
    "sibling_delays": ("isolation", "p=1"),
    "stream_break": ("ordering", "p=0.01"),
    "stall_key": ("ordering", "p=0.05"),
    "stall_all": ("ordering", "start=0.2"),
    "slow_delivery": ("ordering", "p=0.3"),
    "jitter": ("ordering", "p=0.5"),
    "ack_lost": ("ordering", "p=0.1"),
    "dead_letter_stalls_keys": ("dead_letter", "p=0.2"),
    "redeliver_after_confirmed_ack": ("exactly_once", "p=0.2"),
    "break_stalls_keys": ("exactly_once", "p=0.3"),
    "admin_slow": ("control_plane", "p=0.2"),
    "admin_error": ("control_plane", "p=0.2"),
    "slow_creation": ("control_plane", "p=1"),
}
OVER_GRPC = (
    "swap_in_batch",
    "stream_break",
    "redeliver_single",
    "overlap_pull",
    "overlap_push",
    "diverge_subscriptions",
    "publish_unavailable",
    "redeliver_after_confirmed_ack",
    "admin_error",
)
"""One for each way to the client: streams and their ends, redeliveries, pulls, pushes, a second subscription, confirmed
acknowledgements, errors of publishes and of administration calls."""
WRONG_AFTER_A_SEEK = {"hole": "REDELIVERY_SKIP", "stall_key": "REDELIVERY_STALL"}


def run(order: CheckRequest, environ: dict[str, str] | None = None) -> list[RunResult]:
    """The results of one check with the default configuration, over gRPC."""
    environ = environ or {}
    return asyncio.run(run_checks(load(None, environ), order, environ, lambda _: None))


def decided(order: CheckRequest, environ: dict[str, str] | None = None) -> list[RunResult]:
    """The same; what a busy machine left undecided is asked again."""
    for _ in range(5):
        results = run(order, environ)
        if overall_verdict(results) is not Verdict.UNKNOWN:
            break
    return results


def simulated(order: CheckRequest, *faults: str) -> list[RunResult]:
    """The same in virtual time, of a service with these faults."""
    environ = {"ORDERING_PROBER_EMBEDDED__FAULTS": json.dumps(faults)}
    return in_virtual_time(lambda: run_checks(load(None, environ), order, environ, lambda _: None), order.seed)


def failures(results: list[RunResult]) -> set[str]:
    """The kinds of the findings that failed a run."""
    failing = (Status.VIOLATION, Status.LIVENESS)
    return {made.finding.kind for result in results for made in result.findings if made.finding.status in failing}


def test_every_fault_has_a_trial() -> None:
    """Those that the documents allow have theirs in `test_benign`."""
    assert TRIALS.keys() | test_benign.TRIALS.keys() | test_benign.PULL_TRIALS.keys() == CATALOGUE.keys()


@pytest.mark.parametrize(
    ("probe", "vantage"),
    nightly_but(
        [
            *((probe, Vantage.WIRE) for probe in ("redelivery", "pull", "push")),
            ("redelivery", Vantage.LIBRARY),
        ],
        [
            (probe, vantage)
            for probe, known in PROBES.items()
            for vantage in (Vantage.WIRE, Vantage.LIBRARY)
            if vantage is Vantage.WIRE or not known.wire_only
        ],
    ),
)
def test_a_right_service_passes(probe: str, vantage: Vantage) -> None:
    """Over gRPC and HTTP; every probe passes in virtual time, see `test_forecast`."""
    results = decided(CheckRequest(probes=(probe,), vantage=vantage))
    assert [(result.probe, result.verdict, result.reason) for result in results] == [(probe, Verdict.PASS, "")]
    assert code_of(overall_verdict(results)) == 0


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("fault", TRIALS)
def test_each_fault_ends_as_announced(fault: str, seed: int) -> None:
    probe, options = TRIALS[fault]
    assert_announced(fault, simulated(CheckRequest(probes=(probe,), seed=seed), f"{fault}:{options},seed={seed}"))


@pytest.mark.parametrize("fault", OVER_GRPC)
def test_over_grpc_it_ends_so_too(fault: str) -> None:
    probe, options = TRIALS[fault]
    environ = {"ORDERING_PROBER_EMBEDDED__FAULTS": json.dumps([f"{fault}:{options}"])}
    assert_announced(fault, decided(CheckRequest(probes=(probe,)), environ))


def assert_announced(fault: str, results: list[RunResult]) -> None:
    """The check ended as the catalogue says of this fault."""
    announced = CATALOGUE[fault]
    assert overall_verdict(results) in announced.verdicts, results[0].reason
    assert bool(failures(results) & set(announced.findings)) == bool(announced.findings)


@pytest.mark.parametrize("fault", [name for name, description in CATALOGUE.items() if description.exactly_once])
def test_what_breaks_exactly_once_delivery_is_found(fault: str) -> None:
    found = failures(simulated(CheckRequest(probes=("exactly_once",)), f"{fault}:p=0.2"))
    assert found & set(CATALOGUE[fault].exactly_once)
    assert found <= {*CATALOGUE[fault].exactly_once, *CATALOGUE[fault].findings}


@pytest.mark.parametrize("fault", WRONG_AFTER_A_SEEK)
def test_what_goes_wrong_after_a_seek_is_found(fault: str) -> None:
    """The fault begins when everything was delivered once, and before it is redelivered."""
    assert WRONG_AFTER_A_SEEK[fault] in failures(simulated(CheckRequest(probes=("seek",)), f"{fault}:p=0.2,start=8"))


def test_the_document_has_the_documented_fields() -> None:
    document = json.loads(results_as_json(run(CheckRequest(probes=("ordering",))), {"embedded": "127.0.0.1:8085"}))
    assert (document["verdict"], document["endpoints"]) == ("PASS", {"embedded": "127.0.0.1:8085"})
    assert document["runs"][0].keys() >= {
        "probe",
        "target",
        "vantage",
        "verdict",
        "reason",
        "duration_s",
        "findings",
        "counters",
        "durations",
        "figures",
    }


LACKING = {"exactly_once": "no exactly-once delivery", "dead_letter": "does not forward", "seek": "cannot do that"}
UNKNOWN_THERE = {
    "push": NO_KEYS,
    "control_plane": "Unimplemented",
    "limits": "more than 1,024 bytes",
    **LACKING,
}
"""Why probes stay undecided on the emulator, whatever the machine does."""


def settled(probes: Sequence[str], environ: dict[str, str]) -> dict[str, RunResult]:
    """What each probe finds there: on a machine under load the emulator may not even answer in time, so some are asked again."""
    results: dict[str, RunResult] = {}
    left = tuple(probes)
    for _ in range(6):
        results |= {result.probe: result for result in run(CheckRequest(probes=left), environ)}
        left = tuple(name for name in left if not is_settled(results[name]))
        if not left:
            break
    return results


def is_settled(result: RunResult) -> bool:
    return result.verdict is not Verdict.UNKNOWN or UNKNOWN_THERE.get(result.probe, "nothing") in result.reason


def test_the_emulator_keeps_order_and_redelivers_one_message_only(emulator_address: str) -> None:
    """What docs/emulator.md reports: a nacked message is redelivered alone, the later ones of its key are not."""
    probes = ("ordering", "redelivery", "affinity", "pull", "publish", "push", "control_plane", "limits", "region")
    by_probe = settled(probes, {"PUBSUB_EMULATOR_HOST": emulator_address})
    # On a busy machine leases run out, and the emulator redelivers single messages.
    if by_probe["affinity"].verdict is Verdict.FAIL:
        by_probe = {**by_probe, **settled(("affinity",), {"PUBSUB_EMULATOR_HOST": emulator_address})}
    assert by_probe["control_plane"].verdict is Verdict.PASS or "Unimplemented" in by_probe["control_plane"].reason
    assert by_probe["limits"].reason.endswith("(also 0: mixed_keys_refused)")
    assert by_probe["region"].verdict is Verdict.PASS, by_probe["region"].reason
    assert by_probe["ordering"].verdict is Verdict.PASS, by_probe["ordering"].reason
    assert by_probe["affinity"].verdict is Verdict.PASS, by_probe["affinity"].reason
    # It applies no filter. Under load two subscriptions now and then disagree about publishes that were under way together.
    assert {"FILTER_LEAK"} <= failures([by_probe["publish"]]) <= {"FILTER_LEAK", "ORDER_DIVERGENCE"}
    # A response that the client was too slow to acknowledge is sent again without what follows it.
    assert "PULL_BATCH_ORDER" in failures([by_probe["pull"]])
    assert (by_probe["push"].verdict, by_probe["push"].reason) == (Verdict.UNKNOWN, NO_KEYS)
    assert by_probe["redelivery"].verdict is Verdict.FAIL
    assert "REDELIVERY_SKIP" in failures([by_probe["redelivery"]])


@pytest.mark.parametrize("probe", nightly_but(["seek"], LACKING))
def test_of_what_the_emulator_lacks_nothing_is_said(probe: str, emulator_address: str) -> None:
    result = settled((probe,), {"PUBSUB_EMULATOR_HOST": emulator_address})[probe]
    assert (result.verdict, result.unreachable) == (Verdict.UNKNOWN, False), result.reason
    assert LACKING[probe] in result.reason


def test_a_failed_run_is_replayed_from_its_traces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The publish probe has three subscriptions, so it writes three files; the filter of one hides exchanged neighbours."""
    monkeypatch.setenv("ORDERING_PROBER_EMBEDDED__FAULTS", '["swap_in_batch:p=1"]')
    folder = tmp_path / "made" / "traces"
    assert main(["check", "--probe", "publish", "--trace", str(folder)]) == 1
    commands = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  replay: ")]
    assert len(commands) == len(list(folder.iterdir())) == 3
    for command in commands:
        path = command.removeprefix("  replay: ordering-prober verify --explain ")
        filtered = "-filtered-" in Path(path).read_text(encoding="utf-8").partition("\n")[0]
        found = main(["verify", "--explain", path]), "ORDER_INVERSION" in capsys.readouterr().out
        assert found in (((0, False), (3, False)) if filtered else ((1, True),))  # 3: messages were pending when the run failed


def test_a_folder_for_traces_that_cannot_be_made_is_refused_before_the_first_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    assert main(["check", "--probe", "publish", "--trace", str(tmp_path / "file")]) == 2
    assert f"--trace {tmp_path / 'file'}: cannot be made" in capsys.readouterr().err


def test_nobody_answers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--probe", "ordering", "--endpoint", "127.0.0.1:1"]) == 3
    assert "UNKNOWN" in capsys.readouterr().out


def test_wrong_usage_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--probe", "walking"]) == 2
    assert main(["check", "--endpoint", "nowhere"]) == 2
    assert main(["embedded", "--fault", "nonsense"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 3


def test_probes_run_side_by_side_unless_one_would_falsify_what_another_measures() -> None:
    probes = ("ordering", "affinity", "redelivery", "publish", "push", "pull")
    running: list[str] = []
    together: set[frozenset[str]] = set()

    def begin(instance: PlannedInstance, runs: int) -> None:
        assert runs == len(probes)
        running.append(instance.probe)
        together.add(frozenset(running))

    results = in_virtual_time(
        lambda: run_checks(load(None, {}), CheckRequest(probes), {}, lambda result: running.remove(result.probe), begin=begin)
    )
    assert [result.probe for result in results] == [name for name in PROBES if name in probes]
    assert [result.seed for result in results] == list(range(len(probes)))
    assert frozenset({"affinity", "redelivery", "publish"}) in together
    for company in together:
        alone = {name for name in company if PROBES[name].company is Company.NONE}
        quiet = {name for name in company if PROBES[name].company is Company.QUIET}
        bursts = {name for name in company if PROBES[name].company is Company.BURSTS}
        assert not (alone and len(company) > 1)
        assert not (quiet and bursts)


def test_the_emulator_is_named_by_its_address(emulator_address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUBSUB_EMULATOR_HOST", emulator_address)
    said = StringIO()
    with redirect_stdout(said):
        main(["check", "--probe", "limits"])
    first, head, *_, last = said.getvalue().splitlines()
    assert first == f"checking {emulator_address}, named by PUBSUB_EMULATOR_HOST"
    assert head.startswith(f"limits on {emulator_address} (wire): ")
    assert f"1 run on {emulator_address} in " in last
    assert "embedded" not in said.getvalue()


def test_lists_explain() -> None:
    said = StringIO()
    with redirect_stdout(said):
        assert [main(["faults"]), main(["probes"]), main(["config", "show"])] == [0, 0, 0]
    assert {"drop", "ordering", "targets:"} <= set(said.getvalue().split())
