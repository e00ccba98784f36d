"""The history as a sink of runs."""

from __future__ import annotations

from dataclasses import replace

from prober.runs.classification import Observation
from prober.runs.sink import RunBegun, RunEnded
from prober.sinks.history.encoding import RunContext
from prober.sinks.history.run_log import RunLog
from prober.sinks.history.writer import HistoryWriter


class HistorySink:
    """Records every run in the history."""

    def __init__(self, writer: HistoryWriter) -> None:
        self._writer = writer

    def begin(self, run: RunBegun) -> HistoryRun:
        """A run begins."""
        site = run.site
        context = RunContext(
            run_id=run.run_id,
            target=site.target,
            environment=site.environment,
            region=site.region,
            probe=site.probe,
            vantage=site.vantage,
            topic=site.topic,
            rules=run.rules,
            started_at=run.started_at,
            seed=run.seed,
        )
        return HistoryRun(self._writer.begin(context))


class HistoryRun:
    """Listens to one run. One that was cut short has no end in the history."""

    def __init__(self, log: RunLog) -> None:
        self._log = log

    def event(self, seen: Observation) -> None:
        """The next event of the run."""
        self._log.record(seen.event, seen.findings)

    def ended(self, end: RunEnded) -> None:
        """The run is over."""
        if end.cut_short:
            self._log.release()
        else:
            # What does not count must not count wherever the record of it is counted later.
            result = end.result if end.counts else replace(end.result, checks={})
            self._log.ended(result, end.findings, end.recorded.judged)
