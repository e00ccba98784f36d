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
    """Summary of a job's report for a day."""

    job: Annotated[str, Field(examples=["hot-keys"])]
    """Name of the job."""
    day: Day
    """Day in UTC."""
    verdict: Verdict
    """PASS: no problem. FAIL: a problem. UNKNOWN: undecided."""
    line: Annotated[str, Field(examples=["3 hot keys on 2 subscriptions"])]
    """Result in one line."""
    finished_at: Time
    """End of the job."""
    duration_s: Seconds
    """Duration of the job."""
    rows: Annotated[Mapping[str, int], Field(examples=[{"keys": 3}])]
    """Number of rows of each of its tables."""
    numbers: Annotated[Mapping[str, Any], Field(examples=[{"events": 1200000}])]
    """Other numbers of the summary; they differ from job to job."""


class ReportList(Listed):
    """Reports of the nightly jobs for a day."""

    day: Day | None
    """Day of the reports; null: there is no report of any day."""
    items: tuple[JobReport, ...]
    """One report per job."""
    days: tuple[Day, ...]
    """Days with reports, the latest first, at most 100."""


class KeyCourseAnswer(Answer, schema="KeyCourse"):
    """Load of a key in half an hour."""

    at: Time
    """Start of the half hour."""
    bytes_per_s: Annotated[FiniteFloat, Field(examples=[41_000.0])]
    """Mean throughput."""
    backlog: Count
    """Largest number of waiting messages."""
    age_s: Seconds
    """Largest age of the oldest waiting message."""


class OfTopic(Answer):
    """Fields of a topic on a target."""

    target: Target
    """Name of the target."""
    environment: Annotated[str, Field(examples=["production"])]
    """Environment of the target."""
    region: Annotated[str, Field(examples=["europe-west1"])]
    """Region of the target."""
    topic: Topic
    """Full name of the topic."""


class OfSubscription(OfTopic):
    """Fields of a subscription and its topic."""

    subscription: Subscription
    """Full name of the subscription."""


class HotKey(OfSubscription):
    """A key with more than its share of load or delay."""

    key: Key
    """Ordering key."""
    heat: Annotated[str, Field(examples=["consumer-bound"])]
    """Class of the key: stalled, throughput-bound, consumer-bound or skewed."""
    score: Annotated[FiniteFloat, Field(examples=[0.93])]
    """From 0 to 1 and more: nearness to the limit, unconsumed or stalled part of the publishes, or share of messages."""
    reasons: Annotated[tuple[str, ...], Field(examples=[["consumer-bound", "skewed"]])]
    """All classes that hold, the most urgent first."""
    advice: Annotated[str, Field(examples=["Acknowledge faster, or split the key."])]
    """Recommended change."""
    messages: Count
    """Number of messages of the key."""
    share: Ratio
    """Share of the messages of its topic."""
    evidence: Annotated[Mapping[str, float], Field(examples=[{"peak_messages_per_s": 41.0, "backlog_max": 1200.0}])]
    """Measurements, by name with the unit; those that were not made are missing."""
    course: tuple[KeyCourseAnswer, ...]
    """Load of the key by half hour of the day; empty if it was not examined minute by minute."""


class KeySpread(OfSubscription):
    """Distribution of the messages of a subscription's topic over keys.

    Unknown values are null.
    """

    exact: bool
    """Whether each key was counted; otherwise sketches were used."""
    keys: Count
    """Number of keys."""
    messages: Count
    """Number of messages."""
    bytes: Count
    """Number of bytes."""
    median: Count | None
    """Median number of messages per key."""
    p90: Count | None
    """90th percentile of messages per key."""
    p99: Count | None
    """99th percentile of messages per key."""
    top_share: Ratio | None
    """Share of messages of the largest key."""
    top_ten_share: Ratio | None
    """Share of messages of the ten largest keys."""
    zipf_exponent: Annotated[FiniteFloat | None, Field(examples=[1.1])]
    """Zipf exponent: 0 for equal keys; above 1 few keys have most messages."""
    hot: Count
    """Number of hot keys."""
    left_out: Count
    """Number of keys that may be hot and were too many to examine."""


class IntervalAnswer(Answer, schema="Interval"):
    """Bounds of a value; they are equal as long as the stream has few keys."""

    low: Annotated[FiniteFloat, Field(examples=[640_000.0])]
    """Lower bound."""
    high: Annotated[FiniteFloat, Field(examples=[640_000.0])]
    """Upper bound."""


class KeyLoadAnswer(Answer, schema="KeyLoad"):
    """Load of a key in a window of time, per second in which its stream was observed."""

    bytes_per_s: IntervalAnswer
    """Data rate."""
    messages_per_s: IntervalAnswer
    """Message rate, without redeliveries."""
    share: IntervalAnswer
    """Share of the messages of its stream, 0 to 1."""


class TopKeyAnswer(Answer, schema="TopKey"):
    """A key with much load on an observed stream."""

    key: Key
    """The key, or its hash if the configuration stores keys hashed."""
    heat: HotKeyClass | None
    """Class by load: throughput-bound or skewed; null: it is not hot by load."""
    score: Annotated[FiniteFloat, Field(examples=[0.64])]
    """Share of the documented limit per key, or of the messages of its stream, whichever is larger."""
    minute: KeyLoadAnswer | None
    """Load in the last minute; null: the stream was observed for less than 10 seconds in it."""
    ten_minutes: KeyLoadAnswer
    """Load in the last ten minutes."""
    age_s: Seconds | None
    """Largest age of its messages at delivery in the last minute, by publish time; null: not measured."""


class StreamAnswer(OfTopic, schema="Stream"):
    """A stream of other publishers that the probe `observe` has read in the last ten minutes."""

    subscription: Annotated[str, Field(examples=["okp-prober-0-shop-observe"])]
    """The prober's own subscription, under its name in metrics."""
    observed_at: Time
    """Time of the last observation."""
    observed_s: Seconds
    """Observed time within the last ten minutes."""
    keys: Count
    """Minimum number of keys with messages in the last ten minutes."""
    exact: bool
    """Whether all numbers are exact, because each key was counted."""
    bytes_per_s: FiniteFloat
    """Data rate of all keys in the last ten minutes."""
    messages_per_s: FiniteFloat
    """Message rate of all keys in the last ten minutes."""
    top: tuple[TopKeyAnswer, ...]
    """Top keys, by descending score; empty until the stream was observed for 10 seconds."""


class HotKeyList(Listed):
    """Hot keys of a day, by descending score; without `date` also the current top keys of observed streams."""

    report: JobReport | None
    """Summary of the report; null: there is none yet, but a stream is observed."""
    items: tuple[HotKey, ...]
    """The hot keys."""
    streams: tuple[StreamAnswer, ...]
    """Observed streams with their current top keys; empty with a `date`."""
    subscriptions: tuple[KeySpread, ...]
    """Subscriptions with messages."""
    left_out: Count
    """Number of further hot keys that are not in this response."""


class FindingGroupAnswer(Answer, schema="FindingGroup"):
    """Findings of one kind and status on a key, or on all keys of a subscription."""

    subscription: Subscription
    """Subscription of the findings."""
    kind: Kind
    """Kind of finding."""
    status: Status
    """Certainty of the findings."""
    count: Count
    """Number of findings."""
    open: Count
    """Number of open findings: no run of their probe instance has passed since."""
    first_at: Time
    """Time of the first finding."""
    last_at: Time
    """Time of the newest finding."""


class KeyAnswer(Answer):
    """An ordering key. A key without findings and an unknown key have the same response."""

    key: Key
    """Ordering key."""
    findings: tuple[FindingGroupAnswer, ...]
    """Findings on the key, by subscription, kind and status."""
    report_day: Day | None
    """Day of the newest report on hot keys; null: none."""
    hot: tuple[HotKey, ...]
    """Entries of that report about the key, by subscription; empty if it was not hot."""


class SubscriptionAnswer(Answer):
    """A subscription with probes or findings."""

    subscription: Subscription
    """Full name of the subscription."""
    topic: Topic | None
    """Full name of its topic; null: no probe uses the subscription any more."""
    probe_instances: tuple[InstanceState, ...]
    """Probe instances that use it."""
    findings: tuple[FindingGroupAnswer, ...]
    """Findings on the subscription, by kind and status."""
    spread: KeySpread | None
    """Distribution of its messages over keys, from the newest report on hot keys; null: the report has no entry about it."""


class SubscriptionList(Listed):
    """Subscriptions with probes or findings."""

    since: Time
    """Time from which findings are counted."""
    items: tuple[SubscriptionAnswer, ...]
    """The subscriptions."""
