"""One line per case: what it is about, a history in the one-line notation, what the checker has to say about it.

What it says is written as in the specification: `V:` violation, `L:` liveness, `I:` indeterminate, `N:` informational, then the kind;
with `@t` in an expectation the times are compared as well. Informational findings are compared only where one is expected.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from _pytest.mark import ParameterSet

from prober.core.events import Event
from prober.core.findings import Finding, Status
from prober.core.rules import Mode, Rules
from prober.core.verifier import Verifier
from tests.notation import history
from tests.verification import SUBSCRIPTION, verify

LIMIT = pytest.mark.xfail(strict=True, reason="a limit of the verifier, named in docs/findings.md: it says unknown, or nothing")

PULL, PUSH = Mode.PULL, Mode.PUSH
LETTERS = {Status.VIOLATION: "V", Status.LIVENESS: "L", Status.INDETERMINATE: "I", Status.INFO: "N"}


@dataclass(frozen=True, slots=True)
class Case:
    """One history, its rules, and the findings that are expected, separated by spaces."""

    history: str
    expected: str
    rules: Rules

    def check(self) -> None:
        expected = set(self.expected.split())
        found = words(findings(self.history, self.rules), times="@" in self.expected, notes="N:" in self.expected)
        assert found == expected, f"said {sorted(found)}, expected {sorted(expected)}"


@dataclass(frozen=True, slots=True)
class Definite:
    """One history and the definite findings that it must have: all that are named (`A|B`: one of these), or none if none is named.

    What is indeterminate or informational is free, and so are further definite findings of a history that is wrong anyway.
    """

    history: str
    expected: str
    rules: Rules

    def check(self) -> None:
        definitely(findings(self.history, self.rules), self.expected)


def definitely(found: Iterable[Finding], expected: str = "") -> None:
    """Fails unless each of the expected definite findings is there, or, when none is expected, unless there is none at all."""
    definite = words(finding for finding in found if finding.status is not Status.INDETERMINATE)
    missed = [one for one in expected.split() if definite.isdisjoint(one.split("|"))]
    assert not missed, f"said {sorted(definite)}, missed {missed}"
    assert expected or not definite, f"said {sorted(definite)} of a legal history"


def rules_of(**rules: Any) -> Rules:
    """Rules for one-line histories: streams are known to be dead at once, unless a case says otherwise."""
    return Rules(**{"close_detection_max_s": 0.0} | rules)


def case(what: str, line: str, expected: str = "", **rules: Any) -> ParameterSet:
    return pytest.param(Case(line, expected, rules_of(**rules)), id=what)


def legal(what: str, line: str, **rules: Any) -> ParameterSet:
    """A history that the documents allow: nothing in it may be called definitely wrong."""
    return pytest.param(Definite(line, "", rules_of(**rules)), id=what)


def wrong(what: str, line: str, expected: str, **rules: Any) -> ParameterSet:
    """A history that no legal explanation fits, and what it must be called at least."""
    assert expected
    return pytest.param(Definite(line, expected, rules_of(**rules)), id=what)


def limit(one: ParameterSet) -> ParameterSet:
    """A case that the verifier does not see as it is; see `LIMIT`."""
    return pytest.param(*one.values, marks=LIMIT, id=one.id)


def findings(line: str, rules: Rules) -> list[Finding]:
    return verify(rules, history(line, rules.mode))


def verified(
    rules: Rules, events: Iterable[Event], subscriptions: Iterable[str] = (SUBSCRIPTION,), each: Mapping[str, Rules] | None = None
) -> tuple[list[Finding], Verifier]:
    """All findings of a history, and the checker after it. `each` are the rules of single subscriptions."""
    verifier = Verifier(rules, subscriptions=subscriptions, rules_by_subscription=each)
    found = observe(verifier, events)
    return [*found, *verifier.finish()], verifier


def all_of(line: str, **rules: Any) -> list[Finding]:
    """All findings of a history of one subscription."""
    return findings(line, rules_of(**rules))


def counted(line: str, **rules: Any) -> Mapping[str, int]:
    """The counters of a history of one subscription."""
    whole = rules_of(**rules)
    return verified(whole, history(line, whole.mode))[1].counters


def listed(found: Iterable[Finding]) -> list[str]:
    """The findings with their times, in the order in which they were reported."""
    return [f"{LETTERS[one.status]}:{one.kind}@{one.t:g}" for one in found]


def words(found: Iterable[Finding], *, times: bool = False, notes: bool = False) -> set[str]:
    return {
        f"{LETTERS[finding.status]}:{finding.kind}" + (f"@{finding.t:g}" if times else "")
        for finding in found
        if notes or finding.status is not Status.INFO
    }


def say(line: str, **rules: Any) -> set[str]:
    """What the checker says about a history, without times."""
    return words(findings(line, rules_of(**rules)))


def only(line: str, kind: str, **rules: Any) -> Finding:
    """The one finding of that kind."""
    (finding,) = (finding for finding in findings(line, rules_of(**rules)) if finding.kind == kind)
    return finding


def observe(verifier: Verifier, events: Iterable[Event]) -> list[Finding]:
    """What is found while the events are taken, before the end."""
    return [finding for event in events for finding in verifier.observe(event)]


def pending(line: str, **rules: Any) -> bool:
    """Whether a message is pending at the end of a history on which nothing definite is said."""
    whole = rules_of(**rules)
    verifier = Verifier(whole, subscriptions=(SUBSCRIPTION,))
    definitely([*observe(verifier, history(line, whole.mode)), *verifier.finish()])
    return verifier.pending


def merged(*lines: Iterable[Event]) -> list[Event]:
    """The events of several histories, in the order of their times."""
    return sorted((event for line in lines for event in line), key=lambda event: event.t)


def across(*lines: tuple[str, str], rules: Rules | None = None, by_subscription: dict[str, Rules] | None = None) -> list[Finding]:
    """Verifies histories of several subscriptions of one topic, each `(subscription, line)`; publish events in one of them suffice."""
    verifier = Verifier(rules or rules_of(), subscriptions=[name for name, _ in lines], rules_by_subscription=by_subscription)
    found = observe(verifier, merged(*(history(line, subscription=name) for name, line in lines)))
    return [*found, *verifier.finish()]


__all__ = [
    "PULL",
    "PUSH",
    "SUBSCRIPTION",
    "Case",
    "Definite",
    "across",
    "all_of",
    "case",
    "counted",
    "definitely",
    "findings",
    "legal",
    "limit",
    "listed",
    "merged",
    "observe",
    "only",
    "pending",
    "rules_of",
    "say",
    "verified",
    "words",
    "wrong",
]
