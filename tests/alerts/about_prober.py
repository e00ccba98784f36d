"""Stories about the prober itself."""

from __future__ import annotations

from prober.alerting.objectives import OBJECTIVE, decided_series
from prober.sinks.metrics import families
from tests.alerts.stories import HERE, PROCESS, Story, named, of

AT_PROBE = {**HERE, "probe": "ordering"}
UP = named("up", **PROCESS)
INFO = of(families.TARGET_INFO)
HOUR_OF_NOTHING = "0x240"


def runs(verdict: str, **labels: str) -> str:
    """A counter of runs of the probe `ordering`."""
    return of(families.PROBE_RUNS, probe="ordering", verdict=verdict, **labels)


PASSED, FAILED, UNKNOWN = runs("pass"), runs("fail"), runs("unknown")
EXPECTED = of(families.PROBE_RUNS_EXPECTED, probe="ordering")
MAINTAINED = of(families.SCHEDULER_SKIPS, probe="ordering", reason="maintenance")
MAINTENANCE = of(families.UNDER_MAINTENANCE)
INTERVAL = of(families.PROBE_INTERVAL, probe="ordering")
LAST_PASS = of(families.PROBE_LAST_SUCCESS, probe="ordering")

STARVED = {
    PASSED: "0+1x200",
    of(families.LOOP_LAG, "_bucket", le="0.25"): "0+60x40 2400+10x160",
    of(families.LOOP_LAG, "_bucket", le="1.0"): "0+60x200",
    of(families.LOOP_LAG, "_bucket", le="+Inf"): "0+60x200",
    of(families.END_TO_END_LATENCY, "_bucket", le="1.0", subscription="s"): "0+100x40 4000+20x160",
    of(families.END_TO_END_LATENCY, "_count", subscription="s"): "0+100x40 4000+20x160",
    of(families.PUBLISH_LATENCY, "_bucket", le="0.5", topic="p"): "0+100x40 4000+20x160",
    of(families.PUBLISH_LATENCY, "_count", topic="p"): "0+100x40 4000+20x160",
    of(families.UNDECIDED_DURATIONS, duration="end_to_end_latency"): "0x40 0+80x160",
    of(families.UNDECIDED_DURATIONS, duration="publish_latency"): "0x40 0+80x160",
}
"""From the tenth minute on the process gets too little of a processor; what it measures as late is undecided at the source."""

SECOND = {named("up", **{**PROCESS, "instance": "j"}): "1x80", of(families.TARGET_INFO, instance="j"): "1x80"}
"""Another prober that probes the same."""

SIGHT = (
    Story(
        "PubsubProberDown",
        "fires after five minutes for each target and ends when it is back",
        {UP: "1x40 0x40 1x20", INFO: "1x40 stale _x40 1x20", of(families.TARGET_INFO, target="u"): "1x40 stale _x40 1x20"},
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
        {UP: "1x40 0x40", INFO: "1x40 stale", of(families.TARGET_INFO, target="u"): "1x40 stale", **SECOND},
        {"16m": 1},
        among={"severity": "critical", "target": "u"},
    ),
    Story(
        "PubsubProberDown",
        "goes on when it is not even scraped any more",
        {UP: "1x40 0x40 stale", INFO: "1x40 stale"},
        {"16m": 1, "21m": 1, "40m": 1, "5h": 1, "7h": 0},
    ),
    Story(
        "PubsubProberDown",
        "its successor that does not start is the same page",
        {
            UP: "1x40 0x40 stale",
            INFO: "1x40 stale",
            named("up", **{**PROCESS, "instance": "j"}): "_x60 0x60",
        },
        {"16m": 1, "26m": 1, "29m": 1},
    ),
    Story(
        "PubsubProberDown",
        "its successor that dies too is one page",
        {
            UP: "1x40 0x4 stale",
            INFO: "1x40 stale",
            named("up", **{**PROCESS, "instance": "j"}): "_x50 1x40 0x60",
            of(families.TARGET_INFO, instance="j"): "_x50 1x40 stale",
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
            "Nothing with the job ordering-keys-prober has been scraped for 5m: nobody probes anything.",
        ),
    ),
    Story(
        "PubsubProberAbsent",
        "fires when the last prober was taken away",
        {UP: "1x40 stale", INFO: "1x40 stale"},
        {"11m": 0, "16m": 1, "8h": 1},
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
        {UP: "1x140", INFO: "1x40 stale _x40 1x40", of(families.TARGET_INFO, target="u"): "1x140"},
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
            of(families.TARGET_INFO, instance="j"): "_x44 1x80",
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

JUDGEMENT = (
    Story(
        "PubsubProberCoverageLow",
        "fires when a third of the runs does not end and ends when they do",
        {EXPECTED: "0+3x400", PASSED: "0+2x200 400+3x200", FAILED: "0x400", MAINTAINED: "0x400"},
        {"4m": 0, "30m": 1, "100m": 0},
        reads=(
            "30m",
            AT_PROBE,
            "Of the runs of ordering at t (e, r) that were due in the last 30m, 66.67% ended, less than 90 %. What is measured there means "
            "little.",
        ),
    ),
    Story(
        "PubsubProberCoverageLow",
        "not for one lost run",
        {EXPECTED: "0+1x20 20x100", PASSED: "0+1x10 10+1x9 19x100", MAINTAINED: "0x120"},
        {"7m": 0, "20m": 0},
    ),
    Story(
        "PubsubProberCoverageLow",
        "not for what maintenance skipped",
        {EXPECTED: "0+3x200", PASSED: "0x200", MAINTAINED: "0+3x200"},
        {"20m": 0, "45m": 0},
    ),
    Story(
        "PubsubProberCoverageLow",
        "not for a restart",
        {EXPECTED: "0+3x100 0+3x100", PASSED: "0+3x100 0+3x100", MAINTAINED: "0x200"},
        {"25m15s": 0, "30m": 0, "45m": 0},
    ),
    Story("PubsubProberCoverageLow", "no data", {}, {"20m": 0}),
    Story(
        "PubsubProberVerdictsUnknown",
        "fires when most runs end unknown and ends with that",
        {PASSED: "0+1x40 40+0x80 40+2x200", UNKNOWN: "0x40 0+2x80 160x200", FAILED: "0x320"},
        {"10m": 0, "30m": 1, "70m": 0},
        reads=(
            "30m",
            AT_PROBE,
            "79.8% of the runs of ordering at t (e, r) in the last 30m ended UNKNOWN: the target or the way to it does not answer, or the "
            "prober stands still.",
        ),
    ),
    Story(
        "PubsubProberVerdictsUnknown", "not for one", {PASSED: "0x80", UNKNOWN: "0x20 1x60", FAILED: "0x80"}, {"6m": 0, "12m": 0}
    ),
    Story(
        "PubsubProberVerdictsUnknown",
        "not when runs fail",
        {PASSED: "0x80", UNKNOWN: "0x80", FAILED: "0+1x80"},
        {"12m": 0, "20m": 0},
    ),
    Story("PubsubProberVerdictsUnknown", "no data", {}, {"20m": 0}),
    Story(
        "PubsubProberLagging",
        "fires for each target at which it works and ends when it is quick again",
        {
            PASSED: "0+1x200",
            runs("pass", target="u"): "0x200",
            of(families.LOOP_LAG, "_bucket", le="0.25"): "0+60x40 2400+30x60 4200+60x100",
            of(families.LOOP_LAG, "_bucket", le="0.5"): "0+60x200",
            of(families.LOOP_LAG, "_bucket", le="+Inf"): "0+60x200",
        },
        {"10m": 0, "12m": 1, "24m": 1, "40m": 0},
        reads=(
            "24m",
            {**PROCESS, **HERE},
            "Prober i wakes up 450ms late in one of ten cases. What it measures as late at t (e, r), perhaps only because of that delay, "
            "is undecided.",
        ),
    ),
    Story(
        "PubsubProberLagging",
        "speaks up minutes after starvation begins",
        STARVED,
        {"10m": 0, "13m": 1, "14m": 1},
    ),
    Story("PubsubErrorBudgetBurn", "starvation burns no budget", STARVED, {"10m": 0, "12m": 0, "14m": 0, "20m": 0, "30m": 0}),
    Story(
        "PubsubProberLagging",
        "not for one long pause",
        {
            PASSED: "0+1x80",
            of(families.LOOP_LAG, "_bucket", le="0.25"): "0+60x40 2459+60x39",
            of(families.LOOP_LAG, "_bucket", le="+Inf"): "0+60x80",
        },
        {"12m": 0, "15m": 0},
    ),
    Story(
        "PubsubProberLatenciesUndecided",
        "fires when objectives about latencies leave out much and ends half an hour later",
        {
            of(families.UNDECIDED_DURATIONS, duration="end_to_end_latency"): "0x40 0+1x40 40x200",
            of(families.UNDECIDED_DURATIONS, duration="publish_latency"): "0x280",
            of(families.END_TO_END_LATENCY, "_count", subscription="s"): "0+2x280",
            of(families.PUBLISH_LATENCY, "_count", topic="p"): "0+3x280",
        },
        {"10m": 0, "21m": 1, "70m": 0},
        reads=(
            "21m",
            HERE,
            "8.696% of the latencies at t (e, r) in the last 30m were late, perhaps only because the prober's event loop lagged. "
            "Objectives about latencies do not count them.",
        ),
    ),
    Story(
        "PubsubProberLatenciesUndecided",
        "not for a few",
        {
            of(families.UNDECIDED_DURATIONS, duration="end_to_end_latency"): "0x40 8x80",
            of(families.END_TO_END_LATENCY, "_count", subscription="s"): "0+0.1x120",
            of(families.PUBLISH_LATENCY, "_count", topic="p"): "0+0.1x120",
        },
        {"15m": 0, "25m": 0},
    ),
    Story("PubsubProberLagging", "no data", {PASSED: "0+1x80"}, {"15m": 0}),
    Story(
        "PubsubProberClockWrong",
        "fires for a quarter of an hour",
        {of(families.NEGATIVE_DURATIONS, duration="publish_latency"): "0x80 1x100"},
        {"20m": 0, "20m15s": 1, "37m": 0},
        reads=(
            "21m",
            {**HERE, "duration": "publish_latency"},
            "publish_latency at t (e, r) was negative within the last 15m. Latencies from there cannot be relied on.",
        ),
    ),
    Story(
        "PubsubProberClockWrong",
        "not without",
        {of(families.NEGATIVE_DURATIONS, duration="publish_latency"): "0x80"},
        {"5m": 0, "20m": 0},
    ),
    Story(
        "PubsubProberRecordingsMissing",
        "fires when one objective has no numbers and ends when it has",
        {
            PASSED: "0+1x200",
            named(OBJECTIVE, slo="order", indicator="order"): "0.9999x200",
            named(OBJECTIVE, slo="affinity", indicator="affinity"): "0.99x200",
            named(decided_series(300), slo="order", indicator="order", **HERE): "_x100 1x100",
            named(decided_series(300), slo="affinity", indicator="affinity", **HERE): "1x200",
        },
        {"9m": 0, "11m": 1, "26m": 0},
        reads=("11m", {"slo": "order"}, "There are probes, but no numbers for the objective order: burn alerts cannot fire."),
    ),
    Story(
        "PubsubProberRecordingsMissing",
        "fires when there are no numbers at all",
        {PASSED: "0+1x100"},
        {"9m": 0, "11m": 1},
        reads=("11m", {}, "There are probes, but no numbers for any objective: burn alerts cannot fire."),
    ),
    Story(
        "PubsubProberRecordingsMissing",
        "not when nothing is probed",
        {named(OBJECTIVE, slo="order", indicator="order"): "0.9999x200"},
        {"20m": 0},
    ),
    Story(
        "PubsubProberRulesFailing",
        "fires while evaluations fail and ends after them",
        {named("prometheus_rule_evaluation_failures_total", rule_group="/x.yaml;pubsub-prober-no-data"): "0x20 0+1x60 60x100"},
        {"5m": 0, "12m": 1, "37m": 0},
        reads=(
            "12m",
            {"rule_group": "/x.yaml;pubsub-prober-no-data"},
            "Rules of /x.yaml;pubsub-prober-no-data failed within the last 15m: their alerts cannot fire.",
        ),
    ),
    Story(
        "PubsubProberRulesFailing",
        "not for rules of others",
        {named("prometheus_rule_evaluation_failures_total", rule_group="/x.yaml;theirs"): "0+1x80"},
        {"15m": 0},
    ),
)

STORIES = (*SIGHT, *JUDGEMENT)
