"""Stories about the top keys of observed streams, by rank."""

from __future__ import annotations

from prober.sinks.metrics import families
from tests.alerts.stories import HERE, Story, of

NAME = "okp-prober-0-shop-observe-wire"
LABELS = {**HERE, "subscription": NAME}
SAMPLE = "30s"
OBSERVED = f"the stream that subscription {NAME} observes on t (e, r)"


def load(rank: int, **labels: str) -> str:
    """The series of the bytes per second of a rank."""
    return of(families.TOP_KEY_BYTES, subscription=NAME, rank=str(rank), **labels)


def age(rank: int, **labels: str) -> str:
    """The series of the age of a rank."""
    return of(families.TOP_KEY_AGE, subscription=NAME, rank=str(rank), **labels)


UNKNOWN = " ".join(["NaN"] * 20)
MAINTENANCE = of(families.UNDER_MAINTENANCE)

NEAR = (
    Story(
        "PubsubKeyNearLimit",
        "fires when a key has been near the limit for five minutes and ends when it is not",
        {load(1): "200000x20 900000x30 300000x20", load(2): "100000x70"},
        {"10m": 0, "14m": 0, "16m": 1, "25m": 1, "27m": 0},
        every=SAMPLE,
        reads=(
            "20m",
            LABELS,
            f"A key of {OBSERVED} has carried at least 900kB/s for 5m: 80 % of the limit per key or more. The page of hot keys names the "
            "key.",
        ),
        summary=f"t/{NAME} (e, r): An ordering key is near the publish limit of 1 MB/s per key (900kB/s).",
    ),
    Story(
        "PubsubKeyNearLimit",
        "goes on where ranks change places and through the gap between two runs",
        {
            load(1): "900000x10 500000x10 NaN NaN 900000x7 NaN 900000x20",
            load(2): "100000x10 900000x10 NaN NaN 100000x7 NaN 100000x20",
        },
        {"6m": 1, "10m": 1, "12m": 1, "15m": 1},
        every=SAMPLE,
    ),
    Story(
        "PubsubKeyNearLimit",
        "not after one minute that is known, nor by many keys that are near it only together",
        {load(1): f"NaN NaN 900000 900000 {UNKNOWN} 600000x30", load(2): f"NaN NaN NaN NaN {UNKNOWN} 600000x30"},
        {"2m": 0, "4m": 0, "10m": 0, "25m": 0},
        every=SAMPLE,
    ),
    Story(
        "PubsubKeyNearLimit",
        "not under maintenance",
        {load(1): "900000x60", MAINTENANCE: "1x30 0x30"},
        {"12m": 0, "25m": 1},
        every=SAMPLE,
    ),
    Story("PubsubKeyNearLimit", "not without an observed stream", {}, {"20m": 0}, every=SAMPLE),
)

BEHIND = (
    Story(
        "PubsubKeyFallingBehind",
        "fires when the age of a top key has risen for ten minutes and ends when it falls",
        {age(1): "1x20 1+20x40 300-10x29 1x20", age(2): "0.1x110"},
        {"10m": 0, "20m": 0, "22m": 1, "30m": 1, "34m": 0},
        every=SAMPLE,
        reads=(
            "25m",
            LABELS,
            f"Messages of a top key of {OBSERVED} are 9m 41s old on delivery, and their age has grown for 10m. The page of hot keys names "
            "the key.",
        ),
    ),
    Story(
        "PubsubKeyFallingBehind",
        "is not misled by ranks that change places",
        {age(1): "1x5 40x5 1x5 40x5 1x5 40x5 1x5 40x5", age(2): "40x5 1x5 40x5 1x5 40x5 1x5 40x5 1x5"},
        {"10m": 0, "18m": 0},
        every=SAMPLE,
    ),
    Story(
        "PubsubKeyFallingBehind",
        "not for a step, a steady age or an age that is not measured",
        {age(1): "1x20 60x60", age(2): f"{UNKNOWN} {UNKNOWN} {UNKNOWN} {UNKNOWN}"},
        {"15m": 0, "25m": 0, "38m": 0},
        every=SAMPLE,
    ),
    Story(
        "PubsubKeyFallingBehind",
        "not under maintenance",
        {age(1): "1+20x60", MAINTENANCE: "1x60"},
        {"25m": 0},
        every=SAMPLE,
    ),
    Story("PubsubKeyFallingBehind", "not without an observed stream", {}, {"20m": 0}, every=SAMPLE),
)

STORIES = (*NEAR, *BEHIND)
