"""What is reported of the runs of a probe instance, from the first one on."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from prober.runs.backlog import Backlog
from prober.runs.recorder import PAUSE_MAX_S, Recording
from prober.runs.result import RunResult
from prober.schedule.assignments import NO_MORE, UNDER_WAY
from prober.schedule.probe_loop import ProbeLoop
from prober.sinks.live.snapshot import RunOrdered
from prober.slo.indicators import Indicator
from prober.slo.objectives import Objective
from tests.unit.probing import Work, until
from tests.unit.sinks.metrics.scraping import samples


def test_an_instance_names_what_is_probed_there_before_the_first_run() -> None:
    work = Work()

    async def scenario() -> None:
        instance = work.shown.probe_instance
        assert "/topics/okp-me-embedded-ordering-wire-" in instance.topic
        assert instance.subscription == instance.topic.replace("/topics/", "/subscriptions/")

    work.run(scenario())


def test_an_instance_names_what_its_run_uses() -> None:
    work = Work()

    async def scenario() -> None:
        await until(lambda: work.admin.asked)
        assert [work.shown.probe_instance.topic] == work.admin.asked
        await work.first_run()
        (result,) = work.reported
        assert (work.shown.probe_instance.topic, work.shown.probe_instance.subscription) == (result.topic, result.subscription)

    work.run(scenario())


def test_the_metrics_report_a_probe_as_assigned_until_the_prober_gives_it_up() -> None:
    work = Work()

    def assigned() -> list[tuple[str, str]]:
        found = [one for one in samples(work.metrics) if one.name == "pubsub_prober_probe_assigned_timestamp_seconds"]
        return [(one.labels["probe"], one.labels["vantage"]) for one in found]

    async def scenario() -> None:
        await work.first_run()
        assert assigned() == [("ordering", "wire")]
        await work.assignments.give(work.name)
        assert assigned() == []

    work.run(scenario())


class TestMaintenance:
    def test_a_run_that_ends_under_it_is_over_and_does_not_count(self) -> None:
        work = Work()

        async def scenario() -> None:
            await until(lambda: work.shown.running_since is not None)
            work.maintenance = "moving house"
            work.admin.may_go_on.set()
            await until(lambda: work.shown.maintenance == "moving house")
            assert (work.shown.running_since, work.shown.last_run, work.reported) == (None, None, [])

        work.run(scenario())

    @pytest.mark.parametrize("maintenance", [None, "moving house"])
    def test_what_ends_under_it_has_no_checks_on_record(self, maintenance: str | None) -> None:
        ended: list[RunResult] = []
        log = SimpleNamespace(
            record=lambda _event, _findings: None,
            ended=lambda result, _late, _verified, **_: ended.append(result),
            release=lambda: None,
        )
        work = Work(SimpleNamespace(begin=lambda _context: log))

        async def scenario() -> None:
            await until(lambda: work.shown.running_since is not None)
            work.maintenance = maintenance
            work.admin.may_go_on.set()
            await until(lambda: ended)
            assert bool(ended[0].checks) == (maintenance is None)

        work.run(scenario())

    def test_no_run_is_begun_under_it(self) -> None:
        work = Work()

        async def scenario() -> None:
            await work.first_run()
            work.maintenance = "moving house"
            assert work.assignments.run_now(work.key) == RunOrdered(None, "under maintenance: moving house")
            work.maintenance = ""
            assert work.assignments.run_now(work.key) == RunOrdered(None, "under maintenance")
            assert len(work.admin.asked) == 1

        work.run(scenario())


class TestRunNow:
    def test_the_run_that_begins_has_the_id_that_is_answered(self) -> None:
        work = Work()

        async def scenario() -> None:
            await work.first_run()
            ordered = work.assignments.run_now(work.key)
            assert work.assignments.run_now(work.key) == RunOrdered(None, UNDER_WAY)
            work.admin.may_go_on.set()
            await until(lambda: len(work.reported) == 2)
            assert (ordered.run_id, ordered.reason) == (work.reported[1].run_id, "")
            assert work.reported[0].run_id != work.reported[1].run_id

        work.run(scenario())

    def test_none_begins_before_the_schedule(self) -> None:
        work = Work()
        work.assignments.take(work.name)
        assert work.assignments.run_now(work.key) == RunOrdered(None, NO_MORE)


@pytest.mark.parametrize(("lagged_s", "bad", "undecided"), [(0.0, 3, 0), (PAUSE_MAX_S + 0.1, 0, 3)])
def test_keys_that_stalled_while_the_event_loop_lagged_are_undecided(
    monkeypatch: pytest.MonkeyPatch, lagged_s: float, bad: int, undecided: int
) -> None:
    work = Work(objectives=[Objective("stalled_keys", Indicator.STALLED_KEYS, 0.999, 3600.0)])
    monkeypatch.setattr(ProbeLoop, "backlogs", {"s": Backlog(stalled_keys=3)})
    monkeypatch.setattr(Recording, "lagged_s", lambda _recording, _taken_s: lagged_s)

    async def scenario() -> None:
        await until(lambda: work.shown.running_since is not None)
        work.assignments.count_slice()
        (counts,) = work.counters.totals.values()
        assert (counts.bad, counts.undecided) == (bad, undecided)

    work.run(scenario())
