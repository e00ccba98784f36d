"""Push: one outstanding request for each key, refusals, timeouts and late answers."""

from __future__ import annotations

from functools import partial
from itertools import count

from prober.core.events import Acked, Closed, Nacked, Opened
from tests.documented.alarms import Alarms
from tests.documented.clients import Consumer
from tests.documented.freedoms import Freedom
from tests.documented.lanes import Copy, Lane
from tests.documented.settings import SubscriptionSettings
from tests.documented.world import World


class PushService:
    """The service's side of push, with one endpoint."""

    def __init__(self, world: World, settings: SubscriptionSettings) -> None:
        self.world = world
        self.settings = settings
        self.lanes: list[Lane] = []
        self._numbers = count(1)
        self._alarms = Alarms(world, self._pump)

    def pause(self) -> None:
        """Do nothing: an endpoint is always there."""

    def resume(self) -> None:
        """Do nothing."""

    def restarted(self, lane: Lane) -> None:
        """Do nothing: there is one endpoint."""

    def kick(self, lane: Lane, delay_s: float = 0.0) -> None:
        """Send pending messages soon."""
        self._alarms.set(lane, delay_s)

    def _pump(self, lane: Lane) -> None:
        """Send the next message of a key.

        https://cloud.google.com/pubsub/docs/ordering: for push "only one outstanding message is supported for each ordering key at a
        time". https://cloud.google.com/pubsub/docs/push: a request that is not answered in time counts as refused.
        """
        if lane.open_copies or lane.next_position() is None or lane.held_back():
            return
        copy = lane.send_next()
        if self.world.take(Freedom.PUSH_REQUEST_LOST, 0.03):
            if self.world.rng.random() < 0.5:
                self.world.after(self.world.between(0.1, 5.0), partial(self._refuse, copy))
            return
        session = f"{self.settings.name}-push-{next(self._numbers)}"
        delay_s = self.world.between(0.001, self.settings.delivery_delay_max_s)
        self.world.after(delay_s, partial(self._arrive, copy, session))

    def _arrive(self, copy: Copy, session: str) -> None:
        """Answer a push request with success or failure, in time or late.

        https://cloud.google.com/pubsub/docs/push: 102, 200, 201, 202 and 204 acknowledge, every other status or a timeout does not.
        """
        world = self.world
        clock = f"{self.settings.name}-endpoint"
        world.recorder.write(clock, Opened(world.now, self.settings.name, session, session))
        Consumer(world, self.settings, clock, session).record_delivery(copy)
        refused = world.take(Freedom.PUSH_REFUSED, 0.1)
        late = world.take(Freedom.PUSH_TIMEOUT, 0.05)
        deadline_s = self.settings.ack_deadline_s
        answer_s = world.between(0.5 * deadline_s, 2 * deadline_s) if late else world.between(0.001, 3.0)
        if late and world.rng.random() < 0.3:
            return
        world.after(answer_s, partial(self._answer, copy, session, refused=refused))

    def _answer(self, copy: Copy, session: str, *, refused: bool) -> None:
        """Send an answer, which may be lost: the service then counts the request as refused at its deadline.

        https://cloud.google.com/pubsub/docs/push: Pub/Sub resends a message whose acknowledgement it did not receive in time.
        """
        world, record = self.world, copy.record
        clock = f"{self.settings.name}-endpoint"
        kind = Nacked if refused else Acked
        world.recorder.write(clock, kind(world.now, self.settings.name, record.key, session, record.message_id))
        if self.settings.closes_recorded:
            world.recorder.write(clock, Closed(world.now, self.settings.name, session))
        if world.take(Freedom.PUSH_ANSWER_LOST, 0.04):
            return
        lag_s = world.between(0.001, self.settings.ack_lag_max_s)
        world.after(lag_s, partial(self._refuse if refused else self._accept, copy))

    def _accept(self, copy: Copy) -> None:
        copy.lane.acknowledge(copy)

    def _refuse(self, copy: Copy) -> None:
        copy.lane.give_back(copy, nacked=True)

    def redeliver_early(self, lane: Lane) -> None:
        """Redeliver from any message on while no request is outstanding.

        https://cloud.google.com/pubsub/docs/ordering: redelivery after "a best-effort acknowledgment wasn't persisted" includes
        acknowledged messages.
        """
        if lane.open_copies and self.world.take(Freedom.PUSH_REDELIVERY_WHILE_OUTSTANDING, 0.5):
            for copy in list(lane.open_copies):
                lane.close(copy)
        if lane.cursor and not lane.open_copies:
            lane.restart(lane.early_position())
