"""What the state wants done: values that the network side, or a simulator, carries out in the order given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from prober.embedded.errors import ServiceError
from prober.embedded.messages import Delivery, Message
from prober.embedded.resources import PushConfig


@dataclass(frozen=True, slots=True)
class Send:
    """Send messages on a stream, in this order, after everything sent on it before."""

    stream: str
    deliveries: list[Delivery]


@dataclass(frozen=True, slots=True)
class Confirm:
    """Tell a stream what became of its acknowledgements and deadlines (exactly-once delivery only).

    `failed` and `modify_failed` map acknowledgement ids to reasons (`errors.INVALID_ACK_ID` and others).
    """

    stream: str
    acked: tuple[str, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)
    modified: tuple[str, ...] = ()
    modify_failed: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EndStream:
    """End a stream with an error; the state has forgotten it already."""

    stream: str
    error: ServiceError


@dataclass(frozen=True, slots=True)
class AnswerPull:
    """Answer a waiting pull, with nothing if its time is up or with an error."""

    pull: str
    deliveries: list[Delivery]
    error: ServiceError | None = None


@dataclass(frozen=True, slots=True)
class Push:
    """POST a message to an endpoint and report the outcome with `State.push_answered` under the same id."""

    push: str
    subscription: str
    config: PushConfig
    delivery: Delivery
    timeout_s: float


@dataclass(frozen=True, slots=True)
class CancelPush:
    """Give a push up: its deadline has passed or its subscription is gone. An answer to it will be ignored."""

    push: str


@dataclass(frozen=True, slots=True)
class Lost:
    """Messages were sent on a stream or in the answer to a pull and never arrive. Nothing is to be done."""

    holder: str
    messages: list[Message]


@dataclass(frozen=True, slots=True)
class DeadLettered:
    """A message went to the dead-letter topic and will not be delivered on the subscription again. Nothing is to be done."""

    subscription: str
    message: Message
    topic: str
    copy_id: str


Effect: TypeAlias = Send | Confirm | EndStream | AnswerPull | Push | CancelPush | Lost | DeadLettered
