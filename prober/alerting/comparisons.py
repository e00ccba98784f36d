"""Alerts about candidates that are worse than their baselines."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from prober.alerting.promql import PROCESS, max_by, on, prom_duration, series
from prober.alerting.rules import (
    INTERVAL_S,
    TROUBLE_FOR_S,
    AlertingRule,
    Dashboard,
    RuleGroup,
    Severity,
    Summary,
    measured_alert,
)
from prober.sinks.metrics import families
from prober.slo.comparison import Standing

COMPARED: Final = ("baseline", "candidate")


def comparison_group() -> RuleGroup:
    """The rules about comparisons; nothing fires without any in the configuration.

    A comparison is looked at each minute, and who looks often enough sees one of many aspects differ by chance: so the candidate must be
    worse in every look for a while. It is a ticket: what breaks a promise there, or burns a budget, has alerts of its own.
    """
    return RuleGroup("pubsub-prober-comparisons", INTERVAL_S, (_worse(),))


def _worse() -> AlertingRule:
    """Not by the series of a prober that has the candidate under maintenance."""
    standing = series(families.COMPARISON_STANDING, standing=Standing.WORSE)
    unmaintained = f"{standing} unless {on((*PROCESS, 'candidate'))} {_candidates_maintained()} == 1"
    alert = measured_alert(
        "PubsubCandidateWorse",
        f"{max_by(COMPARED, unmaintained)} == 1",
        Severity.WARNING,
        Summary("A candidate is worse than its baseline."),
        f"For {prom_duration(TROUBLE_FOR_S)} the target {{{{ $labels.candidate }}}} has been worse than {{{{ $labels.baseline }}}} in "
        "every look. The page of comparisons says in what, by how much, and how much is allowed.",
        Dashboard.OVERVIEW,
        COMPARED,
        TROUBLE_FOR_S,
    )
    return replace(alert, page="comparisons")


def _candidates_maintained() -> str:
    """Whether each prober has each target under maintenance, as if all were candidates."""
    maintained = max_by((*PROCESS, "target"), series(families.UNDER_MAINTENANCE))
    return f'label_replace({maintained}, "candidate", "$1", "target", "(.*)")'
