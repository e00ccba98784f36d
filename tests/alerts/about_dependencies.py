"""Stories about what the prober depends on and leaves behind."""

from __future__ import annotations

from prober.alerting.options import SCRAPE_JOB
from prober.sinks.metrics import families
from tests.alerts.stories import HERE, PROCESS, Story, at, named, of

API = {"job": f"{SCRAPE_JOB}-api", "instance": "a"}
OTHER_API = {**API, "instance": "b"}
STORE_UP = of(families.STATUS_STORE_UP)
NEW = of(families.START)


def errors(code: str, operation: str = "publish", **labels: str) -> str:
    """A counter of calls that ended with an error."""
    return of(families.TARGET_ERRORS, operation=operation, code=code, **labels)


DENIED, EXHAUSTED, UNAVAILABLE = errors("PERMISSION_DENIED"), errors("RESOURCE_EXHAUSTED"), errors("UNAVAILABLE")
NOBODY_KNOWS = " ".join(["NaN"] * 540)
LEFT = of(families.LEFTOVERS, project="p")

OUTSIDE = (
    Story(
        "PubsubProberApiDown",
        "fires for the replica that does not answer and ends when it does",
        {named("up", **API): "1x40 0x40 1x20", named("up", **OTHER_API): "1x100"},
        {"10m": 0, "14m": 0, "16m": 1, "21m": 0},
        reads=(
            "16m",
            API,
            "The API at a has not answered for 5m. Probes and alerts continue; pages and API clients may get no answer.",
        ),
        summary="ordering-keys-prober-api/a: The API does not answer scrapes.",
    ),
    Story(
        "PubsubProberApiDown",
        "fires when all of it is gone",
        {named("up", **API): "1x40 stale", named("up", **OTHER_API): "1x40 stale"},
        {"10m": 0, "21m": 1},
        among={"instance": ""},
    ),
    Story(
        "PubsubProberApiDown",
        "not when a replica is replaced",
        {named("up", **API): "1x40 stale", named("up", **OTHER_API): "_x40 1x60"},
        {"16m": 0, "24m": 0},
    ),
    Story(
        "PubsubProberApiDown",
        "fires for a placeholder in the scrape configuration that nobody answers",
        {named("up", **{**API, "instance": "api.example.com:8080"}): "0x60"},
        {"4m": 0, "6m": 1, "15m": 1},
    ),
    Story("PubsubProberApiDown", "not where no API is scraped", {named("up", **PROCESS): "1x60"}, {"6m": 0, "15m": 0}),
    Story("PubsubProberApiDown", "not for a prober", {named("up", **PROCESS): "0x80"}, {"16m": 0}),
    Story(
        "PubsubProberStatusStoreDown",
        "fires for each process that gets no answer and ends when it gets one",
        {STORE_UP: "1x40 0x40 1x20", of(families.STATUS_STORE_UP, job=API["job"], instance="a"): "1x40 0x40 1x20"},
        {"10m": 0, "14m": 0, "16m": 2, "21m": 0},
    ),
    Story(
        "PubsubProberStatusStoreDown",
        "says whom",
        {STORE_UP: "1x40 0x40"},
        {"16m": 1},
        reads=(
            "16m",
            PROCESS,
            "The status store has not answered i for 5m: pages show old data, and probers cannot divide the work.",
        ),
        summary="ordering-keys-prober/i: The status store does not answer.",
    ),
    Story("PubsubProberStatusStoreDown", "not for one request", {STORE_UP: "1x40 0x4 1x60"}, {"11m": 0, "16m": 0}),
    Story(
        "PubsubProberStatusStoreFailing",
        "is not reported twice of a store that is down",
        {STORE_UP: "1x20 0x120", of(families.STATUS_FAILURES): "0x20 0+1x120"},
        {"12m": 0, "25m": 0},
    ),
)


def _refused(alert: str, error: str, words: str, **by: str) -> tuple[Story, ...]:
    counter = errors(error)
    return (
        Story(
            alert,
            "fires for a quarter of an hour",
            {counter: "0x80 1x100", NEW: at("-9000x180")},
            {"20m": 0, "20m15s": 1, "37m": 0},
            reads=("21m", {**HERE, "operation": "publish", **by}, words),
        ),
        Story(alert, "also when it is the first thing that happens", {counter: "_x80 3x120"}, {"20m15s": 1, "37m": 0}),
        Story(alert, "not for other errors", {counter: "0x100", UNAVAILABLE: "0+9x100"}, {"10m": 0, "20m": 0}),
    )


TARGETS = (
    *_refused(
        "PubsubProberNotPermitted",
        "PERMISSION_DENIED",
        "Calls to publish at t (e, r) ended with PERMISSION_DENIED within the last 15m: credentials or roles are missing or were revoked.",
        code="PERMISSION_DENIED",
    ),
    Story("PubsubProberNotPermitted", "also without credentials", {errors("UNAUTHENTICATED", "pull"): "0x40 0+1x40"}, {"15m": 1}),
    *_refused(
        "PubsubProberQuotaExceeded",
        "RESOURCE_EXHAUSTED",
        "Calls to publish at t (e, r) ended with RESOURCE_EXHAUSTED within the last 15m. The prober, or other clients of the "
        "project, exhaust a quota.",
    ),
    Story(
        "PubsubProberLeftovers",
        "fires when two sweeps could not delete it and ends when one could",
        {LEFT: "0x60 3x480 0x60"},
        {"7h": 0, "8h10m": 1, "9h10m": 0},
        every="1m",
        reads=(
            "8h10m",
            {"project": "p"},
            "In the project p the sweep has failed for 7h to list or delete resources of former probers: they use quotas, and "
            "subscriptions retain messages.",
        ),
        summary="p: Topics and subscriptions of former probers are left over (left: 3).",
    ),
    Story("PubsubProberLeftovers", "fires when nobody may look", {LEFT: NOBODY_KNOWS}, {"6h": 0, "8h": 1}, every="1m"),
    Story(
        "PubsubProberLeftovers",
        "not while another prober may look",
        {LEFT: NOBODY_KNOWS, of(families.LEFTOVERS, project="p", instance="j"): "0x540"},
        {"8h": 0},
        every="1m",
    ),
    Story("PubsubProberLeftovers", "not when the next sweep deletes it", {LEFT: "2x360 0x180"}, {"6h": 0, "8h": 0}, every="1m"),
    Story(
        "PubsubProberNamesFolded",
        "fires while names are beyond the limit",
        {of(families.FOLDED_NAMES, label="subscription"): "0x80 0+4x20 80x100", NEW: at("-9000x200")},
        {"20m": 0, "21m": 1, "45m": 0},
        reads=(
            "21m",
            {**HERE, "label": "subscription"},
            "At t (e, r) there are more names of a subscription than metrics distinguish. Names beyond the limit count as `other`.",
        ),
        summary="t/subscription (e, r): Metrics no longer distinguish names, because there are too many (names: 12).",
    ),
    Story("PubsubProberNamesFolded", "not below the limit", {of(families.FOLDED_NAMES, label="topic"): "0x80"}, {"20m": 0}),
)

STORIES = (*OUTSIDE, *TARGETS)
