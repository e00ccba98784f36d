"""Counters of the opportunities to observe a violation, one for each guarantee.

The check of a guarantee keeps its counter. A PASS says little if the service hardly had an opportunity to violate the guarantee. An
*opportunity* is a decision of the service that the check would have reported as a violation if it had been wrong. A decision that the check
would have called indeterminate is no opportunity.

    order               a message that was published after another of its key is delivered for the first time: behind that, or not.
    redelivery          the key began again below what had been delivered, and goes on from there: with the next message, or a later one.
    redelivery, acked   of these, where a message to be redelivered had been acknowledged.
    affinity            a message is delivered that was published after the last one of its key had come, while a message of the key is
                        provably outstanding and another subscriber is there: it comes to the holder, or the key is split. A stream that is
                        over takes back the opportunities shortly before, for it may have been dead already.
    divergence          a message that one of two subscriptions has received is received on the other: in the same place, or elsewhere.
    overlap             the last message held of a pull response or push request is answered, while the next one of its key was there, and
                        a pull waited for it: until then the service could have sent a second batch, or request.
    confirmed           exactly-once: an acknowledgement was confirmed, and it was listened for so long after that that a redelivery would
                        have been sent after the confirmation, by every bound.
    outstanding         exactly-once: a message is delivered that was published after the last one of its key had come, while a message of
                        the key is provably outstanding: the service goes on, or redelivers the outstanding message.
    dead letter         a message came to the dead-letter topic, and a new one of its key is delivered after that: the key moves on, or
                        stands still.
    filter              a message was stored that the filter of a subscription excludes: it is kept back, or delivered.
    seek                a message is redelivered that a settled seek provably brought back (`returned`): it, or a later one.
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
