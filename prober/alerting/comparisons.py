"""The alert about a candidate that is worse than its baseline, by the comparisons of the configuration.

A comparison is looked at each minute, and who looks often enough sees one of many aspects differ by chance: so it must be worse in every
look for a while. It is a ticket, no page: what breaks a promise at the candidate, or burns a budget there, has alerts of its own.
"""

from __future__ import annotations

from typing import Final

from prober.alerting.promql import binary, max_by, on, prom_duration, series
from prober.alerting.rules import (
    INTERVAL_S,
    TROUBLE_FOR_S,
    AlertBasis,
    AlertingRule,
    Dashboard,
    Owner,
    RuleGroup,
    Severity,
)
from prober.sinks.metrics import families
from prober.slo.comparison import Standing

COMPARED: Final = ("baseline", "candidate")


def comparison_group() -> RuleGroup:
    """The rules about comparisons; nothing fires without any in the configuration."""
    return RuleGroup("pubsub-prober-comparisons", INTERVAL_S, (_worse(),))


def _worse() -> AlertingRule:
    """Not while the candidate is under maintenance: whoever works on it knows."""
    worse = f"{max_by(COMPARED, series(families.COMPARISON_STANDING, standing=Standing.WORSE))} == 1"
    return AlertingRule(
        "PubsubCandidateWorse",
        binary(f"unless {on(('candidate',))}", worse, f"({_candidates_maintained()} == 1)"),
        Severity.WARNING,
        Owner.SERVICE,
        "A candidate is worse than its baseline.",
        f"For {prom_duration(TROUBLE_FOR_S)} the target {{{{ $labels.candidate }}}} has been worse than {{{{ $labels.baseline }}}} in "
        "every look. The page of comparisons says in what, by how much, and how much is allowed.",
        Dashboard.OVERVIEW,
        COMPARED,
        TROUBLE_FOR_S,
        {"evidence": str(AlertBasis.MEASUREMENT)},
        "comparisons",
    )


def _candidates_maintained() -> str:
    """Whether each target is under maintenance, as if all were candidates."""
    return f'label_replace({max_by(("target",), series(families.UNDER_MAINTENANCE))}, "candidate", "$1", "target", "(.*)")'
