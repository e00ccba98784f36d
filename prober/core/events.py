"""Events: the common vocabulary of the whole project.

The recorder, trace files, the history, the simulator and the Spark audit all use these values; the verifier consumes them in
recorder order. Every event is an immutable fact with `t`, the recorder's monotonic clock in seconds. Nothing in the core reads
another clock.

Three families:

* publish events belong to an ordering key of a topic and concern every subscription of it;
* delivery events belong to one ordering key on one subscription;
* session and control events belong to a subscription and concern every key on it.

A *session* is a first-in-first-out channel from the service to the recorder: one StreamingPull stream, one PullResponse or one push
request. A *subscriber* owns sessions: the `client_id` of streaming pull (the service keeps affinity across reconnects of one client id);
for pull and push every session is its own subscriber.

mypy proves that no code changes an event. `frozen=True` would also check that at run time, and would assign each field through
`object.__setattr__`: an event would take five times as long to make, which is longer than to verify it (docs/performance.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from dataclasses import dataclass as fact
else:
    from dataclasses import dataclass

    def fact(*, frozen, slots):
        """Create a dataclass that is hashed by value like a frozen one."""
        return dataclass(slots=slots, unsafe_hash=frozen)


LONG_AGO: Final = -inf
"""A time before every event: the time of an event that has not happened yet."""


@fact(frozen=True, slots=True)
class PublishInvoked:
    """A publish is about to start: recorded *before* the call of the client or the send of the request.

    `seq` counts 1, 2, 3, ... per (epoch, key); `generation` counts the prober's own republishing of one sequence number. Attempts
    that a client library makes by itself are invisible here. `intended_t` is the scheduled time of the publish, if that was earlier than
    `t`: latencies count from there. `size` is the size of the data in bytes, 0 if it was not recorded. `region` is the publishing region,
    as far as the publisher knows it ("" is a region like others); order is guaranteed within one region only.
    """

    t: float
    key: str
    epoch: str
    seq: int
    generation: int = 0
    intended_t: float | None = None
    size: int = 0
    region: str = ""


@fact(frozen=True, slots=True)
class Published:
    """The service confirmed the publish and named the record: `message_id` is the primary record of this sequence number."""

    t: float
    key: str
    epoch: str
    seq: int
    message_id: str
    generation: int = 0
    publish_time: float | None = None


@fact(frozen=True, slots=True)
class PublishFailed:
    """The publish provably stored nothing: the key was paused, the batch was cancelled, or the only attempt was refused."""

    t: float
    key: str
    epoch: str
    seq: int
    generation: int = 0


@fact(frozen=True, slots=True)
class PublishUnknown:
    """The outcome is unknown (deadline, lost reply, any error after a retry)."""

    t: float
    key: str
    epoch: str
    seq: int
    generation: int = 0


@fact(frozen=True, slots=True)
class PublishAbandoned:
    """The prober gave up a sequence number after an unknown outcome and will not publish it again."""

    t: float
    key: str
    epoch: str
    seq: int
    generation: int = 0


@fact(frozen=True, slots=True)
class Opened:
    """A session started. For unary pull `invoked_t` is when the pull was sent (default: `t`): the service sent nothing in it before that.

    `max_outstanding_messages` and `max_outstanding_bytes` are the flow control of a stream: the service sends no more messages while the
    unacknowledged ones on it reach the limit. None, or a value not above 0: no limit.
    """

    t: float
    subscription: str
    session: str
    subscriber: str
    invoked_t: float | None = None
    max_outstanding_messages: int | None = None
    max_outstanding_bytes: int | None = None


@fact(frozen=True, slots=True)
class Closed:
    """The client noticed that a session ended. `lost`: a pull that ended without its answer, which may have carried messages."""

    t: float
    subscription: str
    session: str
    lost: bool = False


@fact(frozen=True, slots=True)
class Delivered:
    """A message reached the recorder: recorded before its acknowledgement can be sent.

    `delivery_attempt` is the service's approximate count, 0 without a dead-letter policy. `defect` names what the recorder found
    wrong with the message itself ("checksum", "ordering_key", ...), None when its bytes, attributes and key are those that were
    published. `matches_filter` is False when the subscription's filter should have kept the message back. `publish_time` is the time at
    which the service reports to have stored the message, compared for equality only: one message id with two publish times is two records.
    Adapters give whole nanoseconds since 1970; None if it was not recorded. `data_size` is the size of the data in bytes. Adapters set it
    for messages of other publishers, whose publishes are not on record. None if it was not recorded.
    """

    t: float
    subscription: str
    key: str
    session: str
    epoch: str
    seq: int
    message_id: str
    generation: int = 0
    delivery_attempt: int = 0
    defect: str | None = None
    matches_filter: bool = True
    publish_time: int | float | str | None = None
    data_size: int | None = None


@fact(frozen=True, slots=True)
class Acked:
    """An acknowledgement is about to be sent (for push: the endpoint answers with success)."""

    t: float
    subscription: str
    key: str
    session: str
    message_id: str


@fact(frozen=True, slots=True)
class Nacked:
    """A negative acknowledgement is about to be sent (a lease modification to 0; for push: the endpoint answers with failure)."""

    t: float
    subscription: str
    key: str
    session: str
    message_id: str


@fact(frozen=True, slots=True)
class AckConfirmed:
    """The service confirmed an acknowledgement (exactly-once delivery)."""

    t: float
    subscription: str
    key: str
    session: str
    message_id: str


@fact(frozen=True, slots=True)
class LeaseModified:
    """A lease modification to `seconds` from now is about to be sent."""

    t: float
    subscription: str
    key: str
    session: str
    message_id: str
    seconds: float


@fact(frozen=True, slots=True)
class DeadLettered:
    """A message was seen to leave the subscription for its dead-letter topic."""

    t: float
    subscription: str
    key: str
    message_id: str


@fact(frozen=True, slots=True)
class Sought:
    """The subscription was sought or purged; for `settle_s` the service may still deliver from before.

    since_t     every message published since then is unacknowledged from now on, on the clock of `t`; None if that is not known.
    """

    t: float
    subscription: str
    settle_s: float
    since_t: float | None = None


@fact(frozen=True, slots=True)
class FilterChanged:
    """The subscription's filter changed; for `settle_s` messages of the old filter may still arrive."""

    t: float
    subscription: str
    settle_s: float


@fact(frozen=True, slots=True)
class Interrupted:
    """The record may have a hole here: events before `t` may be missing (the recorder crashed, or dropped events)."""

    t: float


@fact(frozen=True, slots=True)
class Ended:
    """The history ends. `drained`: publishing and faults had stopped, and the recorder waited for the deliveries."""

    t: float
    drained: bool


PublishEvent: TypeAlias = PublishInvoked | Published | PublishFailed | PublishUnknown | PublishAbandoned
DeliveryEvent: TypeAlias = Delivered | Acked | Nacked | AckConfirmed | LeaseModified | DeadLettered
SessionEvent: TypeAlias = Opened | Closed
ControlEvent: TypeAlias = Sought | FilterChanged | Interrupted | Ended
Event: TypeAlias = PublishEvent | DeliveryEvent | SessionEvent | ControlEvent

EVENT_TYPES: Final[Mapping[str, type[Event]]] = MappingProxyType(
    {
        "publish": PublishInvoked,
        "published": Published,
        "publish_failed": PublishFailed,
        "publish_unknown": PublishUnknown,
        "publish_abandoned": PublishAbandoned,
        "opened": Opened,
        "closed": Closed,
        "delivered": Delivered,
        "acked": Acked,
        "nacked": Nacked,
        "ack_confirmed": AckConfirmed,
        "lease_modified": LeaseModified,
        "dead_lettered": DeadLettered,
        "sought": Sought,
        "filter_changed": FilterChanged,
        "interrupted": Interrupted,
        "ended": Ended,
    }
)
"""The event types by their name on disk, in the history and in trace files."""
EVENT_NAMES: Final[Mapping[type[Event], str]] = MappingProxyType({kind: name for name, kind in EVENT_TYPES.items()})
"""The name on disk of each event type."""
