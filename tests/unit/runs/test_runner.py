"""What a run counts of what it was to publish and did not: bad where the target was unreachable, undecided where that may be our doing."""

from __future__ import annotations

import asyncio

import pytest

from prober.core.verdict import Verdict
from prober.errors import AdminUnavailable, BrokerError, BrokerUnavailable, ConnectionGivenUp, PermissionRefused, TargetFailed
from prober.probes.catalogue import PROBES
from prober.probes.context import ProbeContext
from prober.probes.experiment import Experiment, SubscriptionPlan, Workload
from prober.probes.publishing import GENERATIONS_MAX
from prober.runs import runner
from prober.runs.backlog import Backlog
from prober.runs.classification import Observation
from prober.runs.recorder import Recording
from prober.runs.resources import Provisioner
from prober.runs.sink import RunBegun, RunEnded
from prober.slo.indicators import Indicator
from prober.slo.objectives import SliCounts
from tests.notation import history
from tests.unit.runs.running import (
    INTERVAL_S,
    TARGET,
    WANTED,
    Clock,
    begun,
    broker_of,
    fails,
    nothing,
    publishes_all,
    receives,
    run_of,
    unsent,
)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(runner, "monotonic_s", clock)
    return clock


def test_a_message_is_pending_on_each_subscription() -> None:
    async def act(context: ProbeContext, _workload: Workload) -> None:
        await context.publish("key-0", 3)
        receives(context, "", 3)
        receives(context, "second", 1)
        pending.extend(place.backlogs.items())
        raise BrokerError("that is enough")

    pending: list[tuple[str, Backlog]] = []
    place = Provisioner(TARGET, "test", (SubscriptionPlan(), SubscriptionPlan("second")), lasting=True)
    result = run_of(act, place=place)
    assert [(name, backlog.undelivered) for name, backlog in pending] == [("okp-test", 0), ("okp-test-second", 2)]
    assert result.checks[Indicator.COMPLETENESS] == SliCounts(good=4, undecided=2)


def test_a_mistake_of_ours_in_a_liveness_check_is_not_the_targets(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "LIVENESS_CHECK_S", 0.0)
    monkeypatch.setattr(runner, "TICK_S", 0.0)

    async def check() -> None:
        raise ZeroDivisionError

    async def act(context: ProbeContext, workload: Workload) -> None:
        await publishes_all(context, workload)
        await clock.passes(10.0)

    result = run_of(act, check=check)
    assert (result.internal_error, result.unreachable, unsent(result)) == (True, False, None)


def test_a_mistake_of_ours_at_the_end_is_a_result_too(monkeypatch: pytest.MonkeyPatch) -> None:
    place = Provisioner(TARGET, "test", lasting=True)
    monkeypatch.setattr(place, "run_ended", lambda **_: 1 / 0)
    result = run_of(publishes_all, place=place)
    assert (result.verdict, result.internal_error, result.checks) == (Verdict.UNKNOWN, True, {})
    assert result.reason.startswith("internal error: ZeroDivisionError('division by zero'), so the run was not verified")


class TestUnreachable:
    @pytest.mark.parametrize("error", [BrokerUnavailable("nobody answers"), TargetFailed("an error of its own")], ids=str)
    def test_everything_that_was_to_be_published_is_bad(self, error: BrokerError) -> None:
        result = run_of(publishes_all, create=fails(error))
        assert (result.verdict, result.unreachable, unsent(result)) == (Verdict.UNKNOWN, True, SliCounts(bad=WANTED))

    def test_what_was_sent_before_counts_by_itself(self) -> None:
        async def act(context: ProbeContext, _workload: Workload) -> None:
            await context.publish("key-0", 5)
            raise BrokerUnavailable("the stream cannot be opened")

        result = run_of(act)
        assert unsent(result) == SliCounts(bad=WANTED - 5)

    def test_runs_that_could_not_begin_meanwhile_count_too(self, clock: Clock) -> None:
        async def hangs() -> None:
            clock.now += 3.5 * INTERVAL_S
            raise BrokerUnavailable("no answer in time")

        result = run_of(publishes_all, create=hangs)
        assert unsent(result) == SliCounts(bad=4 * WANTED)

    def test_but_not_those_before_the_target_fell_silent(self, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(runner, "LIVENESS_CHECK_S", 0.0)
        monkeypatch.setattr(runner, "TICK_S", 0.0)
        gone = asyncio.Event()

        async def check() -> None:
            if gone.is_set():
                raise BrokerUnavailable("refused")

        async def act(context: ProbeContext, workload: Workload) -> None:
            await clock.passes(4 * INTERVAL_S)
            await publishes_all(context, workload)
            gone.set()
            await clock.passes(1.5 * INTERVAL_S)
            raise BrokerUnavailable("the stream cannot be opened")

        result = run_of(act, check=check)
        assert unsent(result) == SliCounts(bad=WANTED)

    def test_a_target_that_does_not_answer_any_more_is_unreachable(self, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(runner, "LIVENESS_CHECK_S", 0.0)
        monkeypatch.setattr(runner, "TICK_S", 0.0)

        async def act(_context: ProbeContext, _workload: Workload) -> None:
            await clock.passes(10.0)
            raise TimeoutError  # as if it had not ended in time

        result = run_of(act, check=fails(BrokerUnavailable("refused")))
        assert (result.unreachable, unsent(result)) == (True, SliCounts(bad=WANTED))

    def test_a_target_that_never_answered_is_unreachable_also_if_the_run_ends_before_the_first_check(self) -> None:
        result = run_of(lambda *_: asyncio.sleep(0.0), check=fails(BrokerUnavailable("refused")))  # no call raises
        assert (result.verdict, result.unreachable, unsent(result)) == (Verdict.UNKNOWN, True, SliCounts(bad=WANTED))
        assert result.reason.startswith("the target did not answer at all")

    def test_messages_that_were_tried_again_and_again_count_by_themselves(self, clock: Clock) -> None:
        """Five attempts at each of five messages in the time of two runs: what is missing to their twenty messages was not sent."""

        async def act(context: ProbeContext, _workload: Workload) -> None:
            await context.publish("key-0", 3)
            clock.now += 1.5 * INTERVAL_S
            raise BrokerUnavailable("the stream cannot be opened")

        assert unsent(run_of(act, answers=False)) == SliCounts(bad=2 * WANTED - 3 * GENERATIONS_MAX)

    def test_one_that_answers_again_is_not(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(runner, "LIVENESS_CHECK_S", 0.0)
        answers = iter([BrokerUnavailable("refused")])

        async def check() -> None:
            for error in answers:
                raise error

        async def act(context: ProbeContext, workload: Workload) -> None:
            await asyncio.sleep(0.01)
            await publishes_all(context, workload)

        result = run_of(act, check=check)
        assert (result.unreachable, unsent(result)) == (False, None)

    def test_runs_that_could_not_begin_count_also_if_in_the_end_it_answers_again(
        self, clock: Clock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(runner, "LIVENESS_CHECK_S", 0.0)
        monkeypatch.setattr(runner, "TICK_S", 0.0)
        gone = asyncio.Event()

        async def check() -> None:
            if gone.is_set():
                raise BrokerUnavailable("refused")

        async def act(context: ProbeContext, workload: Workload) -> None:
            await publishes_all(context, workload)
            gone.set()
            await clock.passes(3.5 * INTERVAL_S)
            gone.clear()
            await clock.passes(1.0)

        result = run_of(act, check=check)
        assert (result.unreachable, unsent(result)) == (False, SliCounts(bad=3 * WANTED))

    def test_so_it_does_if_one_question_was_answered_after_all_that_time(
        self, clock: Clock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(runner, "LIVENESS_CHECK_S", 0.0)
        monkeypatch.setattr(runner, "TICK_S", 0.0)
        asked, answers = asyncio.Event(), asyncio.Event()

        async def check() -> None:
            asked.set()
            await answers.wait()

        async def act(_context: ProbeContext, _workload: Workload) -> None:
            await asked.wait()
            await clock.passes(2.5 * INTERVAL_S)
            answers.set()
            await clock.passes(1.0)

        result = run_of(act, check=check)
        assert (result.unreachable, unsent(result)) == (False, SliCounts(bad=2 * WANTED, undecided=WANTED))


class TestNotTheTarget:
    @pytest.mark.parametrize("answers", [True, False])
    def test_an_administration_that_is_down_is_no_outage_if_the_data_plane_answers(self, *, answers: bool) -> None:
        down = AdminUnavailable("creating t took longer than 30 s")
        result = run_of(publishes_all, create=fails(down), check=nothing if answers else fails(BrokerUnavailable("refused")))
        assert (result.verdict, result.unreachable) == (Verdict.UNKNOWN, not answers)
        assert result.reason == f"{down}{'; the data plane answers: see control_plane_latency' if answers else ''}"
        assert unsent(result) == (SliCounts(undecided=WANTED) if answers else SliCounts(bad=WANTED))

    def test_checks_that_fail_while_messages_flow_are_no_outage(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(runner, "LIVENESS_CHECK_S", 0.0)

        async def act(context: ProbeContext, workload: Workload) -> None:
            await asyncio.sleep(0.01)
            await context.publish("key-0", workload.burst_messages)
            await asyncio.sleep(0.01)

        result = run_of(act, check=fails(BrokerUnavailable("refused")))
        assert (result.unreachable, unsent(result)) == (False, SliCounts(undecided=WANTED - 5))

    def test_a_run_that_published_everything_counts_nothing_here(self) -> None:
        assert unsent(run_of(publishes_all)) is None

    def test_neither_does_one_whose_publishes_were_not_answered(self) -> None:
        assert unsent(run_of(publishes_all, answers=False)) is None

    @pytest.mark.parametrize("error", [PermissionRefused("no"), ConnectionGivenUp("closed"), BrokerError("odd")], ids=str)
    def test_a_refusal_is_undecided(self, error: BrokerError) -> None:
        result = run_of(publishes_all, create=fails(error))
        assert (result.unreachable, unsent(result)) == (False, SliCounts(undecided=WANTED))

    def test_so_is_a_mistake_of_ours(self) -> None:
        result = run_of(publishes_all, create=fails(ZeroDivisionError()))
        assert (result.internal_error, unsent(result)) == (True, SliCounts(undecided=WANTED))

    def test_and_an_experiment_that_does_not_end(self) -> None:
        async def act(_context: ProbeContext, _workload: Workload) -> None:
            raise TimeoutError  # as if it had not ended in time

        assert unsent(run_of(act)) == SliCounts(undecided=WANTED)

    def test_a_prober_that_stood_still_may_have_caused_it(self, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(runner, "TICK_S", 0.0)

        async def hangs() -> None:
            await asyncio.sleep(0)
            clock.now += 10.0
            for _ in range(5):
                await asyncio.sleep(0)
            raise BrokerUnavailable("no answer in time")

        result = run_of(publishes_all, create=hangs)
        assert (result.unreachable, unsent(result)) == (True, SliCounts(undecided=WANTED))

    def test_a_pause_of_the_prober_is_no_outage(self, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(runner, "LIVENESS_CHECK_S", 0.0)
        monkeypatch.setattr(runner, "TICK_S", 0.0)

        async def act(context: ProbeContext, _workload: Workload) -> None:
            await context.publish("key-0", 1)
            clock.now += 60.0
            await asyncio.sleep(0.01)

        result = run_of(act, check=fails(BrokerUnavailable("refused")))
        assert (result.unreachable, unsent(result)) == (False, SliCounts(undecided=WANTED - 1))


class Ends:
    """A sink that keeps how runs ended."""

    def __init__(self) -> None:
        self.ends: list[RunEnded] = []

    def begin(self, _run: RunBegun) -> Ends:
        return self

    def event(self, _seen: Observation) -> None:
        pass

    def ended(self, end: RunEnded) -> None:
        self.ends.append(end)


@pytest.mark.parametrize("maintenance", [False, True])
def test_a_run_that_is_cut_short_counts_what_it_had_proven_unless_under_maintenance(*, maintenance: bool) -> None:
    """Message 2 was passed over; then the prober is stopped."""
    acting = asyncio.Event()

    async def act(_context: ProbeContext, _workload: Workload) -> None:
        acting.set()
        await asyncio.sleep(60.0)

    async def scenario() -> RunEnded:
        sink = Ends()
        run = begun(act, broker_of(), sinks=[sink])
        carried_out = asyncio.create_task(run.carry_out(counts=lambda: not maintenance))
        await asyncio.wait_for(acting.wait(), 10.0)
        for event in history("P1,2,3 A<1@1 A<3@1.1"):
            run.recording.record(event)
        carried_out.cancel()
        with pytest.raises(asyncio.CancelledError):
            await carried_out
        (end,) = sink.ends
        return end

    end = asyncio.run(scenario())
    assert (end.counts, end.is_counted, end.cut_short, end.result.verdict) == (not maintenance, False, True, Verdict.FAIL)
    assert end.checks == ({} if maintenance else {Indicator.ORDER: SliCounts(bad=1)})


@pytest.mark.parametrize("maintenance", [False, True])
def test_what_never_came_counts_unless_the_run_ended_under_maintenance(
    monkeypatch: pytest.MonkeyPatch, *, maintenance: bool
) -> None:
    async def scenario() -> RunEnded:
        sink = Ends()
        run = begun(publishes_all, broker_of(), sinks=[sink])
        await asyncio.wait_for(run.carry_out(counts=lambda: not maintenance), 60.0)
        return sink.ends[0]

    monkeypatch.setattr(Recording, "overdue", 3)
    assert asyncio.run(scenario()).overdue == (0 if maintenance else 3)


def test_the_reason_is_the_first_situation_that_was_not_met() -> None:
    requires = {"deliveries_first": "nothing was delivered", "nacks": "nothing was nacked", "rewinds": "nothing was redelivered"}
    probe = Experiment("p", "", publishes_all, requires=requires)
    assert runner._vacuous(probe, {"deliveries_first": 3, "nacks": 1, "rewinds": 1}) == ""
    assert runner._vacuous(probe, {"deliveries_first": 3}) == "nothing was nacked (also 0: rewinds)"
    assert runner._vacuous(probe, {"nacks": 1, "rewinds": 1}) == "nothing was delivered"


@pytest.mark.parametrize("probe", PROBES.values(), ids=PROBES)
def test_each_reason_names_a_cause_a_consequence_and_what_to_do(probe: Experiment) -> None:
    for reason in probe.requires.values():
        cause, *rest = reason.split(", so ")
        assert cause
        assert "; " in rest[-1]
        assert "\n" not in reason


def test_messages_of_a_run_that_was_cut_off_are_not_pending_after_it() -> None:
    async def act(context: ProbeContext, _workload: Workload) -> None:
        await context.publish("key-0", 3)
        receives(context, "", 1)
        raise BrokerError("that is enough")

    place = Provisioner(TARGET, "test", lasting=True)
    result = run_of(act, place=place)
    assert set(place.backlogs.values()) == {Backlog()}
    assert result.counters["messages_written_off"] == 2
    assert result.checks[Indicator.COMPLETENESS] == SliCounts(good=1, undecided=2)


def test_messages_stay_pending_while_the_target_is_unreachable() -> None:
    async def act(context: ProbeContext, _workload: Workload) -> None:
        await context.publish("key-0", 3)
        raise BrokerUnavailable("nobody answers")

    place = Provisioner(TARGET, "test", lasting=True)
    run_of(act, place=place)
    assert [backlog.undelivered for backlog in place.backlogs.values()] == [3]
