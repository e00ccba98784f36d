"""What a redelivery was about, for whoever doubts a finding about it: where it began, and the deliveries that it repeated.

The checker needs neither to find that a redelivery left something out. A reader does: without the first message of the redelivery he does
not see which refusal, lease or end of a stream caused it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from prober.core.events import Delivered, Event
from prober.core.findings import Finding

SHOWN_MAX: Final = 8
"""Deliveries of a redelivery that are shown; of a longer one its first."""


def redelivery_of(events: Iterable[tuple[int, Event]], finding: Finding) -> list[tuple[int, Event]]:
    """The redelivery that the last delivery among the witnesses belongs to, and the delivery that each of its messages had before it.

    The redelivery began where the service last went back. Empty if it did not, or if no witness is a delivery on this key.
    """
    deliveries = [
        (number, event)
        for number, event in events
        if isinstance(event, Delivered) and (event.subscription, event.key) == (finding.subscription, finding.key)
    ]
    ends = max((index for index, (number, _) in enumerate(deliveries) if number in finding.witnesses), default=0)
    begins = _begins(deliveries[: ends + 1])
    if begins is None:
        return []
    run = deliveries[begins : ends + 1]
    shown = run if len(run) <= SHOWN_MAX else [run[0], run[-1]]
    before = {event.message_id: (number, event) for number, event in deliveries[:begins]}
    return [*(before[event.message_id] for _, event in shown if event.message_id in before), *shown]


def _begins(deliveries: Sequence[tuple[int, Delivered]]) -> int | None:
    """The index of the latest delivery that went back before the one in front of it, by the order of first deliveries."""
    order: dict[str, int] = {}
    places = [order.setdefault(event.message_id, len(order)) for _, event in deliveries]
    return next((index for index in range(len(places) - 1, 0, -1) if places[index] <= places[index - 1]), None)
