"""Gives a record to the checker and sorts what it says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from prober.core.events import Event
from prober.core.findings import Finding, Kind, Status
from prober.core.kinds import KINDS
from prober.core.rules import Rules
from prober.core.verifier import Verifier

SUBSCRIPTION = "s"
FAILURES = (Status.VIOLATION, Status.LIVENESS)


def verify(rules: Rules, events: Iterable[Event], rules_by_subscription: Mapping[str, Rules] | None = None) -> list[Finding]:
    """Everything that is found in a record of one subscription, or of those that are named, what was on hold at its end included."""
    names = rules_by_subscription or (SUBSCRIPTION,)
    verifier = Verifier(rules, subscriptions=names, rules_by_subscription=rules_by_subscription)
    findings = [finding for event in events for finding in verifier.observe(event)]
    findings.extend(verifier.finish())
    assert [finding for finding in findings if finding.status not in KINDS[finding.kind].statuses] == []
    return findings


def kinds(findings: Iterable[Finding], *statuses: Status) -> set[Kind]:
    """The kinds of the findings with one of these statuses; without any, of violations and liveness findings."""
    return {finding.kind for finding in findings if finding.status in (statuses or FAILURES)}
