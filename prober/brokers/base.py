"""Ports through which a probe uses a service.

Three vantages implement them. Order is the subject of the measurement: no adapter may assume or repair it. The *wire* speaks gRPC itself
and shows the behaviour of the service; the *library* (Google's for Python) and the *external* program (with any library) show the view of a
customer. A violation that the wire does not see comes from the client library.

Guarantees of every adapter:

* An outcome is three-valued. A publish is confirmed, rejected (provably nothing was stored) or unknown. No adapter hides a retry.
* The adapter reports events in the order in which it observed them. The messages of a session reach the tap in the order of their receipt,
  on the event loop, before any later event of the session.
* Faults of the service are never exceptions. Errors that the caller can correct (no such topic, no permission, no answer) are exceptions of
  `prober.errors`, translated in one place per adapter.
* Every wait is bounded: each call has a deadline, or takes it as an argument.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from math import inf
from typing import Protocol, TypeAlias

from prober.core.events import fact


class Vantage(StrEnum):
    """Point of view of a probe: the wire, Google's client library, or a program of the user."""

    WIRE = "wire"
    LIBRARY = "library"
    EXTERNAL = "external"


@fact(frozen=True, slots=True)
class Outgoing:
    """A message to publish. An empty ordering key means unordered."""

    ordering_key: str
    data: bytes
    attributes: Mapping[str, str] = field(default_factory=dict)


@fact(frozen=True, slots=True)
class Confirmed:
    """Outcome of a publish: the service stored the message under this id."""

    message_id: str


@fact(frozen=True, slots=True)
class Rejected:
    """Outcome of a publish: provably not stored, since the only attempt was rejected, or never sent."""

    reason: str


@fact(frozen=True, slots=True)
class Unknown:
    """Outcome of a publish: perhaps stored, after a deadline, a lost reply, or a broken connection."""

    reason: str


Outcome: TypeAlias = Confirmed | Rejected | Unknown


@fact(frozen=True, slots=True)
class Received:
    """A message as it was received.

    `publish_time` is the time at which the service stored the message, by its own report: nanoseconds since 1970 by its wall clock,
    unrounded, since it distinguishes two messages with one id (documentation, "Exactly-once delivery"). None if it is not reported.

    `overlaps`: a client library delivered it before an earlier delivered message of its key was answered.
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
    """Settings of a topic. `labels` mark it as the prober's."""

    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PushConfig:
    """Push endpoint of a subscription, a URL. Requests have a token for `audience`, signed for `service_account`; none if that is empty."""

    endpoint: str
    service_account: str = ""
    audience: str = ""


@dataclass(frozen=True, slots=True)
class SubscriptionSettings:
    """Settings of a subscription; times in seconds.

    Without `dead_letter_topic` there is no dead-letter policy; with infinite `message_retention_s` the service chooses. `retain_acked`:
    acknowledged messages are retained as long, so that a seek can restore them. `push` None: messages are pulled.
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
    """Limits of the outstanding messages of a stream, at which the service stops delivering on it."""

    messages_max: int = 1000
    bytes_max: int = 100 * 1024 * 1024


class BrokerSession(Protocol):
    """A channel that delivered messages: a stream, a pull response or a push request. Its sends are best effort and never block.

    The order of calls is the order of sending. After the session is closed, sends may be lost: on the wire they are, a client library still
    passes them on.
    """

    @property
    def name(self) -> str:
        """Name, unique in this process."""

    @property
    def subscriber(self) -> str:
        """Subscriber that owns it: the client id of streaming pull, or the session's own name."""

    @property
    def flow(self) -> FlowControlSettings | None:
        """Flow control settings; None for a pull or push, which has its own limit."""

    @property
    def is_over(self) -> bool:
        """Whether acknowledgements sent through the session from now on provably fail."""

    def ack(self, received: Received) -> None:
        """Send an acknowledgement."""

    def nack(self, received: Received) -> None:
        """Send a nack: the service may redeliver the message at once."""

    def modify_lease(self, received: Received, seconds: int) -> None:
        """Send a lease modification."""

    def let_expire(self, received: Received) -> None:
        """Send no answer, now or later: the lease of the message expires.

        On the wire this happens to any unanswered message. A client library extends leases, and holds the next message of a key back until
        the previous one is answered; this call stops both.
        """


class Tap(Protocol):
    """Receiver of events in order, on the event loop. Must not block or raise."""

    def opened(self, session: BrokerSession, invoked_t: float | None) -> None:
        """Report a new session; `invoked_t`: time of its request on the monotonic clock of the event loop, None for now.

        The service sent nothing on it before that: the adapter reports a session before its first request is sent, or with the time of that
        request.
        """

    def received(self, session: BrokerSession, received: Received) -> None:
        """Report a received message. The adapter acknowledged nothing on the caller's behalf."""

    def ack_confirmed(self, session: BrokerSession, message_id: str) -> None:
        """Report that the service confirmed an acknowledgement (exactly-once delivery)."""

    def unanswered(self, session: BrokerSession, received: Received) -> None:
        """Report a push request that ended without an answer, which counts as a nack."""

    def closed(self, session: BrokerSession, reason: str, *, lost: bool = False) -> None:
        """Report the end of a session. `lost`: a pull without an answer, which may have contained messages."""


class Publisher(Protocol):
    """Publishes to one topic."""

    @property
    def keeps_order(self) -> bool:
        """Whether messages of a key are stored in the order of calls even if an earlier call is still unanswered.

        A client library sends one batch of a key at a time. At the wire a service may process concurrent requests in any order.
        """

    @property
    def unexplained_stops(self) -> int:
        """Number of times that a client library stopped a key without a failed publish of the key; 0 without a library."""

    async def publish(self, messages: Sequence[Outgoing], timeout_s: float) -> Sequence[Outcome]:
        """Publish the messages together, in order. Return their outcomes in the same order, within about `timeout_s`.

        Raises no BrokerError: a missing topic and a missing answer are outcomes. If the caller is cancelled during the wait, the outcomes
        are unknown.

        At the wire this is one request and exactly one attempt. Through the library it is one `publish` call each, in order. The library's
        forced retries may store a message more than once, and a publish without an answer in time is unknown.
        """

    async def resume(self, ordering_key: str) -> None:
        """Allow publishing on a key again after an unconfirmed publish. Does nothing if keys are not paused."""

    async def close(self) -> None:
        """Close all connections; publishes without an answer end unknown."""


class Subscriber(Protocol):
    """Consumes one subscription under one client id. Broken streams are reopened, as new sessions, until it is closed."""

    async def start(self, tap: Tap) -> None:
        """Open the stream and wait until it is open. Raises BrokerUnavailable, ConnectionGivenUp, NotThere or PermissionRefused.

        If a service does not answer before it has a message to deliver, "open" means requested, and not refused for half a second. Called
        once.
        """

    async def break_stream(self) -> None:
        """Cut the stream without a goodbye, as a network would; it is reopened like any broken stream.

        The tap receives the end of the session after all earlier events. Does nothing while no stream is open.
        """

    async def close(self) -> None:
        """End consumption; unacknowledged messages stay outstanding until their leases end."""


class Puller(Protocol):
    """Consumes one subscription by unary pull. Each pull is a session of its own, from request to answer."""

    async def pull(self, tap: Tap, messages_max: int, timeout_s: float) -> bool:
        """Send one pull and wait for its response. Return whether it contained messages.

        The tap receives every pull, answered or not: opened before it is sent, then its messages in order, then closed. A pull without an
        answer in time returns False. It is reported as lost, like a failed or cancelled pull, since the service may have put messages into
        the answer. Afterwards its session accepts acknowledgements until the puller is closed. Several pulls may wait at once. Raises
        BrokerError.
        """

    async def close(self) -> None:
        """End the waiting pulls, and send the pending acknowledgements."""


class PushReceiver(Protocol):
    """Receiver of the pushes of one target. Each request is a session of its own, from its arrival to its answer."""

    def config_of(self, subscription: str) -> PushConfig:
        """Return the push configuration for a subscription. Raises NotSupported if the target cannot reach this receiver."""

    def receive(self, subscription: str, tap: Tap) -> Callable[[], None]:
        """Receive requests for a subscription until the returned function is called.

        That function nacks the open requests, without reporting them to the tap.

        The tap receives each request: opened, its message, unanswered if it ended without an answer, then closed. An acknowledgement
        answers with success, a nack with an error; without either the request stays open until the service's deadline. Requests of other
        senders, as far as they can be recognized, are refused and counted; the tap does not receive them.
        """


class PushOutcome(StrEnum):
    """Outcome of a push request: taken, or refused with a reason."""

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
    """Administration calls. A deletion includes the look-up before it."""

    CREATE_TOPIC = "create_topic"
    CREATE_SUBSCRIPTION = "create_subscription"
    GET = "get"
    LIST = "list"
    UPDATE = "update"
    SEEK = "seek"
    DELETE = "delete"


class Admin(Protocol):
    """Creates and deletes the resources of probes. Deletes only resources with all of the given labels.

    Each call is one attempt with its own deadline, and raises AdminUnavailable, PermissionRefused, NotThere, NotOurs, NotSupported,
    RequestRefused, or BrokerError for any other refusal.
    """

    async def create_topic(self, topic: str, settings: TopicSettings) -> None:
        """Create a topic, or accept an existing one that has (at least) these labels; raises NotOurs for any other."""

    async def create_subscription(self, subscription: str, settings: SubscriptionSettings) -> None:
        """Create a subscription, or accept one with these settings and (at least) these labels; raises NotOurs for any other."""

    async def delete(self, name: str, labels: Mapping[str, str]) -> bool:
        """Delete a topic or subscription with these labels. Return False if it lacks them or does not exist. ValueError without labels."""

    async def subscriptions(self, project: str) -> Mapping[str, Mapping[str, str]]:
        """Return the subscriptions of a project, `projects/p`, by full name, each with its labels."""

    async def owned(self, project: str, labels: Mapping[str, str]) -> Sequence[str]:
        """Return the full names of the topics and subscriptions of a project, `projects/p`, with these labels; at least one label."""

    async def look(self, name: str) -> None:
        """Query the settings of a topic or subscription: one request."""

    async def list_some(self, project: str) -> None:
        """Query the first subscriptions of a project, `projects/p`: a single request."""

    async def update_subscription(
        self, subscription: str, *, ordering: bool | None = None, message_retention_s: float | None = None
    ) -> None:
        """Change only the given settings of a subscription."""

    async def seek(self, subscription: str, to_time: float) -> None:
        """Seek a subscription to a wall-clock time of the service, in seconds since 1970. Raises NotSupported without seek."""

    async def seek_to_snapshot(self, subscription: str, snapshot: str) -> None:
        """Seek a subscription to the messages unacknowledged when a snapshot was created, and all messages since."""

    async def create_snapshot(self, snapshot: str, subscription: str, labels: Mapping[str, str]) -> None:
        """Create a snapshot, `projects/p/snapshots/s`, of the unacknowledged messages. The service deletes it after seven days at most."""

    async def delete_snapshot(self, snapshot: str) -> None:
        """Delete a snapshot."""


class Broker(Protocol):
    """One vantage on one target; creates the other ports. Topics and subscriptions are named in full, `projects/p/topics/t`."""

    @property
    def peer(self) -> Broker | None:
        """The same vantage on the target's other endpoint, or None."""

    @property
    def admin(self) -> Admin:
        """Control plane of the target."""

    def publisher(self, topic: str) -> Publisher:
        """Return a publisher to a topic."""

    def subscriber(self, subscription: str, client_id: str, flow: FlowControlSettings, ack_deadline_s: int) -> Subscriber:
        """Return a subscriber with a client id of its own; `ack_deadline_s`, 10 to 600, is the length of a lease."""

    def puller(self, subscription: str) -> Puller:
        """Return a subscriber by unary pull."""

    @property
    def pushes(self) -> PushReceiver:
        """Receiver of the messages that the target pushes."""

    async def check_liveness(self, topic: str, subscription: str) -> None:
        """Wait until the data plane has answered a request about a topic or subscription; a refusal is an answer.

        Without a `topic` only the subscription is checked. The check changes nothing. At the wire the request and its answer use the
        connection that delivers messages: no answer overtakes an earlier message. Raises BrokerUnavailable, ConnectionGivenUp.
        """

    async def close(self) -> None:
        """Close all connections."""
