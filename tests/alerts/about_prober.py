"""Stories about what is seen meaning little, and what all stories about the prober are made of."""

from __future__ import annotations

from prober.alerting.objectives import OBJECTIVE, decided_series
from prober.sinks.metrics import families
from tests.alerts.stories import HERE, PROBE, PROCESS, Story, at, named, of

AT_PROBE = {**PROCESS, **PROBE}


def runs(verdict: str, **labels: str) -> str:
    """A counter of runs of the probe `ordering`."""
    return of(families.PROBE_RUNS, verdict=verdict, **labels)


PASSED, FAILED, UNKNOWN = runs("pass"), runs("fail"), runs("unknown")
EXPECTED = of(families.PROBE_RUNS_EXPECTED)
MAINTAINED = of(families.SCHEDULER_SKIPS, reason="maintenance")

CLOCK = of(families.CLOCK)
HELD = "target:pubsub_prober_unreachable_runs:held"
HALVES = (
    ({"probe": "ordering"}, True),
    ({"probe": "ordering", "instance": "j"}, False),
    ({"probe": "pull"}, True),
    ({"probe": "pull", "vantage": "library"}, False),
    ({"probe": "push", "part": "1/2"}, True),
    ({"probe": "push", "part": "2/2"}, False),
)
"""Probe instances, and whether they work: of each probe one of two probers, of two vantages or of two parts does not."""

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

STORIES = (
    Story(
        "PubsubProberCoverageLow",
        "fires when a third of the runs does not end and ends when they do",
        {EXPECTED: "0+3x400", PASSED: "0+2x200 400+3x200", FAILED: "0x400", MAINTAINED: "0x400"},
        {"4m": 0, "30m": 1, "100m": 0},
        reads=(
            "30m",
            AT_PROBE,
            "Prober i ended 66.67% of the runs of ordering (wire) at t (e, r) that were due in the last 30m, less than 90 %. Its "
            "measurements there prove little.",
        ),
        summary="t/ordering/wire (e, r), ordering-keys-prober/i: Fewer runs end than the schedule asks for (66.67%).",
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
        "PubsubProberCoverageLow",
        "for one of two probers, for one of two vantages and for one of two parts",
        {
            series: values
            for labels, ended in HALVES
            for series, values in {
                of(families.PROBE_RUNS_EXPECTED, **labels): "0+20x400" if ended else "0+1x400",
                runs("pass", **labels): "0+20x400" if ended else "0x400",
                of(families.SCHEDULER_SKIPS, reason="maintenance", **labels): "0x400",
            }.items()
        },
        {"4m": 0, "30m": 3, "90m": 3},
    ),
    Story(
        "PubsubProberVerdictsUnknown",
        "fires when most runs end unknown and ends with that",
        {PASSED: "0+1x40 40+0x80 40+2x200", UNKNOWN: "0x40 0+2x80 160x200", FAILED: "0x320"},
        {"10m": 0, "30m": 1, "70m": 0},
        reads=(
            "30m",
            AT_PROBE,
            "79.8% of the runs of ordering (wire) by prober i at t (e, r) in the last 30m ended UNKNOWN: the target or the network to it "
            "does not answer, or the prober is paused.",
        ),
        summary="t/ordering/wire (e, r), ordering-keys-prober/i: Most runs of a probe end without a verdict (79.8%).",
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
        "PubsubProberVerdictsUnknown",
        "for one of two probers, for one of two vantages and for one of two parts",
        {
            series: values
            for labels, verified in HALVES
            for series, values in {
                runs("pass", **labels): "0+1x400" if verified else "0x400",
                runs("unknown", **labels): "0x400" if verified else "0+1x400",
            }.items()
        },
        {"4m": 0, "30m": 3, "90m": 3},
    ),
    Story(
        "PubsubTargetBlind",
        "fires when all runs end unknown and ends with the first verdict",
        {PASSED: "0+1x40 40x120 40+1x40", FAILED: "0x200", UNKNOWN: "0x40 0+1x120 120x40"},
        {"20m": 0, "29m": 0, "31m": 1, "39m": 1, "41m": 0},
        reads=(
            "31m",
            HERE,
            "All 60 runs that ended at t (e, r) in the last 15m were UNKNOWN: an outage would not be noticed. The reason of the "
            "runs states the cause.",
        ),
        summary="t (e, r): Every run at a target ends without a verdict (UNKNOWN runs: 60).",
    ),
    Story(
        "PubsubTargetBlind",
        "fires when everything is refused for hours, by all probers, probes and vantages",
        {
            runs("unknown", **labels): "0+30x150"
            for labels in ({}, {"instance": "j"}, {"probe": "redelivery"}, {"vantage": "library"})
        },
        {"5m": 0, "30m": 1, "12h": 1},
        every="5m",
    ),
    Story("PubsubTargetBlind", "not when runs fail", {FAILED: "0+1x200", UNKNOWN: "0+9x200"}, {"20m": 0, "40m": 0}),
    Story(
        "PubsubTargetBlind",
        "not while another prober verifies runs there",
        {UNKNOWN: "0+1x200", runs("pass", instance="j"): "0+1x200"},
        {"20m": 0, "40m": 0},
    ),
    Story("PubsubTargetBlind", "not for two runs", {PASSED: "0x200", UNKNOWN: "0x40 2x160"}, {"14m": 0, "20m": 0}),
    Story(
        "PubsubTargetBlind",
        "not while the target cannot be reached, nor soon after",
        {PASSED: "0x200 0+1x40", UNKNOWN: "0+1x200 200x40", named(HELD, **HERE): "_x20 2+1x160 stale"},
        {"20m": 0, "40m": 0, "50m": 0, "55m": 0},
    ),
    Story(
        "PubsubTargetBlind",
        "not under maintenance, and not by what was seen before it ended",
        {UNKNOWN: "0+1x120 120x80", of(families.UNDER_MAINTENANCE): "1x120 0x80"},
        {"25m": 0, "36m": 0, "44m": 0},
    ),
    Story(
        "PubsubTargetBlind",
        "also while another prober has the target under maintenance",
        {
            UNKNOWN: "0+1x200",
            of(families.UNDER_MAINTENANCE): "0x200",
            of(families.UNDER_MAINTENANCE, instance="j"): "1x200",
            runs("pass", instance="j"): "0x200",
        },
        {"20m": 1, "40m": 1},
    ),
    Story("PubsubTargetBlind", "ends when no prober answers", {UNKNOWN: "0+1x120 stale"}, {"29m": 1, "36m": 0}),
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
            "Prober i wakes up 450ms late in one of ten cases. Latencies at t (e, r) that are late perhaps only for that reason are "
            "undecided.",
        ),
        summary="t (e, r), ordering-keys-prober/i: A prober is too slow to measure latencies (450ms).",
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
        summary="t (e, r): Many latencies are undecided, because the prober was too slow to measure them (8.696%).",
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
        "fires for a quarter of an hour after a negative duration",
        {of(families.NEGATIVE_DURATIONS, duration="publish_latency"): "0x80 1x100"},
        {"20m": 0, "20m15s": 1, "37m": 0},
        reads=(
            "21m",
            {**PROCESS, **HERE, "duration": "publish_latency"},
            "publish_latency at t (e, r) was negative within the last 15m. Latencies measured by prober i are unreliable.",
        ),
        summary="t/publish_latency (e, r), ordering-keys-prober/i: The clock of a prober is wrong (negative durations: 1).",
    ),
    Story(
        "PubsubProberClockWrong",
        "not without",
        {of(families.NEGATIVE_DURATIONS, duration="publish_latency"): "0x80", CLOCK: at("0+15x80")},
        {"5m": 0, "20m": 0},
    ),
    Story(
        "PubsubProberClockWrong",
        "fires for a clock that is six hours ahead and ends when it is set right",
        {CLOCK: at("21600+15x40 615+15x40"), of(families.CLOCK, instance="j"): at("0+15x81")},
        {"1m": 1, "10m": 1, "11m": 0},
        reads=("10m", PROCESS, "The clock of prober i differs from Prometheus's by 6h 0m 0s. Its timestamps are unreliable."),
        summary="ordering-keys-prober/i: The clock of a prober is wrong (differs by 6h 0m 0s).",
    ),
    Story("PubsubProberClockWrong", "fires for a clock that is a minute behind", {CLOCK: at("-60+15x40")}, {"5m": 1}),
    Story("PubsubProberClockWrong", "not for a scrape that takes long", {CLOCK: at("10+15x40")}, {"5m": 0}),
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
        summary="order: Objectives are not evaluated although probes run.",
    ),
    Story(
        "PubsubProberRecordingsMissing",
        "fires when there are no numbers at all",
        {PASSED: "0+1x100"},
        {"9m": 0, "11m": 1},
        reads=("11m", {}, "There are probes, but no numbers for any objective: burn alerts cannot fire."),
        summary="all objectives: Objectives are not evaluated although probes run.",
    ),
    Story(
        "PubsubProberRecordingsMissing",
        "not for what a probe measures that need not be configured",
        {
            PASSED: "0+1x200",
            named(OBJECTIVE, slo="order", indicator="order"): "0.9999x200",
            named(OBJECTIVE, slo="head_of_line_delay", indicator="head_of_line_delay"): "0.99x200",
            named(decided_series(300), slo="order", indicator="order", **HERE): "1x200",
        },
        {"11m": 0, "40m": 0},
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
        summary="/x.yaml;pubsub-prober-no-data: Prometheus cannot evaluate rules of the prober (failures: 27).",
    ),
    Story(
        "PubsubProberRulesFailing",
        "not for rules of others",
        {named("prometheus_rule_evaluation_failures_total", rule_group="/x.yaml;theirs"): "0+1x80"},
        {"15m": 0},
    ),
)
