"""How often a run could have seen each promise broken, by the counter that the check of that promise keeps.

A PASS says little if the service hardly had an opportunity to do wrong. A *chance* is a decision of the service which the check would
have told as a violation if it had been wrong; what it would have called indeterminate is no chance.

    order               a message that was published after another of its key is delivered for the first time: behind that, or not.
    redelivery          the key began again below what had been delivered, and goes on from there: with the next message, or a later one.
    redelivery, acked   of these, where something of what must come again had been acknowledged.
    affinity            a message is delivered that was published after the last one of its key had come, while something of it is
                        certainly held and another subscriber is there: it comes to the holder, or the key is split. A stream that is
                        over takes back the chances shortly before, for it may have been dead already.
    completeness        a message was accepted: it is delivered, or lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

CHANCES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "chances_order": "first deliveries behind another message of the key",
        "chances_redelivery": "redeliveries that had to bring later messages again",
        "chances_redelivery_acked": "redeliveries that had to bring acknowledged messages again",
        "chances_affinity": "deliveries while the key was held and another subscriber was there",
        "publishes_confirmed": "messages that had to arrive",
    }
)
"""What each counter counts, in the order of the promises."""


def chances_of(counters: Mapping[str, int]) -> dict[str, int]:
    """How many chances a run gave, in words, none of a kind included; empty if they were not counted."""
    if not any(name in counters for name in CHANCES if name.startswith("chances_")):
        return {}
    return {what: counters.get(name, 0) for name, what in CHANCES.items()}
