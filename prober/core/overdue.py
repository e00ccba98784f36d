"""The contents of a liveness finding: facts, causes of a removal, and facts that exclude them (docs/model.md, section 8)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from math import inf
from typing import TYPE_CHECKING, Final

from prober.core.collector import SEQS_SHOWN
from prober.core.events import LONG_AGO
from prober.core.excuses import DEAD_LETTER, NO_POLICY, UNSEEN_ATTEMPTS, not_filtered, unacknowledged, within_retention
from prober.core.facts import Delivery, deliveries_of, lease_until
from prober.core.findings import Fact, Kind
from prober.core.names import Named, RecordName, id_of, ids_of, words_for

if TYPE_CHECKING:
    from prober.core.clocks import KeyClock, Wait
    from prober.core.key import KeyChecker
    from prober.core.publications import Publication
    from prober.core.rules import Rules
    from prober.core.runs import Run
    from prober.core.subscription import Subscription

HELD_ELSEWHERE: Final = "unacknowledged messages of another key may have delayed this one"


def removed_unseen(subscription: Subscription, missing: Publication, now: float) -> str:
    """State why the dead-letter policy may have removed a message that was never delivered; empty if it cannot have."""
    return UNSEEN_ATTEMPTS if subscription.may_have_dead_lettered(0, missing.invoked_t, now) else ""


def removed_after(subscription: Subscription, one: Delivery, now: float) -> str:
    """State why the dead-letter policy may have removed a message after a delivery; empty if it cannot have."""
    most = subscription.rules.dead_letter_max_attempts
    attempts = max(sum(1 for _ in islice(deliveries_of(one), most)), one.event.delivery_attempt)
    return DEAD_LETTER if subscription.may_have_dead_lettered(attempts, one.invoked_t, now) else ""


def not_removed(rules: Rules) -> str:
    """Return the fact that rules out `removed_unseen`."""
    return "not dead-lettered: too few attempts to deliver went unseen" if rules.dead_letter_max_attempts else NO_POLICY


def reasons_of(subscription: Subscription, clock: KeyClock, wait: Wait, passed_t: float, *facts: str) -> tuple[str, ...]:
    """Return the facts that exclude a legal explanation of a wait: those of its kind, its age, and each obstacle."""
    retained = within_retention(subscription.rules, wait.sent_t, "the message")
    return *facts, retained, *subscription.clocks.reasons(clock, wait, passed_t)


def stuck(key: KeyChecker, first: Publication, pending: list[Publication], wait: Wait, passed_t: float, doubt: str) -> None:
    """File STUCK: of the pending messages, `first` was verified."""
    shown = [first, *(one for one in pending if one is not first)][:SEQS_SHOWN]
    facts = seqs(key, shown, len(pending)) | times(wait, passed_t)
    witnesses = (first.invoked_number, first.confirmed_number, key.liveness.last_number)
    key.collector.liveness(Kind.STUCK, passed_t, witnesses, facts, doubt, _never_delivered(key, wait, passed_t, doubt))


def lost(key: KeyChecker, publication: Publication, by: Delivery, wait: Wait, passed_t: float, doubt: str) -> None:
    """File LOST_OVERTAKEN."""
    facts: dict[str, Fact] = {"seq": publication.seq, "epoch": publication.epoch.name, "by": by.seq, "by_epoch": by.epoch}
    facts |= {**id_of(key, "seq", publication), **id_of(key, "by", by)}
    witnesses = (publication.invoked_number, publication.confirmed_number, by.number)
    reasons = _never_delivered(key, wait, passed_t, doubt)
    key.collector.liveness(Kind.LOST_OVERTAKEN, passed_t, witnesses, facts | times(wait, passed_t), doubt, reasons)


def unacked(key: KeyChecker, found: Sequence[tuple[Delivery, Wait, float]], doubt: str) -> None:
    """File UNACKED_STALL: deliveries, each with its wait and the time of its missed deadline."""
    first, wait, passed_t = min(found, key=lambda each: each[2])
    shown = [one for one, _, _ in found][:SEQS_SHOWN]
    facts = seqs(key, shown, len(found)) | times(wait, passed_t) | {"since": _since(key, first, wait)}
    what = words_for(key, shown[0])
    never = f"not acknowledged: {unacknowledged(key.subscription, what, shown[0].invoked_t, inf)}"
    reported = () if doubt else reasons_of(key.subscription, key.liveness.clock, wait, passed_t, never, not_removed(key.rules))
    key.collector.liveness(Kind.UNACKED_STALL, passed_t, [one.number for one in shown[:5]], facts, doubt, reported)


def _since(key: KeyChecker, one: Delivery, wait: Wait) -> str:
    """Return the event that made a delivery pending.

    The end of its lease or its stream, or else the redelivery of an earlier message.
    """
    if wait.since_t == lease_until(key.rules, one):
        return "lease"
    return "stream" if wait.since_t == one.session.closed_t else "redelivery"


def _never_delivered(key: KeyChecker, wait: Wait, passed_t: float, doubt: str) -> tuple[str, ...]:
    if doubt:
        return ()
    return reasons_of(key.subscription, key.liveness.clock, wait, passed_t, not_removed(key.rules), not_filtered(key.rules))


def seqs(key: KeyChecker, records: Sequence[Named], count: int) -> dict[str, Fact]:
    """Return messages as facts: sequence numbers with their epochs, the first one first."""
    shown = [RecordName.of(record) for record in records]
    facts: dict[str, Fact] = {"seqs": tuple(one.seq for one in shown), "count": count, "epoch": shown[0].epoch}
    if len({one.epoch for one in shown}) > 1:
        facts["seqs_epochs"] = tuple(one.epoch for one in shown)
    return {**facts, **ids_of(key, "seqs", shown)}


def target(key: KeyChecker, run: Run) -> dict[str, Fact]:
    """Return the target of a redelivery, and the time of the seek back that caused it, as facts."""
    record = run.lane.log.named(run.target)
    sought: dict[str, Fact] = {"sought_t": run.began_t} if run.since_t > LONG_AGO else {}
    return {"target": record.seq, "epoch": record.epoch, **id_of(key, "target", record), **sought}


def times(wait: Wait, passed_t: float) -> dict[str, Fact]:
    """Return the start and the duration of a wait as facts."""
    return {"since_t": wait.since_t, "seconds": passed_t - wait.since_t}
