"""Streaming pull: clients with streams that break, and the service that sends into them."""

from __future__ import annotations

from functools import partial
from math import inf

from prober.core.events import Closed, Opened
from tests.documented.alarms import Alarms
from tests.documented.clients import Consumer
from tests.documented.freedoms import Freedom
from tests.documented.lanes import Copy, Lane
from tests.documented.settings import SubscriptionSettings
from tests.documented.world import World


class Stream:
    """A StreamingPull stream as the service and the client see it: each notices its end at its own time."""

    def __init__(self, client: Client, session: str, limits: tuple[int | None, int | None]) -> None:
        self.client = client
        self.session = session
        self.message_limit, self.byte_limit = limits
        self.at_service = False
        self.at_client = True
        self.broken = False
        self.cutoff_t = inf
        self.last_arrival_t = 0.0
        self.outstanding: dict[Copy, None] = {}

    def settle(self, copy: Copy) -> None:
        """Free the room that a delivery takes in flow control."""
        self.outstanding.pop(copy, None)

    def accepts_more(self) -> bool:
        """Tell whether flow control lets the service send.

        https://cloud.google.com/pubsub/docs/reference/rpc/google.pubsub.v1: "When there are max_outstanding_messages or more currently
        sent to the streaming pull client that have not yet been acked or nacked, the server stops sending more messages".
        """
        if self.message_limit and len(self.outstanding) >= self.message_limit:
            return False
        return not self.byte_limit or sum(copy.record.size for copy in self.outstanding) < self.byte_limit


class Client:
    """A subscriber client: it keeps a stream open and opens another when one breaks."""

    def __init__(self, service: StreamingService, name: str) -> None:
        self.service = service
        self.name = name
        self.world = service.world
        self.streams = 0

    def open_stream(self) -> None:
        world, settings = self.world, self.service.settings
        self.streams += 1
        limits = world.rng.choice(((None, None), (None, None), (1, None), (3, None), (10, 1000), (0, 600)))
        stream = Stream(self, f"{self.name}.{self.streams}", limits)
        event = Opened(
            world.now,
            settings.name,
            stream.session,
            self.name,
            max_outstanding_messages=stream.message_limit,
            max_outstanding_bytes=stream.byte_limit,
        )
        world.recorder.write(self.name, event)
        world.after(world.between(0.01, 0.5), partial(self.service.accept, stream))
        world.after(world.between(10.0, 120.0), partial(self._end_stream, stream))

    def _end_stream(self, stream: Stream) -> None:
        """Break a stream; its end shows at the client and at the service at different times.

        https://cloud.google.com/pubsub/docs/pull#streamingpull: "StreamingPull streams always terminate with an error" and are opened
        again by the client library.
        """
        world, settings = self.world, self.service.settings
        if not world.faults or stream.broken:
            return
        client_s = world.between(0.0, settings.close_detection_max_s)
        service_s = world.between(0.0, 20.0)
        first = Freedom.STREAM_BROKEN_CLIENT_FIRST if client_s < service_s else Freedom.STREAM_BROKEN_SERVICE_FIRST
        world.note(first)
        stream.broken = True
        stream.cutoff_t = world.now + world.between(0.0, settings.delivery_delay_max_s)
        world.after(client_s, partial(self.close, stream))
        world.after(service_s, partial(self.service.lose, stream))

    def close(self, stream: Stream) -> None:
        """Notice the end of a stream and reconnect."""
        if not stream.at_client:
            return
        stream.at_client = False
        stream.broken = True
        stream.cutoff_t = min(stream.cutoff_t, self.world.now)
        self.world.recorder.write(self.name, Closed(self.world.now, self.service.settings.name, stream.session))
        self.world.after(self.world.between(0.01, 5.0), self._reconnect)

    def _reconnect(self) -> None:
        if self.service.paused:
            self.world.after(5.0, self._reconnect)
        else:
            self.open_stream()


class StreamingService:
    """The service's side of streaming pull: it assigns each lane to a stream and sends in order."""

    def __init__(self, world: World, settings: SubscriptionSettings) -> None:
        self.world = world
        self.settings = settings
        self.paused = False
        self.streams: list[Stream] = []
        self.assigned: dict[Lane, Stream] = {}
        self.may_move: set[Lane] = set()
        self.lanes: list[Lane] = []
        self._alarms = Alarms(world, self._pump)
        self.clients = [Client(self, f"{settings.name}-{number}") for number in range(settings.clients)]
        for client in self.clients * world.rng.choice((1, 1, 2)):
            world.after(world.rng.uniform(0, 2), client.open_stream)

    def pause(self) -> None:
        """Close all streams; no client opens another before `resume`."""
        self.paused = True
        for stream in list(self.streams):
            stream.client.close(stream)
            self.world.after(0.5, partial(self.lose, stream))

    def resume(self) -> None:
        self.paused = False

    def accept(self, stream: Stream) -> None:
        """Begin to send into a stream that a client opened."""
        if stream.broken:
            return
        stream.at_service = True
        self.streams.append(stream)
        for lane in self.lanes:
            self.kick(lane)

    def lose(self, stream: Stream) -> None:
        """Notice that a stream is broken, and restart its keys at the first unacknowledged message.

        https://cloud.google.com/pubsub/docs/ordering: affinity "is not guaranteed" and shifts when a client disconnects. Exactly-once
        delivery (https://cloud.google.com/pubsub/docs/exactly-once-delivery) redelivers only after the deadline.
        """
        if not stream.at_service:
            return
        stream.at_service = False
        self.streams.remove(stream)
        for lane in [lane for lane, assigned in self.assigned.items() if assigned is stream]:
            del self.assigned[lane]
            position = lane.first_unacked()
            if position is not None and not self.settings.exactly_once:
                lane.restart(position)
            self.kick(lane)

    def kick(self, lane: Lane, delay_s: float = 0.0) -> None:
        """Send pending messages soon."""
        self._alarms.set(lane, delay_s)

    def restarted(self, lane: Lane) -> None:
        """Let a redelivery go to any stream.

        https://cloud.google.com/pubsub/docs/ordering: affinity "is not guaranteed", so that subscribers must be ready to "handle
        messages in any client for a given ordering key".
        """
        held = any(copy.position < lane.cursor for copy in lane.open_copies)
        freedom = Freedom.REDELIVERY_ELSEWHERE_WHILE_HELD if held else Freedom.REDELIVERY_ELSEWHERE
        if lane not in self.assigned or self.world.take(freedom, 0.4):
            self.assigned.pop(lane, None)
            self.may_move.add(lane)

    def _pump(self, lane: Lane) -> None:
        if lane.next_position() is None or lane.held_back():
            return
        stream = self._stream_for(lane)
        if stream is None:
            return
        if not stream.accepts_more():
            self.world.note(Freedom.FLOW_CONTROL)
            return self.kick(lane, 1.0)
        self._send(lane, stream)
        return self.kick(lane)

    def _stream_for(self, lane: Lane) -> Stream | None:
        """Choose the stream of a key; it changes while nothing is outstanding, or with a redelivery.

        https://cloud.google.com/pubsub/docs/ordering: affinity may shift when no messages of the key are outstanding, for load
        balancing or disconnected clients.
        """
        assigned = self.assigned.get(lane)
        if assigned is not None:
            idle = not lane.open_copies and lane.first_unacked() is None
            if not (idle and self.world.take(Freedom.MOVE_WITHOUT_OUTSTANDING, 0.05)):
                return assigned
        elif lane.open_copies and lane not in self.may_move:
            return None
        if not self.streams:
            return None
        self.assigned[lane] = self.world.rng.choice(self.streams)
        self.may_move.discard(lane)
        return self.assigned[lane]

    def _send(self, lane: Lane, stream: Stream) -> None:
        """Send a message into a stream, which delivers in order and with a delay up to its bound."""
        copy = lane.send_next()
        stream.outstanding[copy] = None
        copy.on_settled = stream.settle
        delay_s = self.world.between(0.001, self.settings.delivery_delay_max_s)
        stream.last_arrival_t = max(stream.last_arrival_t, self.world.now + delay_s)
        if stream.broken:
            self.world.note(Freedom.LOST_IN_BROKEN_STREAM)
            return
        self.world.at(stream.last_arrival_t, partial(self._arrive, copy, stream))

    def _arrive(self, copy: Copy, stream: Stream) -> None:
        """Hand a message to the client, unless the stream broke on its way."""
        if self.world.now > stream.cutoff_t or not stream.at_client:
            self.world.note(Freedom.LOST_IN_BROKEN_STREAM)
            return
        consumer = Consumer(self.world, self.settings, stream.client.name, stream.session)
        drops_after_close = self.world.rng.random() < 0.5
        consumer.answers = lambda: self._answers(stream, drops=drops_after_close)
        consumer.receive(copy)

    def _answers(self, stream: Stream, *, drops: bool) -> bool:
        """Tell whether the client still answers a delivery of this stream.

        https://cloud.google.com/pubsub/docs/pull: acknowledgement ids are sent in any request, not only in the stream of the delivery.
        """
        if stream.at_client:
            return True
        if not drops:
            self.world.note(Freedom.ACK_AFTER_CLOSE)
        return not drops

    def redeliver_early(self, lane: Lane) -> None:
        """Redeliver from any message on, acknowledged or not, before its lease is over.

        https://cloud.google.com/pubsub/docs/subscription-overview: delivery is at least once; a redelivery that goes to another client
        begins at the first unacknowledged message or before it.
        """
        if self.settings.exactly_once or not lane.cursor:
            return
        limit = lane.cursor
        position = max(0, limit - 1 - int(self.world.between(0, limit)))
        unacked = lane.first_unacked()
        keeps = self.assigned.get(lane)
        if keeps is not None and keeps.at_service and (unacked is None or position <= unacked):
            lane.restart(position)
        elif keeps is not None:
            lane.restart(position)
            self.assigned[lane] = keeps
            self.may_move.discard(lane)
