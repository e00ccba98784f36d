"""Drills of a service: nothing that is said about services changes, results are counted and logged, what is under way can be stopped."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from prober.config.loading import load
from prober.config.sections import CONTROL, Drills
from prober.core.findings import Kind, Status
from prober.drills.schedule import NAME, FireDrills, drills_of
from prober.errors import ConfigError
from prober.service import Service
from prober.sinks.metrics import Metrics
from tests.unit.sinks.metrics.scraping import page

NAMES = ("swap_in_batch", CONTROL)
PATIENCE_S = 180.0


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
    target.subscription("s").finding(Kind.ORDER_GAP, Status.VIOLATION)

    async def whole() -> None:
        await scenario(metrics)

    asyncio.run(whole())
    return metrics


def about_services(metrics: Metrics) -> list[str]:
    """Every line of a scrape that is about neither drills nor the process."""
    return [
        line
        for line in page(metrics)[1].decode().splitlines()
        if "pubsub_prober_drill_" not in line and "process_" not in line and "python_" not in line
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
        unheard = settings(("drop",), port=0, deadline="1s")
        async with drilling(metrics, unheard) as drills:
            begin(drills)
            await until(lambda: ended(metrics))

    metrics = run(scenario)
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert record.getMessage().startswith("drill drop: FAIL after ")
    assert record.getMessage().endswith("; receiver: did not come within 1 s")
    assert 'drill_last_success_timestamp_seconds{drill="drop"} 0.0' in page(metrics)[1].decode()


def test_what_is_under_way_is_stopped_with_the_service() -> None:
    async def scenario(metrics: Metrics) -> None:
        async with drilling(metrics, settings(("stall_key",))) as drills:
            begin(drills)
            await until(lambda: any(task.get_name().endswith(" beat") for task in asyncio.all_tasks()))
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
