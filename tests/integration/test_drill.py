"""Fire drills: each fault is found on the keys where it was planted and nowhere else, a missed one is noticed, and one finding is
followed through Prometheus and Alertmanager to the receiver.

Every drill is carried out in virtual time (`tests.virtual_time`): whether it passes depends on nothing that a socket does. The command
and the whole chain, with a fault that is found, one that must not be, and none at all, are tried over real gRPC and HTTP.

Drills of a service change nothing that is said about services; results are counted and logged, what is under way can be stopped.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from prober.alerting.catalogue import rule_files
from prober.alerting.options import SCRAPE_JOB
from prober.cli import main
from prober.cli.program import app
from prober.config.loading import load
from prober.config.sections import CONTROL, Drills
from prober.core.findings import Kind, Status
from prober.core.verdict import Verdict
from prober.drills.chain import PAGES, Chain, Patience, Prometheus, StepName
from prober.drills.drill import Drill, DrillResult
from prober.drills.plans import PLANS, DrillPlan, DrillSort
from prober.drills.schedule import NAME, FireDrills, drills_of
from prober.embedded.faults import Fault
from prober.errors import ConfigError
from prober.probes.catalogue import ProbeName
from prober.service import Service
from prober.sinks.metrics import Metrics, families
from tests.alerts.stories import ALERTS
from tests.integration.daemons import daemon, free_port, written
from tests.nightly import nightly_but
from tests.unit.sinks.metrics.scraping import page
from tests.virtual_time import in_virtual_time

SEEDS = range(20) if os.environ.get("FULL_FAULTS") else range(1)
SOON = {"ORDERING_PROBER_DRILLS__DEADLINE": "2s"}
SEARCHED = {"overlap_push", "push_past_failure"}
"""Drills whose findings take the checker a search; by day `test_check` injects the faults into few keys."""
NEVER = Fault("drop", key="ordering-1", start=3600.0)

NAMES = ("swap_in_batch", CONTROL)
PATIENCE_S = 180.0


class Announcing(DrillPlan):
    """A plan that expects something else than the catalogue announces for its fault."""

    @property
    def announced(self) -> tuple[str, ...]:
        return ("PHANTOM",)


class Calm(DrillPlan):
    """A plan that expects nothing."""

    @property
    def announced(self) -> tuple[str, ...]:
        return ()


def drilled(plan: DrillPlan, seed: int = 0, prometheus: Prometheus | None = None) -> DrillResult:
    """One drill in virtual time, followed to our own metrics, and perhaps further."""

    async def scenario() -> DrillResult:
        return await Drill(plan, Chain(Metrics().drills([plan.name]), Patience(5.0, 5.0), prometheus), seed).carry_out()

    return in_virtual_time(scenario, seed)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", nightly_but(PLANS.keys() - SEARCHED, PLANS))
def test_every_drill_passes(name: str, seed: int) -> None:
    plan = PLANS[name]
    result = drilled(plan, seed)
    assert (result.verdict, result.reason) == (Verdict.PASS, "")
    assert bool(result.injected) == (plan.fault is not None)
    assert bool(set(result.found) & set(plan.announced)) == bool(plan.announced)
    finding, counter, *others = result.steps
    assert (finding.took_s is not None, counter.took_s is not None) == (bool(plan.announced), bool(plan.announced))
    assert result.not_followed == (StepName.RULE, StepName.ALERTMANAGER, StepName.RECEIVER) == tuple(step.name for step in others)


class Elsewhere(DrillPlan):
    """A plan that says that its fault strikes no key."""

    def planted_on(self, key: str) -> bool:
        return False


LOST = Fault("drop", key="ordering-1", count=1)


@pytest.mark.parametrize(
    ("plan", "verdict", "reason"),
    [
        (
            DrillPlan("drop", DrillSort.INTEGRITY, ProbeName.ORDERING, NEVER),
            Verdict.UNKNOWN,
            "finding: the fault was never injected",
        ),
        (Announcing("drop", DrillSort.INTEGRITY, ProbeName.ORDERING, LOST), Verdict.FAIL, "finding: none of PHANTOM was found"),
        (
            Elsewhere("drop", DrillSort.INTEGRITY, ProbeName.ORDERING, LOST),
            Verdict.FAIL,
            "finding: LOST_OVERTAKEN, ORDER_GAP was found where nothing was planted",
        ),
        (
            Calm("drop", DrillSort.BENIGN, ProbeName.ORDERING, LOST),
            Verdict.FAIL,
            "finding: LOST_OVERTAKEN, ORDER_GAP was found although no guarantee was violated",
        ),
    ],
    ids=["never", "missed", "elsewhere", "false alarm"],
)
def test_a_drill_that_proves_nothing_or_the_contrary_does_not_pass(plan: DrillPlan, verdict: Verdict, reason: str) -> None:
    result = drilled(plan)
    assert (result.verdict, result.reason) == (verdict, reason)


class Bare(Prometheus):
    """A Prometheus that answers, without our rules."""

    def __init__(self) -> None:
        """Asks nobody."""

    async def sees(self, drill: str) -> str | None:
        return None

    async def missing_rule(self) -> str:
        return "there is no rule"


class Faulty(Bare):
    """A mistake of ours."""

    async def sees(self, drill: str) -> str | None:
        raise ZeroDivisionError


def test_a_rule_that_is_not_loaded_fails_at_once_and_leaves_open_whether_it_would_be_quiet() -> None:
    missed = drilled(PLANS["drop"], prometheus=Bare())
    assert (missed.verdict, missed.reason) == (Verdict.FAIL, "rule: there is no rule")
    quiet = drilled(PLANS[CONTROL], prometheus=Bare())
    assert (quiet.verdict, quiet.reason) == (Verdict.UNKNOWN, "rule: there is no rule")


def test_a_mistake_of_ours_is_unknown() -> None:
    result = drilled(PLANS["drop"], prometheus=Faulty())
    assert (result.verdict, result.internal_error, result.injected) == (Verdict.UNKNOWN, True, 0)
    assert result.reason == "finding: internal error: ZeroDivisionError()"


def options(**given: str) -> list[str]:
    """Options of the command line."""
    return [word for name, value in given.items() for word in (f"--{name}", value)]


def called(*arguments: str, environ: Mapping[str, str] | None = None) -> Result:
    """The command, and what it said."""
    return CliRunner().invoke(app, ["drill", *arguments], env=environ)


def test_the_command_prints_a_table_and_what_nobody_looked_at() -> None:
    result = called("--fault", "swap_in_batch", "--fault", CONTROL)
    assert result.exit_code == 0, result.output
    heading, swapped, found, control, end = result.stdout.splitlines()
    assert heading.split()[:4] == ["drill", "verdict", "finding", "counter"]
    assert swapped.split()[:2] == ["swap_in_batch", "PASS"]
    assert found == "    found: ORDER_GAP, ORDER_INVERSION"
    assert control.split() == [CONTROL, "PASS", "quiet", "quiet", "-", "-", "-"]
    assert end == "PASS; not followed: rule, alertmanager, receiver"


@pytest.mark.parametrize("arguments", [["--fault", "dorp"], ["--all", "--fault", "drop"], ["--prometheus", "http://127.0.0.1:1"]])
def test_wrong_usage_is_one_line_before_anything_begins(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["drill", *arguments]) == 2
    output, errors = capsys.readouterr()
    assert (output, len(errors.splitlines())) == ("", 1)


@pytest.mark.nightly  # it waits in vain, for a minute
def test_who_does_not_answer_is_unknown_and_a_page_that_does_not_come_is_a_failure() -> None:
    nowhere = f"http://127.0.0.1:{free_port()}"
    result = called(
        "--fault", "drop", "--format", "json", *options(prometheus=nowhere, alertmanager=nowhere, port="0"), environ=SOON
    )
    assert result.exit_code == 1
    (followed,) = json.loads(result.stdout)["drills"]
    assert [step["verdict"] for step in followed["steps"]] == ["PASS", "PASS", "UNKNOWN", "UNKNOWN", "FAIL"]


# --- the whole chain ---------------------------------------------------------------------------------------------------------


@contextmanager
def chain(port: int, folder: Path) -> Iterator[tuple[str, str]]:
    """Prometheus with the rules and Alertmanager with the routes of the examples, the prober's port in the place of theirs."""
    routes = yaml.safe_load((ALERTS / "alertmanager.example.yaml").read_text(encoding="utf-8"))
    for receiver in routes["receivers"]:
        for webhook in receiver.get("webhook_configs", ()):
            webhook["url"] = f"http://127.0.0.1:{port}{PAGES if receiver['name'] == 'fire-drill' else '/nobody'}"
    config = f"--config.file={written(folder / 'alertmanager.yaml', routes)}"
    own = (f"--storage.path={folder / 'am'}", "--cluster.listen-address=")
    with daemon("prometheus-alertmanager", free_port(), folder / "am.log", config, *own) as alertmanager:
        for name, text in rule_files(load(None, {}).objectives).items():
            (folder / name).write_text(text, encoding="utf-8")
        scrape = {"job_name": SCRAPE_JOB, "scrape_interval": "1s", "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}
        reported = {"alertmanagers": [{"static_configs": [{"targets": [alertmanager.removeprefix("http://")]}]}]}
        scraping = {"rule_files": ["*.rules.yaml"], "scrape_configs": [scrape], "alerting": reported}
        config = f"--config.file={written(folder / 'prometheus.yaml', scraping)}"
        # What it sends before it has found Alertmanager is lost, and by default sent again after a minute.
        own = (f"--storage.tsdb.path={folder / 'tsdb'}", "--rules.alert.resend-delay=10s")
        with daemon("prometheus", free_port(), folder / "prometheus.log", config, *own) as prometheus:
            yield prometheus, alertmanager


def test_a_finding_is_followed_to_the_receiver_and_nobody_is_notified_without_one(tmp_path: Path) -> None:
    port = free_port()
    environ = {"ORDERING_PROBER_DRILLS__SILENCE": "13s", "ORDERING_PROBER_DRILLS__DEADLINE": "60s"}
    with chain(port, tmp_path) as (prometheus, alertmanager):
        own = options(prometheus=prometheus, alertmanager=alertmanager, port=str(port), format="json")
        result = called("--fault", "swap_in_batch", "--fault", "reply_lost", *own, environ=environ)
    assert result.exit_code == 0, (result.output, result.exception)
    document: dict[str, Any] = json.loads(result.stdout)
    swapped, lost = document["drills"]
    print("".join(f"\n{step['seconds']:5.1f} s  {step['step']}" for step in swapped["steps"]))
    seconds = [step["seconds"] for step in swapped["steps"]]
    assert [step["verdict"] for step in swapped["steps"]] == ["PASS"] * len(StepName)
    assert max(seconds) < 60.0
    assert [(step["verdict"], step["seconds"]) for step in lost["steps"]] == [("PASS", None)] * len(StepName)


def settings(names: tuple[str, ...] = NAMES, **given: object) -> Drills:
    return Drills.model_validate({"cron": "0 3 * * mon", "faults": names, **given})


def drilling(metrics: Metrics, chosen: Drills) -> FireDrills:
    return FireDrills(chosen, metrics.drills(drills_of(chosen)), metrics.health)


def begin(drills: FireDrills) -> bool:
    """As if it were time; False if they are under way."""
    return drills._scheduler.run_now(NAME)


def ended(metrics: Metrics) -> list[str]:
    """The drills that have ended, by the metrics."""
    return re.findall(r'drill_runs_total\{drill="(\w+)",verdict="\w+"\} 1\.0', page(metrics)[1].decode())


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.05)


def run(scenario: Callable[[Metrics], Awaitable[None]]) -> Metrics:
    """A scenario with the metrics of a service that watches a target on which something was found."""
    config = load(None, {})
    metrics = Metrics(config.objectives, "1.2.3")
    target = metrics.watch(config.targets[0], ["t"], ["s"])
    target.subscription("s").count(families.FINDINGS, Kind.ORDER_GAP, Status.VIOLATION)

    async def whole() -> None:
        await scenario(metrics)

    asyncio.run(whole())
    return metrics


def about_services(metrics: Metrics) -> list[str]:
    """Every line of a scrape that is about neither drills, the process, nor the time."""
    return [
        line
        for line in page(metrics)[1].decode().splitlines()
        if "pubsub_prober_drill_" not in line and "process_" not in line and "python_" not in line and "_clock_" not in line
    ]


def test_drills_change_nothing_that_is_said_about_services(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "prober.drills")

    async def scenario(metrics: Metrics) -> None:
        before = about_services(metrics)
        async with drilling(metrics, settings()) as drills:
            assert begin(drills)
            assert not begin(drills), "one at a time"
            await until(lambda: len(ended(metrics)) == len(NAMES))
        assert about_services(metrics) == before

    metrics = run(scenario)
    counted = page(metrics)[1].decode()
    assert 'pubsub_prober_drill_runs_total{drill="swap_in_batch",verdict="pass"} 1.0' in counted
    assert 'pubsub_prober_drill_runs_total{drill="control",verdict="pass"} 1.0' in counted
    found = re.findall(r'drill_findings_total\{drill="(\w+)",kind="(\w+)",status="\w+"\} [1-9]', counted)
    assert set(found) == {("swap_in_batch", "ORDER_GAP"), ("swap_in_batch", "ORDER_INVERSION")}
    assert set(re.findall(r'drill_step_seconds\{drill="swap_in_batch",step="(\w+)"', counted)) == {"finding", "counter"}
    assert 'pubsub_prober_drill_step_seconds{drill="swap_in_batch",step="finding"}' in counted
    assert 'pubsub_prober_drill_last_success_timestamp_seconds{drill="control"} 1.' in counted
    assert [record.levelname for record in caplog.records if record.getMessage().startswith("drill ")] == ["INFO", "INFO"]


def test_a_drill_that_does_not_pass_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "prober.drills")

    async def scenario(metrics: Metrics) -> None:
        unheard = settings(("swap_in_batch",), port=0, deadline="1s")
        async with drilling(metrics, unheard) as drills:
            begin(drills)
            await until(lambda: ended(metrics))

    metrics = run(scenario)
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert record.getMessage().startswith("drill swap_in_batch: FAIL after ")
    assert record.getMessage().endswith("; receiver: did not come within 1 s")
    assert 'drill_last_success_timestamp_seconds{drill="swap_in_batch"} 0.0' in page(metrics)[1].decode()


def test_what_is_under_way_is_stopped_with_the_service() -> None:
    async def scenario(metrics: Metrics) -> None:
        async with drilling(metrics, settings(("stall_key",))) as drills:
            begin(drills)
            await until(lambda: any(task.get_name().endswith(" tick") for task in asyncio.all_tasks()))
        assert ended(metrics) == []
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run(scenario)


def test_without_a_schedule_there_is_nothing() -> None:
    async def scenario(metrics: Metrics) -> None:
        async with drilling(metrics, Drills(port=0)):
            assert page(metrics)

    assert "pubsub_prober_drill_runs_total{" not in page(run(scenario))[1].decode()


@pytest.mark.parametrize("cron", ["", "0 3 * * mon"])
def test_a_service_has_drills_where_they_are_configured(cron: str, tmp_path: Path) -> None:
    environ = {"ORDERING_PROBER_STATUS__URL": f"sqlite:///{tmp_path}/status.db", "ORDERING_PROBER_DRILLS__CRON": cron}

    async def scenario() -> str:
        async with Service(load(None, environ), environ, "1.2.3") as service:
            return (await service.metrics(""))[1].decode()

    series = 'pubsub_prober_drill_last_success_timestamp_seconds{drill="control"} 0.0'
    assert (series in asyncio.run(scenario())) == bool(cron)


def test_a_port_that_is_taken_is_one_line() -> None:
    async def scenario(metrics: Metrics) -> None:
        taken = await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", 0)
        async with taken:
            port = taken.sockets[0].getsockname()[1]
            with pytest.raises(ConfigError, match=r"name another with drills\.port$"):
                await drilling(metrics, settings(port=port)).__aenter__()

    run(scenario)
