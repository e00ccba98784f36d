"""Bugs in what the documents allow beyond the simple model, and in what decides nevertheless: one or more for each amended rule."""

# ruff: noqa: E501 - a mutant is one line

from __future__ import annotations

from tests.mutants.mutant import Mutant, excuse, rule

MUTANTS: tuple[Mutant, ...] = (
    # a record is a message id with a publish time
    excuse("publish-times-ignored", "positions.py", "        if stamp == NO_STAMP or not self._stamps:\n            return position", "        if position:\n            return position", "A message that the service stored twice is one record."),
    rule("a-second-copy-hides-the-first", "positions.py", "if not self.flags(position) & SHARED:", "if position:", "An acknowledgement, which names the id alone, is for the latest copy."),
    excuse("copies-judged-as-first-deliveries", "key.py", "        if arrival.copies_id:\n            self._order.learn", "        if arrival.position < 0:\n            self._order.learn", "A second copy is judged as if it were the primary."),
    # what may have been sent and lost
    excuse("lost-sends-are-skips", "redelivery.py", "return LOST if skip.acked and self._subscription", 'return LOST if skip.due_t < 0 and self._subscription', "What was sent into a stream that broke was not sent."),
    rule("unacked-may-be-lost", "redelivery.py", "return LOST if skip.acked and self._subscription", "return LOST if self._subscription", "What was lost and never acknowledged need not come again."),
    excuse("closes-not-considered-for-skips", "subscription.py", "        self._lose(max(session.opened_t, t - self.rules.close_detection_max_s - self.rules.delivery_delay_max_s), t)\n", "", "A stream that breaks loses nothing."),
    excuse("lost-pulls-ignored", "subscription.py", "            self._lose(session.opened_t, t)\n", "", "A pull that ends without its answer loses nothing."),
    excuse("losses-that-show-late", "redelivery.py", "if lost or not (skip.acked and self._subscription.loss_may_show(skip.t, now)):", "if lost or now:", "A loss that shows only later explains no skip."),
    excuse("lost-tail-of-a-run-is-a-stall", "liveness.py", "return LOST if acked and", "return LOST if run.t < 0 and", "The tail of a run that was sent and lost is a stall."),
    # clocks of liveness
    excuse("holds-stop-no-clock", "liveness.py", "return max(subscription.lost_until_t, self._tracks.busy_until_t)", "return subscription.lost_until_t", "Pull and push owe something while a batch is held."),
    excuse("lost-pulls-hold-nothing", "liveness.py", "return max(subscription.lost_until_t, self._tracks.busy_until_t)", "return self._tracks.busy_until_t", "What a lost pull carried is held by nobody."),
    excuse("flow-control-stops-no-clock", "waiting.py", "return self._leased_until_t if self._full else self._freeing_until_t", "return LONG_AGO", "A stream whose flow control is used up is owed something."),
    rule("flow-control-for-ever", "waiting.py", "        if self._full and settled_t > self._freeing_until_t:\n            self._freeing_until_t = settled_t\n", "        if self._full:\n            self._freeing_until_t = 1e9\n", "A stream whose flow control was used up once is owed nothing."),
    excuse("another-key-held-is-no-excuse", "liveness.py", "        if self._subscription.is_held_elsewhere(self._collector.key, since_t, deadline_t):\n            self._re", "        if deadline_t < 0:\n            self._re", "That another key is held is no excuse for a delay."),
    excuse("another-key-was-held-for-nothing", "liveness.py", "if LONG_AGO < kept_t < deadline_t else deadline_t", "if LONG_AGO > kept_t else deadline_t", "That another key was held until before the deadline is no excuse."),
    rule("any-key-held-excuses", "neighbours.py", "            if one.begun_t > since_t:\n                break\n", "", "A key that was held only lately excuses a long delay."),
    excuse("nobody-pulls", "subscription.py", "            if not self._unanswered:\n                self.waiting.stop(t)", "            if not self._unanswered:\n                pass", "Something is owed while no pull waits."),
    rule("a-pull-that-waits-is-nobody", "waiting.py", "return self._since_t + (wanted - self._total) if self._running else inf", "return inf", "Interruptions begin the count of waiting anew."),
    excuse("waiting-counted-twice", "waiting.py", "        if not self._running:\n            t = max(t, self._since_t)\n", "        if not self._running:\n", "A wait that is known late is counted from before the last one was over."),
    # dead letters
    excuse("dead-letter-policy-ignored-in-skips", "redelivery.py", "        if self._collector.rules.dead_letter_max_attempts:\n            return DEAD_LETTER\n        if self._orders.several", "        if self._orders.several", "With a dead-letter policy redelivery must be consistent."),
    excuse("dead-letter-policy-ignored-in-stalls", "liveness.py", "        if self._collector.rules.dead_letter_max_attempts:\n            return DEAD_LETTER\n        missing", "        missing", "With a dead-letter policy runs must be finished."),
    excuse("seek-owes-since-what-came-last", "liveness.py", "max(quiet_since_t, run.t, self._held_until_t)", "max(quiet_since_t, self._held_until_t)", "What a seek brings back is owed since the delivery before it."),
    excuse("seek-takes-from-who-holds", "liveness.py", "max(quiet_since_t, run.t, self._held_until_t)", "max(quiet_since_t, run.t)", "What a seek brings back is owed while it is held."),
    excuse("seek-outlives-acknowledgements", "owed.py", "if not acks.may_end(position, run.sought_t)]", "]", "What was acknowledged since a seek has to come again."),
    rule("opened-after-is-no-proof", "skips.py", "                opened_t = span.sent_after_t if span.sent_after_t > opened_t else opened_t\n", "", "That a stream was opened later does not prove that what it brought was sent later."),
    rule("opened-itself-after-is-no-proof", "skips.py", "opened_t = arrival.track.session.opened_t if arrival.own else LONG_AGO", "opened_t = LONG_AGO", "That its own stream was opened later does not prove that what came on it before was sent later."),
    # streams that race
    excuse("nothing-is-put-back", "key.py", "            if self._overtakes(event):", "            if event.t < 0:", "The order of arrival on two streams of a client is the order of the log."),
    rule("what-stands-between-divides-nothing", "places.py", "for position in range(max(one, log.floor + 1), other + 1) if log.holds(position)", "for position in range(0)", "What did not race itself does not divide what did."),
    excuse("copies-elsewhere-prove-the-order", "places.py", "or (self._sooner and other in self._sooner)", "", "What came again elsewhere at once was not sent sooner."),
    excuse("explained-from-right-below-only", "redelivery.py", "        return next((one + 1 for one in reversed(skipped)", "        return position or next((one + 1 for one in reversed(skipped)", "A copy explains a skip only from the place before, though that is not certain."),
    excuse("leans-on-a-step-in-doubt", "redelivery.py", "not (self._doubt(arrival, before.position, skipped) or self._doubt_own(arrival, before, skipped))", "True", "A copy that may have been sent in turn leans on the skip that it explains."),
    excuse("waits-as-long-as-the-first", "racing.py", "        elif queue[-1][0] > due_t:", "        else:", "What follows something that was put back waits as long as that, however late it came."),
    rule("republished-behind-is-not-owed", "epoch_order.py", "len(self.late) < LATE_MAX:", "not LATE_MAX:", "What was republished behind others is never missed."),
    rule("put-back-for-ever", "racing.py", "            if forced or due_t < now:\n", "            if now == inf:\n", "What was put back is decided only at the end."),
    excuse("two-streams-do-not-race", "subscription.py", "if self.streaming and (unknown or over or self._open_streams.get(session.subscriber, 0) > 1):", "if self.streaming and (unknown or over):", "Streams of one client do not race."),
    # grace periods
    excuse("grace-period-overwritten", "collector.py", "        if until_t > self.grace_until_t:\n", "        if until_t:\n", "A later control operation that settles sooner ends the grace period of an earlier one."),
    # retention and retry policy
    excuse("retention-ignored", "order.py", "return now - self._collector.rules.message_retention_s + self._collector.rules.clock_error_s", "return LONG_AGO", "What is older than the retention is owed."),
    excuse("retention-ignored-in-skips", "redelivery.py", "self._log.between(after, arrival.position, self._orders.expired_t(arrival.t))", "self._log.between(after, arrival.position)", "What is older than the retention must come again."),
    excuse("back-off-ignored", "liveness.py", "quiet_since_t = max(self.last_delivery_t, ready_t, back_t, self._restarted_t)", "quiet_since_t = max(self.last_delivery_t, ready_t, self._restarted_t)", "The retry policy lets nothing wait."),
    # what went into a broken stream
    excuse("lost-lease-ignored", "deadlines.py", "    if lost_t == LONG_AGO:\n", "    if lost_t:\n", "What went into a broken stream is leased by nobody."),
    excuse("held-by-nobody", "deadlines.py", "        _reached_after(subscription, since_t, held_t, seconds),\n", "", "What the subscriber of a broken stream held is held no more."),
    rule("lost-for-ever", "deadlines.py", "min(_reached_after(subscription, since_t, lost_t, seconds), once_t)", "_reached_after(subscription, since_t, lost_t, seconds)", "Streams that break again and again excuse what never comes."),
    rule("leased-whenever-one-broke", "deadlines.py", "subscription.last_closed_t < sent_t - rules.clock_error_s:", "subscription.last_closed_t == LONG_AGO:", "What was sent long after a stream broke may be leased to it."),
    rule("answered-before-it-came", "splits.py", "return self.may_end(position, sent_t) and not (known and self._log.number(position) >= number)", "return self.may_end(position, sent_t)", "What was first received after the key moved may have been let go before."),
    # exactly-once delivery
    rule("runs-begin-at-what-is-held", "splits.py", "sent_t <= split.t and arrival.position not in split.begun_by_none", "sent_t <= split.t", "With exactly-once delivery a run may begin at what is held."),
    excuse("no-run-begins-anywhere", "splits.py", "arrival.position not in split.begun_by_none", "not split.begun_by_none", "With exactly-once delivery a run explains nothing, wherever it begins."),
    # clocks that differ
    excuse("clock-error-ignored-in-order", "order.py", "eps = self._collector.rules.clock_error_s if real_time.epoch != arrival.epoch else 0.0", "eps = 0.0", "In real time clocks agree."),
    excuse("clock-error-ignored-in-holds", "holder.py", "return t <= arrival.t - eps and (", "return t <= arrival.t and (", "About holds clocks agree."),
    excuse("clock-error-ignored-in-predecessors", "skips.py", "eps, moment_t = rules.clock_error_s, arrival.lo - rules.clock_error_s", "eps, moment_t = 0.0, arrival.lo", "About predecessors clocks agree."),
    excuse("clock-error-ignored-in-confirmations", "integrity.py", 'doubt = "" if confirmation.t + collector.rules.clock_error_s < arrival.lo else RACING', 'doubt = "" if confirmation.t < arrival.lo else RACING', "About confirmations clocks agree."),
    excuse("clock-error-ignored-in-late-copies", "holder.py", "sent_t = arrival.lo - rules.clock_error_s\n        if any(one.explains(arrival, sent_t) for one in self._breaks):\n            return True", "sent_t = arrival.lo\n        if any(one.explains(arrival, sent_t) for one in self._breaks):\n            return True", "About late copies clocks agree."),
    excuse("clock-error-ignored-in-deadlines", "deadlines.py", "wanted_s = seconds + rules.clock_error_s", "wanted_s = seconds", "About deadlines clocks agree."),
    excuse("learned-late-is-late", "racing.py", "return other.t - self.t > max(", "return abs(other.t - self.t) > max(", "What was put back stands behind what came long after it."),
    excuse("without-a-baseline-all-was-waited-for", "racing.py", "did_not_wait = other.unawaited or", "did_not_wait =", "What comes first of an epoch without a baseline was waited for."),
    excuse("one-run-in-a-response", "key.py", "            self._drop(arrival)  # the messages of each region have their own run\n", "            pass\n", "A run behind that of another region in one response drops nothing."),
    excuse("sent-behind-the-highest-only", "redelivery.py", "for after in (skip.between[0], *skip.beside))", "for after in (skip.between[0],))", "What seems to stand lower was not sent last, though its place is not certain."),
    excuse("before-the-baseline-never-came", "key.py", "        if not order.settled and publication is not None:\n            self.log.retire", "        if order.index < 0:\n            self.log.retire", "What came before a baseline was known is new when it comes again."),
    excuse("lost-behind-the-latest-only", "redelivery.py", "sent_after_t = self._sent_after_t(arrival, before) if acked else before.sent_after_t", "sent_after_t = before.sent_after_t", "What was lost was sent after the latest that it may have been sent behind."),
    excuse("any-region-came-before", "redelivery.py", "return alone and (after == arrival.own or not self.changes_region(arrival))", "return alone", "On a stream that is alone it is known which message of a region came before."),
    excuse("clock-error-ignored-in-losses", "subscription.py", "return any(begun_t <= until_t + eps and over_t >= since_t - eps for begun_t, over_t in self._losses)", "return any(begun_t <= until_t and over_t >= since_t for begun_t, over_t in self._losses)", "About losses clocks agree."),
    excuse("sent-again-on-a-lost-stream-for-nothing", "splits.py", "if not self._subscription.may_have_lost(held.left_out_t, split.t)", "if held.left_out_t", "A run that began elsewhere on a lost stream explains no split."),
    excuse("clock-error-ignored-in-answers", "splits.py", "            if t <= split.t + eps and", "            if t < 0 and", "That an answer may have been sent before a split that was seen earlier is forgotten."),
    excuse("publisher-first-by-its-own-clock", "verifier.py", "        if self._clock_error_s:\n            self._take_in_any_order(event)\n        else:\n", "        if event:\n", "A message that is received before its publish by another clock is a phantom."),
    # forgetting
    excuse("epochs-truncated", "positions.py", "return self._epochs[position & self._mask]", "return self._epochs[position & self._mask] & 0xFF", "Of an epoch's number a byte is kept."),
    excuse("epochs-forgotten-by-age", "publications.py", "        record = self.epochs.pop(epoch, None)\n        if record is None:", "        record = self.epochs.get(epoch)\n        if record is None:", "Of too many epochs the oldest is forgotten, though it is not idle."),
    excuse("divergence-not-readopted", "divergence.py", "or any(after <= position < upto for position in breaks)", "", "A subscription that slept is compared as if it had not."),
    excuse("forgotten-epochs-may-not-be-skipped", "redelivery.py", "return [position for position in skipped if self._orders.knows_epoch(position)]", "return skipped", "What counts as foreign may not be left out."),
    # redelivery elsewhere before the lease is over
    excuse("early-redelivery-is-a-split", "holder.py", "return bool(scene.below) and not scene", "return bool(scene.held) and not scene", "The service may not begin again elsewhere before the lease is over."),
    rule("above-what-is-held-is-fine", "holder.py", "return bool(scene.below) and not scene", "return scene.late and not scene", "A key may go on elsewhere above what is held."),
    rule("early-redelivery-not-counted", "holder.py", "        self._collector.counts.early_redeliveries += 1\n", "", "Early redeliveries are not counted."),
    rule("eod-while-outstanding-not-judged", "holder.py", "            else:\n                self._judge_outstanding(arrival)\n", "", "With exactly-once delivery a message may come again while it is held."),
    excuse("outstanding-without-exactly-once", "holder.py", "        if self._collector.rules.exactly_once:\n            if arrival.new:", "        if self._collector.rules.window:\n            if arrival.new:", "Without exactly-once delivery a message may not come again while it is held."),
    rule("excuse-not-judged", "redelivery.py", "                self._holder.judge_excuse(skip.t, skip.position, skip.session, skip.witnesses, skip.facts, arrival)\n", "", "A copy that explains a skip was held by nobody."),
    # regions
    excuse("regions-ignored-in-session-order", "epoch_order.py", "        while publication is not None:\n            if publication.region == region:\n                yield publication", "        while publication is not None:\n            if publication.region != \"nowhere\":\n                yield publication", "Order holds across publishing regions."),
    excuse("regions-ignored-in-real-time", "order.py", "real_time = next((known for known in self._real_times if known.region == region), None)", "real_time = next(iter(self._real_times), None)", "Real time orders records of several regions."),
    excuse("regions-ignored-in-runs", "redelivery.py", "return [position for position in skipped if self._orders.share_region(after, position, arrival.position)]", "return skipped", "A run must include what was published in another region."),
    # excerpts
    excuse("excerpts-are-phantoms", "publications.py", "        if 0 < seq < self.first:\n            return True  # the history begins in the middle of the epoch\n", "", "What was published before the history began was never published."),
    excuse("default-close-detection-zero", "rules.py", "    close_detection_max_s: float = 30.0", "    close_detection_max_s: float = 0.0", "A dead stream is noticed at once unless the rules say otherwise."),
    # not seen before
    rule("content-of-foreign-epochs-ignored", "key.py", "        if event.defect is not None or not event.matches_filter:", "        if event.epoch in self._group.epochs and (event.defect is not None or not event.matches_filter):", "Content is judged only under the key that it was published with."),
    # streams of one subscriber
    excuse("nothing-is-lost-beside", "parted.py", "return any(True for _ in self._took(invoked_t, by, t, t))", "return False", "No stream that broke beside another explains anything."),
    rule("lost-beside-for-ever", "parted.py", "and alive_t <= one.closed_t <= noticed_t", "and one.closed_t <= noticed_t", "A stream that broke long ago explains what is late now."),
    rule("lost-beside-the-future", "parted.py", "and alive_t <= one.closed_t <= noticed_t", "and alive_t <= one.closed_t", "A stream that breaks much later explains it."),
    rule("lost-beside-anybody", "parted.py", "one.source.subscriber and other.subscriber and one.source.subscriber != other.subscriber", "False", "The stream of another subscriber explains it."),
    excuse("beside-told-at-once", "overtakings.py", "if not doubt and due_t > one.t and", "if not doubt and due_t < one.t and", "A stream that is dead unnoticed explains nothing."),
    rule("beside-not-refuted", "overtakings.py", "if waiting.again or waiting.next_t == inf:", "if waiting.again or waiting.next_t <= inf:", "What overtook it need not come again."),
    excuse("beside-refuted-by-the-same", "parted.py", "            one is not other or one.several\n", "            False\n", "Only one stream at a time can take anything."),
    excuse("overtaken-too-refutes", "overtakings.py", " and not self.again and self.one.by.invoked_t < invoked_t", " and not self.again", "Of several that were lost only one comes again."),
    rule("alive-streams-lose", "parted.py", " or one.alive_t > until_t + eps:", ":", "A stream that went on delivering had lost something before."),
    rule("anything-again-excuses", "overtakings.py", "position != self.one.position and self.one.by.position <= position and ", "", "What was overtaken comes again, and so need not what overtook it."),
    excuse("all-comes-again-always", "overtakings.py", "if not self.pending or not self._all_come_again:", "if not self.pending:", "All comes again though nobody promised that."),
    excuse("too-many-are-certain", "overtakings.py", "explained = explained or (not doubt and due_t > one.t)", "explained = bool(explained)", "What is not remembered is certain."),
    excuse("the-last-overtakes", "order.py", "by = latest if overtaken is None else By.of(overtaken.by, overtaken.t)", "by = latest", "What came last before it had overtaken it."),
    rule("streams-begin-anew", "presence.py", "max(0.0, self._earlier_s - self._steady.total_at(quiet_t))", "0.0", "Who opens a stream again and again is owed nothing."),
    excuse("dead-streams-wait", "presence.py", "self._steady.stop(t - self._dead_s)", "self._steady.stop(t)", "A stream delivers until somebody notices that it is dead."),
    excuse("lost-leases-wait", "presence.py", "self._steady_from_t = t + self._lease_s", "self._steady_from_t = t", "What was lost with a stream comes at once."),
    rule("failed-attempts-store", "attempts.py", "return self.count - self.failed", "return self.count", "An attempt that failed may have stored a record."),
    rule("cross-epoch-gap-dropped", "order.py", "            self.lost += (Awaited(arrival.t + self._patience_s, arrival.t, other, this, tuple(gap)),)\n\n    def _lost_before", "            del this\n\n    def _lost_before", "The lost tail of an epoch is not missed when a later one is received."),
    rule("refused-and-moved-on-dropped", "liveness.py", "            if self._passed_t(position) > owed.lease_end_t + rules.ack_settled_s and not rules.dead_letter_max_attempts:", "            if self.last_delivery_t < 0:", "A key that moves on need not bring back what was refused."),
    excuse("refused-and-moved-on-at-once", "liveness.py", "moved_on[position] = self._up_since(max(owed.lease_end_t + settled_s, ready_t))", "moved_on[position] = owed.due_t - rules.unacked_deadline_s", "A key may not move on before what was refused."),
    rule("confirmation-conflict-dropped", "integrity.py", "    if not position:\n        return\n    delivered", "    if position >= 0:\n        return\n    delivered", "A confirmation may name the id of another message that was delivered."),
    rule("phantom-retires-numbers", "positions.py", "        if not self._flags[slot] & STRANGE:", "        if self._flags[slot] >= 0:", "A phantom with a high number hides everything after it."),
    # an acknowledgement excuses its own message only
    rule("any-acknowledgement-excuses", "splits.py", "self._latest.get(position, self._forgotten_t)", "max(self._latest.values())", "The latest acknowledgement of any message of the key excuses."),
    rule("unacknowledged-is-excused", "splits.py", "        if not self._log.flags(position) & (ACKED | REFUSED):\n            return False\n", "", "What was never answered may have been let go by an answer."),
)  # fmt: skip
