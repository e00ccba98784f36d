"""The clients of unary pull: each sends a pull, answers what it gets, and pulls again; all of them may stop for a while.

A pull whose answer is lost ends at the client's timeout, and only then is it recorded as lost: the service may have given its messages to
others, or gone on behind them, long before. What is recorded of a pull depends on the recorder (`PullRecord`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count

from prober.core.events import Closed, Opened
from tests.simulation.answers import Answers, Copy, record_delivery
from tests.simulation.options import PullRecord
from tests.simulation.pull import Pull, Service
from tests.simulation.world import ProbeInstance, World

LONGEST_WAIT_S = 25.0
"""Longer than the service lets a pull wait and its answer takes."""

PULLS_WHILE_QUIET = 5


@dataclass(slots=True)
class Client:
    """The pullers of a subscription."""

    probe_instance: ProbeInstance
    service: Service = field(init=False)
    answers: Answers = field(init=False)
    waits_s: float | None = None
    away: bool = False
    idle: int = 0
    _names: count[int] = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        self.service = Service(self.probe_instance, self.receive, self._end)
        self.answers = Answers(self.probe_instance, self.service, lambda _: True)

    @property
    def world(self) -> World:
        return self.probe_instance.world

    @property
    def _recorded(self) -> PullRecord:
        return self.probe_instance.options.session.pulls

    def start(self) -> None:
        for _ in range(self.probe_instance.options.client.clients):
            self._pull()

    def rest(self, quiet_s: float) -> None:
        """Nothing is expected any more for so long: from now on a pull waits for a good part of it."""
        self.waits_s = quiet_s / PULLS_WHILE_QUIET

    def go_away(self) -> None:
        """Nobody pulls for a while."""
        self.world.note("nobody pulls")
        self.away = True
        self.world.after(self.world.between(0.3, 1) * self.probe_instance.options.client.away_s, self._come_back)

    def _come_back(self) -> None:
        self.away = False
        for _ in range(self.idle):
            self._pull()
        self.idle = 0

    def _pull(self) -> None:
        world = self.world
        if self.away:
            self.idle += 1
            return
        recorder = self.probe_instance.any_recorder()
        request = Pull(f"{self.probe_instance.name}-pull-{next(self._names)}", recorder, invoked_t=recorder.t, waits_s=self.waits_s)
        if self._recorded is not PullRecord.ANSWERED:
            world.record(Opened(request.invoked_t, self.probe_instance.name, request.name, request.name))
        world.after(world.between(0, 0.3), lambda: self.service.pull(request))
        timeout = LONGEST_WAIT_S + (self.waits_s or self.probe_instance.options.session.pull_timeout_s)
        world.after(timeout, lambda: self._time_out(request))

    def _time_out(self, request: Pull) -> None:
        if not request.done:
            self._end(request, lost=True)

    def _end(self, request: Pull, lost: bool = False) -> None:
        """A pull came back, with an answer or empty, or not at all."""
        world = self.world
        request.done = True
        if self._recorded is PullRecord.COMPLETE:
            if lost:
                world.note("lost pull recorded")
            world.record(Closed(request.recorder.t, self.probe_instance.name, request.name, lost))
        world.after(world.between(0, 1), self._pull)

    def receive(self, request: Pull, copies: list[Copy]) -> None:
        if self._recorded is PullRecord.ANSWERED:
            self.world.record(Opened(request.recorder.t, self.probe_instance.name, request.name, request.name, request.invoked_t))
        for copy in copies:
            record_delivery(self.probe_instance, copy)
            self.answers.decide(copy)
        self._end(request)
