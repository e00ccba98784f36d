"""Bugs in the one-holder rule: what is held, what may have been released, late copies, half-open streams, subscribers."""

# ruff: noqa: E501 - a mutant is one line

from __future__ import annotations

from tests.mutants.mutant import Mutant, excuse, rule

MUTANTS: tuple[Mutant, ...] = (
    rule("ack-settles-without-lag", "rules.py", "return self.ack_lag_max_s + self.delivery_delay_max_s", "return self.delivery_delay_max_s", "An acknowledgement takes no time to be applied."),
    excuse("splits-decided-before-a-close", "rules.py", "return max(close_s, self.delivery_delay_max_s)", "return self.delivery_delay_max_s", "A split is decided although a stream may turn out to be dead."),
    excuse("splits-decided-too-early", "rules.py", "return max(close_s, self.delivery_delay_max_s)", "return close_s", "A split is decided although a rewind may be on its way."),
    rule("rewind-elsewhere-holds-nothing", "splits.py", "            elif self._takes_over(arrival, held, split):", "            elif False:", "What a rewind takes from one subscriber, the one that gets it does not hold."),
    excuse("rewind-on-the-own-streams-holds", "splits.py", "elsewhere = session.subscriber != split.session.subscriber and not session.unseen", "elsewhere = not session.unseen", "A rewind to who gets the later message does not explain it."),
    excuse("rewind-below-holds", "splits.py", "return arrival.position == held.position < split.position", "return arrival.position < split.position", "What a rewind to below brings is held, though that had been answered."),
    excuse("rewind-holds-by-any-clock", "splits.py", "clocks_agree = arrival.track.session, not self._collector.rules.clock_error_s", "clocks_agree = arrival.track.session, True", "An answer seen later by a clock that may be behind ends nothing."),
    rule("push-goes-past-what-is-refused", "splits.py", "if rules.mode is not Mode.PUSH or rules.clock_error_s", "if True or rules.clock_error_s", "Before a request is repeated, those behind it may have been sent."),
    excuse("push-begins-again-only-after-refusals", "splits.py", "if not log.flags(one) & (ACKED | OLDER))", "if not log.flags(one) & OLDER)", "What is pushed again had not been acknowledged."),
    rule("exactly-once-comes-back", "splits.py", "and arrival.position == held.position and not arrival.copies_id", "and False", "A message that came again elsewhere comes back, so nobody held it."),
    rule("continues-what-was-over-before", "places.py", "return max(since_t, min(log.invoked_t(before), log.invoked_t(arrival.position)))", "return since_t", "A session may go on behind a stream that was over before anything behind which it goes on was published."),
    excuse("exactly-once-loses-nothing-to-a-later-stream", "parted.py", "later = self._rules.exactly_once or (other", "later = (other", "With exactly-once delivery a later stream begins with what was lost on the one before."),
    excuse("exactly-once-sends-again-at-once", "parted.py", "leased_s = rules.ack_deadline_s if rules.exactly_once else 0.0", "leased_s = 0.0", "With exactly-once delivery what was lost with a stream is not leased any more."),
    excuse("push-waits-for-other-regions", "splits.py", "log.holds(self.unanswered) and certainly_before(orders, log, self.unanswered, arrival)", "log.holds(self.unanswered)", "A refused request keeps those of other regions back."),
    excuse("push-waits-for-what-was-passed-over", "splits.py", "if log.flags(one) & STAYED or log.invoked_t(one) > collector.grace_until_t)", "if True)", "What a seek may have passed over is still owed."),
    excuse("no-break-after-a-seek", "holder.py", "        if not arrival.new:\n            self._note_break(arrival)\n        if self.owner is None:", "        if not arrival.new and self.owner is not None:\n            self._note_break(arrival)\n        if self.owner is None:", "The first delivery after a seek begins no run."),
    excuse("what-cannot-be-placed-rewinds-nothing", "holder.py", "        arrival.track.rewound_t = arrival.t\n        for track in self._tracks:\n            track.drop_from(0)", "        for track in self._tracks:\n            track.drop_from(0)", "What has left its window begins no run."),
    excuse("foreign-messages-begin-nothing", "holder.py", "if self._collector.rules.exactly_once:\n            self._may_begin", "if False:\n            self._may_begin", "With exactly-once delivery a message that is not on record begins no run."),
    excuse("unseen-streams-lose-nothing", "subscription.py", "if (self.streaming or event.lost) and not (", "if False and not (", "A stream that was not seen to open carried nothing."),
)  # fmt: skip
