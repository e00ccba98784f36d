"""Where the checks of one key put what they find.

Every check states its finding with the status that the evidence gives it. The collector adds what all findings of the key share, and
turns certainty into doubt where a control operation (seek, purge, filter change, a hole in the record) may explain the facts: a
grace period hides nothing, it only makes a violation indeterminate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from prober.core.counts import Counts
from prober.core.events import LONG_AGO
from prober.core.findings import EPOCHS, Facts, Finding, Kind, Status
from prober.core.rules import Assumptions, Rules

WITNESSES_MAX = 16
SEQS_SHOWN = 20

SEEK = "a seek or purge"
FILTER_CHANGE = "a change of the filter"
HOLE = "a hole in the record"

NOTHING: Final[Mapping[str, float]] = {}
"""What an informational finding relies on."""

INFO: Final = Status.INFO


class FindingsCollector:
    """Collects the findings of one key on one subscription.

    grace_until_t       when the last control operation has settled, and `grace_cause` which that was.
    ids_alone           no delivery stated its publish time, so that a message id was taken for one record.
    epochs              in how many epochs the key was published, as far as this subscription knows: a number may stand in each.
    """

    __slots__ = (
        "_assumptions",
        "_file",
        "counts",
        "epochs",
        "grace_cause",
        "grace_until_t",
        "ids_alone",
        "key",
        "rules",
        "subscription",
    )

    def __init__(
        self, subscription: str, key: str, assumptions: Assumptions, file: Callable[[Finding], None], counts: Counts
    ) -> None:
        self.subscription = subscription
        self.key = key
        self.rules: Rules = assumptions.rules
        self._assumptions = assumptions
        self.counts = counts
        self.grace_until_t = LONG_AGO
        self.grace_cause = ""
        self.ids_alone = True
        self.epochs = 0
        self._file = file

    def excuse(self, until_t: float, cause: str) -> None:
        """A control operation: until it has settled nothing is certain. Of several the one that lasts longest counts."""
        if until_t > self.grace_until_t:
            self.grace_until_t = until_t
            self.grace_cause = cause

    def violation(self, kind: Kind, t: float, witnesses: Iterable[int], facts: Facts, doubt: str = "") -> None:
        """Files a definite finding; a `doubt` makes it indeterminate, and so does the grace period at `t`."""
        if not doubt and t <= self.grace_until_t:
            doubt = f"{self.grace_cause} may explain it"
        self._add(kind, Status.INDETERMINATE if doubt else Status.VIOLATION, t, witnesses, facts, doubt)

    def liveness(self, kind: Kind, t: float, witnesses: Iterable[int], facts: Facts, doubt: str = "") -> None:
        """Files the passing of a deadline; a `doubt` makes it indeterminate."""
        self._add(kind, Status.INDETERMINATE if doubt else Status.LIVENESS, t, witnesses, facts, doubt)

    def info(self, kind: Kind, t: float, witnesses: Iterable[int], facts: Facts) -> None:
        """Files something worth counting that no promise forbids."""
        self._add(kind, Status.INFO, t, witnesses, facts, "")

    def _add(self, kind: Kind, status: Status, t: float, witnesses: Iterable[int], facts: Facts, doubt: str) -> None:
        numbers = set(witnesses)
        numbers.discard(0)
        proof = tuple(sorted(numbers)[:WITNESSES_MAX])
        assumed = NOTHING if status is INFO else self._assumptions.behind(kind, ids_alone=self.ids_alone)
        told = {**facts, EPOCHS: self.epochs} if self.epochs > 1 else facts
        self._file(Finding(kind, status, self.subscription, self.key, t, proof, told, doubt, assumed))
