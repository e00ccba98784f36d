"""What a synthetic history is to contain: how much of it, and where on each day something is planted that jobs have to find.

The first day of several is quiet, so that there is a day on which nothing may be found.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from math import inf
from typing import Final

from prober.slo.objectives import DAY_S, HOUR_S, MINUTE_S

EXPERIMENT_EVENTS: Final = 85
EXPERIMENTS_SHARE_MAX: Final = 0.3
EXPERIMENT_EVERY_S: Final = (300.0, 600.0, 1800.0, 3600.0)
"""Experiments run as often as they may without making up more than that share of the history."""
KEYS_MAX: Final = 2000
MESSAGES_PER_KEY: Final = 200


@dataclass(frozen=True, slots=True)
class Recipe:
    """What to make: whole UTC days from `start` (seconds since 1970, at midnight), about so many events, on so many targets.

    keys   how many ordering keys the traffic of a target has; by default as many as make each worth looking at, at most 2,000.

    Raises ValueError for a start that is not midnight UTC, and for numbers below 1 (the seed: below 0).
    """

    start: float
    days: int = 3
    events: int = 1_000_000
    targets: int = 2
    keys: int | None = None
    seed: int = 1

    def __post_init__(self) -> None:
        if self.start % DAY_S:
            raise ValueError("start must be midnight UTC")
        if min(self.days, self.events, self.targets, self.seed + 1, 1 if self.keys is None else self.keys) < 1:
            raise ValueError("days, events, targets and keys must be at least 1, seed at least 0")

    @property
    def experiment_every_s(self) -> float:
        """How often an experiment runs on each target."""
        per_day = EXPERIMENTS_SHARE_MAX * self.events / (self.days * self.targets * EXPERIMENT_EVENTS)
        return next((every for every in EXPERIMENT_EVERY_S if DAY_S / every <= per_day), EXPERIMENT_EVERY_S[-1])

    @property
    def messages_per_day(self) -> int:
        """How many messages the traffic of a target has on a day; each makes about four events."""
        experiments = self.days * self.targets * EXPERIMENT_EVENTS * DAY_S / self.experiment_every_s
        return max(1000, round((self.events - experiments) / (4 * self.days * self.targets)))

    @property
    def keys_per_target(self) -> int:
        """How many keys the traffic of a target has, those apart on which something is planted."""
        return self.keys or min(KEYS_MAX, max(8, self.messages_per_day // MESSAGES_PER_KEY))

    def date(self, day: int) -> str:
        """A day of the history as `YYYY-MM-DD`."""
        return f"{datetime.fromtimestamp(self.start + day * DAY_S, UTC):%Y-%m-%d}"

    def is_quiet(self, day: int) -> bool:
        """Whether nothing is planted on a day."""
        return self.days > 1 and day == 0


@dataclass(frozen=True, slots=True)
class SyntheticTarget:
    """A target; the first one has what is planted, the second one Zipf-distributed keys, all others plain traffic."""

    number: int
    name: str
    environment: str
    region: str

    @property
    def process(self) -> str:
        """Each target has a prober of its own."""
        return f"synthetic-{self.name}"

    @property
    def t0(self) -> float:
        """What the clock of that prober says when the history begins."""
        return 1000.0 * (self.number + 1)

    def topic(self, probe: str) -> str:
        """Full name."""
        return f"projects/{self.name}/topics/okp-{probe}"

    def subscription(self, probe: str) -> str:
        """Full name."""
        return f"projects/{self.name}/subscriptions/okp-{probe}"


_REGIONS: Final = ("europe-west1", "us-central1", "asia-east1")


def targets(recipe: Recipe) -> list[SyntheticTarget]:
    """The targets of a history."""
    return [
        SyntheticTarget(number, f"target-{number}", "production" if number == 0 else "staging", _REGIONS[number % len(_REGIONS)])
        for number in range(recipe.targets)
    ]


# --- windows -----------------------------------------------------------------------------------------------------------------


class TroubleKind(StrEnum):
    """What goes wrong for a while on the first target."""

    SLOW_DELIVERY = "slow_delivery"
    PUBLISHES_REJECTED = "publishes_rejected"
    ORDER_BROKEN = "order_broken"
    PROBER_STOOD_STILL = "prober_stood_still"


@dataclass(frozen=True, slots=True)
class TroubleWindow:
    """A part of a day, in seconds from midnight, in which something goes wrong.

    amount   slow delivery: seconds more; rejected publishes: their share; else without meaning.
    """

    trouble: TroubleKind
    begin_s: float
    end_s: float
    amount: float = 0.0

    def covers(self, s: float) -> bool:
        """Whether a time is in it."""
        return self.begin_s <= s < self.end_s


WINDOWS: Final = (
    TroubleWindow(TroubleKind.SLOW_DELIVERY, 10 * HOUR_S, 11 * HOUR_S, 3.0),
    TroubleWindow(TroubleKind.PUBLISHES_REJECTED, 14 * HOUR_S, 14.5 * HOUR_S, 0.2),
    TroubleWindow(TroubleKind.ORDER_BROKEN, 16 * HOUR_S, 18 * HOUR_S),
    TroubleWindow(TroubleKind.PROBER_STOOD_STILL, 20 * HOUR_S, 21 * HOUR_S),
)


def windows(recipe: Recipe, target: SyntheticTarget, day: int) -> tuple[TroubleWindow, ...]:
    """When something goes wrong on a target on a day."""
    return () if target.number or recipe.is_quiet(day) else WINDOWS


# --- keys --------------------------------------------------------------------------------------------------------------------


class PlantedHeat(StrEnum):
    """Why a key is hot."""

    THROUGHPUT_BOUND = "throughput-bound"
    CONSUMER_BOUND = "consumer-bound"
    SKEWED = "skewed"
    STALLED = "stalled"


BYTES_PER_S_LIMIT: Final = 1e6
BUSY_MESSAGES_PER_S_MIN: Final = 0.2
SLOW_MESSAGES_PER_S_MIN: Final = 0.02
ZIPF_EXPONENT: Final = 1.1
PLAIN_SIZE: Final = 256
PUBLISH_UNTIL_S: Final = DAY_S - 10 * MINUTE_S


@dataclass(frozen=True, slots=True)
class KeyTraffic:
    """How one key behaves on one day. Times are seconds from midnight.

    share     of the target's messages, all published by `until_s`.
    stretch   1, or how much longer than publishing them delivering its messages takes: its consumer is too slow.
    stalls_at_s   what is published from then on is not delivered.
    refused   share of the messages that are refused once, and come again.
    roams     every message goes to another subscriber; it is always settled before.
    """

    name: str
    share: float
    size: int = PLAIN_SIZE
    hot: PlantedHeat | None = None
    stretch: float = 1.0
    until_s: float = PUBLISH_UNTIL_S
    stalls_at_s: float = inf
    refused: float = 0.0
    roams: bool = False


def key_traffic(recipe: Recipe, target: SyntheticTarget, day: int) -> list[KeyTraffic]:
    """The keys of a target's traffic on a day; their shares add up to 1."""
    count = recipe.keys_per_target
    names = [f"key-{number:05}" for number in range(count)]
    if target.number == 1:
        weights = [rank**-ZIPF_EXPONENT for rank in range(1, count + 1)]
        ranks: list[PlantedHeat | None] = [PlantedHeat.SKEWED, *[None] * (count - 1)]
    else:
        chance = random.Random(f"{recipe.seed} {target.number} keys")
        weights = [chance.uniform(0.7, 1.3) for _ in names]
        ranks = [None] * count
    planted = [] if target.number or recipe.is_quiet(day) else _planted(recipe)
    rest = (1.0 - sum(key.share for key in planted)) / sum(weights)
    refused = 0.01
    plain = [
        KeyTraffic(name, weight * rest, hot=hot, refused=refused) for name, weight, hot in zip(names, weights, ranks, strict=True)
    ]
    return plain + planted


def _planted(recipe: Recipe) -> list[KeyTraffic]:
    share = min(0.05, 2.0 / recipe.keys_per_target)
    roaming = min(0.02, DAY_S / 60.0 / recipe.messages_per_day)  # a message a minute, so that each has settled before the next
    # So fast that its messages need not be larger than the service takes, for as long as they last.
    busy_s = min(PUBLISH_UNTIL_S, share * recipe.messages_per_day / BUSY_MESSAGES_PER_S_MIN)
    size = round(0.95 * BYTES_PER_S_LIMIT * busy_s / (share * recipe.messages_per_day))
    # So fast that it never seems to stand still, for two thirds of the day if a seventh of all messages are enough for that.
    slow_s = 0.65 * DAY_S
    slow_share = min(0.15, max(share, slow_s * SLOW_MESSAGES_PER_S_MIN / recipe.messages_per_day))
    slow_s = min(slow_s, slow_share * recipe.messages_per_day / SLOW_MESSAGES_PER_S_MIN)
    return [
        KeyTraffic("hot-throughput", share, size=size, hot=PlantedHeat.THROUGHPUT_BOUND, until_s=busy_s),
        KeyTraffic("hot-consumer", slow_share, hot=PlantedHeat.CONSUMER_BOUND, stretch=1.45, until_s=slow_s),
        KeyTraffic("hot-skewed", 0.3, hot=PlantedHeat.SKEWED),
        KeyTraffic("hot-stalled", share, hot=PlantedHeat.STALLED, stalls_at_s=9 * HOUR_S),
        KeyTraffic("refused", share, refused=0.5),
        KeyTraffic("roaming", roaming, roams=True),
    ]
