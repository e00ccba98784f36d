"""The clients of streaming pull: subscribers with one or several streams, which break, are handed over, or are all gone for a while.

A stream breaks cleanly (both sides at once, what is under way is lost), half-open (the service drops it and the client notices within
Delta_close; what was under way still arrives, or is lost), or at the client first (the service sends into the void for a while). It is
handed over when a client opens its next stream before the old one is over: the service goes on with the new one at once, the client
reads the old one to its end, acknowledges what it got there, and closes it (row 5 of the amendments).

While messages that were raced (see `streaming`) are under way on a stream it does not break: the loss of one of them would only show
later than the bound within which the checker waits for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from prober.core.events import Closed, Opened
from tests.simulation.answers import Answers, Copy, record_delivery
from tests.simulation.line import Session
from tests.simulation.options import NEVER
from tests.simulation.recorders import Recorder
from tests.simulation.streaming import Service
from tests.simulation.streaming_lane import Stream
from tests.simulation.world import ProbeInstance, World


@dataclass(slots=True)
class Client:
    """All subscribers of a subscription: they open streams, break them, and answer what they get."""

    probe_instance: ProbeInstance
    service: Service = field(init=False)
    answers: Answers = field(init=False)
    subscribers: int = 0
    away: bool = False
    open: list[Stream] = field(default_factory=list)
    recorders: dict[str, Recorder] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.service = Service(self.probe_instance, self.receive, self.crash)
        self.answers = Answers(self.probe_instance, self.service, self._usable)

    @property
    def world(self) -> World:
        return self.probe_instance.world

    def start(self) -> None:
        for _ in range(self.probe_instance.options.client.clients):
            self.subscribers += 1
            for _ in range(self.probe_instance.options.client.streams):
                self._open(f"c{self.subscribers}")

    def rest(self, quiet_s: float) -> None:
        """A quiet time begins: nothing changes."""

    # --- streams ---

    def _open(self, owner: str, replaces: Stream | None = None) -> None:
        if self.away:
            return
        world, options = self.world, self.probe_instance.options
        recorder = self.recorders.setdefault(owner, self.probe_instance.any_recorder())
        stream = Stream(f"{owner}-{world.number()}", recorder, owner=owner)
        limits = options.service.limit_messages or None, options.service.limit_bytes or None
        world.record(Opened(recorder.t, self.probe_instance.name, stream.name, owner, None, *limits))
        self.open.append(stream)
        world.after(world.between(0, 0.3), lambda: self.service.connect(stream, replaces))
        if options.session.break_every_s < NEVER:
            world.after(world.random.expovariate(1 / options.session.break_every_s), lambda: self._break(stream))

    def _break(self, stream: Stream) -> None:
        world, session = self.world, self.probe_instance.options.session
        if world.draining or not stream.up_at_client:
            return
        if stream.raced_until > world.now:
            world.at(stream.raced_until, lambda: self._break(stream))
        elif world.happens(session.handover):
            self._hand_over(stream)
        elif world.happens(session.half_open):
            world.note("half-open")
            self.service.drop(stream)
            stream.deaf = world.happens(session.half_open_loses)
            world.after(world.between(0, self.probe_instance.options.bounds.close_detection_s), lambda: self._close(stream))
        elif not self.probe_instance.options.service.race and world.happens(session.client_first):
            self._close(stream)
            world.after(world.between(0, self.probe_instance.options.bounds.lease_s), lambda: self.service.drop(stream))
        else:
            self.service.drop(stream)
            self._close(stream)

    def _hand_over(self, stream: Stream) -> None:
        """The next stream is opened while the old one is still read; it is closed when everything on it has arrived."""
        self._open(stream.owner, stream)
        stream.handed_over = True
        self.world.after(
            self.world.between(0.4, 0.5 + self.probe_instance.options.bounds.delay_max_s), lambda: self._read_out(stream)
        )

    def _read_out(self, stream: Stream) -> None:
        """Closes a stream that was handed over; one whose successor did not live to see the service breaks."""
        if stream.up_at_service:
            self.service.drop(stream)
        if stream.last_arrival > self.world.now and not stream.lost:
            self.world.at(stream.last_arrival, lambda: self._read_out(stream))
        elif stream.up_at_client:
            self._closed(stream)

    def _closed(self, stream: Stream) -> None:
        stream.up_at_client = False
        self.open.remove(stream)
        self.world.record(Closed(stream.recorder.t, self.probe_instance.name, stream.name))

    def _close(self, stream: Stream) -> None:
        world = self.world
        if not stream.up_at_client:
            return
        self._closed(stream)
        owner = stream.owner
        if world.happens(self.probe_instance.options.session.other_client):
            self.subscribers += 1
            owner = f"c{self.subscribers}"
        world.after(world.between(0, 3), lambda: self._open(owner))

    def crash(self, stream: Stream) -> None:
        """A message takes the client's stream down before it can be recorded, unless the client has closed it already."""
        if stream.up_at_client:
            self.service.drop(stream)
            self._close(stream)

    def go_away(self) -> None:
        """Nobody subscribes for a while."""
        world = self.world
        if self.away or any(stream.raced_until > world.now for stream in self.open):
            return
        world.note("nobody subscribes")
        self.away = True
        for stream in list(self.open):
            self.service.drop(stream)
            self._closed(stream)
        world.after(world.between(0.3, 1) * self.probe_instance.options.client.away_s, self._come_back)

    def _come_back(self) -> None:
        self.away = False
        for number in range(self.probe_instance.options.client.clients):
            for _ in range(self.probe_instance.options.client.streams):
                self._open(f"c{number + 1}")

    # --- messages ---

    def _usable(self, session: Session) -> bool:
        assert isinstance(session, Stream)
        return session.up_at_client or session.handed_over

    def receive(self, stream: Stream, copy: Copy) -> None:
        if not stream.up_at_client or stream.deaf:
            self.world.note("lost with its stream")
            return
        record_delivery(self.probe_instance, copy)
        if copy.hold is not None:
            self.answers.decide(copy)
