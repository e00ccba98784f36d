"""Unary pull: concurrent requests, lost responses, and one outstanding batch for each key."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import count

from prober.core.events import Closed, Opened
from tests.documented.clients import Consumer
from tests.documented.freedoms import Freedom
from tests.documented.lanes import Copy, Lane
from tests.documented.settings import SubscriptionSettings
from tests.documented.world import World

POLL_S = 0.5


@dataclass(slots=True, eq=False)
class Request:
    """A pull request that waits for messages at the service."""

    session: str
    invoked_t: float
    opened_first: bool
    answer_by_t: float
    lost: bool = False
    given_up: bool = False


class PullService:
    """The service's side of unary pull, with the pollers of one subscription."""

    def __init__(self, world: World, settings: SubscriptionSettings) -> None:
        self.world = world
        self.settings = settings
        self.paused = False
        self.finished = False
        self.lanes: list[Lane] = []
        self._waiting = 0
        self._numbers = count(1)
        for poller in range(settings.clients):
            world.after(world.rng.uniform(0, 2), partial(self._pull, f"{settings.name}-{poller}"))

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        self.paused = False

    def kick(self, lane: Lane, delay_s: float = 0.0) -> None:
        """Do nothing: requests that wait look for messages at intervals."""

    def restarted(self, lane: Lane) -> None:
        """End the outstanding batch of a key at a redelivery, or let it block the redelivery.

        https://cloud.google.com/pubsub/docs/ordering: "only one batch of messages can be outstanding for an ordering key at a time",
        and a redelivery includes all subsequent messages, so a nack of one message may take back the others of its batch.
        """
        later = [copy for copy in lane.open_copies if copy.position >= lane.cursor]
        if later and self.world.take(Freedom.PULL_NACK_ENDS_BATCH, 0.5):
            for copy in later:
                lane.close(copy)

    def _pull(self, clock: str) -> None:
        """Send a pull request.

        https://cloud.google.com/pubsub/docs/pull: several pull requests may be outstanding, and a response may hold fewer messages
        than asked for, or none.
        """
        world = self.world
        if self.finished:
            return
        if self.paused:
            return world.after(5.0, partial(self._pull, clock))
        if self._waiting:
            world.note(Freedom.PULL_CONCURRENT)
        self._waiting += 1
        session = f"{clock}.{next(self._numbers)}"
        request = Request(session, world.now, world.rng.random() < 0.5, world.now + world.between(2.0, 20.0))
        if request.opened_first:
            world.recorder.write(clock, Opened(world.now, self.settings.name, session, session))
        if world.take(Freedom.PULL_GIVEN_UP, 0.05):
            world.after(world.between(0.1, 10.0), partial(self._give_up, clock, request))
        return world.after(world.between(0.001, 0.2), partial(self._look, clock, request))

    def _give_up(self, clock: str, request: Request) -> None:
        """End a request at the client, which the service notices late: its answer is lost then.

        https://cloud.google.com/pubsub/docs/pull: messages of a response that never arrives are redelivered after their deadline.
        """
        if request.answer_by_t == 0.0:
            return
        request.given_up = True
        notice_s = self.world.between(0.0, self.settings.delivery_delay_max_s)
        request.answer_by_t = min(request.answer_by_t, self.world.now + notice_s)
        self._close(clock, request, lost=True)

    def _look(self, clock: str, request: Request) -> None:
        """Answer a request with the messages that may be sent now, or wait."""
        copies = self._take_batches()
        if not copies and self.world.now < request.answer_by_t:
            return self.world.after(self.world.rng.uniform(0.1, POLL_S), partial(self._look, clock, request))
        request.answer_by_t = 0.0
        if request.given_up:
            return self._next_pull(clock)
        delay_s = self.world.between(0.001, self.settings.delivery_delay_max_s)
        if self.world.take(Freedom.PULL_RESPONSE_LOST, 0.05):
            return self.world.after(self.world.between(0.1, 10.0), partial(self._lose, clock, request))
        return self.world.after(delay_s, partial(self._arrive, clock, request, copies))

    def _take_batches(self) -> list[Copy]:
        """Take a batch of some keys.

        https://cloud.google.com/pubsub/docs/ordering: for unary pull "only one batch of messages can be outstanding for an ordering
        key at a time".
        """
        room = self.world.rng.choice((1, 3, 10, 100))
        copies: list[Copy] = []
        for lane in self.world.rng.sample(self.lanes, len(self.lanes)):
            size = self.world.rng.randint(1, 6)
            if lane.open_copies or lane.held_back():
                continue
            while size and len(copies) < room and lane.next_position() is not None:
                copies.append(lane.send_next())
                size -= 1
        return copies

    def _lose(self, clock: str, request: Request) -> None:
        """Notice at the client that the answer of a request was lost.

        https://cloud.google.com/pubsub/docs/pull: messages of a response that never arrives are redelivered after their deadline.
        """
        self._close(clock, request, lost=True)
        self._next_pull(clock)

    def _arrive(self, clock: str, request: Request, copies: list[Copy]) -> None:
        self._open_late(clock, request)
        for copy in copies:
            Consumer(self.world, self.settings, clock, request.session).receive(copy)
        if not copies or self.settings.closes_recorded:
            self._close(clock, request, lost=False)
        self._next_pull(clock)

    def _open_late(self, clock: str, request: Request) -> None:
        if not request.opened_first:
            request.opened_first = True
            event = Opened(self.world.now, self.settings.name, request.session, request.session, request.invoked_t)
            self.world.recorder.write(clock, event)

    def _close(self, clock: str, request: Request, *, lost: bool) -> None:
        self._open_late(clock, request)
        self.world.recorder.write(clock, Closed(self.world.now, self.settings.name, request.session, lost))

    def _next_pull(self, clock: str) -> None:
        self._waiting -= 1
        self.world.after(self.world.between(0.01, 3.0), partial(self._pull, clock))

    def redeliver_early(self, lane: Lane) -> None:
        """Redeliver from any message on while no batch is outstanding.

        https://cloud.google.com/pubsub/docs/ordering: redelivery after "a best-effort acknowledgment wasn't persisted" includes
        acknowledged messages.
        """
        if self.settings.exactly_once or not lane.cursor:
            return
        if lane.open_copies and self.world.take(Freedom.PULL_REDELIVERY_WHILE_OUTSTANDING, 0.5):
            for copy in list(lane.open_copies):
                lane.close(copy)
        if not lane.open_copies:
            lane.restart(lane.early_position())
