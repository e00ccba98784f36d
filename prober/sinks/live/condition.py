"""Status of a probe instance, and of all of them, for the pages and the API's `status`. Verdicts stay PASS, FAIL and UNKNOWN."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import StrEnum
from typing import Final

from prober.core.findings import Kind
from prober.core.kinds import USUAL
from prober.core.verdict import Verdict


class Condition(StrEnum):
    """Status, the worst first.

    OUTAGE       the target cannot be reached.
    FAIL         a guarantee is broken.
    BLIND        the target answers, and no run of any probe on it can be verified. Only of the whole status, never of a probe instance.
    UNKNOWN      no verdict, or a verdict that is too old.
    WARN         the only violations are of behaviour that Google documents as usual, and does not guarantee.
    STARTING     the first run has not ended yet, and is not late.
    PASS         no observation breaks a guarantee.
    MAINTENANCE  not verified.
    """

    OUTAGE = "OUTAGE"
    FAIL = "FAIL"
    BLIND = "BLIND"
    UNKNOWN = "UNKNOWN"
    WARN = "WARN"
    STARTING = "STARTING"
    PASS = "PASS"  # no password
    MAINTENANCE = "MAINTENANCE"

    @property
    def verdict(self) -> Verdict | None:
        """Verdict of the condition; None under maintenance."""
        return _VERDICTS.get(self, Verdict.UNKNOWN)


_VERDICTS: Final = {
    Condition.FAIL: Verdict.FAIL,
    Condition.WARN: Verdict.FAIL,
    Condition.PASS: Verdict.PASS,
    Condition.MAINTENANCE: None,
}

_KINDS: Final = frozenset(kind.value for kind in Kind)


def worst_of(conditions: Iterable[Condition]) -> Condition:
    """Return the worst condition; UNKNOWN if there is none."""
    found = set(conditions)
    return next((one for one in Condition if one in found), Condition.UNKNOWN)


def of_kinds(kinds: Collection[Kind]) -> Condition:
    """Return FAIL, or WARN if all kinds are violations of usual behaviour only."""
    return Condition.WARN if kinds and USUAL.issuperset(kinds) else Condition.FAIL


def of_run(verdict: Verdict, reason: str) -> Condition:
    """Return the condition after a run with this verdict and reason; the reason of a FAIL lists the kinds of findings."""
    return (
        of_kinds({Kind(name) for name in reason.split(", ") if name in _KINDS}) if verdict is Verdict.FAIL else Condition(verdict)
    )
