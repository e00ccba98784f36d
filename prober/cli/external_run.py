"""One run of `check`, which ends early where the program of the external vantage fails."""

from __future__ import annotations

import asyncio

from prober.brokers.base import Broker
from prober.brokers.external import ExternalBroker
from prober.clock import monotonic_s, wall_s
from prober.core.verdict import Verdict
from prober.runs.probe_instance import Target
from prober.runs.result import RunResult
from prober.runs.runner import Run


async def carried_out(run: Run, broker: Broker, probe: str, target: Target) -> RunResult:
    """The result of a run. If the external client fails it is UNKNOWN, without findings: the failure may have caused them."""
    if not isinstance(broker, ExternalBroker):
        return await run.carry_out()
    started_at, started_t = wall_s(), monotonic_s()
    running, failed = asyncio.ensure_future(run.carry_out()), asyncio.ensure_future(broker.failed.wait())
    try:
        await asyncio.wait((running, failed), return_when=asyncio.FIRST_COMPLETED)
        if not broker.failed.is_set():
            return await running
    finally:
        for task in (running, failed):
            task.cancel()
        await asyncio.gather(running, failed, return_exceptions=True)
    duration_s = monotonic_s() - started_t
    return RunResult(run.run_id, probe, target.name, target.vantage, Verdict.UNKNOWN, broker.failure, started_at, duration_s)
