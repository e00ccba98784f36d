"""The job `hot-keys`: keys that are or become hot, the reasons, and advice.

A key is hot if a condition holds; the first that holds is its class:

* *stalled*: for ten minutes, messages of the key waited and none was received or acknowledged.
* *throughput-bound*: in some minute it reached 80 % of the publish limit per key, 1 MB/s; or its trend reaches the limit within a day.
* *consumer-bound*: its backlog and the age of its oldest message rose, minute by minute, until the backlog was largest.
* *skewed*: it carries at least 15 % of the messages of its topic, and three times its share under an even distribution.

Redeliveries and changes of subscriber are evidence of other problems, not of heat.

The prober has a subscription of its own on a stream of other publishers, and acknowledges immediately. A waiting key there is a key that
the service delivers late. The speed of other subscribers on the key is not visible, so the advice does not mention them.

Reports: `keys` (the hot keys, with their evidence), `subscriptions` (distribution of messages over keys). Exit code: 1 if a key is stalled
or throughput-bound, 3 if there were no messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from prober.core.findings import Kind
from prober.sinks.history.schema import MESSAGES_WRITTEN
from prober.slo.counts import OVERDUE
from prober.slo.hot_keys import LIMIT_BYTES_PER_S, NEAR_LIMIT, HotKeyClass, is_large
from prober.slo.objectives import DAY_S
from spark_jobs.key_loads import (
    PLACE,
    candidates,
    key_loads,
    large_keys,
    lives,
    outstanding,
    place_hash,
    places_of,
    sketched,
)
from spark_jobs.key_minutes import COURSE, key_evidence, zipf_exponent
from spark_jobs.tables import collected, frame_of
from spark_jobs.work import Exit, JobOutcome, Work

JOB: Final = "hot-keys"
STALLED_MINUTES_MIN: Final = 10
SKETCH_ITEMS: Final = 100_000
STANDING_STILL: Final = OVERDUE | {Kind.REDELIVERY_STALL, Kind.UNACKED_STALL}
Row: TypeAlias = Mapping[str, Any]

KEYS: Final = (
    "target string, environment string, region string, topic string, subscription string, key string, class string, score double, "
    "reasons array<string>, advice string, messages long, share double, mean_bytes_per_s double, peak_bytes_per_s double, "
    "peak_messages_per_s double, limit_in_s double, backlog_max long, backlog_last long, backlog_slope_per_s double, age_max_s double, "
    "age_last_s double, stalled_minutes long, deliveries long, redelivery_amplification double, subscriber_changes long, "
    f"{COURSE}"
)
SUBSCRIPTIONS: Final = (
    "target string, environment string, region string, topic string, subscription string, exact boolean, keys long, messages long, "
    "bytes long, median long, p90 long, p99 long, top_share double, top_ten_share double, zipf_exponent double, hot long, left_out long"
)


EVIDENT: Final = (
    "messages",
    "mean_bytes_per_s",
    "peak_bytes_per_s",
    "peak_messages_per_s",
    "backlog_max",
    "backlog_last",
    "backlog_slope_per_s",
    "age_max_s",
    "age_last_s",
    "stalled_minutes",
    "deliveries",
    "subscriber_changes",
    "course",
)
"""Columns copied from the evidence; null for a key that was not examined minute by minute."""


ADVICE: Final[Mapping[HotKeyClass, str]] = {
    HotKeyClass.STALLED: "Look at what its subscriber does with the oldest message: until that is acknowledged nothing behind it "
    "comes; a dead-letter policy lets the key go on without it.",
    HotKeyClass.THROUGHPUT_BOUND: "Split it into several keys, or publish less on it: beyond 1 MB/s its publishes are held back or "
    "refused.",
    HotKeyClass.CONSUMER_BOUND: "Make its subscriber faster, or split the key: one key is handled by one subscriber at a time, so "
    "that more subscribers do not help.",
    HotKeyClass.SKEWED: "Choose a finer key: so much of the topic on one key leaves the other subscribers idle.",
}

ADVICE_OBSERVED: Final[Mapping[HotKeyClass, str]] = {
    **ADVICE,
    HotKeyClass.STALLED: "Pub/Sub gave nothing of it out to the prober, who acknowledges at once: no subscriber is the reason. Look "
    "whether yours got it meanwhile, and ask Google's support if not.",
    HotKeyClass.CONSUMER_BOUND: "Pub/Sub gave it out to the prober later and later, who acknowledges at once: no subscriber is the "
    "reason. Split the key, or publish less on it. How fast your subscribers are on it cannot be seen here.",
}
"""Advice for a stream of other publishers, which the prober receives on a subscription of its own."""


@dataclass(frozen=True, slots=True)
class Heat:
    """Classification of a key. `reasons`: all classes that hold, the most urgent first.

    score   0 to 1 and more: the nearness to the limit, the unconsumed or stalled part of the publishes, or the share of messages.
    """

    reasons: tuple[HotKeyClass, ...]
    score: float
    limit_in_s: float | None = None


def heat_of(row: Row, share: float, keys: int) -> Heat | None:
    """Classify a key by its evidence; return None if it is not hot.

    row     as in `spark_jobs.key_minutes.EVIDENCE`. share: its share of the messages of its topic, which has `keys` keys.
    """
    scores: dict[HotKeyClass, float] = {}
    if row["stalled_minutes"] >= STALLED_MINUTES_MIN:
        scores[HotKeyClass.STALLED] = row["stalled_minutes"] / row["minutes"]
    nearness = row["peak_bytes_per_s"] / LIMIT_BYTES_PER_S
    limit_in_s = _limit_in_s(row)
    if nearness >= NEAR_LIMIT or limit_in_s is not None:
        scores[HotKeyClass.THROUGHPUT_BOUND] = nearness
    if row["backlog_rises"] and row["age_rises"]:
        published_per_s = row["messages"] / (60.0 * row["minutes"])
        scores[HotKeyClass.CONSUMER_BOUND] = min(1.0, row["backlog_slope_per_s"] / published_per_s) if published_per_s else 1.0
    if is_large(share, keys):
        scores[HotKeyClass.SKEWED] = share
    reasons = tuple(one for one in HotKeyClass if one in scores)
    return Heat(reasons, max(scores.values()), limit_in_s) if reasons else None


def _limit_in_s(row: Row) -> float | None:
    """Return the time until a rising key reaches the limit, in seconds; None if not within a day."""
    if not row["bytes_rise"] or row["mean_bytes_per_s"] <= 0.0:
        return None
    # The line of the robust slope through the middle of the day, followed to its end.
    latest = row["mean_bytes_per_s"] + row["bytes_slope_per_s"] * row["minutes"] * 30.0
    left_s: float = max(0.0, LIMIT_BYTES_PER_S - latest) / row["bytes_slope_per_s"]
    return left_s if left_s <= DAY_S else None


def run(work: Work) -> JobOutcome:
    """Report on the day."""
    day = work.day
    messages = work.messages(day)
    runs = messages.runs
    named = {row["place"]: row for row in collected(places_of(runs))}
    rows = lives(messages.since(day), runs)
    exact = _distinct_keys(work, runs, rows) <= work.settings.keys_max
    if not exact:
        work.say(f"{JOB}: more than {work.settings.keys_max:,} keys, so they are sketched")
    top = work.settings.top
    totals = outstanding(key_loads(rows), top) if exact else sketched(rows, top, SKETCH_ITEMS)
    found = [row for row in collected(totals) if row["messages"] and row["place"] in named]
    hot = _closely(rows, found, named, _stuck(work, runs))
    keys = sorted([*hot, *_by_share(found, named, hot)], key=lambda row: (-row["score"], row["subscription"], row["key"]))
    return _report(work, keys, _spread(found, named, keys, exact=exact), sum(row["left_out"] for row in found))


def _distinct_keys(work: Work, runs: DataFrame, rows: DataFrame) -> int:
    """Return the approximate number of keys; 0 if the runs have too few messages for more keys than can be counted exactly."""
    messages = sf.coalesce(MESSAGES_WRITTEN, "events", sf.lit(work.settings.keys_max + 1))
    if (collected(runs.agg(sf.sum(messages).alias("messages")))[0]["messages"] or 0) <= work.settings.keys_max:
        return 0
    return int(collected(rows.agg(sf.approx_count_distinct("key").alias("keys")))[0]["keys"])


def _stuck(work: Work, runs: DataFrame) -> set[tuple[int, str]]:
    """Return the keys that the checker reported as stalled."""
    still = work.tables.findings(work.day, work.day).where(
        sf.col("kind").isin(*(kind.value for kind in STANDING_STILL)) & (sf.col("status") == "liveness")
    )
    places = sf.explode(sf.array(place_hash("subscription"), place_hash("topic"))).alias("place")  # of two only one is there
    named = still.join(sf.broadcast(runs.select("run_id", "topic")), "run_id").select(places, "key").distinct()
    return {(row["place"], row["key"]) for row in collected(named.orderBy("place", "key").limit(work.settings.top))}


def _closely(
    rows: DataFrame, found: Sequence[Row], named: Mapping[int, Row], stuck: Iterable[tuple[int, str]]
) -> list[dict[str, Any]]:
    """Examine the candidate keys minute by minute; return the hot ones as rows of the report."""
    totals = {row["place"]: row for row in found}
    chosen = [{"place": place, "key": key} for place, key in sorted({*candidates(found), *stuck}) if place in totals]
    if not chosen:
        return []
    wanted = frame_of(rows.sparkSession, chosen, "place long, key string")
    # Files are sorted by key, so that a list of keys lets Spark skip most of them.
    near = rows.where(sf.col("key").isin(*{one["key"] for one in chosen}))
    hot = []
    for row in collected(key_evidence(near.join(sf.broadcast(wanted), ["place", "key"], "left_semi"))):
        total = totals[row["place"]]
        share = row["messages"] / total["messages"]
        heat = heat_of(row, share, total["keys"])
        hot += [_row({"key": row["key"], **named[row["place"]]}, heat, share, row)] if heat is not None else []
    return hot


def _by_share(found: Sequence[Row], named: Mapping[int, Row], closely: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the keys that are hot by their share alone as rows of the report; they are not examined minute by minute."""
    known = {(row["target"], row["subscription"], row["key"]) for row in closely}
    totals = {row["place"]: row for row in found}
    rows = []
    for (place, key), load in large_keys(found).items():
        about = named[place]
        if (about["target"], about["subscription"], key) not in known:
            share = load["publishes"] / totals[place]["messages"]
            counted = {"messages": load["publishes"], **{name: load[name] for name in ("deliveries", "first_deliveries")}}
            rows.append(_row({"key": key, **about}, Heat((HotKeyClass.SKEWED,), share), share, counted))
    return rows


def _row(about: Row, heat: Heat, share: float, counted: Row) -> dict[str, Any]:
    first = counted.get("first_deliveries")
    return {
        **{name: about[name] for name in (*PLACE, "key")},
        **{name: counted.get(name) for name in EVIDENT},
        "class": heat.reasons[0].value,
        "score": heat.score,
        "reasons": [reason.value for reason in heat.reasons],
        "advice": (ADVICE_OBSERVED if about["observed"] else ADVICE)[heat.reasons[0]],
        "share": share,
        "limit_in_s": heat.limit_in_s,
        "redelivery_amplification": counted["deliveries"] / first if first else None,
    }


def _spread(found: Sequence[Row], named: Mapping[int, Row], keys: Sequence[Row], *, exact: bool) -> list[dict[str, Any]]:
    rows = []
    for row in found:
        about, ranked, messages = named[row["place"]], sorted(row["ranked"] or (), reverse=True), row["messages"]
        rows.append(
            {
                **{name: about[name] for name in PLACE},
                **{name: row[name] for name in ("keys", "messages", "median", "p90", "p99", "left_out")},
                "exact": exact,
                "bytes": row["total_bytes"],
                "top_share": ranked[0] / messages if messages else None,
                "top_ten_share": sum(ranked[:10]) / messages if messages else None,
                "zipf_exponent": zipf_exponent(np.array(ranked, np.float64)),
                "hot": sum(key["subscription"] == about["subscription"] and key["target"] == about["target"] for key in keys),
            }
        )
    return sorted(rows, key=lambda row: (row["target"], row["subscription"]))


def _report(work: Work, keys: list[dict[str, Any]], spread: list[dict[str, Any]], left_out: int) -> JobOutcome:
    shown = _largest_each(keys, work.settings.top)
    draft = work.reports.draft(JOB, work.day)
    draft.write("keys", frame_of(work.spark, shown, KEYS), sf.desc("score"), sf.asc("subscription"), sf.asc("key"))
    draft.write("subscriptions", frame_of(work.spark, spread, SUBSCRIPTIONS), sf.asc("target"), sf.asc("subscription"))
    classes = {one.value: sum(row["class"] == one for row in keys) for one in HotKeyClass}
    short = [{name: value for name, value in row.items() if name != "course"} for row in shown[:20]]
    numbers = {"classes": classes, "left_out": left_out + len(keys) - len(shown), "keys": short, "subscriptions": spread}
    return work.publish(draft, _outcome(work, classes, sum(row["messages"] for row in spread)), numbers)


def _outcome(work: Work, classes: Mapping[str, int], messages: int) -> JobOutcome:
    if not messages:
        return JobOutcome(Exit.UNKNOWN, f"{JOB} {work.day}: UNKNOWN, nothing was published")
    urgent = classes[HotKeyClass.STALLED] + classes[HotKeyClass.THROUGHPUT_BOUND]
    said = ", ".join(f"{count} {name}" for name, count in classes.items() if count) or "no key is hot"
    return JobOutcome(Exit.FAIL if urgent else Exit.PASS, f"{JOB} {work.day}: {'FAIL' if urgent else 'PASS'}, {said}")


def _largest_each(keys: Sequence[dict[str, Any]], top: int) -> list[dict[str, Any]]:
    counts: dict[tuple[str, str], int] = {}
    shown = []
    for row in keys:
        place = row["target"], row["subscription"]
        counts[place] = counts.get(place, 0) + 1
        if counts[place] <= top:
            shown.append(row)
    return shown
