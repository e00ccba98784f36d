"""Faults: their notation (`SYNTAX`), times and probabilities, and the record of injections. `catalogue` lists all faults."""

from __future__ import annotations

import math
import random
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Final

from prober.embedded.catalogue import CATALOGUE, LISTED
from prober.errors import no_such

_LEDGER_MAX: Final = 10_000  # injections

SYNTAX: Final = """\
A fault of the embedded server, in `embedded --fault` and `embedded.faults`: NAME or NAME:OPTION=VALUE,...

  p=0.1         probability of each opportunity (1)
  count=3       maximum number of injections (no limit)
  key=orders-*  only ordering keys that match this pattern (*); empty: only messages without a key
  start=5       seconds from arming until the first injection (0)
  for=10        seconds of injections from then on (no limit); afterwards the fault has no effect on anything
  seed=7        seed of its random decisions (0): the same requests in the same order meet the same faults

Each option has a default, in parentheses. `ordering-prober faults` lists the names.
"""


class FaultError(ValueError):
    """An invalid fault: the text names the error and a valid form."""


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
            raise FaultError(no_such("fault", self.name, CATALOGUE, LISTED))
        if not 0 <= self.probability <= 1:
            raise FaultError(f"{self.name}: p is a probability from 0 to 1, not {self.probability:g}")
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
    numbers = {setting: _number(name, setting, value) for setting, value in settings.items() if setting != "key"}
    return Fault(
        name,
        numbers.get("p", 1.0),
        int(numbers["count"]) if "count" in numbers else None,
        settings.get("key", "*"),
        numbers.get("start", 0.0),
        numbers.get("for", math.inf),
        int(numbers.get("seed", 0)),
    )


def _number(name: str, setting: str, value: str) -> float:
    whole = setting in {"count", "seed"}
    try:
        return int(value) if whole else float(value)
    except ValueError:
        raise FaultError(f"{name}: {setting} is a {'whole ' if whole else ''}number, not {value!r}") from None


@dataclass(slots=True, eq=False)
class Armed:
    """An armed fault: its number, its times, its remaining injections, and its random generator.

    asked, injected  number of opportunities to inject it, and number of injections.
    """

    number: int
    fault: Fault
    starts: float
    ends: float
    left: float
    dice: random.Random
    asked: int = 0
    injected: int = 0

    def strikes(self, key: str, now: float) -> bool:
        """Return whether the fault is injected now on this key, and count the opportunity and the injection."""
        fault = self.fault
        if not self.starts <= now < self.ends or self.left <= 0:
            return False
        if fault.key != "*" and not fnmatchcase(key, fault.key):
            return False
        self.asked += 1
        if fault.probability < 1 and self.dice.random() >= fault.probability:
            return False
        self.left -= 1
        self.injected += 1
        return True

    def spare(self) -> None:
        """Take back the last injection, which had no effect: it is not counted and may be repeated."""
        self.left += 1
        self.injected -= 1


@dataclass(frozen=True, slots=True)
class Injection:
    """An injected fault: its time, name and number, and the affected object.

    where       name of the topic, subscription or administrative call.
    message_id  empty if it affected no message.
    """

    t: float
    fault: str
    number: int
    where: str
    key: str
    message_id: str


@dataclass(slots=True)
class Ledger:
    """Record of injections: the number of all by fault, and the latest."""

    counts: Counter[str] = field(default_factory=Counter)
    latest: deque[Injection] = field(default_factory=lambda: deque(maxlen=_LEDGER_MAX))

    def record(self, injection: Injection) -> None:
        """Count and keep an injection."""
        self.counts[injection.fault] += 1
        self.latest.append(injection)


class Faults:
    """The armed faults, and the ledger of all injections."""

    def __init__(self, faults: Iterable[Fault] = (), now: float = 0.0) -> None:
        self.ledger = Ledger()
        self._armed: dict[str, list[Armed]] = {}
        self._last = 0
        for fault in faults:
            self.arm(fault, now)

    def arm(self, fault: Fault, now: float) -> Armed:
        """Arm a fault; its start counts from now."""
        self._last += 1
        starts = now + fault.start
        left = math.inf if fault.count is None else fault.count
        armed = Armed(self._last, fault, starts, starts + fault.duration, left, random.Random(fault.seed))
        self._armed.setdefault(fault.name, []).append(armed)
        return armed

    def disarm(self, number: int) -> bool:
        """Disarm a fault; return False if there is no fault of this number."""
        for name, faults in list(self._armed.items()):
            kept = [armed for armed in faults if armed.number != number]
            if len(kept) != len(faults):
                self._armed[name] = kept
                if not kept:
                    del self._armed[name]
                return True
        return False

    def all(self) -> list[Armed]:
        """Return all armed faults, the oldest first."""
        return sorted((armed for faults in self._armed.values() for armed in faults), key=lambda armed: armed.number)

    @property
    def any_armed(self) -> bool:
        """Whether any fault is armed: the cheap check before others that happen for each message."""
        return bool(self._armed)

    def has(self, name: str) -> bool:
        """Return whether a fault of this name is armed."""
        return bool(self._armed.get(name))

    def touches(self, name: str, key: str) -> bool:
        """Return whether an armed fault of this name applies to a key."""
        return any(fnmatchcase(key, armed.fault.key) for armed in self._armed.get(name, ()))

    def strike(self, name: str, where: str, key: str, now: float, message_id: str = "") -> Armed | None:
        """Return the fault of this name that is injected now, and record it; None: none. Call it only where the fault has an effect."""
        armed = self.choose(name, key, now) if name in self._armed else None
        if armed is not None:
            self.record(armed, where, key, now, message_id)
        return armed

    def choose(self, name: str, key: str, now: float) -> Armed | None:
        """Return a fault as `strike` does, without a record; the caller then calls `record`, or `Armed.spare` to take it back."""
        return next((armed for armed in self._armed.get(name, ()) if armed.strikes(key, now)), None)

    def record(self, armed: Armed, where: str, key: str, now: float, message_id: str = "") -> None:
        """Record the injection of a fault that takes effect now."""
        self.ledger.record(Injection(now, armed.fault.name, armed.number, where, key, message_id))
