"""Stories about what is seen meaning little, and what all stories about the prober are made of."""

from __future__ import annotations

from prober.alerting.objectives import OBJECTIVE, decided_series
from prober.sinks.metrics import families
from tests.alerts.stories import HERE, PROCESS, Story, named, of

AT_PROBE = {**HERE, "probe": "ordering"}


def runs(verdict: str, **labels: str) -> str:
    """A counter of runs of the probe `ordering`."""
    return of(families.PROBE_RUNS, probe="ordering", verdict=verdict, **labels)


PASSED, FAILED, UNKNOWN = runs("pass"), runs("fail"), runs("unknown")
EXPECTED = of(families.PROBE_RUNS_EXPECTED, probe="ordering")
MAINTAINED = of(families.SCHEDULER_SKIPS, probe="ordering", reason="maintenance")

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
