"""Collection of the findings of the checks.

Every check states its finding with the status that the evidence supports. The collector adds the facts that all findings of the key share.
Where a control operation (seek, purge, filter change) or a hole in the record may explain the facts, it changes a violation to
indeterminate: a grace period hides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from prober.core.coverage import Coverage
from prober.core.events import LONG_AGO, Delivered, Ended, Event
from prober.core.findings import EPOCHS, Facts, Finding, Kind, Status
from prober.core.kinds import KINDS, WITHIN_A_REGION
from prober.core.rules import Rules, assumptions_of

WITNESSES_MAX = 16
SEQS_SHOWN = 20
REASONS_MAX = 16
REASON_LENGTH_MAX = 300

REPEATED_KEPT: Final = 256
"""Number of messages with several records that are remembered for a key."""
NONE_REPEATED: Final[Mapping[tuple[str, int], bool]] = MappingProxyType({})

CUT_OFF = "what came after the record stopped"

ELSEWHERE: Final = "order holds within one publishing region, and the region of these publishes is not known"
"""The legal explanation of any order finding if messages may have been published in several regions."""

SETTLED: Final = "not explained by a seek, purge, filter change or hole in the record: none was still in its grace period"
ONE_REGION: Final = "not published in several regions: the rules exclude that, or the region of each publish is on record"
"""The fact that rules out the explanations common to all findings."""

NOTHING: Final[Mapping[str, float]] = {}
"""The assumptions of an informational finding: none."""


class FindingsCollector:
    """The collector of the findings of one key on one subscription.

    grace_until_t       when the last control operation has settled; `grace_cause` names it.
    ids_alone           whether no delivery had a publish time, so that message ids alone identify records.
    dead_letters        the number of messages dead-lettered since the last new message.
    repeated            messages with several records, by epoch and number, and whether these have one id; only the latest.
    epochs              the number of epochs of the key known to this subscription: a number may occur in each.
    """

    __slots__ = (
        "_file",
        "counts",
        "dead_letters",
        "epochs",
        "grace_cause",
        "grace_until_t",
        "ids_alone",
        "key",
        "repeated",
        "rules",
        "subscription",
    )

    def __init__(self, subscription: str, key: str, rules: Rules, file: Callable[[Finding], None], counts: Coverage) -> None:
        self.subscription = subscription
        self.key = key
        self.rules = rules
        self.counts = counts
        self.grace_until_t = LONG_AGO
        self.grace_cause = ""
        self.ids_alone = True
        self.epochs = self.dead_letters = 0
        self.repeated: Mapping[tuple[str, int], bool] = NONE_REPEATED
        self._file = file

    def count_first_delivery(self, *, recorded: bool) -> None:
        """Count the first delivery of a message: the key has advanced past all messages dead-lettered before it."""
        if recorded:
            self.counts.deliveries_first += 1
            self.counts.deliveries_without_key += not self.key
        else:
            self.counts.deliveries_unrecorded += 1
        if self.dead_letters:
            self.counts.opportunities_dead_letter += self.dead_letters
            self.dead_letters = 0

    def note_repeated(self, epoch: str, seq: int, *, one_id: bool) -> None:
        """Note a further record of a message, and whether it has the id of the first: the texts of findings then name the record."""
        latest = dict(list(self.repeated.items())[-REPEATED_KEPT + 1 :])
        self.repeated = latest | {(epoch, seq): one_id or latest.get((epoch, seq), False)}

    def excuse(self, until_t: float, cause: str) -> None:
        """Start a grace period until a control operation has settled; of several the one that ends last counts."""
        if until_t > self.grace_until_t:
            self.grace_until_t = until_t
            self.grace_cause = cause

    def violation(
        self, kind: Kind, t: float, witnesses: Iterable[int], facts: Facts, doubt: str = "", reasons: Sequence[str] = ()
    ) -> bool:
        """File a definite finding; a `doubt` makes it indeterminate, and so does the grace period at `t`. Return whether it is definite.

        reasons     further assumptions of the doubt; without a doubt, the facts that rule each alternative out.
        """
        reported, reasons = doubt, reasons if doubt else (*reasons, SETTLED)
        if not doubt and t <= self.grace_until_t:
            doubt = f"{self.grace_cause} may explain it"
        doubt = doubt or self._elsewhere(kind)
        status = Status.INDETERMINATE if doubt else Status.VIOLATION
        self._add(kind, status, t, witnesses, facts, doubt, reasons if reported or not doubt else ())
        return not doubt

    def liveness(
        self, kind: Kind, t: float, witnesses: Iterable[int], facts: Facts, doubt: str = "", reasons: Sequence[str] = ()
    ) -> None:
        """File a missed deadline; a `doubt` makes the finding indeterminate."""
        reported, doubt = doubt, doubt or self._elsewhere(kind)
        status = Status.INDETERMINATE if doubt else Status.LIVENESS
        self._add(kind, status, t, witnesses, facts, doubt, reasons if reported or not doubt else ())

    def info(self, kind: Kind, t: float, witnesses: Iterable[int], facts: Facts) -> None:
        """File an observation that violates no guarantee."""
        self._add(kind, Status.INFO, t, witnesses, facts, "")

    def _elsewhere(self, kind: Kind) -> str:
        return ELSEWHERE if self.rules.depends_on_region(kind) else ""

    def _reasons(self, kind: Kind, doubt: str, reasons: Sequence[str]) -> tuple[str, ...]:
        """Return the reasons of a finding: a doubt first, or last the facts that rule out the explanations common to all findings."""
        if doubt:
            reasons = doubt, *(one for one in reasons if one != doubt)
        elif KINDS[kind].guarantee in WITHIN_A_REGION:
            reasons = *reasons, ONE_REGION
        return tuple(one[:REASON_LENGTH_MAX] for one in reasons[:REASONS_MAX])

    def _add(
        self,
        kind: Kind,
        status: Status,
        t: float,
        witnesses: Iterable[int],
        facts: Facts,
        doubt: str,
        reasons: Sequence[str] = (),
    ) -> None:
        if not self.key and KINDS[kind].guarantee in WITHIN_A_REGION:
            return  # messages without an ordering key have no order (docs/model.md, section 11)
        numbers = set(witnesses)
        numbers.discard(0)
        proof = tuple(sorted(numbers)[:WITNESSES_MAX])
        assumed = NOTHING if status is Status.INFO else assumptions_of(self.rules, kind, ids_alone=self.ids_alone)
        reported = {**facts, EPOCHS: self.epochs} if self.epochs > 1 else facts
        why = () if status is Status.INFO else self._reasons(kind, doubt, reasons)
        self._file(Finding(kind, status, self.subscription, self.key, t, proof, reported, doubt, assumed, why))


def excuse_cut_off(waiting: Sequence[tuple[Event, int]], collector_of: Callable[[Delivered], FindingsCollector]) -> None:
    """Excuse the last deliveries of a record that was cut off: with different clocks, their publishes may have been recorded later.

    waiting     the events within the clock error of the end, the last event last.
    """
    last = waiting[-1][0] if waiting else None
    if isinstance(last, Ended) and not last.drained:
        for event, _ in waiting:
            if isinstance(event, Delivered):
                collector_of(event).excuse(last.t, CUT_OFF)
