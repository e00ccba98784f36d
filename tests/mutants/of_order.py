"""Bugs in the order of first deliveries: positions, the publisher's record, and what is compared with what."""

# ruff: noqa: E501 - a mutant is one line

from __future__ import annotations

from tests.mutants.mutant import Mutant, excuse, rule

MUTANTS: tuple[Mutant, ...] = (
    excuse("positions-by-sequence-number", "sessions.py", "self.token = hash(message_id)", "self.token = hash((epoch, seq))", "Positions are learned by sequence number instead of message id."),
    rule("gap-not-told", "order.py", "        if gap:\n            self._gap(order, gap, this, t)", "        if gap and t < 0:\n            self._gap(order, gap, this, t)", "A hole among first deliveries is not told."),
    excuse("open-outcome-is-a-hole", "order.py", "if earlier.confirmed and earlier.ordered_t <= publication.ordered_t:", "if not earlier.abandoned and earlier.ordered_t <= publication.ordered_t:", "A publish of unknown outcome counts as missing."),
    excuse("republished-is-a-hole", "order.py", "if earlier.confirmed and earlier.ordered_t <= publication.ordered_t:", "if earlier.confirmed:", "A republication is expected where it was published first."),
    rule("late-confirmation-shows-no-hole", "order.py", "if overtaken is not None and publication.ordered_t <= overtaken.by.ordered_t:", "if overtaken is not None and publication.seq < 0:", "A hole that a late confirmation shows is not told."),
    excuse("late-confirmation-of-a-republication", "order.py", "if overtaken is not None and publication.ordered_t <= overtaken.by.ordered_t:", "if overtaken is not None:", "A republication confirmed late counts as a hole."),
    rule("late-confirmation-ignored", "order.py", "            if seen.token == publication.token:\n", "            if seen.token == publication.token and t < 0:\n", "A delivery before its confirmation is never judged."),
    excuse("early-deliveries-forgotten", "order.py", "        if not publication.abandoned:\n            publication.delivered_early(", "        if publication.confirmed:\n            publication.delivered_early(", "A delivery before its confirmation is taken for no delivery."),
    rule("inversion-of-a-hole-not-told", "order.py", "if overtaken is not None and (overtaken.bound or overtaken.by.inverts(this)):", "if overtaken is not None and not overtaken.bound and overtaken.by.inverts(this):", "A message that comes after it was missed is not told."),
    rule("inversion-of-an-open-one-not-told", "order.py", "(overtaken.bound or overtaken.by.inverts(this))", "overtaken.bound", "A message that was overtaken while its outcome was open is never told."),
    rule("inversion-by-position-not-told", "order.py", "            if order.last.inverts(this):", "            if order.next < 0 and order.last.inverts(this):", "Records confirmed in another order than received are not compared."),
    excuse("inversion-of-a-republication", "order.py", "return lower.position > higher.position and lower.ordered_t <= higher.ordered_t", "return lower.position > higher.position", "A republication must be where it was published first."),
    rule("furthest-primary-is-the-latest", "order.py", "        if position > order.last.position:\n            order.last = this", "        order.last = this", "A primary is compared with the last one judged instead of the furthest."),
    rule("realtime-not-told", "order.py", "if publication.confirmed_t + self._docket.rules.clock_error_s < before.t:", "if publication.confirmed_t + self._docket.rules.clock_error_s < before.t - 1e9:", "Real-time order is not judged."),
    excuse("realtime-by-invocation", "order.py", "if publication.confirmed_t + self._docket", "if publication.invoked_t + self._docket", "Real-time order is judged by the wrong end of the publish."),
    excuse("realtime-without-clock-error", "order.py", "if publication.confirmed_t + self._docket.rules.clock_error_s < before.t:", "if publication.confirmed_t < before.t:", "Clocks are taken to agree exactly."),
    excuse("realtime-not-strict", "order.py", "+ self._docket.rules.clock_error_s < before.t:", "+ self._docket.rules.clock_error_s <= before.t:", "Publishes at one moment are taken to follow each other."),
    rule("latest-invocation-is-the-last", "order.py", "if publication.invoked_t > before.t:", "if publication.invoked_t:", "The invocation of the last record is compared instead of the latest one."),
    excuse("baseline-always-strict", "order.py", "baseline = 1 if self._docket.rules.subscription_predates_first_publish else None", "baseline = 1", "A subscription that is younger than the writer is owed everything."),
    rule("baseline-never-strict", "order.py", "baseline = 1 if self._docket.rules.subscription_predates_first_publish else None", "baseline = None", "The first message may be any."),
    excuse("baseline-adopted-with-its-past", "order.py", "            self._log.retire(order.index, seq - 1)", "            self._log.retire(order.index, 0)", "What lies before an adopted baseline is judged as new."),
    excuse("hole-keeps-the-baseline", "order.py", "        self.next = None\n        self.last = BEFORE_ALL", "        self.last = BEFORE_ALL", "After a hole in the record the old baseline is kept."),
    excuse("seek-excuses-no-hole", "order.py", 'doubt = FILTERED if filtered else "" if certain else SOUGHT', 'doubt = FILTERED if filtered else ""', "A seek may not pass over messages."),
    excuse("seek-excuses-no-inversion", "order.py", 'return SOUGHT if publication.invoked_t <= self.excused_until_t else ""', 'return ""', "Order is judged across a seek."),
    rule("seek-excuses-what-is-published-since", "order.py", "if publication.invoked_t > self.excused_until_t]\n        shown", "if publication.invoked_t > self.excused_until_t + 1e9]\n        shown", "A seek excuses holes for ever."),
    excuse("seek-excuses-no-loss", "order.py", "        for order in self.epochs:\n            order.overtaken.clear()", "        for order in self.epochs:\n            order.forget(0)", "A hole from before a purge is still a loss after it."),
    excuse("filter-excuses-no-hole", "order.py", "filtered = self._docket.rules.filtered\n", "filtered = False\n", "What a filter may exclude is missed."),
    excuse("filter-excuses-no-standstill", "order.py", "        if not self._docket.rules.filtered:\n            for order", "        if self._docket.rules.window:\n            for order", "What a filter may exclude is owed."),
    excuse("dead-letter-unseen-is-a-hole", "order.py", "            if earlier.seq in order.gone:\n                continue\n", "", "A message dead-lettered before it was received is missed."),
    excuse("dead-letter-unseen-is-owed", "order.py", "            and publication.seq not in self.gone\n", "", "A message dead-lettered before it was received is owed."),
    rule("given-up-takes-room", "order.py", '        """A sequence number was given up: nothing is bound to it."""\n        self.overtaken.pop(seq, None)', '        """A sequence number was given up: nothing is bound to it."""', "A number given up after it was overtaken takes the place of another."),
    excuse("abandoned-has-a-primary", "publications.py", "if self.token is not None or self.abandoned:", "if self.token is not None:", "An abandoned number that is confirmed late counts as confirmed."),
    rule("last-confirmation-names-the-primary", "publications.py", "if self.token is not None or self.abandoned:", "if self.abandoned:", "The last of several confirmations names the primary."),
    excuse("ordered-by-the-first-attempt", "publications.py", "self.ordered_t = (self._invocations or {}).get(generation, self.invoked_t)", "self.ordered_t = self.invoked_t", "A republication is ordered where it was published first."),
    rule("settled-too-early", "publications.py", "if publication.waiting > 0 or publication.open or not publication.received:", "if publication.open or not publication.received:", "What one subscription received is settled for all."),
    excuse("never-settled", "publications.py", "        self.open.pop(publication.seq, None)", "        publication.received = True", "Settled numbers are kept for ever."),
    excuse("early-shared-by-subscriptions", "publications.py", "[early for early in self.early if early.subscription == subscription]", "[early for early in self.early if subscription >= 0]", "What another subscription received counts as received here."),
    excuse("too-many-early-forgotten", "publications.py", "        else:\n            self.abandoned = True", "        else:\n            self.early = self.early[1:]", "The first of too many early deliveries is taken for no delivery."),
)  # fmt: skip
