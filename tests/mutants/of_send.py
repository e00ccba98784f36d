"""Bugs in the rules of the model: an excuse of a table that never holds or always holds, a guard that is the other way round."""

# ruff: noqa: E501 - a mutant is one line

from __future__ import annotations

from tests.mutants.mutant import Mutant, excuse, rule

SEND, HOLD, MODEL, SITUATION = "send_excuses.py", "hold_excuses.py", "model.py", "state.py"

MUTANTS: tuple[Mutant, ...] = (
    # 4: a message that is missing before another
    excuse("missing-never-expires", SEND, 'lambda case: EXPIRED if is_expired(case.rules, case.missing.invoked_t, case.latest_t) else "",', 'lambda case: "",', "A missing message that is older than the retention is a gap."),
    excuse("missing-is-never-filtered", SEND, 'lambda case: FILTERED if case.rules.filtered and not case.missing.received >> case.subscription.index & 1 else "",', 'lambda case: "",', "A message that a filter may exclude is a gap."),
    excuse("filter-excludes-nothing", "rules.py", "return self.filter_every > 1 and seq % self.filter_every != 0", "return False", "A message that the filter excludes is a gap."),
    rule("leak-by-number-is-none", "integrity.py", "if not event.matches_filter or key.rules.excludes(one.seq):", "if not event.matches_filter:", "A message that the filter excludes by its number may be delivered."),
    excuse("missing-never-came-unseen", SEND, 'may_have_come_unseen(case.missing.invoked_t, case.t)\n    return "" if grace is None else GRACE.format(grace.cause)', 'may_have_come_unseen(case.missing.invoked_t, case.t)\n    return ""', "A message that a hole in the record may hide is a gap."),
    excuse("missing-never-lost-beside", SEND, 'return BESIDE if subscription.may_have_lost_beside(case.missing.invoked_t, case.one) else ""', 'return ""', "A message that another stream of the subscriber took with it is a gap."),
    rule("missing-always-lost-beside", SEND, 'return BESIDE if subscription.may_have_lost_beside(case.missing.invoked_t, case.one) else ""', "return BESIDE", "Any gap may be lost with another stream."),
    excuse("missing-never-dead-lettered", SEND, 'return UNSEEN_ATTEMPTS if removed else ""', 'return ""', "A message that unseen attempts may have dead-lettered is a gap."),
    rule("missing-always-dead-lettered", SEND, "removed = case.subscription.may_have_dead_lettered(0, case.missing.invoked_t, case.latest_t)", "removed = case.subscription.rules.dead_letter_max_attempts", "With a dead-letter policy no message is missing."),
    # 6: records that are passed over
    excuse("passed-never-dead-lettered", SEND, 'Excuse(lambda case: DEAD_LETTER if case.send.rules.dead_letter_max_attempts else "", lambda _: NO_POLICY),\n    Excuse(_passed_confirmed', 'Excuse(lambda case: "", lambda _: NO_POLICY),\n    Excuse(_passed_confirmed', "With a dead-letter policy a redelivery may leave out nothing."),
    excuse("passed-never-confirmed", SEND, "    Excuse(_passed_confirmed, _passed_unconfirmed),\n", "", "With exactly-once delivery what was confirmed has to be redelivered in a run."),
    rule("passed-is-confirmed-without-exactly-once", SEND, "send.rules.exactly_once and send.view.ack_confirmed(case.position, send.by_t)", "send.view.acked(case.position, send.by_t)", "An acknowledged message need not be redelivered in a run."),
    excuse("passed-never-lost", SEND, "    Excuse(_passed_lost, _passed_not_lost),\n", "", "An acknowledged message that was sent into a stream that broke is skipped."),
    rule("passed-lost-though-unacknowledged", SEND, "if case.inside or not send.view.acked(case.position, send.by_t):\n        return \"\"\n    return LOST", "if case.inside:\n        return \"\"\n    return LOST", "What was lost and never acknowledged need not be redelivered."),
    rule("passed-lost-inside-a-response", SEND, "if case.inside or not send.view.acked", "if not send.view.acked", "A pull response may lose a part of itself."),
    rule("passed-lost-without-a-loss", SEND, 'return LOST if send.may_have_lost(case.before.earliest_t) else ""', "return LOST", "What was acknowledged may be lost where nothing broke."),
    excuse("passed-never-lost-beside", SEND, "    Excuse(_passed_beside, lambda case: none_lost_beside(case.send.rules, case.send.delivery)),\n", "", "What another stream of the subscriber took with it is skipped."),
    excuse("passed-never-expires", SEND, 'lambda case: EXPIRED if is_expired(case.send.rules, case.send.view.invoked_t(case.position), case.send.by_t) else "",\n    lambda case: within_retention(case.send.rules, case.send.view.invoked_t(case.position), case.what),\n)\nPASSED_OVER', 'lambda case: "",\n    lambda case: within_retention(case.send.rules, case.send.view.invoked_t(case.position), case.what),\n)\nPASSED_OVER', "What is older than the retention is skipped."),
    # 7: what is held
    excuse("held-never-unsettled", HOLD, 'return UNSETTLED if unsettled else ""', 'return ""', "A control operation releases nothing."),
    rule("held-is-always-unsettled", HOLD, "sent_t <= grace.until_t and grace.begun_t <= send.latest_t", "grace.begun_t <= send.latest_t", "A control operation releases what was delivered after it had settled."),
    excuse("held-never-dropped", HOLD, "    Excuse(_dropped, _not_dropped),\n", "", "A lost run drops nothing that is held."),
    rule("held-dropped-though-unacknowledged", HOLD, "lost = send.may_have_lost(case.held.earliest_t) and send.view.acked(case.position, send.by_t)", "lost = send.may_have_lost(case.held.earliest_t)", "A lost run drops what was never acknowledged."),
    excuse("held-never-expires", HOLD, "DROPPED: Final[tuple[Excuse[Holding], ...]] = (\n    HELD_EXPIRY,\n", "DROPPED: Final[tuple[Excuse[Holding], ...]] = (\n", "What is older than the retention is held."),
    excuse("held-never-dead-lettered", HOLD, "DEAD_LETTER if case.send.rules.dead_letter_max_attempts and not case.send.delivery.first else \"\"", '""', "With a dead-letter policy a run begins with what is held."),
    rule("first-deliveries-are-dead-lettered", HOLD, "case.send.rules.dead_letter_max_attempts and not case.send.delivery.first", "case.send.rules.dead_letter_max_attempts", "With a dead-letter policy every split is in doubt."),
    excuse("push-never-answered", HOLD, 'ANSWERED if case.held.acked_t <= case.send.by_t or case.send.view.acked(case.position, case.send.by_t) else ""', '""', "A push request that succeeded keeps the next one back."),
    excuse("push-never-dead-letters", HOLD, '    Excuse(lambda case: DEAD_LETTER if case.send.rules.dead_letter_max_attempts else "", lambda _: NO_POLICY),\n    HELD_EXPIRY,\n', "    HELD_EXPIRY,\n", "With a dead-letter policy push never goes past a failed message."),
    excuse("push-never-expires", HOLD, "lambda _: NO_POLICY),\n    HELD_EXPIRY,\n", "lambda _: NO_POLICY),\n", "Push repeats what is older than the retention."),
    excuse("push-never-adopts", HOLD, 'lambda case: ADOPTED if _is_adopted(case) else "",', 'lambda case: "",', "Push goes on past what was answered before the record began."),
    rule("push-always-adopts", HOLD, "if send.rules.subscription_predates_first_publish or not send.may_be_released(case.held):", "if not send.may_be_released(case.held):", "Push goes on past any message whose lease is over."),
    # 9: exactly-once delivery
    excuse("again-never-dead-lettered", HOLD, 'Excuse(lambda case: DEAD_LETTER if case.send.rules.dead_letter_max_attempts else "", lambda _: NO_POLICY),\n    Excuse(_may_begin_below', 'Excuse(lambda case: "", lambda _: NO_POLICY),\n    Excuse(_may_begin_below', "With a dead-letter policy what is held is never redelivered."),
    excuse("again-never-begins-below", HOLD, 'return LOWER if lost and _lower_may_be_free(send) else ""', 'return ""', "A run whose beginning was lost begins with what is held."),
    rule("again-begins-below-without-a-loss", HOLD, "return LOWER if lost and _lower_may_be_free(send)", "return LOWER if _lower_may_be_free(send)", "A run may begin below where nothing was lost."),
    rule("again-begins-below-what-is-held", HOLD, "return LOWER if lost and _lower_may_be_free(send)", "return LOWER if lost", "A run may begin with an earlier message that is held."),
    # guards of the rules
    rule("gaps-are-never-breaches", MODEL, "breaches = tuple(case.missing for case, doubt in doubts.items() if not doubt)", "breaches = tuple(case.missing for case, doubt in doubts.items() if doubt and not doubt)", "No gap is definite."),
    rule("steps-may-skip-one", MODEL, "if lowest <= highest + 1:", "if lowest <= highest + 2:", "A redelivery may leave out one message."),
    rule("steps-go-back-inside-a-response", MODEL, "if inside and self.position <= self.before_position and not before.bound:", "if inside and self.position < 0:", "A pull response may go back."),
    excuse("responses-go-back-across-responses", MODEL, "inside = self.rules.mode is Mode.PULL and before.session is self.delivery.session", "inside = self.rules.mode is Mode.PULL", "Two pull responses are one."),
    rule("one-pending-position-is-not-enough", MODEL, "            if not doubt:\n", "            if not doubt and not any(doubt_of(PASSED_OVER, Passed(self, each, before, inside)) for each in positions):\n", "A skip is definite only if nothing that was skipped has an excuse."),
    excuse("order-within-a-group-counts", MODEL, "lowest, highest = self.view.low(self.position), self.view.high(self.before_position)", "lowest, highest = self.position, self.before_position", "The order inside a group of joined positions is certain."),
    excuse("unplaced-records-are-verified", MODEL, "return self.delivery.unplaced and self.subscription.grace_of(self.delivery) is None", "return False", "A record whose place is not known has one."),
    rule("nothing-is-held-elsewhere", MODEL, "return known and held.owner is not None and self.delivery.owner is not None", "return False", "No subscriber holds anything."),
    excuse("unknown-owners-are-others", MODEL, "return known and held.owner is not None and self.delivery.owner is not None", "return known", "A stream whose opening was not recorded is another subscriber's."),
    excuse("what-is-above-is-held", SITUATION, "        if at < position:\n            yield at, delivery", "        yield at, delivery", "A restart at or below what is held is a split."),
    excuse("what-is-released-is-held", MODEL, "held = (Holding(self, *one) for one in below if not self.may_be_released(one[1]))", "held = (Holding(self, *one) for one in below)", "No lease is ever over."),
    excuse("above-what-its-owner-had", SITUATION, "if delivery.owner == owner:\n            return", "if delivery.owner == owner:\n            continue", "A subscriber that received later messages before may not go on."),
    excuse("restarts-are-no-runs", MODEL, "or self.position > self.before_position:\n            return []", "or self.position < self.before_position:\n            return []", "With exactly-once delivery going on behind a redelivery begins a run."),
    rule("exactly-once-holds-nothing", MODEL, "if position != self.position or min(ends := ends_of(self.rules, held)) <= self.by_t:", "if min(ends := ends_of(self.rules, held)) < 1e12:", "With exactly-once delivery what is held may be redelivered."),
    rule("grace-periods-excuse-all", MODEL, "grace = self.subscription.grace_of(self.delivery)\n        if grace is None:\n            return found", "grace = self.subscription.grace_of(self.delivery)\n        if grace is None:\n            return [replace(one, doubt=GRACE.format(\"nothing\")) for one in found]", "Nothing is definite."),
    excuse("grace-periods-excuse-nothing", MODEL, "return [replace(one, doubt=GRACE.format(grace.cause)) for one in found]", "return found", "What was sent in a grace period is verified."),
)  # fmt: skip
