"""Bugs in what has to happen at all, in single messages, across subscriptions, and in the passing of time."""

# ruff: noqa: E501 - a mutant is one line

from __future__ import annotations

from tests.mutants.mutant import Mutant, excuse, rule

MUTANTS: tuple[Mutant, ...] = (
    excuse("stuck-although-moving", "liveness.py", "since_t = self._up_since(max(first.confirmed_t, quiet_since_t, self._orders.excused_until_t))", "since_t = first.confirmed_t", "A slow key is stuck."),
    excuse("stuck-since-invoked", "liveness.py", "max(first.confirmed_t, quiet_since_t, self", "max(first.invoked_t, quiet_since_t, self", "A message is owed before it was accepted."),
    excuse("unbound-is-lost", "epoch_order.py", "(overtaken for overtaken in self.overtaken.values() if overtaken.bound)", "(overtaken for overtaken in self.overtaken.values())", "A publish of unknown outcome can be lost."),
    excuse("run-of-what-was-sought", "key.py", "if not self._redelivery.passed_over.may_have(self.log.frontier) and not", "if self.log.frontier and not", "A run over what a seek may have passed over must come to its end."),
    excuse("run-must-bring-dead-letters", "liveness.py", "        while self._log.holds(target) and self._log.flags(target) & REMOVED:\n            target -= 1\n", "", "A run must bring dead-lettered messages again."),
    rule("ack-alone-clears-a-run", "liveness.py", "        if self.run is not None:\n            self._advance(self.run, self.run.reached, self.run.target)", "        self.run = None", "An acknowledgement ends a run."),
    excuse("acked-once-is-owed-again", "key.py", "if not acked_before and not self._redelivery.passed_over.may_have(position):", "if not self._redelivery.passed_over.may_have(position):", "A message acknowledged once is owed when it comes again."),
    excuse("longer-lease-ignored", "key.py", "            self._liveness.postpone(position, end_t)\n", "", "A prolonged lease ends when the first one would have."),
    excuse("shorter-lease-is-owed-sooner", "liveness.py", "        elif due_t > owed.due_t:", "        else:", "A shortened lease is taken to be known to the service."),
    excuse("unacked-cannot-be-dead-lettered", "liveness.py", "self._judge_overdue(now, doubtful, DEAD_LETTER))", 'self._judge_overdue(now, doubtful, ""))', "The dead-letter policy never explains a missing message."),
    rule("doubtful-stall-hides-a-certain-one", "liveness.py", 'told = f"{Kind.UNACKED_STALL} {doubt}"', 'told = f"{Kind.UNACKED_STALL}"', "A stall in doubt takes the place of a certain one."),
    excuse("seek-keeps-what-is-owed", "key.py", "        self._liveness.reset()\n", "", "What was owed before a seek is owed after it."),
    excuse("deadline-in-a-grace-period", "liveness.py", "        if now <= self._collector.grace_until_t:\n            return self._collector.grace_until_t\n", "", "Deadlines pass while a seek settles."),
    excuse("undrained-is-drained", "verifier.py", "        if event.drained:\n            self._pass_time(event.t)", "        if event:\n            self._pass_time(event.t)", "A history that was cut off is judged as if it had been waited for."),
    rule("time-stands-still", "verifier.py", "if queue and queue[0][0] < t and type(event) not in _TIMELESS:", "if queue and queue[0][0] < 0 and type(event) not in _TIMELESS:", "Deadlines are looked at only when the history ends."),
    rule("idle-although-busy", "key.py", "        if busy_until_t >= now:\n            return busy_until_t\n", "", "An idle key gives up its window while something is held."),
    rule("idle-although-in-doubt", "key.py", "max(self._tracks.busy_until_t, self._liveness.doubtful_until_t())", "self._tracks.busy_until_t", "What may have been dead-lettered is forgotten when its key is idle."),
    rule("expires-in-doubt", "deadlines.py", "return inf if rules.message_retention_s == inf else latest_t", "return inf if rules.message_retention_s > 0 else latest_t", "What may have been dead-lettered is owed although it is older than the retention."),
    rule("in-doubt-for-ever", "verifier.py", "        if checker.due_t == inf:", "        if checker.due_t < 0:", "A window is never given up if something of it was in doubt once."),
    rule("idle-at-once", "key.py", "idle_t = self._last_event_t + self._rules.idle_after_s", "idle_t = self._last_event_t", "A key gives up its window as soon as it is settled."),
    rule("phantom-not-told", "integrity.py", "if not record.was_invoked(arrival.seq):", "if arrival.seq < 0 and not record.was_invoked(arrival.seq):", "A message that was never published is not told."),
    excuse("outcome-begins-an-epoch", "publications.py", "        record = self.epochs.get(epoch)\n        if record is None:\n            self._note", "        record = self.epochs.setdefault(epoch, EpochRecord(epoch))\n        if record is None:\n            self._note", "An epoch is known by the outcome of a publish alone."),
    rule("skipped-numbers-were-invoked", "publications.py", "return self.first <= seq <= self.last and not any(low <= seq <= high for low, high in self._skipped)", "return self.first <= seq <= self.last", "Numbers that were left out count as published."),
    excuse("hole-proves-phantoms", "publications.py", "        if seq in self.open or not self.complete:\n            return True", "        if seq in self.open:\n            return True", "A record with a hole proves that nothing else was published."),
    excuse("epoch-of-a-hole-is-whole", "publications.py", "complete=seq == 1 or not self.holed)", "complete=True)", "An epoch that began in a hole of the record is taken to be whole."),
    rule("ghost-not-told", "integrity.py", "    elif publication.certainly_unsent:\n", "    elif publication.certainly_unsent and publication.seq < 0:\n", "A message whose publish failed may be delivered."),
    rule("late-ghost-not-told", "integrity.py", "    for delivery in early:\n", "    for delivery in ():\n", "A message whose publish fails later may be delivered."),
    excuse("same-message-is-a-conflict", "integrity.py", "if index == order.index and seq == arrival.seq:\n        return\n", "if seq > arrival.seq:\n        return\n", "A redelivery stands for another message."),
    rule("defect-not-told", "integrity.py", "    if defect is not None:\n", "    if defect is not None and defect == '':\n", "Wrong content is not told."),
    rule("leak-not-told", "integrity.py", "    if not matches_filter:\n", "    if not matches_filter and defect:\n", "A message that the filter excludes may be delivered."),
    excuse("eod-race-is-certain", "integrity.py", 'doubt = "" if confirmation.t + collector.rules.clock_error_s < arrival.lo else RACING', 'doubt = ""', "A redelivery that may have been sent before is a violation."),
    excuse("eod-without-clock-error", "integrity.py", "confirmation.t + collector.rules.clock_error_s < arrival.lo", "confirmation.t < arrival.lo", "Clocks are taken to agree exactly."),
    rule("eod-last-confirmation", "positions.py", "confirmations.setdefault(position, Confirmation(t, number))", "confirmations[position] = Confirmation(t, number)", "The last confirmation counts instead of the first."),
    excuse("eod-across-a-seek", "key.py", "        self.log.forget_confirmations()\n", "", "A seek back does not make confirmed messages deliverable."),
    rule("duplicates-not-noted", "integrity.py", "    elif early or (publication.confirmed and publication.token != arrival.token):", "    elif early:", "A further record of a confirmed number is not noted."),
    rule("early-duplicates-not-noted", "integrity.py", "    elif early or (publication.confirmed and publication.token != arrival.token):", "    elif publication.confirmed and publication.token != arrival.token:", "A further record before the confirmation is not noted."),
    rule("duplicates-never-certain", "integrity.py", "    file = collector.violation if certain else collector.info", "    file = collector.info", "Further records are never a violation."),
    excuse("duplicates-always-certain", "integrity.py", "    file = collector.violation if certain else collector.info", "    file = collector.violation", "A client's retry is a violation."),
    excuse("two-attempts-one-record", "integrity.py", "certain = attempts_observed and order.record.complete and records > stored_max", "certain = attempts_observed and order.record.complete", "Every attempt but the first stored nothing."),
    rule("settled-duplicates-never-certain", "integrity.py", "certain = attempts_observed and record.was_attempted_once(arrival.seq)", "certain = False", "A further record of a settled number is never a violation."),
    excuse("repeated-attempts-forgotten", "publications.py", "        if publication.attempts > 1:\n            self._repeat(publication.seq)\n", "", "A settled number was attempted once."),
    excuse("divergence-of-filtered", "divergence.py", "and not rules.filtered and not sought", "and not sought", "A filtered subscription must see everything."),
    excuse("divergence-of-sought", "divergence.py", "and not rules.filtered and not sought", "and not rules.filtered", "A sought subscription must see everything."),
    excuse("divergence-of-younger", "divergence.py", "return rules.subscription_predates_first_publish and not", "return not", "A younger subscription must see everything."),
)  # fmt: skip
