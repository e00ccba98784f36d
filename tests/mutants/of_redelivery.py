"""Bugs in the step rule: what may follow what, pull responses, failed pushes, the window, dead letters and seeks."""

# ruff: noqa: E501 - a mutant is one line

from __future__ import annotations

from tests.mutants.mutant import Mutant, excuse, rule

MUTANTS: tuple[Mutant, ...] = (
    rule("skip-not-told", "redelivery.py", "if arrival.position > before.position + 1:", "if arrival.position > before.position + 1e9:", "Nothing is a skip."),
    rule("skip-of-one-is-fine", "redelivery.py", "if arrival.position > before.position + 1:", "if arrival.position > before.position + 2:", "One message may be left out."),
    rule("acked-may-be-left-out", "positions.py", "if not self.flags(position) & REMOVED]", "if not self.flags(position) & (REMOVED | ACKED)]", "Acknowledged messages may be left out of a run."),
    rule("dead-letter-one-attempt-early", "positions.py", ">= self._attempts_max - 1", ">= self._attempts_max - 2", "The policy is taken to act an attempt too early."),
    excuse("dead-letter-at-the-last-attempt-only", "positions.py", ">= self._attempts_max - 1", ">= self._attempts_max", "The policy is taken to act at the last attempt that we saw."),
    excuse("service-attempts-ignored", "positions.py", "attempts[position] = max(attempts.get(position, 0) + 1, attempt)", "attempts[position] = attempts.get(position, 0) + 1", "The service's own count of attempts is ignored."),
    rule("publishing-bounds-nothing", "key.py", "        arrival.lo = arrival.lo if arrival.lo > invoked_t else invoked_t\n", "", "A message may have been sent before it was published."),
    rule("pull-sent-when-answered", "subscription.py", "invoked_t = event.t if event.invoked_t is None else min(event.invoked_t, event.t)", "invoked_t = LONG_AGO", "A response may have been sent before the pull."),
    rule("batch-hole-not-told", "redelivery.py", "        doubt = self._doubt(arrival, arrival.own, skipped, in_response=True) if", "        return\n        doubt = self._doubt(arrival, arrival.own, skipped, in_response=True) if", "Holes inside a pull response are not told."),
    excuse("batch-told-at-once", "redelivery.py", "if doubt or not rules.clock_error_s:", "if doubt or rules.clock_error_s >= 0:", "A response is judged although a second copy of what it holds may be on its way."),
    rule("batch-hole-filled-elsewhere", "redelivery.py", "explains = skip.kind is not Kind.PULL_BATCH_ORDER and (", "explains = (", "What comes on another session explains a hole inside a response."),
    rule("batch-step-back-is-fine", "redelivery.py", "if arrival.position > arrival.own and not skipped:", "if not skipped:", "A pull response may step back."),
    excuse("batch-after-the-unknown", "redelivery.py", "if arrival.own == ANCIENT or arrival.position == arrival.own + 1:", "if arrival.position == arrival.own + 1:", "A pull response is judged after a message beyond the window."),
    excuse("push-bound-for-ever", "redelivery.py", "        self._nacked_push, flags = None, self._log", "        flags = self._log", "A failed request binds more than the next one."),
    excuse("push-earlier-is-an-advance", "redelivery.py", "        if arrival.position <= position:\n            self._collector.count_push_again", "        if arrival.position == position:\n            self._collector.count_push_again", "An earlier message after a failed request is an advance."),
    excuse("push-acked-before", "redelivery.py", "            doubt = ACKED_BEFORE", '            doubt = ""', "That a refused message was acknowledged before is no doubt."),
    excuse("push-policy-ignored", "redelivery.py", "        elif self._collector.rules.dead_letter_max_attempts:\n            doubt = DEAD_LETTER", "        elif self._collector.rules.window < 0:\n            doubt = DEAD_LETTER", "A dead-letter policy is no doubt after a failed request."),
    rule("all-before-the-start-is-unknown", "order.py", "return publication.invoked_t < self.adopted_t and overtaken", "return publication.invoked_t < self.adopted_t", "Nothing that was published before the checker started is judged."),
    excuse("first-seen-is-the-baseline", "order.py", "return publication.invoked_t < self.adopted_t and overtaken", "return False", "What stands before the first message seen is judged as new."),
    excuse("eviction-retires-nothing", "positions.py", "            self._retire(self.floor + 1)\n", "", "What leaves the window is not retired."),
    excuse("idle-retires-nothing", "positions.py", "            self._retire(position)\n        self.floor", "            self._retired = self._retired + []\n        self.floor", "An idle key forgets that it had delivered anything."),
    excuse("seek-settles-once", "key.py", "            self._unsettled = False\n            self._start_over()", "            self._unsettled = False", "What comes while a seek settles is trusted."),
    excuse("seek-passes-over-nothing", "redelivery.py", "if not left_out(skipped, self.returned, self.passed_over):", "if skipped[-1] < 0:", "A seek never explains a skip."),
    rule("seek-passes-over-everything", "redelivery.py", "if not left_out(skipped, self.returned, self.passed_over):", "if self.passed_over.frontier:", "A seek explains every skip ever after."),
    excuse("no-grace-period", "collector.py", "if not doubt and t <= self.grace_until_t:", "if not doubt and t < LONG_AGO:", "Control operations excuse nothing."),
    rule("grace-period-for-ever", "collector.py", "if not doubt and t <= self.grace_until_t:", "if not doubt and self.grace_until_t > LONG_AGO:", "A control operation excuses everything ever after."),
    excuse("requests-are-sent-when-they-come", "subscription.py", "            invoked_t -= self.rules.delivery_delay_max_s  # it begins when it arrives, and was sent before\n", "            pass\n", "A push request takes no time on its way."),
    excuse("lost-requests-are-not-ended", "redelivery.py", "return LOST if answered or self", "return LOST if self", "A lost push request is sent again though its message is acknowledged meanwhile."),
    rule("lost-requests-end-before", "splits.py", "all(self.latest_t(position) > t for position in positions)", "all(self.latest_t(position) > LONG_AGO for position in positions)", "What was acknowledged before need not come again by push."),
    rule("requests-behind-the-first-are-under-way", "redelivery.py", "only = self._log.holds(position) and number == self._log.number(position)", "only = False", "What stands behind a message that was never sent before its refusal may have been under way."),
)  # fmt: skip
