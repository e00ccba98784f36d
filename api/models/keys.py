"""Findings on a key, and on subscriptions."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, FiniteFloat

from api.models.base import Answer, Count, Key, Listed, Seconds, Subscription, Target, Time, Topic
from api.models.probe_instances import InstanceState
from prober.core.findings import Kind, Status
from prober.core.verdict import Verdict
from prober.slo.hot_keys import HotKeyClass

Day = Annotated[datetime.date, Field(examples=["2026-02-28"])]
Ratio = Annotated[FiniteFloat, Field(examples=[0.12])]


class JobReport(Answer):
    """The summary of a job about a day."""

    job: Annotated[str, Field(examples=["hot-keys"])]
    """Its name."""
    day: Day
    """The day in UTC."""
    verdict: Verdict
    """PASS: all is well. FAIL: something is not. UNKNOWN: undecided."""
    line: Annotated[str, Field(examples=["3 hot keys on 2 subscriptions"])]
    """The same in one line."""
    finished_at: Time
    """When the job had done its work."""
    duration_s: Seconds
    """How long it took."""
    rows: Annotated[Mapping[str, int], Field(examples=[{"keys": 3}])]
    """How many rows each of its tables has."""
    numbers: Annotated[Mapping[str, Any], Field(examples=[{"events": 1200000}])]
    """The other numbers of the summary; they differ from job to job."""


class ReportList(Listed):
    """The reports of the nightly jobs about a day."""

    day: Day | None
    """The day; null: no job has reported on any."""
    items: tuple[JobReport, ...]
    """One report per job."""
    days: tuple[Day, ...]
    """Days on which there are reports, the latest first, at most 100."""


class KeyCourseAnswer(Answer, schema="KeyCourse"):
    """A key in half an hour."""

    at: Time
    """When that begins."""
    bytes_per_s: Annotated[FiniteFloat, Field(examples=[41_000.0])]
    """Mean throughput."""
    backlog: Count
    """Largest number of messages that waited."""
    age_s: Seconds
    """Largest age of the oldest of them."""


class HotKey(Answer):
    """A key that carries, or holds up, more than its share."""

    target: Target
    """Name of the target."""
    environment: Annotated[str, Field(examples=["production"])]
    """Environment of the target."""
    region: Annotated[str, Field(examples=["europe-west1"])]
    """Region of the target."""
    topic: Topic
    """Full name of the topic."""
    subscription: Subscription
    """Full name of the subscription."""
    key: Key
    """The key."""
    heat: Annotated[str, Field(examples=["consumer-bound"])]
    """Its class: stalled, throughput-bound, consumer-bound or skewed."""
    score: Annotated[FiniteFloat, Field(examples=[0.93])]
    """From 0 to 1 and more: how near the limit, which part is not consumed or stands still, which share."""
    reasons: Annotated[tuple[str, ...], Field(examples=[["consumer-bound", "skewed"]])]
    """Every class that holds, the most urgent first."""
    advice: Annotated[str, Field(examples=["Acknowledge faster, or split the key."])]
    """The recommended change."""
    messages: Count
    """How many messages it carried."""
    share: Ratio
    """Its part of the messages of its topic."""
    evidence: Annotated[Mapping[str, float], Field(examples=[{"peak_messages_per_s": 41.0, "backlog_max": 1200.0}])]
    """Measurements, by name with the unit; those that were not made are missing."""
    course: tuple[KeyCourseAnswer, ...]
    """The key over the day, half hour by half hour; empty if it was not examined minute by minute."""


class KeySpread(Answer):
    """Distribution of the messages of a subscription's topic over keys.

    Unknown values are null.
    """

    target: Target
    """Name of the target."""
    environment: Annotated[str, Field(examples=["production"])]
    """Environment of the target."""
    region: Annotated[str, Field(examples=["europe-west1"])]
    """Region of the target."""
    topic: Topic
    """Full name of the topic."""
    subscription: Subscription
    """Full name of the subscription."""
    exact: bool
    """Each key was counted; otherwise sketches were used."""
    keys: Count
    """How many keys there were."""
    messages: Count
    """How many messages."""
    bytes: Count
    """How many bytes."""
    median: Count | None
    """Messages that half of the keys have no more than."""
    p90: Count | None
    """Messages that 90 % of the keys have no more than."""
    p99: Count | None
    """Messages that 99 % of the keys have no more than."""
    top_share: Ratio | None
    """The part of the largest key."""
    top_ten_share: Ratio | None
    """The part of the ten largest keys."""
    zipf_exponent: Annotated[FiniteFloat | None, Field(examples=[1.1])]
    """0 for keys that carry the same; above 1 few keys carry most."""
    hot: Count
    """Hot keys."""
    left_out: Count
    """Keys that may be hot and were too many to look at."""


class IntervalAnswer(Answer, schema="Interval"):
    """The exact value lies between these; they are equal as long as the stream has few keys."""

    low: Annotated[FiniteFloat, Field(examples=[640_000.0])]
    """The value, at least."""
    high: Annotated[FiniteFloat, Field(examples=[640_000.0])]
    """The value, at most."""


class KeyLoadAnswer(Answer, schema="KeyLoad"):
    """The load on a key in a window of time, per second in which its stream was observed."""

    bytes_per_s: IntervalAnswer
    """Data."""
    messages_per_s: IntervalAnswer
    """Messages, without redeliveries."""
    share: IntervalAnswer
    """Its part of the messages of its stream, 0 to 1."""


class TopKeyAnswer(Answer, schema="TopKey"):
    """A key with much load on an observed stream."""

    key: Key
    """The key, or its hash if the configuration keeps keys hashed."""
    heat: HotKeyClass | None
    """Its class by load: throughput-bound or skewed; null: its load does not make it hot."""
    score: Annotated[FiniteFloat, Field(examples=[0.64])]
    """Its part of the documented limit per key, or of the messages of its stream, whichever is more."""
    minute: KeyLoadAnswer | None
    """Its load in the last minute; null: the stream was observed for less than 10 seconds in it."""
    ten_minutes: KeyLoadAnswer
    """Its load in the last ten minutes."""
    age_s: Seconds | None
    """The largest age of its messages on delivery in the last minute, by publish time; null: not measured."""


class StreamAnswer(Answer, schema="Stream"):
    """A stream that others publish, and that the probe `observe` has read in the last ten minutes."""

    target: Target
    """Name of the target."""
    environment: Annotated[str, Field(examples=["production"])]
    """Environment of the target."""
    region: Annotated[str, Field(examples=["europe-west1"])]
    """Region of the target."""
    topic: Topic
    """Full name of the topic."""
    subscription: Annotated[str, Field(examples=["okp-prober-0-shop-observe"])]
    """The prober's own subscription, as metrics call it."""
    observed_at: Time
    """When the stream was last observed."""
    observed_s: Seconds
    """For how long it was observed in the last ten minutes."""
    keys: Count
    """How many keys had messages in the last ten minutes, at least."""
    exact: bool
    """Whether every number is exact: each key was counted."""
    bytes_per_s: FiniteFloat
    """Data of all keys in the last ten minutes."""
    messages_per_s: FiniteFloat
    """Messages of all keys in the last ten minutes."""
    top: tuple[TopKeyAnswer, ...]
    """Its top keys, those with the highest scores first; empty until it was observed for 10 seconds."""


class HotKeyList(Listed):
    """The hot keys of a day, those with the highest scores first, and without a `date` the top keys of observed streams now."""

    report: JobReport | None
    """The report in short; null: there is none yet, but a stream is observed."""
    items: tuple[HotKey, ...]
    """The hot keys."""
    streams: tuple[StreamAnswer, ...]
    """The observed streams with their top keys now; empty with a `date`."""
    subscriptions: tuple[KeySpread, ...]
    """Each subscription that had messages."""
    left_out: Count
    """Hot keys that were found and are not given here."""


class FindingGroupAnswer(Answer, schema="FindingGroup"):
    """The findings of one kind and status on a key, or on all keys of a subscription."""

    subscription: Subscription
    """Where."""
    kind: Kind
    """The kind of finding."""
    status: Status
    """How sure it is."""
    count: Count
    """How many."""
    open: Count
    """How many of them are open: no run of their probe instance has passed since."""
    first_at: Time
    """When the first was found."""
    last_at: Time
    """When the newest was found."""


class KeyAnswer(Answer):
    """An ordering key. That nothing was found on it, or that it is unknown, is the same here."""

    key: Key
    """The key."""
    findings: tuple[FindingGroupAnswer, ...]
    """Its findings, by subscription, kind and status."""
    report_day: Day | None
    """The day of the newest report on hot keys; null: there is none."""
    hot: tuple[HotKey, ...]
    """The entries of that report about the key, by subscription; empty if it was not hot."""


class SubscriptionAnswer(Answer):
    """A subscription that is probed, or on which something was found."""

    subscription: Subscription
    """Its full name."""
    topic: Topic | None
    """Full name of its topic; null: it is not probed any more."""
    probe_instances: tuple[InstanceState, ...]
    """Every probe that uses it."""
    findings: tuple[FindingGroupAnswer, ...]
    """Its findings, by kind and status."""
    spread: KeySpread | None
    """How its messages were spread over keys, by the newest report on hot keys; null: that says nothing about it."""


class SubscriptionList(Listed):
    """Subscriptions that are probed, or on which something was found."""

    since: Time
    """Findings are counted from then on."""
    items: tuple[SubscriptionAnswer, ...]
    """The subscriptions."""
