"""Faults: which there are and what must find them, how one is written, when it strikes, and the record of what was injected.

The names of findings are plain text here, as the checker's reports show them: the two sides share no code. A fault is caught when at
least one of its findings is reported. A benign fault, and one that only costs availability or time, must never be reported as a
violation; where it shows instead is said in `shows`. What a fault does stands in `behaviour`.

A fault is written `NAME:p=0.1,count=3,key=order-*,start=5,for=10,seed=7`, every part after the name optional:

    p      chance that it strikes, each time it could (1)
    count  how often at most (no limit)
    key    only for ordering keys that match this pattern (`*`; a message without a key has the empty one)
    start  seconds from when it was armed until it may strike (0)
    for    seconds that it may strike from then on (no limit); what it has silenced is heard again afterwards
    seed   of its own dice (0): the same requests in the same order meet the same faults
"""

from __future__ import annotations

import math
import random
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Final

_LEDGER_MAX: Final = 10_000  # injections


@dataclass(frozen=True, slots=True)
class Description:
    """One kind of fault.

    benign    the promises of order, redelivery and affinity hold all the same.
    findings  at least one of these must be reported; empty for those that break no promise of order.
    shows     where else it can be seen.
    """

    name: str
    sentence: str
    benign: bool = False
    findings: tuple[str, ...] = ()
    shows: str = ""

    @property
    def verdicts(self) -> tuple[str, ...]:
        """How a run in which it was injected may end."""
        return ("FAIL",) if self.findings else ("PASS", "UNKNOWN")


_DESCRIPTIONS: Final = (
    Description(
        "drop",
        "A stored message never reaches a subscription; later ones of its key do.",
        findings=("ORDER_GAP", "LOST_OVERTAKEN", "STUCK", "ORDER_DIVERGENCE"),
    ),
    Description(
        "lose_write",
        "A publish is confirmed with an id, but the message is not stored.",
        findings=("ORDER_GAP", "LOST_OVERTAKEN", "STUCK"),
    ),
    Description(
        "swap_in_batch",
        "Two neighbouring messages of one publish request and key are stored in the wrong order.",
        findings=("ORDER_GAP", "ORDER_INVERSION"),
    ),
    Description("duplicate_id", "A message gets the id of the message of its key before it.", findings=("ID_CONFLICT",)),
    Description(
        "redeliver_single",
        "A message is redelivered, the later ones of its key that were already delivered are not.",
        findings=("REDELIVERY_SKIP", "REDELIVERY_STALL", "PULL_BATCH_ORDER"),
    ),
    Description(
        "redeliver_unacked_only",
        "A redelivery leaves out later messages of the key that were acknowledged.",
        findings=("REDELIVERY_SKIP", "REDELIVERY_STALL", "PULL_BATCH_ORDER"),
    ),
    Description(
        "stall_run",
        "A redelivery stops after its first message; the key is silent from then on.",
        findings=("REDELIVERY_STALL", "UNACKED_STALL", "STUCK"),
    ),
    Description(
        "never_redeliver",
        "A message that was refused, or whose deadline passed, never comes again.",
        findings=("UNACKED_STALL", "REDELIVERY_SKIP", "ORDER_GAP", "PUSH_ADVANCE_PAST_NACK"),
    ),
    Description(
        "split_holder",
        "While messages of a key are outstanding at one streaming subscriber, the next ones go to another.",
        findings=("AFFINITY_SPLIT", "ORDER_INVERSION", "REDELIVERY_SKIP"),
    ),
    Description(
        "publish_unavailable",
        "Publish fails with UNAVAILABLE; nothing is stored.",
        shows='publishes_total{outcome="unknown"} and the publish availability objective',
    ),
    Description(
        "reply_lost",
        "A publish request is stored, but the publisher gets UNAVAILABLE instead of the ids.",
        benign=True,
        shows='publishes_total{outcome="unknown"}, publisher duplicates',
    ),
    Description(
        "partial_batch",
        "Only the first messages of a publish request are stored, and the publisher gets UNAVAILABLE.",
        benign=True,
        shows='publishes_total{outcome="unknown"}, publisher duplicates',
    ),
    Description(
        "stream_break",
        "A stream that is about to get a message ends with UNAVAILABLE.",
        benign=True,
        shows="redeliveries, affinity moves",
    ),
    Description(
        "stall_key",
        "A key is silent: its messages are neither delivered nor redelivered.",
        findings=("STUCK", "UNACKED_STALL", "REDELIVERY_STALL"),
        shows="stalled_keys",
    ),
    Description(
        "stall_all",
        "Nothing is delivered on any subscription; publishing works.",
        findings=("STUCK", "UNACKED_STALL", "REDELIVERY_STALL"),
        shows="oldest_unacked_message_age_seconds",
    ),
    Description(
        "slow_delivery",
        "A key waits for 2 s before new messages of it are delivered; what comes meanwhile goes along, in order.",
        shows="end_to_end_latency_seconds",
    ),
    Description(
        "jitter",
        "A key waits for up to 0.5 s, at random, before new messages of it are delivered; what comes meanwhile goes along, in order.",
        benign=True,
        shows="end_to_end_latency_seconds",
    ),
    Description(
        "ack_lost",
        "An acknowledgement has no effect; with exactly-once delivery it fails with a temporary error.",
        benign=True,
        shows="redeliveries",
    ),
    Description(
        "duplicate_publish_same_id",
        "A publish request is stored twice under the same ids with other publish times, at once or after the next one of its key.",
        benign=True,
        shows="service-side duplicates (SERVICE_DUP, info)",
    ),
    Description(
        "early_redelivery",
        "A key of which messages are outstanding starts again at another streaming subscriber, from the lowest of them on.",
        benign=True,
        shows="redeliveries, affinity moves",
    ),
    Description(
        "lost_pull_answer",
        "The answer to a pull is lost with its messages: the client gets UNAVAILABLE, or nothing until its own deadline.",
        benign=True,
        shows="redeliveries",
    ),
    Description(
        "lost_tail",
        "A redelivery is cut off by a break of its stream; what had been acknowledged before is lost, and does not come again.",
        benign=True,
        shows="redeliveries, streams that break",
    ),
    Description(
        "slow_ack_extension",
        "An acknowledgement, or a longer lease, takes effect up to 2 s late; batches are held for longer.",
        benign=True,
        shows="redeliveries",
    ),
)

CATALOGUE: Final = {description.name: description for description in _DESCRIPTIONS}


def describe_faults() -> str:
    """Every fault with its sentence, and what must be found."""
    return "\n".join(line for description in CATALOGUE.values() for line in _described(description)) + "\n"


def _described(description: Description) -> list[str]:
    lines = [description.name, f"    {description.sentence}"]
    if description.findings:
        lines.append(f"    found as: {', '.join(description.findings)} (at least one)")
    elif description.benign:
        lines.append("    benign: it breaks no promise and must not be found")
    else:
        lines.append("    breaks no promise of order, costs availability or time")
    if description.shows:
        lines.append(f"    shows in: {description.shows}")
    lines.append(f"    a run ends as: {' or '.join(description.verdicts)}")
    return lines


class FaultError(ValueError):
    """A fault that cannot be: the text says what is wrong and what would be right."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault to inject."""

    name: str
    probability: float = 1.0
    count: int | None = None
    key: str = "*"
    start: float = 0.0
    duration: float = math.inf
    seed: int = 0

    def __post_init__(self) -> None:
        if self.name not in CATALOGUE:
            raise FaultError(f"there is no fault {self.name!r}; there are {', '.join(sorted(CATALOGUE))}")
        if not 0 <= self.probability <= 1:
            raise FaultError(f"{self.name}: p is a chance from 0 to 1, not {self.probability:g}")
        if self.count is not None and self.count < 1:
            raise FaultError(f"{self.name}: count is at least 1, not {self.count}")
        if not self.start >= 0 or not self.duration > 0:
            raise FaultError(f"{self.name}: start and for are seconds, start at least 0 and for more than 0")

    def __str__(self) -> str:
        parts = {
            "p": self.probability if self.probability != 1.0 else None,
            "count": self.count,
            "key": self.key if self.key != "*" else None,
            "start": self.start or None,
            "for": self.duration if self.duration != math.inf else None,
            "seed": self.seed or None,
        }
        written = ",".join(f"{name}={_short(value)}" for name, value in parts.items() if value is not None)
        return f"{self.name}:{written}" if written else self.name


def _short(value: float | int | str) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def parse_fault(text: str) -> Fault:
    """Read a fault as it is written above; raises `FaultError`."""
    name, _, rest = text.strip().partition(":")
    settings: dict[str, str] = {}
    for part in rest.split(",") if rest else ():
        setting, equals, value = part.partition("=")
        if not equals or setting not in {"p", "count", "key", "start", "for", "seed"}:
            raise FaultError(f"{name}: {part!r} is none of p=, count=, key=, start=, for=, seed=")
        settings[setting] = value
    try:
        return Fault(
            name,
            float(settings.get("p", 1)),
            int(settings["count"]) if "count" in settings else None,
            settings.get("key", "*"),
            float(settings.get("start", 0)),
            float(settings.get("for", math.inf)),
            int(settings.get("seed", 0)),
        )
    except FaultError:
        raise
    except ValueError as error:
        raise FaultError(f"{name}: a number is expected: {error}") from None


@dataclass(slots=True, eq=False)
class Armed:
    """A fault at work: its number, when it may strike, how often still, and its dice."""

    number: int
    fault: Fault
    starts: float
    ends: float
    left: float
    dice: random.Random
    injected: int = 0

    def strikes(self, key: str, now: float) -> bool:
        """Whether it strikes now, at something with this key; if so that counts."""
        fault = self.fault
        if not self.starts <= now < self.ends or self.left <= 0:
            return False
        if fault.key != "*" and not fnmatchcase(key, fault.key):
            return False
        if fault.probability < 1 and self.dice.random() >= fault.probability:
            return False
        self.left -= 1
        self.injected += 1
        return True


@dataclass(frozen=True, slots=True)
class Injection:
    """A fault that has struck: when, which one, at which topic or subscription, key and message (its id, empty if none)."""

    t: float
    fault: str
    number: int
    where: str
    key: str
    message_id: str


@dataclass(slots=True)
class Ledger:
    """What was injected: every injection is counted, the latest are kept."""

    counts: Counter[str] = field(default_factory=Counter)
    latest: deque[Injection] = field(default_factory=lambda: deque(maxlen=_LEDGER_MAX))

    def record(self, injection: Injection) -> None:
        """A fault has struck."""
        self.counts[injection.fault] += 1
        self.latest.append(injection)


class Faults:
    """The faults that are armed, and the ledger of all that ever struck here."""

    def __init__(self, faults: Iterable[Fault] = (), now: float = 0.0) -> None:
        self.ledger = Ledger()
        self._armed: dict[str, list[Armed]] = {}
        self._last = 0
        for fault in faults:
            self.arm(fault, now)

    def arm(self, fault: Fault, now: float) -> Armed:
        """Let a fault loose; its start counts from now."""
        self._last += 1
        starts = now + fault.start
        left = math.inf if fault.count is None else fault.count
        armed = Armed(self._last, fault, starts, starts + fault.duration, left, random.Random(fault.seed))
        self._armed.setdefault(fault.name, []).append(armed)
        return armed

    def disarm(self, number: int) -> bool:
        """Take a fault back; False if there is none of that number."""
        for name, faults in list(self._armed.items()):
            kept = [armed for armed in faults if armed.number != number]
            if len(kept) != len(faults):
                self._armed[name] = kept
                return True
        return False

    def all(self) -> list[Armed]:
        """Every armed fault, the oldest first."""
        return sorted((armed for faults in self._armed.values() for armed in faults), key=lambda armed: armed.number)

    def has(self, name: str) -> bool:
        """Whether a fault of that name is armed."""
        return bool(self._armed.get(name))

    def strike(self, name: str, where: str, key: str, now: float, message_id: str = "") -> Armed | None:
        """The fault of that name that strikes here and now, written down; None if none does. Ask only where it would take effect."""
        for armed in self._armed.get(name, ()):
            if armed.strikes(key, now):
                self.ledger.record(Injection(now, name, armed.number, where, key, message_id))
                return armed
        return None
