"""What is outstanding at a subscriber is counted by session and message, from its delivery to its answer."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from prober.probes.affinity import Allowance


@pytest.mark.parametrize(
    ("story", "reached", "exceeded"),
    [
        ("+1 +2", 0, 0),
        ("+1 +2 +3", 1, 0),
        ("+1 +2 +3 +4 +5", 1, 2),
        ("+1 +2 +3 -1 +4", 2, 0),
        ("+1 +2 +3 +3", 1, 0),  # it was redelivered: it is one message
        ("+1 +2 -9 +3 +4", 1, 1),  # another subscriber's
        ("+1 +2 +b3 +b4", 0, 0),  # another stream
    ],
)
def test_counts(story: str, reached: int, exceeded: int) -> None:
    counted = Counter[str]()
    context: Any = SimpleNamespace(count=lambda name: counted.update([name]))
    allowance = Allowance(context, 3)
    for step in story.split():
        message = step[1:].removeprefix("b")
        delivery: Any = SimpleNamespace(
            session=SimpleNamespace(name="b" if "b" in step else "a"), received=SimpleNamespace(message_id=message)
        )
        (allowance.take if step[0] == "+" else allowance.release)(delivery)
    assert counted == Counter(flow_control_reached=reached, flow_control_exceeded=exceeded)
