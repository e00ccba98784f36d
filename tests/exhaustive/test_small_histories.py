"""The checker against the oracle on every small history.

The claims are those of `oracle`: no violation of order or redelivery where a legal send order exists, everything found in a
single session, and no violation of any kind where the service as a whole can have behaved legally, or where streams of one
owner raced. `FULL_EXHAUSTIVE=1` widens the grids from steady gaps to all mixtures of them and lifts the limits on length; what is
marked as nightly is the same claim on longer histories, which are hundreds of thousands.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from math import inf
from random import Random

import pytest

from prober.core.events import Acked, Closed, Delivered, Ended, Event, Nacked, Opened, Published, PublishInvoked
from prober.core.findings import Kind, Status
from prober.core.rules import Mode, Rules
from tests.exhaustive.histories import EPOCH, GRIDS, KEY, START, SUBSCRIPTION, Arrival, Grid, growth, rules
from tests.exhaustive.oracle import Ack, Limits, Publish, Receipt, Sent, record_legal, service_legal, step_legal
from tests.nightly import AT_NIGHT, nightly_but
from tests.verification import kinds, verify

FULL = bool(os.environ.get("FULL_EXHAUSTIVE"))
pytestmark = pytest.mark.timeout(7200 if FULL else 1200)
SHORT, LENGTH = 4, 6
LONG = ("none certain", "three apart", "two apart")
MIXTURES = (0.3, 0.8, 1.2)
HOLDER = {Kind.AFFINITY_SPLIT, Kind.PULL_OVERLAP, Kind.PUSH_OVERLAP}


def lengths(longest: int) -> range:
    return range(1, longest + 1)


def mixtures(length: int) -> Iterator[Grid]:
    for gaps in product(MIXTURES, repeat=max(0, length - 1)):
        yield Grid(f"gaps {gaps}", gaps or (1.0,))


def in_log_order(length: int, grids: Iterable[Grid]) -> Iterator[Arrival]:
    for grid, positions, sessions in product(grids, growth(length, length), growth(length, 3)):
        yield Arrival(sessions, positions, grid)


def whole_legal(arrival: Arrival) -> bool:
    """Whether the redeliveries and the holders of the key can be explained together, where nothing was answered and no stream broke."""
    assumed = rules(arrival.grid)
    limits = Limits(assumed.ack_deadline_s, assumed.delivery_delay_max_s, assumed.ack_lag_max_s, assumed.close_detection_max_s)
    return service_legal([Sent(receipt, receipt.session) for receipt in arrival.receipts()], [], limits)


def check_step(arrivals: Iterable[Arrival], confirmed: bool = True) -> Counter[str]:
    """No violation of order at all (the messages are first received in log order), none of redelivery where D1 to D3 hold.

    A copy that would explain a skip explains nothing if the key cannot have been with its receiver: then the whole is illegal.
    """
    seen: Counter[str] = Counter()
    for arrival in arrivals:
        legal = step_legal(arrival.receipts())
        found = kinds(verify(rules(arrival.grid), arrival.events(confirmed))) - HOLDER
        allowed = set() if legal and (not found or whole_legal(arrival)) else {Kind.REDELIVERY_SKIP}
        assert found <= allowed, (arrival, found)
        if len(set(arrival.sessions)) == 1:
            assert legal or found, arrival
        seen["legal" if legal else "found" if found else "missed"] += 1
    return seen


@pytest.mark.parametrize("grid", GRIDS, ids=lambda grid: grid.name)
def test_first_received_in_log_order(grid: Grid) -> None:
    seen: Counter[str] = Counter()
    for length in lengths(SHORT):
        seen += check_step(in_log_order(length, [grid]))
    assert seen["legal"]
    assert seen["found"]


@pytest.mark.nightly
@pytest.mark.parametrize("grid", GRIDS, ids=lambda grid: grid.name)
def test_longer_ones_first_received_in_log_order(grid: Grid) -> None:
    for length in range(SHORT + 1, LENGTH + 1 if FULL or grid.name in LONG else LENGTH):
        check_step(in_log_order(length, [grid]))


@pytest.mark.parametrize("length", nightly_but(lengths(SHORT - 1), lengths(LENGTH if FULL else SHORT)))
def test_mixtures_of_gaps(length: int) -> None:
    check_step(in_log_order(length, mixtures(length)))


@pytest.mark.parametrize("grid", GRIDS[1:3], ids=lambda grid: grid.name)
def test_unconfirmed_publishes_change_nothing(grid: Grid) -> None:
    for length in lengths(LENGTH if FULL else SHORT):
        check_step(in_log_order(length, [grid]), confirmed=False)


@pytest.mark.parametrize("one_batch", [False, True], ids=["one after the other", "one batch"])
@pytest.mark.parametrize("length", nightly_but(lengths(LENGTH - 1), lengths(LENGTH)))
def test_one_session_is_decided_exactly(length: int, one_batch: bool) -> None:
    """Also where messages are first received out of order: what is illegal must be found, and only that."""
    highest = LENGTH if FULL else min(length, 4)
    for positions in product(range(1, highest + 1), repeat=length):
        arrival = Arrival((1,) * length, positions, GRIDS[1])
        found = kinds(verify(rules(arrival.grid), arrival.events(one_batch=one_batch)))
        assert bool(found) != step_legal(arrival.receipts()), (arrival, found)


@pytest.mark.parametrize("grid", nightly_but((GRIDS[3],), (GRIDS[0], GRIDS[3])), ids=lambda grid: grid.name)
def test_streams_of_one_owner_race(grid: Grid) -> None:
    """Also where messages are first received out of order: what a send order explains is no violation."""
    seen: Counter[str] = Counter()
    for length in lengths(LENGTH - 1 if FULL else SHORT):
        for positions, sessions in product(product(range(1, length + 1), repeat=length), growth(length, 3)):
            arrival = Arrival(sessions, positions, grid)
            legal = step_legal(arrival.receipts())
            found = kinds(verify(rules(grid), arrival.events(one_owner=True)))
            assert not (legal and found), (arrival, found)
            assert not found & HOLDER, arrival
            if len(set(sessions)) == 1:
                assert legal or found, arrival
            seen["legal" if legal else "found" if found else "missed"] += 1
    assert seen["legal"]
    assert seen["found"]


# --- publisher duplicates: the log is unknown ---

RECORDS = {"a1": 1, "b1": 1, "a2": 2, "b2": 2, "b3": 3}
LAYOUTS = {
    "one batch": [Publish(1, 0.0, 1.0, "b1"), Publish(2, 0.0, 1.0, "b2"), Publish(3, 0.0, 1.0, "b3")],
    "one after the other": [Publish(1, 0.0, 1.0, "b1"), Publish(2, 2.0, 3.0, "b2"), Publish(3, 4.0, 5.0, "b3")],
    "two, then one": [Publish(1, 0.0, 1.0, "b1"), Publish(2, 0.5, 1.0, "b2"), Publish(3, 4.0, 5.0, "b3")],
    "the second unknown": [Publish(1, 0.0, 1.0, "b1"), Publish(2, 0.5), Publish(3, 4.0, 5.0, "b3")],
    "confirmed after delivery": [Publish(1, 0.0, 500.0, "b1"), Publish(2, 0.0, 500.0, "b2"), Publish(3, 0.0, 500.0, "b3")],
}


def record_events(publishes: list[Publish], ids: tuple[str, ...]) -> list[Event]:
    events: list[Event] = [Opened(0.0, SUBSCRIPTION, "S1", "S1")]
    for publish in publishes:
        events.append(PublishInvoked(publish.invoked, KEY, EPOCH, publish.seq))
        if publish.confirmed is not None and publish.primary is not None:
            events.append(Published(publish.confirmed, KEY, EPOCH, publish.seq, publish.primary))
    for place, record in enumerate(ids):
        events.append(Delivered(START + place, SUBSCRIPTION, KEY, "S1", EPOCH, RECORDS[record], record))
    return [*sorted(events, key=lambda event: event.t), Ended(2000.0, drained=True)]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_log_of_a_single_session(layout: str) -> None:
    """Any log that explains the deliveries acquits; with none, something is found, if need be when the history has drained."""
    publishes = LAYOUTS[layout]
    settings = Rules(stall_deadline_s=inf, unacked_deadline_s=inf, delivery_deadline_s=100.0)
    primaries = {publish.primary for publish in publishes if publish.primary}
    for length in lengths(LENGTH if FULL else SHORT):
        for ids in product(RECORDS, repeat=length):
            legal = record_legal(RECORDS, publishes, ids)
            findings = verify(settings, record_events(publishes, ids))
            violations = kinds(findings, Status.VIOLATION)
            missing = bool(primaries - set(ids))
            assert not (legal and violations), (ids, violations)
            assert legal or kinds(findings), ids
            assert bool(kinds(findings, Status.LIVENESS)) <= missing, (ids, findings)


# --- the whole service: who may hold what ---


@dataclass(frozen=True, slots=True)
class Story:
    """An arrival sequence and, after each delivery, what its receiver does: nothing, ack, nack, close its session.

    A closed session receives no more. `patience` is how long after the receipt it does so.
    """

    arrival: Arrival
    acts: tuple[str, ...]
    patience: float

    def possible(self) -> bool:
        sessions, times = self.arrival.sessions, self.arrival.grid.times(len(self.acts))
        closed: dict[int, float] = {}
        for session, act, time in zip(sessions, self.acts, times, strict=True):
            if session in closed and closed[session] <= time + self.patience:
                return False
            if act == "close":
                closed[session] = time + self.patience
        return True

    def events(self) -> list[Event]:
        events = self.arrival.events()
        for receipt, act in zip(self.arrival.receipts(), self.acts, strict=True):
            t, message_id = receipt.received + self.patience, f"m{receipt.position}"
            if act == "ack":
                events.append(Acked(t, SUBSCRIPTION, KEY, receipt.session, message_id))
            elif act == "nack":
                events.append(Nacked(t, SUBSCRIPTION, KEY, receipt.session, message_id))
            elif act == "close":
                events.append(Closed(t, SUBSCRIPTION, receipt.session))
        return sorted(events, key=lambda event: event.t)

    def sent(self) -> list[Sent]:
        receipts = self.arrival.receipts()
        closed = {
            receipt.session: receipt.received + self.patience
            for receipt, act in zip(receipts, self.acts, strict=True)
            if act == "close"
        }
        return [
            Sent(receipt, receipt.session, self._nacked(receipts, place), closed.get(receipt.session, inf))
            for place, receipt in enumerate(receipts)
        ]

    def acks(self) -> list[Ack]:
        return [
            Ack(receipt.session, receipt.position, receipt.received + self.patience)
            for receipt, act in zip(self.arrival.receipts(), self.acts, strict=True)
            if act == "ack"
        ]

    def _nacked(self, receipts: list[Receipt], place: int) -> float:
        """An answer names a session and a message: it may belong to this delivery or to a later copy in the same session."""
        own = receipts[place]
        return min(
            (
                other.received + self.patience
                for later, other in enumerate(receipts)
                if later >= place and self.acts[later] == "nack" and (other.session, other.position) == (own.session, own.position)
            ),
            default=inf,
        )


LEASE = 4.0
ACK_LAG = 1.0
HOLDER_GAPS = (0.3, 1.5, 6.0)
ANSWERS = ("none", "ack", "nack")
ACTS = {Mode.STREAMING: (*ANSWERS, "close"), Mode.PULL: ANSWERS, Mode.PUSH: ANSWERS}  # pull and push sessions just end
LATER = (0.05, 0.9)


def patterns(mode: Mode, length: int) -> Iterator[tuple[int, ...]]:
    """Which sessions may receive: a request has one message, and a response arrives at once, here before the next one."""
    if mode is Mode.PUSH:
        return iter([tuple(range(1, length + 1))])
    every = growth(length, 3)
    return every if mode is Mode.STREAMING else (sessions for sessions in every if tuple(sorted(sessions)) == sessions)


def stories(mode: Mode, length: int) -> Iterator[Story]:
    """Every sequence of positions, also out of log order, in which every position up to the highest occurs."""
    for gaps in product(HOLDER_GAPS, repeat=length - 1):
        grid = Grid(f"gaps {gaps}", gaps or (1.0,))
        for positions in product(range(1, length + 1), repeat=length):
            if set(positions) != set(range(1, max(positions) + 1)):
                continue
            for sessions, acts, patience in product(patterns(mode, length), product(ACTS[mode], repeat=length), LATER):
                story = Story(Arrival(sessions, positions, grid), acts, patience)
                if story.possible():
                    yield story


def drawn(mode: Mode, length: int, count: int) -> Iterator[Story]:
    """A fixed sample of them, where they are too many."""
    random = Random(length)
    choices = list(patterns(mode, length))
    for _ in range(count):
        gaps = tuple(random.choice(HOLDER_GAPS) for _ in range(length - 1))
        positions = [1]
        while len(positions) < length:
            positions.append(random.randint(1, positions[-1] + 1))
        acts = tuple(random.choice(ACTS[mode]) for _ in range(length))
        story = Story(Arrival(random.choice(choices), tuple(positions), Grid("drawn", gaps)), acts, random.choice(LATER))
        if story.possible():
            yield story


def check_service(cases: Iterable[Story], mode: Mode, limits: Limits) -> Counter[str]:
    seen: Counter[str] = Counter()
    for story in cases:
        legal = service_legal(story.sent(), story.acks(), limits)
        settings = replace(
            rules(story.arrival.grid, mode),
            ack_deadline_s=limits.lease,
            ack_lag_max_s=limits.ack_lag,
            close_detection_max_s=limits.close_detection,
            exactly_once=limits.exactly_once,
        )
        found = kinds(verify(settings, story.events()))
        assert not (legal and found), (story, found)
        seen["legal" if legal else "found" if found else "missed"] += 1
    return seen


STREAMING = Limits(LEASE, ack_lag=ACK_LAG)
PULL = Limits(LEASE, ack_lag=ACK_LAG, one_session_per_owner=True)
PUSH = Limits(LEASE, ack_lag=ACK_LAG, one_session_per_owner=True, one_message_at_a_time=True)
SERVICES = {
    "streaming": (Mode.STREAMING, STREAMING),
    "streaming, half-open streams": (Mode.STREAMING, replace(STREAMING, close_detection=2.0)),
    "streaming, exactly once": (Mode.STREAMING, replace(STREAMING, exactly_once=True)),
    "pull": (Mode.PULL, PULL),
    "pull, exactly once": (Mode.PULL, replace(PULL, exactly_once=True)),
    "push": (Mode.PUSH, PUSH),
}


@pytest.mark.parametrize("service", SERVICES)
def test_nothing_is_held_against_a_legal_service(service: str) -> None:
    mode, limits = SERVICES[service]
    seen: Counter[str] = Counter()
    for length in lengths(3 if FULL else 2):
        seen += check_service(stories(mode, length), mode, limits)
    for length in range(3, 6):
        seen += check_service(drawn(mode, length, 50_000 if FULL else 800 if AT_NIGHT else 300), mode, limits)
    assert seen["legal"] > 100
    assert seen["found"] > 50
