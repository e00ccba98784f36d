"""A healthy service has no pending messages between runs, whatever the probe does to its messages."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from prober.brokers.base import Vantage
from prober.cli.check_runs import CheckRequest, run_checks
from prober.config.loading import load
from prober.core.verdict import Verdict
from prober.embedded.server import EmbeddedServer
from prober.probes.catalogue import PROBES, ProbeName
from prober.runs import resources
from prober.runs.backlog import Backlog
from prober.runs.resources import Provisioner
from prober.runs.result import RunResult
from tests.integration.test_benign import run_from

IN_REAL_TIME = (ProbeName.DEAD_LETTER, ProbeName.PUBLISH)
"""Through the client library, which cannot take part in virtual time."""


@pytest.mark.parametrize(
    ("probe", "vantage"), [*((probe, Vantage.WIRE) for probe in PROBES), *((probe, Vantage.LIBRARY) for probe in IN_REAL_TIME)]
)
def test_nothing_is_pending_after_a_run_on_a_healthy_service(
    probe: ProbeName, vantage: Vantage, monkeypatch: pytest.MonkeyPatch
) -> None:
    places: list[Provisioner] = []

    def lasting(*args: Any, lasting: bool, **settings: Any) -> Provisioner:
        places.append(Provisioner(*args, lasting=not lasting, **settings))
        return places[-1]

    async def scenario() -> tuple[RunResult, dict[str, Backlog]]:
        async with EmbeddedServer() as server:
            request = CheckRequest(probes=(probe,), endpoint=server.address, vantage=vantage)
            (result,) = await run_checks(load(None, {}), request, {}, lambda _: None)
            return result, places[0].backlogs

    monkeypatch.setattr(resources, "Provisioner", lasting)
    runs: Callable[[Coroutine[Any, Any, Any]], Any] = run_from(vantage)
    result, backlogs = runs(scenario())
    assert result.verdict is Verdict.PASS, result.reason
    assert backlogs
    assert set(backlogs.values()) == {Backlog()}
    assert "messages_written_off" not in result.counters
