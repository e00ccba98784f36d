"""Counters of the opportunities to observe a violation, one for each guarantee.

The check of a guarantee keeps its counter. A PASS proves little if the service hardly had an opportunity to violate the guarantee. An
*opportunity* is a decision of the service that the check would have reported as a violation if it had been wrong. A decision that the check
would have called indeterminate is no opportunity.

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

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

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
