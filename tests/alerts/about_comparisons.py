"""Stories about candidates beside their baselines."""

from __future__ import annotations

from prober.sinks.metrics import families
from tests.alerts.stories import Story, of

COMPARED = {"baseline": "b", "candidate": "c"}
WORSE = of(families.COMPARISON_STANDING, **COMPARED, standing="worse")
OF_CANDIDATE = {"target": "c", "environment": "e", "region": "r"}
STORIES = (
    Story(
        "PubsubCandidateWorse",
        "fires when every look for ten minutes says so and ends with the first that does not",
        {WORSE: "0x40 1x60 0x20", of(families.COMPARISON_STANDING, **COMPARED, standing="no_worse"): "1x40 0x60 1x20"},
        {"10m": 0, "19m": 0, "21m": 1, "24m": 1, "26m": 0},
        reads=(
            "21m",
            COMPARED,
            "For 10m the target c has been worse than b in every evaluation. The page of comparisons shows the aspects, the "
            "differences and the margins.",
        ),
        summary="b/c: A candidate is worse than its baseline.",
    ),
    Story("PubsubCandidateWorse", "not while nobody can tell in between", {WORSE: "1x20 0x4 " * 5}, {"9m": 0, "20m": 0, "30m": 0}),
    Story(
        "PubsubCandidateWorse",
        "not for standing otherwise",
        {
            of(families.COMPARISON_STANDING, **COMPARED, standing="no_worse"): "0x40 1x80",
            of(families.COMPARISON_STANDING, **COMPARED, standing="unknown"): "1x40 0x80",
            WORSE: "0x120",
        },
        {"20m": 0, "30m": 0},
    ),
    Story(
        "PubsubCandidateWorse",
        "not while the candidate is under maintenance, and whatever becomes of the baseline",
        {
            WORSE: "1x160",
            of(families.UNDER_MAINTENANCE, **OF_CANDIDATE): "1x80 0x80",
            of(families.UNDER_MAINTENANCE, **(OF_CANDIDATE | {"target": "b"})): "1x160",
        },
        {"15m": 0, "20m": 0, "29m": 0, "31m": 1},
    ),
    Story(
        "PubsubCandidateWorse",
        "also while another prober has the candidate under maintenance",
        {WORSE: "1x80", of(families.UNDER_MAINTENANCE, **OF_CANDIDATE, instance="j"): "1x80"},
        {"11m": 1},
    ),
    Story(
        "PubsubCandidateWorse",
        "is one ticket for each candidate, however many probers look",
        {
            of(families.COMPARISON_STANDING, baseline="b", candidate=candidate, standing="worse", instance=instance): "1x80"
            for candidate in ("c", "d")
            for instance in ("i", "j")
        },
        {"9m": 0, "11m": 2, "20m": 2},
    ),
    Story("PubsubCandidateWorse", "no data", {}, {"0s": 0, "20m": 0}),
)
