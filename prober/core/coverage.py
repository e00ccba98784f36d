"""Counters of a checked history: events, opportunities to observe a violation of each guarantee, and forgotten records.

A run without redeliveries proves nothing about redelivery. So the checker counts the situations that the guarantees are about, and a
probe names the counters that must not be 0. The check of each guarantee also counts its opportunities (`opportunities`): a PASS proves
little if the service hardly had an opportunity to violate the guarantee. An *opportunity* is a decision of the service that the check
would have reported as a violation if it had been wrong. A decision that the check would have called indeterminate is no opportunity.

    order               the first delivery of a message that was published after another of its key: after that one, or not.
    redelivery          the key restarted below its progress and continues from there: with the next message, or a later one.
    redelivery, acked   of these, the ones in which a message to be redelivered had been acknowledged.
    affinity            the delivery of a message that was published after the receipt of the last one of its key, while a message of the
                        key is provably outstanding and another subscriber is connected: to the holder, or to the other. The end of a
                        stream revokes its latest opportunities, since it may have been dead already.
    divergence          a message received on one of two subscriptions is received on the other: in the same place, or elsewhere.
    overlap             the answer to the last held message of a pull response or push request, while the next one of its key was stored,
                        and a pull waited for it: until then the service could have sent a second batch, or request.
    confirmed           exactly-once: an acknowledgement was confirmed, and deliveries were observed long enough afterwards that a
                        redelivery would have been sent after the confirmation, by every bound.
    outstanding         exactly-once: the delivery of a message that was published after the receipt of the last one of its key, while a
                        message of the key is provably outstanding: the service continues, or redelivers the outstanding message.
    dead letter         a message was sent to the dead-letter topic, and a new one of its key is delivered afterwards: the key advances,
                        or stalls.
    filter              a message was stored that the filter of a subscription excludes: it is kept back, or delivered.
    seek                a message is redelivered that a settled seek provably restored (`returned`): that message, or a later one.
    push, failed        a push request failed while a later message of its key waits: the next one is for the same message, or a later.
    completeness        a message was accepted: it is delivered, or lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Final

from prober.core.findings import Status

CREDIT_MAX: Final = 20_000
"""Number of sends that the searches of a history may examine in a row."""
CREDIT_PER_DELIVERY: Final = 10
"""Number of sends that each delivery adds to that allowance."""


@dataclass(slots=True)
class Coverage:
    """The counters of a history: plain attributes, since every event changes several; readers use `by_name`.

    keys            the number of keys, known at the end.
    holds           deliveries that were not legal in the order of arrival.
    unexplained     deliveries on hold with too many possible explanations.
    windows_full    how often the order of deliveries was given up because too many were concurrent.
    findings        by their status, named `findings_violation` and so on.
    sends           the number of sends examined in searches for an order; it measures work, so `by_name` leaves it out.
    """

    acks: int = 0
    acks_confirmed: int = 0
    affinity_moves_outstanding_no: int = 0
    affinity_moves_outstanding_unknown: int = 0
    affinity_moves_outstanding_yes: int = 0
    opportunities_affinity: int = 0
    opportunities_confirmed: int = 0
    opportunities_dead_letter: int = 0
    opportunities_divergence: int = 0
    opportunities_filter: int = 0
    opportunities_order: int = 0
    opportunities_outstanding: int = 0
    opportunities_overlap: int = 0
    opportunities_push_failed: int = 0
    opportunities_redelivery: int = 0
    opportunities_redelivery_acked: int = 0
    opportunities_seek: int = 0
    dead_lettered: int = 0
    deliveries_among_several: int = 0
    deliveries_first: int = 0
    deliveries_foreign: int = 0
    deliveries_redelivery: int = 0
    deliveries_unnumbered: int = 0
    deliveries_unplaced: int = 0
    deliveries_unrecorded: int = 0
    deliveries_without_key: int = 0
    early_redeliveries: int = 0
    interruptions: int = 0
    keys: int = 0
    keys_forgotten: int = 0
    lease_expiries: int = 0
    nacks: int = 0
    numberings: int = 0
    numbers_repeated: int = 0
    numbers_unverified: int = 0
    publisher_duplicates: int = 0
    publishes_abandoned: int = 0
    publishes_confirmed: int = 0
    publishes_invoked: int = 0
    publishes_rejected: int = 0
    publishes_unknown: int = 0
    pulls_concurrent: int = 0
    redeliveries_of_acked: int = 0
    rewinds: int = 0
    rewinds_inside_a_run: int = 0
    rewinds_to_acked: int = 0
    seeks: int = 0
    service_duplicates: int = 0
    sessions_closed: int = 0
    holds: int = 0
    unexplained: int = 0
    windows_full: int = 0
    findings: dict[Status, int] = field(default_factory=lambda: dict.fromkeys(Status, 0))
    sends: int = 0
    _credit: int = CREDIT_MAX
    _credited: int = 0

    def by_name(self) -> Counter[str]:
        """Return all counters that are not 0."""
        counts = {name: getattr(self, name) for name in COUNTED} | {f"findings_{status}": n for status, n in self.findings.items()}
        return Counter({name: count for name, count in counts.items() if count})

    def credit(self) -> int:
        """Return the number of sends that may still be examined before the next delivery."""
        earned = CREDIT_PER_DELIVERY * (self.deliveries_first + self.deliveries_redelivery)
        left = min(self._credit + earned - self._credited, CREDIT_MAX + self.sends)
        self._credit, self._credited = left, earned
        return left - self.sends


COUNTED: Final = tuple(one.name for one in fields(Coverage) if one.name not in {"findings", "sends", "_credit", "_credited"})
"""The names of all counters except those of findings."""

OPPORTUNITIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "opportunities_order": "first deliveries behind another message of the key",
        "opportunities_redelivery": "redeliveries that had to bring later messages again",
        "opportunities_redelivery_acked": "redeliveries that had to bring acknowledged messages again",
        "opportunities_affinity": "deliveries while the key was held and another subscriber was there",
        "opportunities_divergence": "messages received on two subscriptions, each in a place of its own",
        "opportunities_overlap": "batches behind which more waited while another pull or push could have brought it",
        "opportunities_confirmed": "acknowledgements that were confirmed and had to be final",
        "opportunities_outstanding": "deliveries while another message was held that must not be redelivered",
        "opportunities_dead_letter": "messages that went to the dead-letter topic and whose key had to move on",
        "opportunities_filter": "messages that the filter of a subscription had to keep back",
        "opportunities_seek": "messages that a seek had to bring back in order",
        "opportunities_push_failed": "failed push requests that had to be repeated before others",
        "publishes_confirmed": "messages that had to arrive",
    }
)
"""The description of each counter, in the order of the guarantees."""


def opportunities_of(counters: Mapping[str, int]) -> dict[str, int]:
    """Return the number of opportunities of a run by description, 0 included; empty if they were not counted."""
    if not any(name in counters for name in OPPORTUNITIES if name.startswith("opportunities_")):
        return {}
    return {what: counters.get(name, 0) for name, what in OPPORTUNITIES.items()}
