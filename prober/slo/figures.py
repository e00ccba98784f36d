"""The figures of a run: measurements once a run, without a verdict.

They are a closed list, each with its unit at the end of its name.

A figure that a run could not measure is missing, never 0: unknown stays unknown. A measurement that counts for an objective is an indicator
(`indicators`), not a figure. An interval is two figures, its `low` and its `high` end.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, Self


class Figure(StrEnum):
    """The figures by name, each with a sentence that describes it (`help`)."""

    help: str

    def __new__(cls, name: str, sentence: str = "") -> Self:
        """Create a member with its description."""
        member = str.__new__(cls, name)
        member._value_ = name
        member.help = sentence
        return member

    LATENCY_BEFORE_HOLD = (
        "latency_before_hold_seconds",
        "Median latency of the other keys before one key was held unacknowledged, in the last run.",
    )
    LATENCY_DURING_HOLD = (
        "latency_during_hold_seconds",
        "Median latency of the other keys while one key was held unacknowledged, in the last run.",
    )
    LATENCY_DURING_SIBLING_HOLD = (
        "latency_during_sibling_hold_seconds",
        "Median latency while another subscription of the topic acknowledged no message, in the last run.",
    )
    LATENCY_DURING_RESTARTS = (
        "latency_during_restarts_seconds",
        "Median latency of the other keys while one key was held, traffic doubled and subscribers restarted, in the last run.",
    )
    DELAY_DURING_RESTARTS = (
        "delay_during_restarts_seconds",
        "The p99 of the additional latency of these messages, against before and after the hold, in the last run.",
    )
    LATENCY_AFTER_HOLD = (
        "latency_after_hold_seconds",
        "Median latency of the other keys after the held key was acknowledged, in the last run.",
    )
    LATENCY_WHILE_SLOW = (
        "latency_while_slow_seconds",
        "Median latency of the other keys while a consumer processed messages slowly, in the last run.",
    )
    SLOW_BACKLOG = (
        "slow_consumer_backlog_messages",
        "Unacknowledged messages at the end of publishing to a slow consumer, in the last run.",
    )
    SLOW_OLDEST = (
        "slow_consumer_oldest_unacked_seconds",
        "Largest age of a slow consumer's message on acknowledgement, in the last run.",
    )
    BACKLOG_BEGINS = (
        "backlog_begins_bytes_per_second",
        "Payload rate over all keys at which a backlog started in the last run; absent without one.",
    )
    REFUSALS_BEGIN = (
        "refusals_begin_bytes_per_second",
        "Lowest payload rate over all keys with unconfirmed publishes in the last run; absent if all were confirmed.",
    )
    HOT_KEY_PUBLISHED = (
        "hot_key_published_bytes_per_second",
        "Payload rate published on the hot key when its backlog started in the last run, or the highest rate without one.",
    )
    HOT_KEY_ACKNOWLEDGED = ("hot_key_acknowledged_bytes_per_second", "Payload rate acknowledged on the hot key meanwhile.")
    HOT_KEY_BACKLOG_GROWTH = (
        "hot_key_backlog_growth_bytes_per_second",
        "Growth rate of unacknowledged payload meanwhile.",
    )
    HOT_KEY_DRAINED = (
        "hot_key_drained_bytes_per_second",
        "Payload rate acknowledged while the backlog of a period without subscribers drained, in the last run.",
    )
    ORDER_LATENCY = (
        "order_latency_price_seconds",
        "Average additional latency of an ordered subscription, against its unordered twin.",
    )
    ORDER_LATENCY_LOW = (
        "order_latency_price_low_seconds",
        "The lower end of the 95 % confidence interval of order_latency_price_seconds.",
    )
    ORDER_LATENCY_HIGH = (
        "order_latency_price_high_seconds",
        "The upper end of the 95 % confidence interval of order_latency_price_seconds.",
    )
    ORDER_UNAVAILABILITY = (
        "order_availability_price_ratio",
        "Share of messages in time on the unordered twin only, minus the share on the ordered one only.",
    )
    ORDER_UNAVAILABILITY_LOW = (
        "order_availability_price_low_ratio",
        "The lower end of the 95 % confidence interval of order_availability_price_ratio.",
    )
    ORDER_UNAVAILABILITY_HIGH = (
        "order_availability_price_high_ratio",
        "The upper end of the 95 % confidence interval of order_availability_price_ratio.",
    )
    KEY_PUBLISH_LATENCY = (
        "key_publish_latency_price_seconds",
        "Average additional latency of a publish request with an ordering key, against the same without one.",
    )
    KEY_PUBLISH_LATENCY_LOW = (
        "key_publish_latency_price_low_seconds",
        "The lower end of the 95 % confidence interval of key_publish_latency_price_seconds.",
    )
    KEY_PUBLISH_LATENCY_HIGH = (
        "key_publish_latency_price_high_seconds",
        "The upper end of the 95 % confidence interval of key_publish_latency_price_seconds.",
    )
    KEY_PUBLISH_FAILURES = (
        "key_publish_availability_price_ratio",
        "Share of request pairs that failed only with an ordering key, minus the share that failed only without one.",
    )
    KEY_PUBLISH_FAILURES_LOW = (
        "key_publish_availability_price_low_ratio",
        "The lower end of the 95 % confidence interval of key_publish_availability_price_ratio.",
    )
    KEY_PUBLISH_FAILURES_HIGH = (
        "key_publish_availability_price_high_ratio",
        "The upper end of the 95 % confidence interval of key_publish_availability_price_ratio.",
    )
    UNORDERED_REORDERED = (
        "unordered_reordered_ratio",
        "Share of reordered messages (RFC 4737) on the unordered twin, in the last run.",
    )
    UNORDERED_HELD_BACK = (
        "unordered_held_back_ratio",
        "Share of messages on the unordered twin that a resequencer would have held back, in the last run.",
    )
    UNORDERED_EXTENT = (
        "unordered_reordering_extent_messages",
        "Largest reordering extent (RFC 4737) on the unordered twin in the last run.",
    )
    REGIONS_REORDERED = (
        "two_regions_reordered_ratio",
        "Share of reordered messages (RFC 4737) of the key that is published alternately in two regions, in the last run.",
    )
    REGIONS_EXTENT = (
        "two_regions_reordering_extent_messages",
        "The largest reordering extent (RFC 4737) of the key that is published in two regions, in the last run.",
    )
    DEAD_LETTERS_REORDERED = (
        "dead_letters_reordered_ratio",
        "Share of reordered messages (RFC 4737) at the dead-letter topic, among messages nacked together, in the last run.",
    )
    DEAD_LETTERS_EXTENT = (
        "dead_letters_reordering_extent_messages",
        "The largest reordering extent (RFC 4737) at the dead-letter topic in the last run.",
    )
    BACKOFF_EARLY = (
        "backoff_early_ratio",
        "Share of redeliveries of nacked messages before the minimum backoff of the retry policy, in the last run.",
    )
    BACKOFF_MEDIAN = (
        "backoff_median_seconds",
        "Median time from a nack to the redelivery on a subscription with a retry policy, in the last run.",
    )
    BACKOFF_LONGEST = (
        "backoff_longest_seconds",
        "Longest time from a nack to the redelivery on that subscription in the last run.",
    )
    SUBSCRIPTION_CREATION = (
        "subscription_creation_seconds",
        "Time from the request to create the subscription to the answer, in the last run.",
    )
    CREATION_TO_RECEIPT = (
        "creation_to_receipt_seconds",
        "Time from the request to create the subscription to the first receipt there, in the last run.",
    )
    SCALE_ONE_KEY = (
        "scale_one_key_messages_per_second",
        "Messages per second of a consumer that processes one key, one message at a time, in the last run.",
    )
    SCALE_FEW_KEYS = (
        "scale_few_keys_messages_per_second",
        "The same with the cube root of all keys (10 of 1,000) and more subscribers.",
    )
    SCALE_MANY_KEYS = (
        "scale_many_keys_messages_per_second",
        "The same with the square of that (100 of 1,000).",
    )
    SCALE_ALL_KEYS = ("scale_all_keys_messages_per_second", "The same with all keys and subscribers.")
    SCALE_PARALLELISM = (
        "scale_parallelism_ratio",
        "Throughput per key of a consumer with few keys, divided by that with one key; close to 1 if only keys limit it.",
    )
    PUSH_KEPT_UP = (
        "push_kept_up_messages_per_second",
        "Highest rate on one key at which push kept up in the last run; a lower bound if push_fell_behind is absent.",
    )
    PUSH_FELL_BEHIND = (
        "push_fell_behind_messages_per_second",
        "Lowest rate on one key at which push fell behind in the last run; absent if it kept up at every tested rate.",
    )
    JOINER_SERVED_AFTER = (
        "joiner_first_message_seconds",
        "Median time from the request of a new subscriber to its first message, in the last run.",
    )
    JOINERS_SERVED = (
        "joiners_served_ratio",
        "Share of new subscribers that received a message before the end of the last run.",
    )
    KEYS_AT_JOINERS = (
        "keys_at_joiners_ratio",
        "Share of keys whose last message went to a new subscriber, in the last run.",
    )
    LONG_LIVED_WAITED = (
        "long_lived_waited_seconds",
        "Age on delivery of the messages that the previous run published for the last one; absent without such messages.",
    )
    LONG_LIVED_AGE = ("long_lived_topic_age_seconds", "Age of the topic and of the keys in the last run.")


AT_LEAST_WITHOUT: Final = MappingProxyType({Figure.PUSH_KEPT_UP: Figure.PUSH_FELL_BEHIND})
"""Figures that are lower bounds in a run without the other figure."""

SECONDS: Final = "_seconds"
_UNITS: Final = MappingProxyType(
    {
        "_bytes_per_second": " bytes/s",
        "_messages_per_second": " messages/s",
        SECONDS: " s",
        "_ratio": " (ratio)",
        "_messages": " messages",
    }
)


def name_of(figure: Figure) -> str:
    """Return the name of a figure in a text, without its unit."""
    return figure.removesuffix(_unit_of(figure)).replace("_", " ")


def figures_as_text(figures: Mapping[Figure, float]) -> dict[str, str]:
    """Return the figures of a run as texts: by name, each with its unit, and `at least` before a lower bound."""
    return {name_of(figure): _bound_of(figure, figures) + value_as_text(figure, value) for figure, value in figures.items()}


def _bound_of(figure: Figure, figures: Mapping[Figure, float]) -> str:
    beyond = AT_LEAST_WITHOUT.get(figure)
    return "" if beyond is None or beyond in figures else "at least "


def value_as_text(figure: Figure, value: float) -> str:
    """Format a value with its unit."""
    if _unit_of(figure) == SECONDS:
        return seconds_as_text(value)
    rounded = f"{value:,.0f}" if abs(value) >= 1000.0 else f"{value:.4g}"
    return rounded + _UNITS[_unit_of(figure)]


def seconds_as_text(seconds: float) -> str:
    """Format a measured time with three significant digits: `2.36 ms` below a second, else `1.24 s`."""
    return f"{seconds * 1000:.3g} ms" if abs(seconds) < 1.0 else f"{seconds:.3g} s"


def _unit_of(figure: Figure) -> str:
    return next(unit for unit in _UNITS if figure.endswith(unit))
