"""Settings of a generated history: the options of its topic and subscriptions, drawn from a seed."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from random import Random

from prober.core.rules import Mode, Rules

RETENTION_S = 600.0
SEEK_SETTLE_S = 60.0
OUTAGE_S = 700.0


@dataclass(frozen=True, slots=True)
class SubscriptionSettings:
    """Options of one subscription, with the bounds that the simulated service keeps. Times are in seconds."""

    name: str
    mode: Mode
    ack_deadline_s: float = 10.0
    delivery_delay_max_s: float = 5.0
    ack_lag_max_s: float = 10.0
    close_detection_max_s: float = 30.0
    exactly_once: bool = False
    dead_letter_max_attempts: int = 0
    retry_backoff_max_s: float = 0.0
    retained: bool = False
    filtered: bool = False
    successors_held: bool = False
    closes_recorded: bool = False
    clients: int = 2


@dataclass(frozen=True, slots=True)
class Settings:
    """Options of one history."""

    mode: Mode
    subscriptions: tuple[SubscriptionSettings, ...]
    keys: int
    messages_per_key: int
    publish_gap_s: float
    clock_error_s: float = 0.0
    several_regions: bool = False
    regions_recorded: bool = True
    unordered: bool = False
    epochs: int = 1
    attempts_observed: bool = False
    publish_times_recorded: bool = True
    seek: bool = False
    cut: str = ""
    fault_rate: float = 1.0

    def rules(self, subscription: SubscriptionSettings) -> Rules:
        """Return the checker's rules for one subscription: the bounds that this history keeps."""
        return Rules(
            mode=subscription.mode,
            delivery_delay_max_s=subscription.delivery_delay_max_s,
            clock_error_s=self.clock_error_s,
            ack_deadline_s=subscription.ack_deadline_s,
            ack_lag_max_s=subscription.ack_lag_max_s,
            close_detection_max_s=subscription.close_detection_max_s,
            exactly_once=subscription.exactly_once,
            dead_letter_max_attempts=subscription.dead_letter_max_attempts,
            retry_backoff_max_s=subscription.retry_backoff_max_s,
            subscription_predates_first_publish=self.cut != "start",
            filtered=subscription.filtered,
            attempts_observed=self.attempts_observed,
            message_retention_s=RETENTION_S if subscription.retained else inf,
            one_publish_region=self.regions_recorded,
        )


def draw_settings(mode: Mode, rng: Random) -> Settings:
    """Draw the options of one history: each is rare, so that a history combines few of them."""
    retained = rng.random() < 0.06
    several_regions = mode is Mode.STREAMING and rng.random() < 0.12
    modes = {"s": mode}
    if rng.random() < 0.25:
        modes["r"] = rng.choice(tuple(Mode))
    return Settings(
        mode=mode,
        subscriptions=tuple(_draw_subscription(name, mode, rng, retained=retained) for name, mode in modes.items()),
        keys=rng.randint(1, 3),
        messages_per_key=rng.randint(4, 20),
        publish_gap_s=rng.choice((0.05, 0.5, 2.0, 5.0)),
        clock_error_s=rng.choice((0.0, 0.0, 0.0, 0.05, 1.0)),
        several_regions=several_regions,
        regions_recorded=not several_regions or rng.random() < 0.5,
        unordered=rng.random() < 0.1,
        epochs=2 if rng.random() < 0.1 else 1,
        attempts_observed=rng.random() < 0.2,
        publish_times_recorded=rng.random() < 0.75,
        seek=rng.random() < 0.15,
        cut=rng.choice(("start", "end", "stop", "hole")) if rng.random() < 0.2 else "",
        fault_rate=rng.choice((0.3, 1.0, 1.0, 3.0)),
    )


def _draw_subscription(name: str, mode: Mode, rng: Random, *, retained: bool) -> SubscriptionSettings:
    """Draw one subscription. Exactly-once delivery excludes push, as its page demands."""
    return SubscriptionSettings(
        name=name,
        mode=mode,
        ack_deadline_s=rng.choice((10.0, 10.0, 30.0, 60.0)),
        delivery_delay_max_s=rng.choice((0.5, 2.0, 5.0)),
        ack_lag_max_s=rng.choice((1.0, 10.0)),
        close_detection_max_s=rng.choice((5.0, 30.0)),
        exactly_once=mode is not Mode.PUSH and rng.random() < 0.2,
        dead_letter_max_attempts=5 if rng.random() < 0.15 else 0,
        retry_backoff_max_s=rng.choice((10.0, 60.0)) if rng.random() < 0.2 else 0.0,
        retained=retained and mode is not Mode.PUSH,
        filtered=rng.random() < 0.1,
        successors_held=rng.random() < 0.2,
        closes_recorded=rng.random() < 0.5,
        clients=rng.randint(1, 3),
    )
