"""The ports through which a probe reaches a service.

Three vantages implement them. Order is the subject of the measurement: no adapter may assume or repair it. The *wire* speaks gRPC itself
and shows what the service does; the *library* (Google's for Python) and the *external* program (with any library) show the view of a
customer. Where one disagrees with the wire, its client library is the culprit.

What every adapter guarantees:

* An outcome is three-valued. A publish is confirmed, rejected (provably nothing was stored) or unknown. No adapter hides a retry.
* The adapter reports everything in the order in which it happened to it. The messages of a session reach the tap in the order in which they
  came off the channel, on the event loop, before anything else of that session happens.
* Faults of the service are never exceptions. Errors that the caller can correct (no such topic, no permission, no answer) are those in
  `prober.errors`, translated in one place per adapter.
* Every wait has an end: each call takes or has a deadline.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from math import inf
from typing import Protocol, TypeAlias

from prober.core.events import fact


class Vantage(StrEnum):
    """From where a probe looks: at the wire, through Google's client library, or through a program of the user."""

    WIRE = "wire"
    LIBRARY = "library"
    EXTERNAL = "external"


@fact(frozen=True, slots=True)
class Outgoing:
    """One message to publish. An empty ordering key means unordered."""

    ordering_key: str
    data: bytes
    attributes: Mapping[str, str] = field(default_factory=dict)


@fact(frozen=True, slots=True)
class Confirmed:
    """The service stored the message under this id."""

    message_id: str


@fact(frozen=True, slots=True)
class Rejected:
    """Provably not stored: rejected on the only attempt, or never sent."""

    reason: str


@fact(frozen=True, slots=True)
class Unknown:
    """Perhaps stored: after a deadline, a lost reply, or a broken connection."""

    reason: str


Outcome: TypeAlias = Confirmed | Rejected | Unknown


@fact(frozen=True, slots=True)
class Received:
    """One message as it came off the channel.

    `publish_time` is when the service says that it stored the message: nanoseconds since 1970 by its wall clock, unrounded, since it
    tells two messages with one id apart (documentation, "Exactly-once delivery"). None if the service does not say.

    `overlaps`: a client library gave it out while an earlier message of its key, which it had given out, was not answered yet.
    """

    message_id: str
    ack_id: str
    ordering_key: str
    data: bytes
    attributes: Mapping[str, str]
    delivery_attempt: int
    publish_time: int | None
    overlaps: bool = False


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """What a topic is created with. `labels` mark it as ours."""

    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PushConfig:
    """Where messages are pushed: a URL. Tokens come along that are signed for `audience` and say to be of `service_account`; if that is
    empty, none do.
    """

    endpoint: str
    service_account: str = ""
    audience: str = ""


@dataclass(frozen=True, slots=True)
class SubscriptionSettings:
    """What a subscription is created with; times in seconds.

    `dead_letter_topic` empty means no dead-letter policy, `message_retention_s` infinite that the service may choose. `retain_acked`: what
    was acknowledged is kept as long, so that a seek can bring it back. `push` None: messages
    are pulled.
    """

    topic: str
    ordering: bool = True
    ack_deadline_s: int = 60
    exactly_once: bool = False
    filter: str = ""
    dead_letter_topic: str = ""
    dead_letter_max_attempts: int = 0
    retry_minimum_backoff_s: float | None = None
    retry_maximum_backoff_s: float | None = None
    message_retention_s: float = inf
    retain_acked: bool = False
    push: PushConfig | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FlowControlSettings:
    """How much one stream may have outstanding before the service stops delivering on it."""

    messages_max: int = 1000
    bytes_max: int = 100 * 1024 * 1024


class BrokerSession(Protocol):
    """One channel that delivered messages: a stream, a pull response, a push request. What is sent through it is best effort and never
    blocks.

    The order of calls is the order of sending. After the session is closed, what is sent may be lost: on the wire it is, a client
    library still passes it on.
    """

    @property
    def name(self) -> str:
        """Unique in this process."""

    @property
    def subscriber(self) -> str:
        """Who owns it: the client id of streaming pull, or the session's own name."""

    @property
    def flow(self) -> FlowControlSettings | None:
        """The flow control settings; None for a pull or push, which has its own limit."""

    @property
    def is_over(self) -> bool:
        """Whether acknowledgements sent through it from now on provably fail."""

    def ack(self, received: Received) -> None:
        """Sends an acknowledgement."""

    def nack(self, received: Received) -> None:
        """Sends a nack: the service may redeliver the message at once."""

    def modify_lease(self, received: Received, seconds: int) -> None:
        """Sends a lease modification."""

    def let_expire(self, received: Received) -> None:
        """Sends nothing, now or later: the lease of this message is left to end by itself.

        On the wire this is the fate of a message without an answer. A client library extends leases, and holds the next message of a key
        back until the last one is answered; this makes it stop doing both.
        """


class Tap(Protocol):
    """Receives events in order, on the event loop. Must not block or raise."""

    def opened(self, session: BrokerSession, invoked_t: float | None) -> None:
        """A session began; `invoked_t` is when it was asked for, on the monotonic clock of the event loop, None for now.

        The service sent nothing on it before that: the adapter reports a session before its first request goes out, or with the time of
        that request.
        """

    def received(self, session: BrokerSession, received: Received) -> None:
        """A message came off the channel. Nothing was acknowledged on the caller's behalf."""

    def ack_confirmed(self, session: BrokerSession, message_id: str) -> None:
        """Exactly-once: the service confirmed an acknowledgement."""

    def unanswered(self, session: BrokerSession, received: Received) -> None:
        """A push request ended without an answer, which is a refusal."""

    def closed(self, session: BrokerSession, reason: str, *, lost: bool = False) -> None:
        """A session ended. `lost`: it was a pull that ended without its answer, into which messages may have been put."""


class Publisher(Protocol):
    """Publishes to one topic."""

    @property
    def keeps_order(self) -> bool:
        """Whether the messages of a key are stored in the order of calls also if an earlier call has no answer yet.

        A client library sends one batch of a key at a time. At the wire a service may take up requests under way in any order.
        """

    @property
    def unexplained_stops(self) -> int:
        """How often a client library stopped publishing on a key although no publish of the key had failed; 0 without a library."""

    async def publish(self, messages: Sequence[Outgoing], timeout_s: float) -> Sequence[Outcome]:
        """Publishes the messages together, in order, and returns one outcome each, in the same order, within about `timeout_s`.

        Raises no BrokerError: a missing topic and a missing answer are outcomes. If the caller is cancelled while it waits, the outcomes
        are unknown.

        At the wire this is one request and exactly one attempt. Through the library it is one `publish` call each, in order; its forced
        retries may store a message more than once, and a publish without an answer in time is unknown.
        """

    async def resume(self, ordering_key: str) -> None:
        """Allows publishing on a key again after a publish on it was not confirmed. Does nothing where keys are not paused."""

    async def close(self) -> None:
        """Closes all connections; publishes without an answer end unknown."""


class Subscriber(Protocol):
    """Consumes one subscription under one client id. Streams that break are opened again, as new sessions, until it is closed."""

    async def start(self, tap: Tap) -> None:
        """Opens the stream and returns when it is open, or raises why it cannot be: BrokerUnavailable, ConnectionGivenUp,
        NotThere, PermissionRefused.

        Where a service does not answer before it has something to deliver, "open" means asked for, and not refused for half a
        second. Called once.
        """

    async def break_stream(self) -> None:
        """Cuts the stream without a goodbye, as a network would; it is opened again like any broken stream.

        The tap receives the end of the session after everything that came before. Does nothing while no stream is open.
        """

    async def close(self) -> None:
        """Ends consumption; messages that are not acknowledged stay outstanding until their leases end."""


class Puller(Protocol):
    """Consumes one subscription by unary pull. Each pull is a session of its own, from its request to its answer."""

    async def pull(self, tap: Tap, messages_max: int, timeout_s: float) -> bool:
        """Sends one pull and waits for its response; whether it had messages.

        The tap receives every pull, answered or not: opened before it is sent, then its messages in order, then closed. A pull without an
        answer in time returns False. Such a pull, and one that fails or is cancelled, is reported as lost, since the service may have put
        messages into the answer. After the end its session takes acknowledgements until the puller is closed. Several pulls may wait at
        once. Raises BrokerError.
        """

    async def close(self) -> None:
        """Ends pulls that wait, and sends what was acknowledged before."""


class PushReceiver(Protocol):
    """Takes what one target pushes. Each request is a session of its own, from its arrival to its answer."""

    def config_of(self, subscription: str) -> PushConfig:
        """What a subscription is made with so that its messages come here. Raises NotSupported if the target cannot reach this place."""

    def receive(self, subscription: str, tap: Tap) -> Callable[[], None]:
        """Takes requests for a subscription until the returned function is called.

        That function nacks the open requests, and reports none of them.

        The tap receives each request: opened, its message, then, if it has ended without an answer, that, then closed. An acknowledgement
        answers with success, a nack with an error; without either the request stays open until the service gives it up. Requests that the
        service did not send, as far as that can be verified, are refused and counted; the tap does not receive them.
        """


class PushOutcome(StrEnum):
    """What became of a push request: taken, or refused and why."""

    TAKEN = "taken"
    TOKEN_MISSING = "token_missing"
    TOKEN_MALFORMED = "token_malformed"
    TOKEN_UNSIGNED = "token_unsigned"
    TOKEN_OF_UNKNOWN_KEY = "token_of_unknown_key"
    TOKEN_FORGED = "token_forged"
    TOKEN_EXPIRED = "token_expired"
    TOKEN_EARLY = "token_early"
    WRONG_ISSUER = "wrong_issuer"
    WRONG_AUDIENCE = "wrong_audience"
    WRONG_ACCOUNT = "wrong_account"
    NO_KEYS = "no_keys"
    NOBODY = "nobody"
    LEFT_OVER = "left_over"
    TOO_LARGE = "too_large"
    TOO_SLOW = "too_slow"
    UNREADABLE = "unreadable"


class AdminOperation(StrEnum):
    """Administration calls. Deleting looks at what is there before, which is part of it."""

    CREATE_TOPIC = "create_topic"
    CREATE_SUBSCRIPTION = "create_subscription"
    GET = "get"
    LIST = "list"
    UPDATE = "update"
    SEEK = "seek"
    DELETE = "delete"


class Admin(Protocol):
    """Creates and deletes what probes need. Deletes only what carries all of the labels it is given.

    Each call is one attempt with its own deadline, and raises AdminUnavailable, PermissionRefused, NotThere, NotOurs, NotSupported,
    RequestRefused, or BrokerError for any other refusal.
    """

    async def create_topic(self, topic: str, settings: TopicSettings) -> None:
        """Creates a topic, or finds it there already with (at least) these labels; anything else of that name is NotOurs."""

    async def create_subscription(self, subscription: str, settings: SubscriptionSettings) -> None:
        """Creates a subscription, or finds it there already with these settings and (at least) these labels; else NotOurs."""

    async def delete(self, name: str, labels: Mapping[str, str]) -> bool:
        """Deletes a topic or subscription if it carries these labels; False if not, or not there. ValueError without any label."""

    async def subscriptions(self, project: str) -> Mapping[str, Mapping[str, str]]:
        """The subscriptions of a project, `projects/p`, by full name, each with its labels."""

    async def owned(self, project: str, labels: Mapping[str, str]) -> Sequence[str]:
        """The full names of topics and subscriptions of a project, `projects/p`, that carry these labels; at least one label."""

    async def look(self, name: str) -> None:
        """Asks for the settings of a topic or subscription: one request."""

    async def list_some(self, project: str) -> None:
        """Asks for the first subscriptions of a project, `projects/p`: one request, however many there are."""

    async def update_subscription(
        self, subscription: str, *, ordering: bool | None = None, message_retention_s: float | None = None
    ) -> None:
        """Changes what is given of the settings of a subscription, and nothing else."""

    async def seek(self, subscription: str, to_time: float) -> None:
        """Seeks a subscription to a wall-clock time of the service, seconds since 1970. NotSupported where there is no seeking."""

    async def seek_to_snapshot(self, subscription: str, snapshot: str) -> None:
        """Seeks a subscription to what was unacknowledged when a snapshot was made, and everything since."""

    async def create_snapshot(self, snapshot: str, subscription: str, labels: Mapping[str, str]) -> None:
        """Makes a snapshot, `projects/p/snapshots/s`, of what is unacknowledged. The service forgets it after seven days at most."""

    async def delete_snapshot(self, snapshot: str) -> None:
        """Deletes a snapshot."""


class Broker(Protocol):
    """One vantage on one target: makes the other ports. Topics and subscriptions are named in full, `projects/p/topics/t`."""

    @property
    def peer(self) -> Broker | None:
        """The same vantage on the target's other endpoint, if it has one."""

    @property
    def admin(self) -> Admin:
        """Control plane of the target."""

    def publisher(self, topic: str) -> Publisher:
        """A publisher to a topic."""

    def subscriber(self, subscription: str, client_id: str, flow: FlowControlSettings, ack_deadline_s: int) -> Subscriber:
        """A subscriber under a client id of its own; `ack_deadline_s`, 10 to 600, is how long a lease lasts."""

    def puller(self, subscription: str) -> Puller:
        """A subscriber by unary pull."""

    @property
    def pushes(self) -> PushReceiver:
        """Who takes what the target pushes."""

    async def check_liveness(self, topic: str, subscription: str) -> None:
        """Returns when the data plane has answered a request about a topic or subscription; a refusal is an answer.

        An empty `topic` is not asked about. The check changes nothing. At the wire the request and its answer use the connection
        that delivers messages: no answer overtakes a message that was sent before it. Raises BrokerUnavailable, ConnectionGivenUp.
        """

    async def close(self) -> None:
        """Closes all connections."""
