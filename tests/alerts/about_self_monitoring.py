"""Stories about parts of the prober that fail, and what has to come regularly."""

from __future__ import annotations

from prober.sinks.metrics import families
from prober.sinks.metrics.family import Family
from tests.alerts.stories import PROCESS, Story, at, of


def _writing(alert: str, family: Family, so: str) -> tuple[Story, ...]:
    return (
        Story(
            alert,
            "fires when attempts go on failing and ends when they succeed",
            {of(family): "0x20 0+1x60 60x120"},
            {"5m": 0, "14m": 0, "18m": 1, "37m": 0},
            reads=(
                "18m",
                PROCESS,
                f"Prober i has repeatedly failed to write for 10m, {so}. Waiting data is written later; data beyond "
                "the limit is dropped and counted.",
            ),
        ),
        Story(alert, "not when nothing fails", {of(family): "0x80"}, {"5m": 0, "20m": 0}),
        Story(alert, "not for what failed before a restart", {of(family): "9x40 0x80"}, {"12m": 0, "22m": 0}),
    )


def _counting(alert: str, family: Family, component: str, words: str) -> tuple[Story, ...]:
    counter = of(family, component=component)
    return (
        Story(
            alert,
            "fires for a quarter of an hour",
            {counter: "0x80 1x100", of(families.START): at("-9000x180")},
            {"20m": 0, "20m15s": 1, "37m": 0},
            reads=("21m", {**PROCESS, "component": component}, words),
        ),
        Story(alert, "is born at 1", {counter: "_x80 1x120"}, {"20m15s": 1, "37m": 0}),
        Story(alert, "not when nothing happens", {counter: "0x80"}, {"5m": 0, "20m": 0}),
    )


PARTS = (
    *_writing("PubsubProberHistoryFailing", families.HISTORY_FAILURES, "so runs cannot be verified again later"),
    *_writing("PubsubProberStatusStoreFailing", families.STATUS_FAILURES, "so the API shows old runs"),
    *_counting(
        "PubsubProberInternalErrors",
        families.INTERNAL_ERRORS,
        "probe",
        "Prober i had an internal error in probe within the last 15m. The log has the traceback. If it "
        "happened in a run, that run is UNKNOWN, never FAIL.",
    ),
    *_counting(
        "PubsubProberEventsDropped",
        families.EVENTS_DROPPED,
        "history",
        "Prober i dropped records in history within the last 15m: its stored data is incomplete.",
    ),
    Story(
        "PubsubProberConfigRefused",
        "not for a moment, as while a file is written",
        {of(families.CONFIG_RELOADED): "1x20 0x4 1x60"},
        {"9m": 0, "15m": 0},
    ),
    Story(
        "PubsubProberConfigRefused",
        "fires while a file is refused and ends when one is taken over",
        {of(families.CONFIG_RELOADED): "1x20 0x40 1x40"},
        {"5m": 0, "9m": 0, "11m": 1, "15m": 1, "17m": 0},
        reads=(
            "11m",
            PROCESS,
            "Prober i has refused its configuration file for 5m: the old configuration stays in force. Its status page shows the reason.",
        ),
        summary="ordering-keys-prober/i: A changed configuration file was refused.",
    ),
)

NIGHTLY = of(families.JOB_LAST_SUCCESS, job="nightly", job_name="nightly")
EXPECTED = of(families.REPORTS_EXPECTED)
SCRAPED_NIGHTLY = NIGHTLY.replace('job="nightly"', f'job="{PROCESS["job"]}", exported_job="nightly"')
DRILL_GAP = of(families.DRILL_FINDINGS, drill="drop", kind="ORDER_GAP", status="violation")
OF_OTHERS = SCRAPED_NIGHTLY.replace('instance="i"', 'instance="j"')
FAILED_DRILL = of(families.DRILL_LAST_FAILURE, drill="drop")
DRILL = of(families.DRILL_LAST_SUCCESS, drill="drop")

REGULAR = (
    Story(
        "PubsubProberJobLate",
        "fires after 26 h and ends with the next success",
        {SCRAPED_NIGHTLY: at("60x330 99000x60")},
        {"25h": 0, "27h": 1, "28h": 0},
        every="5m",
        reads=(
            "27h",
            {"job_name": "nightly", "environment": "e"},
            "nightly of e last succeeded 1d 2h 59m 0s ago; it runs every night.",
        ),
        summary="nightly (e): A nightly job is late (1d 2h 59m 0s).",
    ),
    Story("PubsubProberJobLate", "also where labels are honored", {NIGHTLY: at("60x330")}, {"25h": 0, "27h": 1}, every="5m"),
    Story("PubsubProberJobLate", "not for one that never succeeded", {SCRAPED_NIGHTLY: at("neverx330")}, {"27h": 0}, every="5m"),
    Story(
        "PubsubProberJobLate",
        "is not hidden by the jobs of another environment",
        {SCRAPED_NIGHTLY: at("60x330"), OF_OTHERS.replace('environment="e"', 'environment="f"'): at("60+300x330")},
        {"25h": 0, "27h": 1},
        every="5m",
        among={"environment": "e"},
    ),
    Story(
        "PubsubProberJobLate",
        "is not hidden by another prober of the environment",
        {SCRAPED_NIGHTLY: at("60x330"), OF_OTHERS: at("60+300x330")},
        {"25h": 0, "27h": 1},
        every="5m",
    ),
    Story(
        "PubsubProberJobLate",
        "not because of a prober that has just started",
        {SCRAPED_NIGHTLY: at("60+300x330"), OF_OTHERS: at("_x300 neverx30")},
        {"26h": 0, "27h": 0},
        every="5m",
    ),
    Story(
        "PubsubProberJobNeverSucceeded",
        "fires where reports are expected and ends with the first",
        {SCRAPED_NIGHTLY: at("neverx330 99000x60"), EXPECTED: "1x400"},
        {"25h": 0, "27h": 1, "28h": 0},
        every="5m",
        reads=(
            "27h",
            {"job_name": "nightly", "environment": "e"},
            "The configuration sets the location of the reports of e; nightly has written none in 1d2h.",
        ),
        summary="nightly (e): The nightly jobs have never succeeded.",
    ),
    Story(
        "PubsubProberJobNeverSucceeded",
        "is not hidden by the jobs of another environment",
        {
            SCRAPED_NIGHTLY: at("neverx330"),
            EXPECTED: "1x330",
            OF_OTHERS.replace('environment="e"', 'environment="f"'): at("60+300x330"),
            EXPECTED.replace('"i"', '"j"'): "1x330",
        },
        {"25h": 0, "27h": 1},
        every="5m",
        among={"environment": "e"},
    ),
    Story(
        "PubsubProberJobNeverSucceeded",
        "also where labels are honored",
        {NIGHTLY: at("neverx330"), EXPECTED: "1x330"},
        {"25h": 0, "27h": 1},
        every="5m",
    ),
    Story(
        "PubsubProberJobNeverSucceeded",
        "not where none are expected, though another prober expects some",
        {
            SCRAPED_NIGHTLY: at("neverx330"),
            EXPECTED: "0x330",
            OF_OTHERS: at("60+300x330"),
            EXPECTED.replace('"i"', '"j"'): "1x330",
        },
        {"27h": 0},
        every="5m",
    ),
    Story(
        "PubsubProberDrillFailed",
        "fires when a drill fails and ends when it passes",
        {DRILL: at("3600x60 216000x60"), FAILED_DRILL: at("neverx23 86400x96")},
        {"23h": 0, "24h": 1, "59h": 1, "62h": 0},
        every="1h",
        reads=(
            "30h",
            {**PROCESS, "drill": "drop"},
            "The last drill drop of prober i did not pass: such a fault may send no page. Its line in the log names the missing step.",
        ),
        summary="drop, ordering-keys-prober/i: The last fire drill did not pass.",
    ),
    Story(
        "PubsubProberDrillFailed",
        "goes on after a restart",
        {DRILL: at("3600x40 neverx60"), FAILED_DRILL: at("neverx23 86400x16 neverx60")},
        {"24h": 1, "45h": 1, "90h": 1},
        every="1h",
    ),
    Story(
        "PubsubProberDrillFailed",
        "is not hidden by the drills of another prober",
        {
            DRILL: at("3600x60"),
            FAILED_DRILL: at("neverx23 86400x36"),
            DRILL.replace('"i"', '"j"'): at("90000x60"),
            FAILED_DRILL.replace('"i"', '"j"'): at("neverx60"),
        },
        {"30h": 1},
        every="1h",
    ),
    Story(
        "PubsubProberDrillFailed",
        "not when it passes",
        {DRILL: at("3600x60"), FAILED_DRILL: at("neverx60")},
        {"30h": 0, "50h": 0},
        every="1h",
    ),
    Story(
        "PubsubProberDrillFailed",
        "not of a prober that is gone",
        {DRILL: at("3600x40 stale"), FAILED_DRILL: at("neverx23 86400x16 stale")},
        {"30h": 1, "42h": 0},
        every="1h",
    ),
    Story(
        "PubsubProberDrillOverdue",
        "fires after eight days and ends with the next success",
        {DRILL: at("3600x196 702000x20")},
        {"8d": 0, "195h": 1, "200h": 0},
        every="1h",
        reads=(
            "195h",
            {"drill": "drop"},
            "The drill drop has not succeeded for 8d: it is unknown whether that fault would still page.",
        ),
        summary="drop: A fire drill is overdue (8d 2h 0m 0s).",
    ),
    Story("PubsubProberDrillOverdue", "also when it never succeeded", {DRILL: at("neverx200")}, {"8d": 0, "195h": 1}, every="1h"),
    Story(
        "PubsubProberDrillOverdue",
        "not when a restart forgot that it succeeded",
        {DRILL: at("3600x40 144000x20 neverx140")},
        {"195h": 0, "200h": 0},
        every="1h",
    ),
    Story("PubsubProberDrillOverdue", "not where nothing is drilled", {}, {"200h": 0}, every="1h"),
    Story(
        "PubsubProberDrillFinding",
        "fires at the next evaluation and for three minutes",
        {DRILL_GAP: "0x80 3x40", of(families.START): at("-9000x120")},
        {"20m": 0, "20m15s": 1, "23m15s": 0},
        reads=(
            "21m",
            {"drill": "drop", "kind": "ORDER_GAP", "status": "violation"},
            "The fault of the drill drop was found as ORDER_GAP. It affects no service.",
        ),
        summary="drop/ORDER_GAP/violation: The checker found the fault of a fire drill, as expected (findings: 3).",
    ),
    Story("PubsubProberDrillFinding", "not without one", {DRILL_GAP: "0x80"}, {"10m": 0, "20m": 0}),
    Story(
        "PubsubProberWatchdog",
        "always fires",
        {},
        {"0s": 1, "1h": 1},
        reads=("1h", {}, "Route it to a receiver that notifies when the alert stops. It needs no action."),
        summary="Always fires, so that a dead man's switch notices when alerts stop.",
    ),
)

STORIES = (*PARTS, *REGULAR)
