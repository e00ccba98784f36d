"""A run: prepare, act, drain, verify.

*Prepare* ensures that topic and subscriptions exist (`resources`). *Act* is the experiment of the probe. *Drain* waits until no message is
pending, or until every deadline has passed, so that a missing message is evidence. *Verify* settles findings on hold and determines the
verdict.

The verdict is three-valued. FAIL needs a finding. UNKNOWN has a reason: messages are still pending, the experiment did not exercise its
situation, the target could not be reached, or an internal error occurred. None of these counts for or against the service.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from math import inf

from prober.brokers.base import Broker
from prober.clock import monotonic_s, random_name, starved_s, wall_s
from prober.core.events import Ended
from prober.core.findings import FAILING, Kind
from prober.core.rules import Mode, Rules
from prober.core.verdict import STILL_PENDING, Verdict
from prober.errors import AdminUnavailable, BrokerError, BrokerUnavailable, CheckpointUnavailable
from prober.probes.context import Handover, ProbeContext
from prober.probes.experiment import Experiment, Workload
from prober.runs.backlog import BacklogTracker, joined
from prober.runs.classification import Latency, Observation
from prober.runs.probe_instance import ProbeInstance, Target
from prober.runs.recorder import ANSWER_MAX_S, LIVENESS_CHECK_S, TICK_S, Listener, Recording
from prober.runs.resources import Provisioner
from prober.runs.result import RunResult
from prober.runs.sink import KeptHistory, RunBegun, RunEnded, RunListener, RunSink
from prober.slo.counts import checks_of, completeness_of, unsent_of
from prober.slo.indicators import Indicator
from prober.slo.objectives import SliCounts

LOOK_S = 0.05
LOOK_SHARE = 0.1
"""Largest share of time spent on checks for pending messages, which take longer with more keys."""

CANCELLED = "the prober was stopped before the run ended, so the rest was not verified; if this persists, find out why it restarts"

INTERNAL_ERROR = "internal error: {!r}, so the run was not verified; please report this with the log of the prober"

_log = logging.getLogger(__name__)


class Run:
    """A run of a probe on a target.

    provisioner   creates its topic and subscriptions; used by one run at a time.
    run_id        unique id; also the epoch of its messages, unless messages of an earlier run wait. Created here by default.
    handover      handover from the previous run and to the next; None: it has neither.
    """

    def __init__(
        self,
        probe: Experiment,
        broker: Broker,
        target: Target,
        provisioner: Provisioner,
        workload: Workload | None = None,
        seed: int = 0,
        run_id: str = "",
        handover: Handover | None = None,
    ) -> None:
        self.run_id = run_id or new_run_id(probe.name)
        self._handover, self._epoch = handover, (handover and handover.epoch) or self.run_id
        self._probe, self._broker, self._target, self._provisioner = probe, broker, target, provisioner
        self._workload, self._seed = workload or probe.workload, seed
        self.rules = provisioner.rules
        """Bounds and settings of its verified subscriptions, by full name, the first one first."""
        self._resources, self._trackers = provisioner.resources, provisioner.backlog_trackers
        own_epoch = self._epoch if probe.own_messages else ""
        self.recording = Recording(self.rules, monotonic_s, [_following(self._trackers)], own_epoch, starved_s)
        self._listeners: list[RunListener] = []
        self._interval_s = inf
        self._unreachable = self._silent = False
        self._mistakes: dict[str, Exception] = {}
        self._answered_t = 0.0
        self._missed_runs = 0
        self.admin_unavailable = False
        """Whether the run ended because an administration call failed: no answer in time, or an error of the target itself."""

    def begin(self, instance: ProbeInstance, sinks: Iterable[RunSink]) -> None:
        """Open the run at the sinks; each receives its events and its end.

        Must be called before `carry_out`.
        """
        self._interval_s = instance.interval_s
        begun = RunBegun(self.run_id, instance, self.rules, wall_s(), self._seed)
        for sink in sinks:
            listener = sink.begin(begun)
            self._listeners.append(listener)
            self.recording.listen(listener.event)

    async def carry_out(
        self, lagged: Callable[[float], None] = lambda _late_s: None, counts: Callable[[], bool] = lambda: True
    ) -> RunResult:
        """Carry out the run and return its result.

        Raises only CancelledError: errors are part of the result. `lagged` is called with the lateness of each tick in seconds. `counts`
        decides at the end whether the run counts; the sinks receive its answer.
        """
        started_at, started_t = wall_s(), monotonic_s()
        self._answered_t = started_t
        ticking = asyncio.create_task(self._tick(lagged), name=f"{self.run_id} tick")
        fault: Exception | None = None
        reason = ""
        try:
            await self._experiment()
        except TimeoutError:
            reason = (
                f"the experiment did not end within {self._target.act_timeout_s:g} s, so the rest was not verified; if this persists, "
                "reduce keys or messages of the probe, or give the prober more CPU"
            )
        except (BrokerError, CheckpointUnavailable) as error:
            reason = str(error)
            self._unreachable |= isinstance(error, BrokerUnavailable)
        except asyncio.CancelledError:
            self.recording.finish()
            self._end(self._settled(CANCELLED, None, started_at, started_t), counts=counts(), cut_short=True)
            raise
        except Exception as error:
            fault = error
        finally:
            ticking.cancel()
            self.recording.finish()
        result = self._settled(reason, fault, started_at, started_t)
        self._end(result, counts=counts())
        return result

    def _settled(self, reason: str, fault: Exception | None, started_at: float, started_t: float) -> RunResult:
        """Return the result, after updating backlog and resources for later runs. An internal error becomes the result."""
        try:
            result = self._result(reason, fault, started_at, started_t)
            paused = self.recording.stood_still or result.internal_error
            written_off = sum(
                tracker.end_run(self._epoch, monotonic_s(), unreachable=self._unreachable, paused=paused)
                for tracker in self._trackers.values()
            )
            self._provisioner.run_ended(passed=result.verdict is Verdict.PASS, written_off=written_off)
            if written_off:
                result = replace(result, counters={**result.counters, "messages_written_off": written_off})
        except Exception as error:
            _log.exception("internal error at the end of run %s", self.run_id)
            return self._unsettled(error, started_at, started_t)
        return result

    def _unsettled(self, error: Exception, started_at: float, started_t: float) -> RunResult:
        """Return the result of a run that an internal error left without any data."""
        target, resources = self._target, self._resources
        return RunResult(
            self.run_id,
            self._probe.name,
            target.name,
            target.vantage,
            Verdict.UNKNOWN,
            INTERNAL_ERROR.format(error),
            started_at,
            monotonic_s() - started_t,
            seed=self._seed,
            topic=resources.topic,
            subscription=resources.subscription,
            internal_error=True,
            part=target.part,
        )

    def _end(self, result: RunResult, *, counts: bool, cut_short: bool = False) -> None:
        """Report the end to the listeners. `counts`: False under maintenance of the target: no result of the run counts."""
        recording = self.recording
        verifier = recording.verifier
        recorded = KeptHistory(recording.events, self.rules, recording.events_seen, verifier.verified, verifier.stopped_because)
        unfollowed = sum(tracker.take_dropped() for tracker in self._trackers.values())
        overdue, undecided = recording.overdue if verifier.fault is None else 0, recording.undecided
        if not counts:
            late = Indicator.END_TO_END_LATENCY
            overdue, undecided = 0, {**undecided, late: undecided[late] + overdue}
        end = RunEnded(
            result, recording.late, recorded, wall_s(), counts, cut_short, unfollowed, undecided, overdue, recording.measurements
        )
        for listener in self._listeners:
            try:
                listener.ended(end)
            except Exception:
                _log.exception("internal error: a sink failed at the end of run %s", self.run_id)

    async def _experiment(self) -> None:
        try:
            await self._experiment_on_resources()
        except AdminUnavailable as error:
            self.admin_unavailable = True
            if not await self._is_alive():
                raise
            raise BrokerError(f"{error}; the data plane answers: see control_plane_latency") from error

    async def _experiment_on_resources(self) -> None:
        administered = self._provisioner.administered
        context = ProbeContext(self._broker, self._resources, self.recording, self._epoch, self._seed, administered, self._handover)
        async with self._provisioner.prepared(self._broker.admin, self._broker.pushes), self._liveness_checks(), context:
            context.creation = self._provisioner.creation
            try:
                await asyncio.wait_for(self._probe.act(context, self._workload), self._target.act_timeout_s)
                await self._drain()
            finally:
                self._silent |= self.recording.unanswered  # before the end is settled, which may take longer than an answer
                self.recording.finish()
        if self.recording.classifier.answered_t == -inf and not await self._is_alive():  # over before the first liveness check
            raise BrokerUnavailable("the target did not answer at all; if this persists, check the target and the network to it")

    async def _tick(self, lagged: Callable[[float], None]) -> None:
        while True:
            lagged(self.recording.tick())
            await asyncio.sleep(TICK_S)

    @asynccontextmanager
    async def _liveness_checks(self) -> AsyncIterator[None]:
        checking = asyncio.create_task(self._check_liveness(), name=f"{self.run_id} liveness checks")
        try:
            yield
        finally:
            checking.cancel()

    async def _check_liveness(self) -> None:
        """Check the liveness periodically. A refused connection counts as an answer.

        Streams that break meanwhile are recorded, and no message is in transit. With push it is no answer: a push request that cannot reach
        the endpoint is not recorded, and looks like a request that was not sent.
        """
        self._answered_t = monotonic_s()  # all requests of its preparation have been answered
        is_pushed = any(rules.mode is Mode.PUSH for rules in self.rules.values())
        while True:
            if not is_pushed or monotonic_s() - self._alive_t <= ANSWER_MAX_S:
                self.recording.note_answer()
            await asyncio.sleep(LIVENESS_CHECK_S)
            alive_t, asked_t = self._alive_t, monotonic_s()
            is_alive = await self._is_alive()
            taken_s = monotonic_s() - asked_t
            self._silent = not is_alive and self.recording.lagged_s(taken_s) <= taken_s / 2  # else the prober itself may be silent
            if is_alive:
                self._answered_t = monotonic_s()
                self._missed_runs += self._runs_within(self._answered_t - alive_t)

    @property
    def _alive_t(self) -> float:
        """Time of the latest answer, confirmation or delivery of the data plane; the start of the run before the first."""
        return max(self._answered_t, self.recording.classifier.answered_t)

    def _runs_within(self, silent_s: float) -> int:
        """Return the number of runs that were due while this run waited for an answer and received none."""
        return int(silent_s // self._interval_s) if silent_s > LIVENESS_CHECK_S + ANSWER_MAX_S else 0

    async def _is_alive(self) -> bool:
        """Return whether the data plane answers at each endpoint of the run."""
        peers = [self._broker.peer] if self._probe.paired and self._broker.peer is not None else []
        return all(await asyncio.gather(*(self._answers(broker) for broker in (self._broker, *peers))))

    async def _answers(self, broker: Broker) -> bool:
        """Return whether the data plane answers at an endpoint; an internal error of the check counts as an answer."""
        resources = self._resources
        try:
            await broker.check_liveness("" if resources.foreign_topic else resources.topic, resources.subscription)
        except BrokerError as error:
            return not isinstance(error, BrokerUnavailable)
        except Exception as error:
            self._mistakes[repr(error)] = error
        return True

    async def _drain(self) -> None:
        """Wait until no message is pending, or every deadline has passed; then end the history."""
        recording = self.recording
        began_t = recording.now()
        while not recording.verifier.stopped_because and not recording.verifier.findings.failed:
            looked_t = recording.now()
            quiet_until_t = max(began_t, recording.classifier.answered_t) + self._target.quiet_s
            if looked_t >= min(began_t + self._target.drain_s, quiet_until_t) or not recording.verifier.pending:
                break
            await asyncio.sleep(max(LOOK_S, (recording.now() - looked_t) / LOOK_SHARE))
        recording.record(Ended(recording.now(), drained=True))

    def _result(self, reason: str, fault: Exception | None, started_at: float, started_t: float) -> RunResult:
        duration_s = monotonic_s() - started_t
        recording, counters = self.recording, self.recording.counters
        findings = tuple(recording.finish())
        faults = [*recording.faults, *self._mistakes.values(), *([] if fault is None else [fault])]
        for each in faults:
            _log.error("internal error in run %s", self.run_id, exc_info=each)
        if fault is not None:
            reason = INTERNAL_ERROR.format(fault)
        reason = reason or recording.verifier.stopped_because or _vacuous(self._probe, counters)
        verdict = recording.verifier.verdict(incomplete=bool(reason))
        silent_s = monotonic_s() - self._alive_t
        is_silent = self._silent and silent_s > ANSWER_MAX_S and not recording.stood_still
        self._unreachable |= is_silent and verdict is not Verdict.PASS
        missing = {
            (subscription, key): count
            for subscription, tracker in self._trackers.items()
            for key, count in tracker.missing(self._epoch).items()
        }
        age_s = joined(self._provisioner.backlogs.values()).oldest_unacked_age_s
        if self._probe.own_messages:
            recording.timings.took(Latency(Indicator.OLDEST_UNACKED_MESSAGE_AGE, age_s))
        trusted = fault is None and not recording.verifier.stopped_because
        completeness = completeness_of(counters["publishes_confirmed"] * len(self._trackers), missing, recording.overdue_keys)
        proven = recording.verifier.fault is None
        checks = checks_of(counters, recording.verifier.findings.counts, completeness, trusted=trusted, proven=proven)
        return RunResult(
            run_id=self.run_id,
            probe=self._probe.name,
            target=self._target.name,
            vantage=self._target.vantage,
            verdict=verdict,
            reason=_reason(verdict, reason, (kind for kind, status in recording.verifier.findings.counts if status in FAILING)),
            started_at=started_at,
            duration_s=duration_s,
            seed=self._seed,
            topic=self._resources.topic,
            subscription=self._resources.subscription,
            findings=findings,
            counts=dict(recording.verifier.findings.counts),
            counters=dict(counters),
            checks=checks | self._unsent(silent_s, trusted=fault is None and not recording.stood_still),
            durations=recording.timings.durations(self._probe.name),
            figures=dict(recording.figures),
            unreachable=self._unreachable,
            internal_error=bool(faults),
            part=self._target.part,
            clock_offset_s=started_at - started_t,
        )

    def _unsent(self, silent_s: float, *, trusted: bool) -> dict[Indicator, SliCounts]:
        """Return the unsent messages of this run and of the runs that it delayed.

        Delayed are the runs that were due while this run waited for an answer and received none.
        """
        missed_runs = self._missed_runs + (self._runs_within(silent_s) if self._unreachable else 0)
        wanted = self._probe.messages(self._workload)
        missed = missed_runs * wanted
        return unsent_of(wanted, self.recording.classifier.attempts, missed=missed, unreachable=self._unreachable, trusted=trusted)


def _following(trackers: Mapping[str, BacklogTracker]) -> Listener:
    """Return the listener that feeds the backlogs: each publish is pending on all subscriptions.

    It has no reference to the run; with one, a reference cycle would delay the release of both.
    """
    every = tuple(trackers.values())

    def follow(seen: Observation) -> None:
        tracker = trackers.get(getattr(seen.event, "subscription", ""))
        for each in every if tracker is None else (tracker,):
            each.listen(seen.event)

    return follow


def new_run_id(probe: str) -> str:
    """Return a run id that no other run of any prober has."""
    return f"{probe}-{random_name(12)}"


def _vacuous(probe: Experiment, counters: Mapping[str, int]) -> str:
    """Return why the run proved nothing: the first situation that did not occur, and the counters of others.

    Empty if all occurred.
    """
    first, *others = [name for name in probe.requires if not counters.get(name)] or [""]
    more = f" (also 0: {', '.join(others)})" if others else ""
    return f"{probe.requires[first]}{more}" if first else ""


def _reason(verdict: Verdict, reason: str, kinds: Iterable[Kind]) -> str:
    if verdict is Verdict.PASS:
        return ""
    if verdict is Verdict.UNKNOWN:
        return reason or STILL_PENDING
    return ", ".join(sorted(set(kinds)))


def for_library(rules: Rules) -> Rules:
    """Return the bounds for events of a client library's callbacks: unbounded delays, hidden attempts."""
    return replace(rules, delivery_delay_max_s=float("inf"), attempts_observed=False)
