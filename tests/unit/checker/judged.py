"""Gives one-line histories to the checker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from prober.checker.verifier import Verifier
from prober.core.events import Event
from prober.core.findings import Finding
from prober.core.rules import Rules
from tests.notation import history
from tests.unit.core.cases import LETTERS, merged, rules_of


def judged(
    rules: Rules, events: Iterable[Event], subscriptions: Iterable[str] = ("s",), each: Mapping[str, Rules] | None = None
) -> tuple[list[Finding], Verifier]:
    """Everything that is found, and the checker after it. `each` are the rules of single subscriptions."""
    verifier = Verifier(rules, subscriptions=subscriptions, rules_by_subscription=each)
    found = [finding for event in events for finding in verifier.observe(event)]
    return [*found, *verifier.finish()], verifier


def findings(line: str, **rules: Any) -> list[Finding]:
    """Everything that is found in a history of one subscription."""
    whole = rules_of(**rules)
    return judged(whole, history(line, whole.mode))[0]


def counted(line: str, **rules: Any) -> Mapping[str, int]:
    """What is counted in a history of one subscription."""
    whole = rules_of(**rules)
    return judged(whole, history(line, whole.mode))[1].counters


def words(found: Iterable[Finding]) -> list[str]:
    """The findings with their times, in the order in which they are told."""
    return [f"{LETTERS[one.status]}:{one.kind}@{one.t:g}" for one in found]


def across(*lines: tuple[str, str], each: Mapping[str, Rules] | None = None, **rules: Any) -> tuple[list[Finding], Verifier]:
    """Histories of several subscriptions of one topic, each `(subscription, line)`; publish events in one of them suffice."""
    whole = rules_of(**rules)
    modes = {name: (each or {}).get(name, whole).mode for name, _ in lines}
    events = merged(*(history(line, modes[name], subscription=name) for name, line in lines))
    return judged(whole, events, modes, each)
