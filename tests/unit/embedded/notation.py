"""A short notation for the embedded service: one topic, one subscription, words in, words out.

    @5            time is 5 s                         +k:1,2,3   publish 1, 2, 3 with key k in one request (+:1 without a key)
    open:A        a stream of client A opens          open:A2=A  a second stream of client A       open:A/2  at most 2 outstanding
    close:A       the stream is gone                  break:A    the same, seen from the client's side
    ack:k1,k2     acknowledge the last deliveries     nack:k1    refuse        mod:k1=30   move the deadline
    pull:p/10     ask for up to 10                    ok:k1 / bad:k1   the push endpoint answered

What comes out: `A<k1,k2` sent on stream A, `p<k1` pull answered, `p<` with nothing, `POST k1`, `cancel k1`, `A!CODE` stream ended,
`dead k1`. A message is named by its key and its data.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from prober.embedded import resources
from prober.embedded.behaviour import Behaviour
from prober.embedded.faults import Faults, parse_fault
from prober.embedded.messages import (
    AnswerPull,
    CancelPush,
    Confirm,
    Delivery,
    Effect,
    EndStream,
    ForwardedToDeadLetter,
    Message,
    PublishDraft,
    Push,
    Send,
)
from prober.embedded.state import State, StreamAnswers, StreamRequest

TOPIC = "projects/p/topics/top"
SUBSCRIPTION = "projects/p/subscriptions/sub"
ENDPOINT = "http://127.0.0.1:1/"


def name_of(message: Message) -> str:
    """Key and data."""
    return message.ordering_key + message.data.decode()


def drafts(text: str) -> list[PublishDraft]:
    """`k:1,2` or `k:1,2?color=red` with attributes."""
    head, _, query = text.partition("?")
    key, _, names = head.partition(":")
    attributes = dict(pair.split("=") for pair in query.split("&") if pair)
    return [PublishDraft(name.encode(), attributes, key) for name in names.split(",")]


class Play:
    """The service, and what its subscribers know."""

    def __init__(self, settings: resources.Subscription | None = None, behaviour: Behaviour | None = None) -> None:
        self.state = State(behaviour=behaviour)
        self.now = 0.0
        self.ack_ids: dict[str, str] = {}
        self.names: dict[str, str] = {}
        self.attempts: dict[str, int] = {}
        self.confirms: list[Confirm] = []
        self.transcript: list[tuple[float, str]] = []
        self.state.registry.create_topic(resources.Topic(TOPIC))
        self.settings = settings or ordered()
        self.state.registry.create_subscription(self.settings, 0.0)

    def __call__(self, script: str) -> str:
        """Carry out a script; what comes out, all of it in order."""
        return " ".join(word for step in script.split() for word in self._step(step))

    def _step(self, step: str) -> list[str]:
        verb, _, rest = step.partition(":")
        if step[0] == "@":
            self.now = float(step[1:])
        elif step[0] == "+":
            self.state.publish(TOPIC, drafts(step[1:]), self.now)
        else:
            getattr(self, f"_{verb}")(rest)
        return self.settle()

    def settle(self) -> list[str]:
        """What the state wants done now."""
        words = [text for effect in self.state.advance(self.now) if (text := self._text(effect))]
        self.transcript += [(self.now, word) for word in words]
        return words

    def _open(self, text: str) -> None:
        stream, _, limit = text.partition("/")
        stream, _, client = stream.partition("=")
        request = StreamRequest(SUBSCRIPTION, self.settings.ack_deadline_s, client or stream, int(limit or 0))
        self.state.open_stream(stream, request, self.now)

    def _close(self, stream: str) -> None:
        self.state.close_stream(stream, self.now)

    def _ack(self, text: str) -> None:
        self.state.acknowledge(SUBSCRIPTION, self._ids(text), self.now)

    def _nack(self, text: str) -> None:
        self.state.modify_ack_deadline(SUBSCRIPTION, self._ids(text), 0, self.now)

    def _mod(self, text: str) -> None:
        names, _, seconds = text.partition("=")
        self.state.modify_ack_deadline(SUBSCRIPTION, self._ids(names), int(seconds), self.now)

    def _sack(self, text: str) -> None:
        stream, _, names = text.partition("/")
        self.state.answer_stream(stream, StreamAnswers(ack_ids=self._ids(names)), self.now)

    def _pull(self, text: str) -> None:
        pull, _, limit = text.partition("/")
        self.state.pull(pull, SUBSCRIPTION, int(limit or 100), self.now)

    def _ok(self, name: str) -> None:
        self.state.push_answered(SUBSCRIPTION, self.ack_ids[name], self.now, accepted=True)

    def _bad(self, name: str) -> None:
        self.state.push_answered(SUBSCRIPTION, self.ack_ids[name], self.now, accepted=False)

    def _ids(self, names: str) -> Sequence[str]:
        return [self.ack_ids.get(name, name) for name in names.split(",")]

    def _text(self, effect: Effect) -> str:
        match effect:
            case Send(stream, deliveries):
                return f"{stream}<{self._names(deliveries)}"
            case AnswerPull(pull, deliveries, error):
                return f"{pull}!{error.code}" if error else f"{pull}<{self._names(deliveries)}"
            case Push(delivery=delivery):
                return f"POST {self._names([delivery])}"
            case CancelPush(push):
                return f"cancel {self.names[push]}"
            case EndStream(stream, error):
                return f"{stream}!{error.code}"
            case ForwardedToDeadLetter(message=message):
                return f"dead {name_of(message)}"
            case Confirm():
                self.confirms.append(effect)
        return ""

    def _names(self, deliveries: Iterable[Delivery]) -> str:
        found = []
        for delivery in deliveries:
            name = name_of(delivery.message)
            self.ack_ids[name], self.names[delivery.ack_id] = delivery.ack_id, name
            self.attempts[name] = delivery.delivery_attempt
            found.append(name)
        return ",".join(found)


def ordered(**changes: object) -> resources.Subscription:
    """A subscription with ordering and an acknowledgement deadline of 10 s, and these further settings."""
    settings: dict[str, object] = {"enable_message_ordering": True, **changes}
    return resources.Subscription(SUBSCRIPTION, TOPIC, **settings)  # type: ignore[arg-type]


def pushed(**changes: object) -> resources.Subscription:
    """The same with a push endpoint."""
    return ordered(push_config=resources.PushConfig(ENDPOINT), **changes)


def faulty(*faults: str, settings: resources.Subscription | None = None) -> tuple[Play, Faults]:
    """A service with these faults, and their ledger."""
    armed = Faults([parse_fault(fault) for fault in faults])
    return Play(settings, Behaviour(armed)), armed
