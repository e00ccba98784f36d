"""Stories about nobody looking."""

from __future__ import annotations

from prober.sinks.metrics import families
from tests.alerts.about_prober import AT_PROBE, FAILED, PASSED, UNKNOWN
from tests.alerts.stories import HERE, PROCESS, Story, named, of

UP = named("up", **PROCESS)
INFO = of(families.TARGET_INFO)
MAINTENANCE = of(families.UNDER_MAINTENANCE)
INTERVAL = of(families.PROBE_INTERVAL, probe="ordering")
LAST_PASS = of(families.PROBE_LAST_SUCCESS, probe="ordering")
UP_J = named("up", **{**PROCESS, "instance": "j"})
INFO_J = of(families.TARGET_INFO, instance="j")
INFO_U = of(families.TARGET_INFO, target="u")
SECOND = {UP_J: "1x80", INFO_J: "1x80"}
"""Another prober that probes the same."""

STORIES = (
    Story(
        "PubsubProberDown",
        "fires after five minutes for each target and ends when it is back",
        {UP: "1x40 0x40 1x20", INFO: "1x40 stale _x40 1x20", INFO_U: "1x40 stale _x40 1x20"},
        {"14m": 0, "16m": 2, "21m": 0},
    ),
    Story(
        "PubsubProberDown",
        "names the target",
        {UP: "1x40 0x40", INFO: "1x40 stale"},
        {"16m": 1},
        among={"target": "t", "severity": "critical"},
        reads=("16m", {**PROCESS, **HERE}, "Prober i has not answered for 5m. Nobody probes t."),
    ),
    Story(
        "PubsubProberDown",
        "has never answered",
        {UP: "0x40"},
        {"4m": 0, "6m": 1},
        among={"severity": "critical"},
        reads=("6m", PROCESS, "Prober i has not answered for 5m. Nobody knows what it is to probe."),
    ),
    Story(
        "PubsubProberDown",
        "is no page when another prober watches all its targets",
        {UP: "1x40 0x40", INFO: "1x40 stale", **SECOND},
        {"16m": 0, "19m": 0},
        among={"severity": "critical"},
    ),
    Story(
        "PubsubProberDown",
        "is a ticket when another prober watches all its targets",
        {UP: "1x40 0x40", INFO: "1x40 stale", **SECOND},
        {"14m": 0, "16m": 1},
        among={"severity": "warning"},
        reads=("16m", PROCESS, "Prober i has not answered for 5m. Other probers have taken over all that it probed."),
    ),
    Story(
        "PubsubProberDown",
        "stays a ticket for as long as it lasts",
        {UP: "1x12 0x200", INFO: "1x12 stale", **dict.fromkeys(SECOND, "1x212")},
        {"2h": 1, "7h": 1, "17h": 1},
        every="5m",
        among={"severity": "warning"},
    ),
    Story(
        "PubsubProberDown",
        "stays a page for as long as it lasts",
        {UP: "1x12 0x200", INFO: "1x12 stale"},
        {"2h": 1, "7h": 1, "17h": 1},
        every="5m",
        among={"severity": "critical", "target": "t"},
    ),
    Story(
        "PubsubProberDown",
        "pages for the target that no other watches",
        {UP: "1x40 0x40", INFO: "1x40 stale", INFO_U: "1x40 stale", **SECOND},
        {"16m": 1},
        among={"severity": "critical", "target": "u"},
    ),
    Story(
        "PubsubProberDown",
        "goes on when it is not even scraped any more",
        {UP: "1x10 0x10 stale", INFO: "1x10 stale"},
        {"16m": 1, "21m": 1, "40m": 1, "5h": 1, "7h": 0},
        every="1m",
    ),
    Story(
        "PubsubProberDown",
        "its successor that does not start is the same page",
        {
            UP: "1x40 0x40 stale",
            INFO: "1x40 stale",
            UP_J: "_x60 0x60",
        },
        {"16m": 1, "26m": 1, "29m": 1},
    ),
    Story(
        "PubsubProberDown",
        "its successor that dies too is one page",
        {
            UP: "1x40 0x4 stale",
            INFO: "1x40 stale",
            UP_J: "_x50 1x40 0x60",
            INFO_J: "_x50 1x40 stale",
        },
        {"16m": 0, "22m": 0, "30m": 1},
    ),
    Story("PubsubProberDown", "not for one lost scrape", {UP: "1x40 0 1x40", INFO: "1x40 stale 1x40"}, {"10m15s": 0, "16m": 0}),
    Story(
        "PubsubProberAbsent",
        "fires when nothing of the job is known and ends when something is",
        {UP: "_x80 1x20"},
        {"4m": 0, "6m": 1, "21m": 0},
        reads=(
            "16m",
            {"job": PROCESS["job"]},
            "Nothing with the job ordering-keys-prober has been scraped for 5m: no prober runs, or Prometheus does not "
            "scrape it under that name.",
        ),
    ),
    Story(
        "PubsubProberAbsent",
        "fires when the last prober was taken away",
        {UP: "1x10 stale", INFO: "1x10 stale"},
        {"11m": 0, "16m": 1, "8h": 1},
        every="1m",
    ),
    Story(
        "PubsubProberAbsent",
        "not when it was down before",
        {UP: "1x40 0x40 stale", INFO: "1x40 stale"},
        {"16m": 0, "21m": 0, "40m": 0},
    ),
    Story("PubsubProberAbsent", "not when it is down", {UP: "0x100"}, {"20m": 0}),
    Story(
        "PubsubProberRunsMissing",
        "fires when the counter is flat and ends with the next run",
        {PASSED: "0+1x40 40x120 40+1x40", FAILED: "0x200", UNKNOWN: "0x200", INTERVAL: "10x200"},
        {"10m": 0, "25m": 0, "31m": 1, "42m": 0},
        reads=(
            "31m",
            AT_PROBE,
            "No run of ordering at t (e, r) has ended for 15m, although the prober answers.",
        ),
    ),
    Story("PubsubProberRunsMissing", "also when none has ever ended", {PASSED: "0x100", FAILED: "0x100"}, {"3m": 0, "8m": 1}),
    Story("PubsubProberRunsMissing", "not when runs fail", {PASSED: "0x100", FAILED: "0+1x100"}, {"8m": 0, "20m": 0}),
    Story("PubsubProberRunsMissing", "not for a probe that runs rarely", {PASSED: "0x200", INTERVAL: "3600x200"}, {"40m": 0}),
    Story(
        "PubsubProberRunsMissing",
        "not under maintenance",
        {PASSED: "0+1x40 40x120 40+1x40", MAINTENANCE: "0x38 1x120 0x42"},
        {"31m": 0, "40m": 0, "50m": 0},
    ),
    Story(
        "PubsubProberRunsMissing",
        "ends when the prober does not answer any more, before that is told",
        {PASSED: "0+1x40 40x120 stale"},
        {"38m": 1, "41m": 0, "45m": 0},
    ),
    Story("PubsubProberRunsMissing", "not for one lost run", {PASSED: "0+1x40 40 41+1x60"}, {"11m": 0, "20m": 0}),
    Story("PubsubProberRunsMissing", "not when a restart resets it", {PASSED: "0+1x80 0+1x80"}, {"21m": 0, "30m": 0}),
    Story(
        "PubsubProberStale",
        "fires when no run has passed for long and none failed and ends with the next pass",
        {PASSED: "1x320", FAILED: "0x320", LAST_PASS: "0x260 3900x60", INTERVAL: "10x320"},
        {"15m": 0, "29m": 0, "45m": 1, "66m": 0},
        reads=(
            "45m",
            AT_PROBE,
            "The last run of ordering that passed at t (e, r) was 45m 0s ago. None has failed since: the prober cannot judge.",
        ),
    ),
    Story(
        "PubsubProberStale", "not when runs fail", {FAILED: "0+1x320", LAST_PASS: "0x320", INTERVAL: "10x320"}, {"60m": 0, "80m": 0}
    ),
    Story(
        "PubsubProberStale",
        "not for a probe that runs rarely",
        {PASSED: "1x320", LAST_PASS: "0x320", INTERVAL: "3600x320"},
        {"80m": 0},
    ),
    Story(
        "PubsubProberStale",
        "not under maintenance",
        {PASSED: "1x320", LAST_PASS: "0x320", INTERVAL: "10x320", MAINTENANCE: "1x320"},
        {"60m": 0, "80m": 0},
    ),
    Story(
        "PubsubProberSeriesVanished",
        "fires when a target is gone and ends when it is back",
        {UP: "1x140", INFO: "1x40 stale _x40 1x40", INFO_U: "1x140"},
        {"10m": 0, "14m": 0, "16m": 1, "22m": 0},
        reads=("16m", HERE, "The series of t (e, r) were there within the last 6h and are gone."),
    ),
    Story(
        "PubsubProberSeriesVanished",
        "fires when nobody knows what is owed",
        {
            UP: "1x80",
            INFO: "1x80",
            of(families.OLDEST_UNACKED_AGE, subscription="s"): "1x40 stale",
            of(families.START): "-9000x80",
        },
        {"10m": 0, "16m": 1},
    ),
    Story(
        "PubsubProberSeriesVanished",
        "not when a prober that was down does not know yet what is owed",
        {
            UP: "1x40 0x40 1x80",
            INFO: "1x40 stale _x40 1x80",
            of(families.OLDEST_UNACKED_AGE, subscription="s"): "1x40 stale _x44 1x80",
            of(families.START): "-9000x40 stale _x40 1200x80",
        },
        {"20m45s": 0, "21m15s": 0, "22m": 0, "30m": 0},
    ),
    Story(
        "PubsubProberSeriesVanished",
        "not when another process takes over",
        {
            UP: "1x40 stale",
            UP.replace('"i"', '"j"'): "_x44 1x80",
            INFO: "1x40 stale",
            INFO_J: "_x44 1x80",
        },
        {"12m": 0, "18m": 0, "25m": 0},
    ),
    Story(
        "PubsubProberSeriesVanished",
        "not when the last prober was taken away",
        {UP: "1x40 stale", INFO: "1x40 stale"},
        {"16m": 0, "40m": 0},
    ),
    Story(
        "PubsubProberMaintenanceLong",
        "fires when maintenance does not end and ends with it",
        {MAINTENANCE: "0x48 1x132 0x40"},
        {"4h": 0, "11h30m": 0, "12h30m": 1, "15h": 1, "15h30m": 0},
        every="5m",
        reads=(
            "13h",
            HERE,
            "t (e, r) was under maintenance for 9h 0m 0s of the last 1d and still is: it is neither probed nor judged, and nobody "
            "is told of anything there.",
        ),
    ),
    Story(
        "PubsubProberMaintenanceLong",
        "fires when windows follow each other",
        {MAINTENANCE: "0x11 1x43 0x3 " * 10},
        {"5h": 0, "14h": 1},
        every="5m",
    ),
    Story(
        "PubsubProberMaintenanceLong", "not for a night", {MAINTENANCE: "0x47 1x83 0x155 " * 3}, {"10h": 0, "34h": 0}, every="5m"
    ),
)
