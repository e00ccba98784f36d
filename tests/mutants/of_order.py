"""Bugs in the order of first deliveries: positions, the publisher's record, and what is compared with what."""

# ruff: noqa: E501 - a mutant is one line

from __future__ import annotations

from tests.mutants.mutant import Mutant, excuse, rule

MUTANTS: tuple[Mutant, ...] = (
    excuse("positions-by-sequence-number", "sessions.py", "self.token = hash(message_id)", "self.token = hash((epoch, seq))", "Positions are learned by sequence number instead of message id."),
    excuse("early-deliveries-forgotten", "order.py", "        if not publication.abandoned:\n            publication.delivered_early(", "        if publication.confirmed:\n            publication.delivered_early(", "A delivery before its confirmation is taken for no delivery."),
    rule("inversion-of-an-open-one-not-told", "order.py", "(overtaken.bound or overtaken.by.inverts(this))", "overtaken.bound", "A message that was overtaken while its outcome was open is never told."),
    excuse("inversion-of-a-republication", "epoch_order.py", "return lower.position > higher.position and lower.ordered_t <= higher.ordered_t", "return lower.position > higher.position", "A republication must be where it was published first."),
    rule("seek-excuses-what-is-published-since", "order.py", "if publication.invoked_t > self.excused_until_t]\n        shown", "if publication.invoked_t > self.excused_until_t + 1e9]\n        shown", "A seek excuses holes for ever."),
    excuse("seek-excuses-no-loss", "order.py", "        for order in self.epochs:\n            order.overtaken.clear()", "        for order in self.epochs:\n            order.forget(0)", "A hole from before a purge is still a loss after it."),
    excuse("abandoned-has-a-primary", "publications.py", "if self.token is not None or self.abandoned:", "if self.token is not None:", "An abandoned number that is confirmed late counts as confirmed."),
    rule("last-confirmation-names-the-primary", "publications.py", "if self.token is not None or self.abandoned:", "if self.abandoned:", "The last of several confirmations names the primary."),
    excuse("early-shared-by-subscriptions", "publications.py", "[early for early in self.early if early.subscription == subscription]", "[early for early in self.early if subscription >= 0]", "What another subscription received counts as received here."),
    excuse("too-many-early-forgotten", "publications.py", "        else:\n            self.abandoned = True", "        else:\n            self.early = self.early[1:]", "The first of too many early deliveries is taken for no delivery."),
    rule("unrecorded-stored-later-not-told", "unrecorded.py", "self._collector.info(Kind.PUBLISHED_OUT_OF_ORDER, held.t, witnesses, facts)", "pass", "What publishers sent in another order is never told."),
    rule("unrecorded-exchange-not-told", "unrecorded.py", "elif not stored_later and self._places.in_order(held.ahead.position, held.late.position):", "elif False:", "What the service exchanged is never told."),
    excuse("unrecorded-race-ignored", "unrecorded.py", "elif not stored_later and self._places.in_order(held.ahead.position, held.late.position):", "elif not stored_later:", "Two sessions that race prove an order of numbers."),
    excuse("unrecorded-repetition-ignored", "unrecorded.py", "            self._excuse(event.epoch, this.seq)\n", "", "A batch of which a first attempt stored the last part was published out of order."),
    excuse("unrecorded-bound-ignored", "unrecorded.py", "return CLOSE if seconds_of(ahead) - seconds_of(late) <= bound_s else \"\"", "return \"\"", "Publish times prove an order however close they are."),
    excuse("unrecorded-end-decides", "unrecorded.py", "CUT if now == inf else \"\"", "\"\"", "The end of the history decides what was on hold."),
)  # fmt: skip
