"""Stories about what is probed."""

from __future__ import annotations

from prober.core.findings import Kind
from prober.sinks.metrics import families
from tests.alerts.stories import HERE, Story, at, of

ON_S = {**HERE, "subscription": "s"}
WHERE = "on subscription s of t (e, r)"
STARTED = of(families.START)
MAINTENANCE = of(families.UNDER_MAINTENANCE)
MAINTENANCE_J = of(families.UNDER_MAINTENANCE, instance="j")


STALLED = of(families.STALLED_KEYS, subscription="s")
AGE = of(families.OLDEST_UNACKED_AGE, subscription="s")
UNREACHABLE = of(families.UNREACHABLE_RUNS, subscription="s")
CONFIRMED = of(families.PUBLISHES, topic="p", outcome="confirmed")
UNANSWERED = of(families.PUBLISHES, topic="p", outcome="unknown")
LEVELS = (
    Story(
        "PubsubKeysStalled",
        "fires after two minutes and ends with the stall",
        {STALLED: "0x40 3x20 0x20"},
        {"11m": 0, "12m45s": 1, "16m": 0},
        reads=(
            "13m",
            ON_S,
            f"3 keys {WHERE} have stalled for 2m: messages are pending, and none is delivered or acknowledged.",
        ),
        summary="t/s (e, r): Ordering keys stall although messages are pending (keys: 3).",
    ),
    Story("PubsubKeysStalled", "not for a moment", {STALLED: "0x40 3x4 0x40"}, {"11m": 0, "12m": 0, "13m": 0}),
    Story(
        "PubsubKeysStalled",
        "not under maintenance",
        {STALLED: "3x80", MAINTENANCE: "1x40 0x40"},
        {"9m": 0, "13m": 1},
    ),
    Story(
        "PubsubKeysStalled",
        "also while another prober has the target under maintenance",
        {STALLED: "3x80", MAINTENANCE: "0x80", MAINTENANCE_J: "1x80"},
        {"9m": 1},
    ),
    Story("PubsubKeysStalled", "ends with the data", {STALLED: "3x40 stale"}, {"9m": 1, "11m": 0}),
    Story(
        "PubsubOldestUnackedAgeRising",
        "fires when nothing is acknowledged any more",
        {AGE: "0x40 0+15x80 0x20"},
        {"10m": 0, "15m": 0, "20m": 1, "31m": 0},
        reads=(
            "20m",
            ON_S,
            f"The oldest message {WHERE} without an acknowledgement is 9m 45s old, more than 60 s, and has been growing older for 5m.",
        ),
        summary="t/s (e, r): The oldest unacknowledged message is old and grows older (9m 45s).",
    ),
    Story("PubsubOldestUnackedAgeRising", "not when it is old and does not grow older", {AGE: "300x120"}, {"20m": 0, "30m": 0}),
    Story("PubsubOldestUnackedAgeRising", "not for a saw tooth", {AGE: "0+15x3 " * 40}, {"10m": 0, "20m": 0, "30m": 0}),
    Story(
        "PubsubOldestUnackedAgeRising",
        "not under maintenance",
        {AGE: "0+15x120", MAINTENANCE: "1x120"},
        {"20m": 0, "30m": 0},
    ),
    Story(
        "PubsubOldestUnackedAgeRising",
        "also while another prober has the target under maintenance",
        {AGE: "0+15x120", MAINTENANCE_J: "1x120"},
        {"20m": 1, "30m": 1},
    ),
    Story(
        "PubsubTargetUnreachable",
        "fires in an outage, holds until a publish is confirmed, and over a restart of the prober",
        {
            UNREACHABLE: "0x40 1+1x59 0x4 1+1x80 0x60",
            CONFIRMED: "0+50x40 2000x59 0x84 50+50x60",
            UNANSWERED: "0x40 20x59 0x84 0x61",
        },
        {"10m": 0, "13m45s": 1, "20m": 1, "25m": 1, "26m": 1, "27m": 1, "40m": 1, "47m15s": 0, "55m": 0},
        reads=(
            "20m",
            HERE,
            "40 runs in a row could not reach t (e, r), and no publish was confirmed within 2m. Their scheduled publishes count as "
            "unavailable.",
        ),
        summary="t (e, r): A target cannot be reached (runs in a row: 40).",
    ),
    Story(
        "PubsubTargetUnreachable",
        "not for one lost run of a probe that runs each hour",
        {
            UNREACHABLE: "0x40 1x240 0x40",
            CONFIRMED: "500x320",
        },
        {"12m": 0, "40m": 0, "60m": 0},
    ),
    Story(
        "PubsubTargetUnreachable",
        "not while another prober has publishes confirmed there",
        {
            UNREACHABLE: "0x40 1+1x80",
            of(families.UNREACHABLE_RUNS, subscription="other", instance="i2"): "0x120",
            CONFIRMED: "500x120",
            of(families.PUBLISHES, topic="p", outcome="confirmed", instance="i2"): "0+50x120",
        },
        {"15m": 0, "29m": 0},
    ),
    Story(
        "PubsubTargetUnreachable",
        "also while a prober that reached it until then has it under maintenance",
        {
            UNREACHABLE: "0x40 1+1x80",
            of(families.UNREACHABLE_RUNS, subscription="other", instance="j"): "0x120",
            CONFIRMED: "500x120",
            of(families.PUBLISHES, topic="p", outcome="confirmed", instance="j"): "0+50x40 2000x80",
            MAINTENANCE_J: "0x40 1x80",
        },
        {"9m": 0, "14m": 1, "20m": 1},
    ),
    Story(
        "PubsubTargetUnreachable",
        "ends with the run that reaches it again and does not come back, also where runs are rare",
        {
            UNREACHABLE: "0x40 1x20 2x21 0x80",
            CONFIRMED: "500x81 550x80",
        },
        {"19m45s": 1, "21m": 0, "23m30s": 0, "24m30s": 0, "30m": 0},
    ),
    Story(
        "PubsubTargetUnreachable",
        "holds while a prober starts again and again and no process ends two runs",
        {
            UNREACHABLE: "0x40 1+1x10 stale _x2" + " 0x4 1x4 stale _x2" * 10,
            CONFIRMED: "500x51 stale _x2" + " 0x9 stale _x2" * 10,
        },
        {"12m45s": 1, "16m": 1, "22m": 1, "30m": 1, "40m": 1},
    ),
    Story(
        "PubsubTargetUnreachable",
        "not while another prober reaches it that publishes rarely, and then when that does not either",
        {
            UNREACHABLE: "0x40 1x20 2x20 3x20 4x20 5x100",
            of(families.UNREACHABLE_RUNS, subscription="s", instance="j"): "0x160 1x60",
            CONFIRMED: "500x220",
            of(
                families.PUBLISHES, topic="p", outcome="confirmed", instance="j"
            ): "0x30 50x20 100x20 150x20 200x20 250x20 300x20 350x70",
            of(families.START, instance="j"): at("-9000x220"),
        },
        {"17m": 0, "18m": 0, "22m": 0, "23m": 0, "28m": 0, "33m": 0, "39m": 0, "43m": 1, "50m": 1},
    ),
    Story(
        "PubsubTargetUnreachable",
        "what a prober confirmed before it started again is no sign that it reaches it",
        {
            UNREACHABLE: "0x40 1+1x19 0x20 1+1x20",
            CONFIRMED: "0+50x40 2000x19 0x41",
            STARTED: at("-9000x60 900x41"),
        },
        {"13m45s": 1, "15m15s": 1, "18m": 1, "24m": 1},
    ),
    Story(
        "PubsubTargetUnreachable",
        "ends when nobody probes it any more",
        {
            UNREACHABLE: "0x40 1+1x19 stale",
            CONFIRMED: "500x60 stale",
        },
        {"13m45s": 1, "18m": 1, "21m": 0},
    ),
    Story(
        "PubsubTargetUnreachable",
        "not under maintenance",
        {UNREACHABLE: "1+1x80", MAINTENANCE: "1x80"},
        {"5m": 0, "15m": 0},
    ),
    Story(
        "PubsubTargetUnreachable",
        "also while another prober has the target under maintenance",
        {UNREACHABLE: "1+1x80", MAINTENANCE_J: "1x80", of(families.UNREACHABLE_RUNS, subscription="s", instance="j"): "0x80"},
        {"5m": 1, "15m": 1},
    ),
    Story("PubsubTargetUnreachable", "no data", {}, {"20m": 0}),
    Story(
        "PubsubPublishesUnknown",
        "fires when a tenth has no answer and ends with it",
        {
            UNANSWERED: "0x40 0+10x60 600x80",
            CONFIRMED: "0+90x220",
            of(families.PUBLISHES, topic="p", outcome="rejected"): "0x220",
        },
        {"10m": 0, "24m": 1, "45m": 0},
        reads=(
            "24m",
            {**HERE, "topic": "p"},
            "10% of the publishes on topic p of t (e, r) had no answer within the last 10m, more than 5 %. It is unknown whether those "
            "messages are stored.",
        ),
        summary="t/p (e, r): Many publishes end without an answer (10%).",
    ),
    Story(
        "PubsubPublishesUnknown",
        "not for a few",
        {
            UNANSWERED: "0x40 5x120",
            CONFIRMED: "0+1x160",
        },
        {"11m": 0, "20m": 0},
    ),
    Story("PubsubPublishesUnknown", "no data", {}, {"20m": 0}),
    Story(
        "PubsubHotKeys",
        "fires with the report that has them and ends with the next",
        {of(families.HOT_KEYS, class_="stalled"): "_x4 0x4 2x40 0x20", of(families.HOT_KEYS, class_="skewed"): "_x4 0x64"},
        {"2m": 0, "10m": 1, "14m": 0},
        among={"severity": "warning"},
        reads=(
            "10m",
            {**HERE, "class": "stalled"},
            "2 keys of t (e, r) are hot: stalled. The report names them, with the reason and the remedy.",
        ),
        summary="t/stalled (e, r): The last nightly report has hot ordering keys (keys: 2).",
    ),
    Story(
        "PubsubHotKeys",
        "is no more than a remark for what is less urgent",
        {of(families.HOT_KEYS, class_="skewed"): "1x20"},
        {"4m": 0},
        among={"severity": "warning"},
    ),
    Story(
        "PubsubHotKeys",
        "is a remark for what is less urgent",
        {of(families.HOT_KEYS, class_="skewed"): "1x20"},
        {"4m": 1},
        among={"severity": "info"},
    ),
)

LATE = of(families.REVERIFIED_FINDINGS, kind=Kind.ORDER_GAP)
FOUND_LATE = (
    Story(
        "PubsubViolationFoundLate",
        "fires with the report that has it and ends with the next",
        {LATE: "_x4 0x4 2x40 0x20", of(families.REVERIFIED_FINDINGS, kind=Kind.STUCK): "_x4 0x64"},
        {"1m": 0, "2m": 0, "10m": 1, "14m": 0},
        among={"severity": "warning"},
        reads=(
            "10m",
            {**HERE, "kind": "ORDER_GAP"},
            "ORDER_GAP on t (e, r): the newest nightly report proves it 2 times where the prober did not find it during the run, or "
            "where that is unknown. The report has the events that prove it.",
        ),
        summary="t/ORDER_GAP (e, r): Repeated verification of the recorded runs found a new violation (findings: 2).",
    ),
    Story(
        "PubsubViolationFoundLate",
        "says nothing where the report cannot tell",
        {LATE: " ".join(["NaN"] * 40)},
        {"4m": 0, "9m": 0},
    ),
    Story(
        "PubsubViolationFoundLate",
        "is reported once by several probers that read one report",
        {LATE: "1x40", of(families.REVERIFIED_FINDINGS, kind=Kind.ORDER_GAP, instance="j"): "1x40"},
        {"4m": 1},
    ),
    Story(
        "PubsubViolationFoundLate",
        "is a remark for what is usual",
        {of(families.REVERIFIED_FINDINGS, kind=Kind.AFFINITY_SPLIT): "1x20"},
        {"4m": 1},
        among={"severity": "info"},
    ),
    Story(
        "PubsubViolationFoundLate",
        "is no more than a remark for what is usual",
        {of(families.REVERIFIED_FINDINGS, kind=Kind.AFFINITY_SPLIT): "1x20"},
        {"4m": 0},
        among={"severity": "warning"},
    ),
)

STORIES = (*LEVELS, *FOUND_LATE)
