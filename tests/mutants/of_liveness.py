"""Bugs in the deadlines: an obstacle that stops no clock, or stops it for ever, and a message that is pending too early or never."""

# ruff: noqa: E501 - a mutant is one line

from __future__ import annotations

from tests.mutants.mutant import Mutant, excuse, rule

CLOCKS, LIVENESS, RUNS, HOLDS = "clocks.py", "liveness.py", "runs.py", "holds.py"

MUTANTS: tuple[Mutant, ...] = (
    excuse("clock-error-shortens-deadlines", CLOCKS, "seconds = wait.seconds + self._subscription.rules.clock_error_s", "seconds = wait.seconds - self._subscription.rules.clock_error_s", "A deadline passes before its time by some clocks."),
    rule("deadlines-are-twice-as-long", CLOCKS, "seconds = wait.seconds + self._subscription.rules.clock_error_s", "seconds = 2 * wait.seconds + 1.0", "A deadline passes only after twice its length."),
    excuse("control-operations-stop-no-clock", CLOCKS, 'yield "a seek, purge, filter change or hole in the record", [*self._graces(), *self._leased_unseen(key)]', 'yield "a seek, purge, filter change or hole in the record", self._leased_unseen(key)', "Messages are pending while a control operation settles."),
    excuse("lost-sessions-stop-no-clock", CLOCKS, 'yield "a lost session", self._unsteady(stop)', 'yield "a lost session", ()', "What a broken stream took with it is pending at once."),
    excuse("retries-stop-no-clock", CLOCKS, 'yield "the retry policy", key.backed_off(wait.counts)', 'yield "the retry policy", ()', "A nacked message is pending while the retry policy lets the service wait."),
    excuse("outstanding-batches-stop-no-clock", CLOCKS, "[(start, end) for start, end, _ in key.holds.held()]\n", "[]\n", "Pull and push owe something while a batch is outstanding."),
    excuse("full-streams-stop-no-clock", CLOCKS, "return opened if flow is None else minus(opened, flow.full(stop))", "return opened", "A stream owes something while its flow control is used up."),
    excuse("full-holders-stop-no-clock", CLOCKS, 'yield "flow control of the subscriber that holds the key", self._in_full_streams(key, stop)', 'yield "flow control of the subscriber that holds the key", ()', "A key is pending to others while its holder has no room."),
    excuse("new-subscribers-stop-no-clock", CLOCKS, 'yield "a change of the subscriber", self._handed_over(key, stop)', 'yield "a change of the subscriber", ()', "A key is pending at once where another subscriber came."),
    excuse("nobody-waits", CLOCKS, "yield session.opened_t, min(session.answered_t, session.closed_t)", "yield session.opened_t, inf", "Something is pending while no pull waits."),
    excuse("dead-streams-are-alive", CLOCKS, "return session.closed_t - self._subscription.rules.close_detection_max_s", "return session.closed_t", "A stream is alive until its end is noticed."),
    excuse("other-keys-delay-nothing", CLOCKS, "free = minus(free, holds.delays())", "pass", "Another key that is held delays no key."),
    rule("a-key-delays-itself", CLOCKS, "if holds is not key.holds:", "if True:", "A key that is held delays itself."),
    rule("push-endpoints-are-away", CLOCKS, "yield subscription.first_seen_t, inf\n            return", "return", "Nobody is there to push to."),
    rule("clocks-stop-for-ever", CLOCKS, "free = minus(union(self._there_since(wait.since_t, stop)), taken)", "free: Spans = []", "No clock ever runs."),
    excuse("filters-exclude-nothing", LIVENESS, "        if self._key.rules.filtered:\n            return\n        for lane in self._key.lanes.values():\n            for publication, by in lane.pending", "        for lane in self._key.lanes.values():\n            for publication, by in lane.pending", "A message that a filter may exclude is pending."),
    excuse("before-the-baseline-is-pending", LIVENESS, "        if predates or self._key", "        if self._key", "Messages from before an adopted baseline are pending."),
    excuse("before-control-operations-is-pending", LIVENESS, "        if predates or self._key.subscription.clocks.pending_since(publication.invoked_t) == inf:", "        if predates:", "Messages that a seek passed over are pending."),
    rule("nothing-is-overtaken", LIVENESS, "for publication, by in (*lane.overtaken.items(), *islice(lane.pending.items(), OLDEST)):", "for publication, by in dict(()).items():", "A message that was overtaken is never lost."),
    rule("what-was-missed-in-doubt-is-never-lost", LIVENESS, "(*lane.overtaken.items(), *islice(lane.pending.items(), OLDEST))", "(*lane.overtaken.items(),)", "A message that a broken stream may have lost is overdue only while the key rests."),
    excuse("acknowledged-is-pending-again", LIVENESS, "(one.first or not self._was_acked(one, lane))", "True", "A redelivered message is pending again although it had been acknowledged."),
    rule("proven-elsewhere-is-not-pending", LIVENESS, "            self._proven[token] = Pending(publication, t)\n", "            return\n", "What another subscription received is pending to nobody else."),
    excuse("old-messages-are-pending", LIVENESS, "return min(now, invoked_t + self._key.rules.message_retention_s - self._key.rules.clock_error_s)", "return now", "What is older than the retention is pending."),
    excuse("runs-never-dead-letter", RUNS, 'Excuse(lambda case: DEAD_LETTER if case.runs.dead_letters() else "", lambda _: NO_POLICY)', 'Excuse(lambda case: "", lambda _: NO_POLICY)', "With a dead-letter policy a redelivery must come to its end."),
    excuse("runs-lose-nothing", RUNS, 'return LOST if acked and self._key.subscription.may_have_lost(run.began_t, now) else ""', 'return ""', "The acknowledged end of a redelivery cannot be lost."),
    rule("runs-lose-what-is-unacknowledged", RUNS, "return LOST if acked and self._key", "return LOST if self._key", "The end of a redelivery may be lost although it was never acknowledged."),
    rule("seeks-restore-nothing", RUNS, "self.restored[log.tokens[position - log.floor - 1]] = lane, position", "pass", "A seek back brings nothing back."),
    excuse("runs-come-to-what-was-removed", RUNS, "if lane.log.flagged(position, REMOVED | UNPLACED | confirmed):", "if False:", "A redelivery must bring what was dead-lettered."),
    rule("runs-end-anywhere", RUNS, "if log.high(position) >= target:\n            return False", "if True:\n            return False", "A redelivery may end anywhere."),
    excuse("holes-lease-nothing", CLOCKS, "[*self._graces(), *self._leased_unseen(key)]", "self._graces()", "A message that was delivered in a hole of the record is not leased."),
    rule("holes-lease-for-ever", CLOCKS, "if hole.is_hole and key.last_t - slack <= hole.until_t:", "if hole.is_hole:", "A later delivery shows nothing about leases from a hole."),
    rule("sessions-never-show-themselves", CLOCKS, "shown_t = min(opened_t, hole.shown_t)", "shown_t = opened_t", "A stream from before a hole is gone until a new one opens."),
    excuse("nacks-arrive", HOLDS, "if backoff_s or one.nacked_t < inf else LONG_AGO", "if backoff_s else LONG_AGO", "A nacked message of another key is never in the way."),
    excuse("holes-acknowledge-nothing", LIVENESS, "pending = pending and not subscription.may_have_been_acked_unseen(self._invoked_t(one))", "pass", "No message was acknowledged in a hole of the record."),
    rule("late-subscriptions-are-not-watched", "verifier.py", "        self._watch(checker)  # earlier publishes are pending\n", "", "No deadline passes on a subscription that shows itself late."),
    rule("publishes-bound-first-deliveries-only", "accepted.py", "if one.publication is None:\n            one.earliest_t", "if False:\n            one.earliest_t", "A redelivery may have been sent before its publish."),
    rule("nothing-has-a-place-after-a-seek", "accepted.py", "return not self._is_next(one)", "return True", "The next message after a seek or hole may stand anywhere."),
    excuse("everything-has-a-place-after-a-seek", "accepted.py", "return not self._is_next(one)", "return False", "A message from before a seek or hole stands where it was delivered."),
)  # fmt: skip
