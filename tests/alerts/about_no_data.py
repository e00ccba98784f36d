"""Stories about nobody looking."""

from __future__ import annotations

from prober.sinks.metrics import families
from tests.alerts.about_prober import AT_PROBE, FAILED, PASSED, UNKNOWN, runs
from tests.alerts.stories import HERE, PROBE, PROCESS, Story, at, named, of

UP = named("up", **PROCESS)
START = of(families.START)
INFO = of(families.TARGET_INFO)
MAINTENANCE = of(families.UNDER_MAINTENANCE)
MAINTENANCE_J = of(families.UNDER_MAINTENANCE, instance="j")
INTERVAL = of(families.PROBE_INTERVAL)
LAST_PASS = of(families.PROBE_LAST_SUCCESS)
ASSIGNED = of(families.PROBE_ASSIGNED)
ASSIGNED_J = of(families.PROBE_ASSIGNED, instance="j")
INFO_J = of(families.TARGET_INFO, instance="j")
INFO_U = of(families.TARGET_INFO, target="u")

STORIES = (
    Story(
        "PubsubProberAbsent",
        "fires when nothing of the job is known and ends when something is",
        {UP: "_x80 1x20"},
        {"4m": 0, "6m": 1, "21m": 0},
        reads=(
            "16m",
            {"job": PROCESS["job"]},
            "No target of the job ordering-keys-prober has been scraped for 5m: no prober runs, or Prometheus scrapes it under "
            "another job name.",
        ),
        summary="ordering-keys-prober: Prometheus scrapes no prober.",
    ),
    Story(
        "PubsubProberAbsent",
        "fires when the last prober was taken away",
        {UP: "1x10 stale", ASSIGNED: at("-60x10 stale")},
        {"11m": 0, "16m": 1, "8h": 1},
        every="1m",
    ),
    Story(
        "PubsubProberAbsent",
        "not when it was down before",
        {UP: "1x40 0x40 stale", ASSIGNED: at("-60x40 stale")},
        {"16m": 0, "21m": 0, "40m": 0},
    ),
    Story("PubsubProberAbsent", "not when it is down", {UP: "0x100"}, {"20m": 0}),
    Story(
        "PubsubProberRunsMissing",
        "fires when the counter is flat and ends with the next run",
        {PASSED: "0+1x40 40x120 40+1x40", FAILED: "0x200", UNKNOWN: "0x200", INTERVAL: "10x200", ASSIGNED: at("-60x200")},
        {"10m": 0, "25m": 0, "31m": 1, "42m": 0},
        reads=(
            "31m",
            AT_PROBE,
            "Prober i has ended no run of ordering (wire) at t (e, r) for 15m, although it answers.",
        ),
        summary="t/ordering/wire (e, r), ordering-keys-prober/i: A probe has ended no run for a long time.",
    ),
    Story(
        "PubsubProberRunsMissing",
        "also when none has ever ended",
        {PASSED: "0x100", FAILED: "0x100", INTERVAL: "10x100", ASSIGNED: at("0x100")},
        {"3m": 0, "8m": 1},
    ),
    Story(
        "PubsubProberRunsMissing",
        "for one of two probers that both run the probe, for one vantage and for one part",
        {
            **{
                series: values
                for labels, ended in (
                    ({}, "0+1x100"),
                    ({"instance": "j"}, "0x100"),
                    ({"vantage": "library"}, "0x100"),
                    ({"part": "2/2"}, "0x100"),
                )
                for series, values in {
                    runs("pass", **labels): ended,
                    of(families.PROBE_INTERVAL, **labels): "10x100",
                    of(families.PROBE_ASSIGNED, **labels): at("0x100"),
                }.items()
            }
        },
        {"3m": 0, "8m": 3},
    ),
    Story(
        "PubsubProberRunsMissing",
        "when no prober takes up the probe, however rare it is, and ends when one does",
        {UP: "1x80", INTERVAL: "86400x80", PASSED: "0x80", ASSIGNED: at("_x60 900x20")},
        {"4m": 0, "6m": 1, "16m": 0},
        reads=("6m", PROBE, "No prober has run ordering (wire) at t (e, r) for 5m, although probers answer."),
        summary="t/ordering/wire (e, r), no prober: A probe has ended no run for a long time.",
    ),
    Story(
        "PubsubProberRunsMissing",
        "not for a prober whose probe another has taken over",
        {
            PASSED: "0+1x40 40x120",
            INTERVAL: "10x160",
            ASSIGNED: at("-60x40 stale"),
            runs("pass", instance="j"): "0x40 0+1x120",
            of(families.PROBE_INTERVAL, instance="j"): "10x160",
            ASSIGNED_J: at("_x40 600x120"),
        },
        {"11m": 0, "31m": 0, "39m": 0},
    ),
    Story(
        "PubsubProberRunsMissing",
        "not when runs fail",
        {PASSED: "0x100", FAILED: "0+1x100", INTERVAL: "10x100", ASSIGNED: at("0x100")},
        {"8m": 0, "20m": 0},
    ),
    Story(
        "PubsubProberRunsMissing",
        "not for a probe that runs rarely",
        {PASSED: "0x200", INTERVAL: "3600x200", ASSIGNED: at("0x200")},
        {"40m": 0},
    ),
    Story(
        "PubsubProberRunsMissing",
        "not under maintenance",
        {PASSED: "0+1x40 40x120 40+1x40", INTERVAL: "10x200", ASSIGNED: at("0x200"), MAINTENANCE: "0x38 1x120 0x42"},
        {"31m": 0, "40m": 0, "50m": 0},
    ),
    Story(
        "PubsubProberRunsMissing",
        "also while another prober has the target under maintenance",
        {PASSED: "0x100", INTERVAL: "10x100", ASSIGNED: at("0x100"), MAINTENANCE: "0x100", MAINTENANCE_J: "1x100"},
        {"8m": 1},
    ),
    Story(
        "PubsubProberRunsMissing",
        "ends when the prober does not answer any more, before that is reported",
        {PASSED: "0+1x40 40x120 stale", INTERVAL: "10x160 stale", ASSIGNED: at("0x160 stale")},
        {"38m": 1, "41m": 0, "45m": 0},
    ),
    Story(
        "PubsubProberRunsMissing",
        "not for one lost run",
        {PASSED: "0+1x40 40 41+1x60", INTERVAL: "10x102", ASSIGNED: at("0x102")},
        {"11m": 0, "20m": 0},
    ),
    Story(
        "PubsubProberRunsMissing",
        "not when a restart resets it",
        {PASSED: "0+1x80 0+1x80", INTERVAL: "10x160", ASSIGNED: at("0x80 1200x80")},
        {"21m": 0, "30m": 0},
    ),
    Story(
        "PubsubProberStale",
        "fires when no run has passed for long and none failed and ends with the next pass",
        {PASSED: "1x320", FAILED: "0x320", LAST_PASS: at("0x260 3900x60"), ASSIGNED: at("-9000x320"), INTERVAL: "10x320"},
        {"15m": 0, "29m": 0, "45m": 1, "66m": 0},
        reads=(
            "45m",
            AT_PROBE,
            "Prober i has seen no run of ordering (wire) pass at t (e, r) for 45m 0s. None has failed since: the prober cannot verify.",
        ),
        summary="t/ordering/wire (e, r), ordering-keys-prober/i: No run of a probe has passed for a long time, and none has failed "
        "(45m 0s).",
    ),
    Story(
        "PubsubProberStale",
        "fires for a probe that has never passed",
        {PASSED: "0x320", UNKNOWN: "0+1x320", LAST_PASS: at("neverx320"), ASSIGNED: at("0x320"), INTERVAL: "10x320"},
        {"15m": 0, "29m": 0, "32m": 1},
    ),
    Story(
        "PubsubProberStale",
        "not after a restart for a probe that runs each night",
        {
            PASSED: "1x12 0x300",
            LAST_PASS: at("-3600x12 neverx300"),
            ASSIGNED: at("-90000x12 3600x300"),
            INTERVAL: "86400x312",
        },
        {"90m": 0, "10h": 0, "25h": 0},
        every="5m",
    ),
    Story(
        "PubsubProberStale",
        "not when another prober that has never run the probe takes it over",
        {
            LAST_PASS: at("-3600x12"),
            ASSIGNED: at("-90000x12 stale"),
            INTERVAL: "86400x12 stale",
            of(families.PROBE_LAST_SUCCESS, instance="j"): at("neverx312"),
            of(families.PROBE_INTERVAL, instance="j"): "86400x312",
            ASSIGNED_J: at("_x12 3600x300"),
        },
        {"90m": 0, "10h": 0, "25h": 0},
        every="5m",
    ),
    Story(
        "PubsubProberStale",
        "for the one of two probers whose runs never pass",
        {
            LAST_PASS: at("0+15x320"),
            ASSIGNED: at("0x320"),
            INTERVAL: "10x320",
            of(families.PROBE_LAST_SUCCESS, instance="j"): at("neverx320"),
            ASSIGNED_J: at("0x320"),
            of(families.PROBE_INTERVAL, instance="j"): "10x320",
        },
        {"29m": 0, "32m": 1},
    ),
    Story(
        "PubsubProberStale",
        "not when runs fail",
        {FAILED: "0+1x320", LAST_PASS: at("neverx320"), ASSIGNED: at("0x320"), INTERVAL: "10x320"},
        {"60m": 0, "80m": 0},
    ),
    Story(
        "PubsubProberStale",
        "not for a probe that runs rarely",
        {PASSED: "1x320", LAST_PASS: at("0x320"), ASSIGNED: at("-60x320"), INTERVAL: "3600x320"},
        {"80m": 0},
    ),
    Story(
        "PubsubProberStale",
        "not under maintenance",
        {PASSED: "1x320", LAST_PASS: at("0x320"), ASSIGNED: at("-60x320"), INTERVAL: "10x320", MAINTENANCE: "1x320"},
        {"60m": 0, "80m": 0},
    ),
    Story(
        "PubsubProberSeriesVanished",
        "fires when a target is gone and ends when it is back",
        {UP: "1x140", INFO: "1x40 stale _x40 1x40", INFO_U: "1x140"},
        {"10m": 0, "14m": 0, "16m": 1, "22m": 0},
        reads=("16m", HERE, "The series of t (e, r) existed within the last 6h and have disappeared."),
        summary="t (e, r): A target is no longer probed.",
    ),
    Story(
        "PubsubProberSeriesVanished",
        "fires when nobody knows what is pending",
        {
            UP: "1x80",
            INFO: "1x80",
            of(families.OLDEST_UNACKED_AGE, subscription="s"): "1x40 stale",
            of(families.START): at("-9000x80"),
        },
        {"10m": 0, "16m": 1},
    ),
    Story(
        "PubsubProberSeriesVanished",
        "not when a prober that was down does not know yet what is pending",
        {
            UP: "1x40 0x40 1x80",
            INFO: "1x40 stale _x40 1x80",
            of(families.OLDEST_UNACKED_AGE, subscription="s"): "1x40 stale _x44 1x80",
            of(families.START): at("-9000x40 stale _x40 1200x80"),
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
            "t (e, r) was under maintenance for 9h 0m 0s of the last 1d and still is. Probers with that maintenance neither probe nor "
            "verify it, and their series fire no alerts.",
        ),
        summary="t (e, r): A target is under maintenance for longer than a working day (9h 0m 0s).",
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
