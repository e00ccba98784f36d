"""The experiments of a synthetic history: short runs like those of the probe `ordering`, most of them right, some with a planted breach.

What a breach must be found as is written down here, next to the events that commit it; nobody asks the checker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from types import MappingProxyType
from typing import Final

from prober.core.events import Acked, Delivered, Ended, Event, Nacked, Opened, Published, PublishInvoked
from prober.core.findings import Kind, Status
from prober.slo.objectives import HOUR_S

KEYS_PER_RUN: Final = 4
MESSAGES: Final = 5
PLANTED_KEY: Final = "key-0"
_STREAMS: Final = ("a", "b")
_ENDS_S: Final = 10.0
LONGEST_S: Final = 250.0
"""How long a run with a breach takes: until every deadline has passed."""

Found = frozenset[tuple[Kind, Status]]


@dataclass(frozen=True, slots=True)
class SyntheticRun:
    """What the events of one run are about; `t` is when it begins."""

    subscription: str
    epoch: str
    t: float


def _delivered(run: SyntheticRun, at: float, stream: str, seq: int, key: str = PLANTED_KEY) -> Delivered:
    session = f"{run.epoch}-{stream}"
    return Delivered(run.t + at, run.subscription, key, session, run.epoch, seq, _id(run, key, seq))


def _acked(run: SyntheticRun, at: float, stream: str, seq: int, key: str = PLANTED_KEY) -> Acked:
    return Acked(run.t + at, run.subscription, key, f"{run.epoch}-{stream}", _id(run, key, seq))


def _id(run: SyntheticRun, key: str, seq: int) -> str:
    return f"{run.epoch}-{key}-{seq}"


def _received(run: SyntheticRun, order: Sequence[int], stream: str = "a", begin: float = 1.0) -> Iterator[Event]:
    """Messages received one after the other and acknowledged at once."""
    for step, seq in enumerate(order):
        yield _delivered(run, begin + 0.1 * step, stream, seq)
        yield _acked(run, begin + 0.1 * step + 0.05, stream, seq)


def _third_before_second(run: SyntheticRun) -> Iterator[Event]:
    yield from _received(run, (1, 3, 2, 4, 5))


def _third_passed_over(run: SyntheticRun) -> Iterator[Event]:
    yield from (_delivered(run, 1.0 + 0.1 * seq, "a", seq) for seq in (1, 2, 3))
    yield from (_acked(run, 1.4 + 0.01 * seq, "a", seq) for seq in (1, 3))
    yield Nacked(run.t + 1.5, run.subscription, PLANTED_KEY, f"{run.epoch}-a", _id(run, PLANTED_KEY, 2))
    yield from _received(run, (2, 4, 5), begin=2.0)


def _never_published(run: SyntheticRun) -> Iterator[Event]:
    yield from _received(run, (1, 2, 3, 4, 5))
    yield from _received(run, (77,), begin=2.0)


def _damaged(run: SyntheticRun) -> Iterator[Event]:
    for event in _received(run, (1, 2, 3, 4, 5)):
        yield replace(event, defect="checksum") if isinstance(event, Delivered) and event.seq == 3 else event


def _elsewhere_while_held(run: SyntheticRun) -> Iterator[Event]:
    yield from _received(run, (1,))
    yield _delivered(run, 1.1, "a", 2)
    yield from _received(run, (3, 4, 5), "b", 2.0)
    yield _acked(run, 3.0, "a", 2)


def _last_never_delivered(run: SyntheticRun) -> Iterator[Event]:
    yield from _received(run, (1, 2, 3, 4))


@dataclass(frozen=True, slots=True)
class Breach:
    """A broken promise: what happens to the planted key, and what has to be found."""

    name: str
    events: Callable[[SyntheticRun], Iterator[Event]]
    found: Found


def _breach(
    name: str, events: Callable[[SyntheticRun], Iterator[Event]], *kinds: Kind, status: Status = Status.VIOLATION
) -> Breach:
    return Breach(name, events, frozenset((kind, status) for kind in kinds))


ORDER_BROKEN: Final = _breach("order_broken", _third_before_second, Kind.ORDER_GAP, Kind.ORDER_INVERSION, Kind.REALTIME_INVERSION)
PLANTED_BREACHES: Final[Mapping[float, Breach]] = MappingProxyType(
    {
        2 * HOUR_S: _breach("redelivery_skip", _third_passed_over, Kind.REDELIVERY_SKIP),
        4 * HOUR_S: _breach("phantom", _never_published, Kind.PHANTOM),
        6 * HOUR_S: _breach("affinity_split", _elsewhere_while_held, Kind.AFFINITY_SPLIT),
        8 * HOUR_S: _breach("never_delivered", _last_never_delivered, Kind.STUCK, status=Status.LIVENESS),
        12 * HOUR_S: _breach("damaged", _damaged, Kind.ID_CONFLICT),
    }
)
"""The single breaches of a day: that of the first run from that second of the day on."""


def events_of(run: SyntheticRun, breach: Breach | None = None) -> list[Event]:
    """The events of one run in recorder order."""
    events: list[Event] = [Opened(run.t, run.subscription, f"{run.epoch}-{name}", f"{run.epoch}-{name}") for name in _STREAMS]
    for number in range(KEYS_PER_RUN):
        key, stream = f"key-{number}", _STREAMS[number % len(_STREAMS)]
        for seq in range(1, MESSAGES + 1):
            at = run.t + 0.1 * seq
            events.append(PublishInvoked(at, key, run.epoch, seq, size=64))
            events.append(Published(at + 0.05, key, run.epoch, seq, _id(run, key, seq)))
            if breach is None or key != PLANTED_KEY:
                events.append(_delivered(run, 1.0 + 0.1 * seq, stream, seq, key))
                events.append(_acked(run, 1.0 + 0.1 * seq + 0.05, stream, seq, key))
    if breach is not None:
        events += breach.events(run)
    events.append(Ended(run.t + run_duration_s(breach), drained=True))
    return sorted(events, key=attrgetter("t"))


def run_duration_s(breach: Breach | None) -> float:
    """How long a run takes."""
    return _ENDS_S if breach is None else LONGEST_S
