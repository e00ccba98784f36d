"""Bugs in the arithmetic of the bounds: each shifted, left out, or taken the other way round."""

# ruff: noqa: E501 - a mutant is one line

from __future__ import annotations

from tests.mutants.mutant import Mutant, excuse, rule

FACTS, USUAL = "facts.py", "usual.py"

MUTANTS: tuple[Mutant, ...] = (
    excuse("deliveries-take-no-time", FACTS, "bound_t = t - rules.delivery_delay_max_s\n", "bound_t = t\n", "A delivery was sent when it was received."),
    rule("deliveries-take-twice-as-long", FACTS, "bound_t = t - rules.delivery_delay_max_s\n", "bound_t = t - 2 * rules.delivery_delay_max_s - 1\n", "A delivery may have been sent before the delay bound."),
    rule("sent-before-the-stream-was-open", FACTS, "    if session.opened_t > bound_t:\n        bound_t = session.opened_t\n", "", "A delivery may have been sent before its stream was open."),
    rule("sent-before-the-publish", FACTS, "        bound_t = publication.invoked_t - rules.clock_error_s\n", "        pass\n", "A delivery may have been sent before its publish."),
    excuse("publishes-by-one-clock", FACTS, "publication.invoked_t - rules.clock_error_s > bound_t:\n        bound_t = publication.invoked_t - rules.clock_error_s", "publication.invoked_t > bound_t:\n        bound_t = publication.invoked_t", "The clocks of publishers and subscribers agree."),
    excuse("leases-are-longer", FACTS, "lease_t = held.earliest_t + rules.ack_deadline_s", "lease_t = held.t + rules.ack_deadline_s", "A lease begins when the message is received."),
    rule("leases-are-over-at-once", FACTS, "lease_t = held.earliest_t + rules.ack_deadline_s", "lease_t = held.earliest_t", "A lease has no length."),
    excuse("leases-are-never-shortened", FACTS, "lease_t = min(lease_t, t + seconds)", "lease_t = max(lease_t, t + seconds)", "A lease is never shortened."),
    excuse("ends-of-streams-are-seen-at-once", FACTS, "stream_t = held.session.closed_t - rules.close_detection_max_s if", "stream_t = held.session.closed_t if", "The end of a stream is noticed at once."),
    excuse("streams-release-nothing", FACTS, "stream_t = held.session.closed_t - rules.close_detection_max_s if rules.mode is Mode.STREAMING else inf", "stream_t = inf", "The end of a stream releases nothing."),
    rule("responses-release-with-their-end", FACTS, "if rules.mode is Mode.STREAMING else inf\n    alone", "if True else inf\n    alone", "The end of a pull response releases what it brought."),
    excuse("answers-elsewhere-count-for-nothing", FACTS, "return Ends(lease_t, held.nacked_t, stream_t, held.acked_t, answered_elsewhere(rules, held, newest))", "return Ends(lease_t, held.nacked_t, stream_t, held.acked_t)", "An answer to another delivery of the message ends no hold."),
    excuse("acknowledgements-end-no-hold", FACTS, "return Ends(lease_t, held.nacked_t, stream_t, held.acked_t)  #", "return Ends(lease_t, held.nacked_t, stream_t)  #", "An acknowledgement ends no hold."),
    excuse("nacks-end-no-hold", FACTS, "return Ends(lease_t, held.nacked_t, stream_t, held.acked_t)  #", "return Ends(lease_t, inf, stream_t, held.acked_t)  #", "A nack ends no hold."),
    excuse("answers-before-the-delivery-do-not-count", FACTS, "recent_t = counts_from(rules, held)", "recent_t = held.t", "An answer that was still to be applied ends no hold."),
    rule("old-answers-count", FACTS, "recent_t = counts_from(rules, held)", "recent_t = held.earliest_t - 1e9", "An answer that was applied long before ends the next hold."),
    excuse("leases-end-early", FACTS, "return end_t + rules.delivery_delay_max_s + rules.clock_error_s", "return end_t - rules.ack_deadline_s", "A lease is provably over at once."),
    rule("leases-never-provably-end", FACTS, "return end_t + rules.delivery_delay_max_s + rules.clock_error_s", "return end_t + 10 * rules.ack_deadline_s", "A lease is provably over only long after it ended."),
    excuse("extensions-end-nothing", FACTS, "end_t = max(end_t, t + seconds)", "pass", "An extension of a lease does not count."),
    rule("answers-never-settle", FACTS, "return min(lease_until(rules, one), answered_t + rules.ack_settled_s + rules.clock_error_s)", "return lease_until(rules, one)", "An answered message is held until its lease is over."),
    excuse("answers-settle-at-once", FACTS, "answered_t + rules.ack_settled_s + rules.clock_error_s)", "answered_t)", "An answer is applied when it is sent."),
    excuse("clocks-of-recorders-agree", FACTS, "return one.t + rules.clock_error_s < other.earliest_t", "return one.t < other.earliest_t", "The clocks of two recorders agree about what was sent first."),
    rule("nothing-is-provably-before", FACTS, "return one.t + rules.clock_error_s < other.earliest_t", "return False", "Deliveries of two sessions are never in order."),
    excuse("confirmations-by-one-clock", FACTS, "eps = 0.0 if one.epoch is publication.epoch else rules.clock_error_s", "eps = 0.0", "The clocks of two publishers agree."),
    rule("confirmations-order-nothing", FACTS, "return one.confirmed_t + eps < other.invoked_t or in_session(one, other)", "return in_session(one, other)", "A confirmed publish stands before nothing that was published later."),
    rule("publishers-have-no-order", FACTS, "return other.primary and one.seq < publication.seq and one.ordered_t <= publication.ordered_t", "return False", "The messages of one publisher have no order."),
    excuse("duplicates-are-in-order", FACTS, "return other.primary and one.seq < publication.seq and one.ordered_t <= publication.ordered_t", "return one.seq < publication.seq and one.ordered_t <= publication.ordered_t", "A further record of a message stands where its primary would."),
    excuse("publishers-are-one", FACTS, "if publication is None or one.epoch is not publication.epoch:", "if publication is None:", "Two publishers are one."),
    excuse("holds-do-not-wait-for-deliveries", FACTS, "return close_s + rules.delivery_delay_max_s + rules.clock_error_s", "return 0.0", "A breach is reported before what was sent earlier has come."),
    # the short way: what it lets through is not looked at by any rule
    rule("usual-though-more-is-pending", USUAL, " or publication is not next(iter(lane.pending), None)", "", "The next message is usual though an earlier one is missing."),
    rule("usual-whatever-the-copy", USUAL, " or publication.token != one.token", "", "A further copy of a message is its primary."),
    rule("usual-behind-a-restart", USUAL, " or state.before_position != log.frontier", "", "The next message is usual though a redelivery has only begun."),
    excuse("usual-while-others-wait", USUAL, "lane.waiting or ", "", "A delivery takes its place before those on hold have one."),
)  # fmt: skip
