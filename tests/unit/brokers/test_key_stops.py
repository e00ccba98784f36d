"""Stops of ordering keys: those that a failed publish explains, whenever its failure is reported, and those that nothing explains."""

from __future__ import annotations

import pytest
from google.cloud.pubsub_v1.publisher.exceptions import PublishToPausedOrderingKeyException  # type: ignore[import-untyped]

from prober.brokers.library import KeyStops

ANSWERS: dict[str, Exception | None] = {
    "ok": None,
    "failed": ValueError("no"),
    "paused": PublishToPausedOrderingKeyException(b"k"),
    "cancelled": RuntimeError("Batch cancelled because prior ordered message for the same key has failed."),
}


def unexplained(story: str) -> int:
    """The unexplained stops after publishes (`+`), their answers, and `resume`, all on one key or on the key after a colon."""
    stops = KeyStops()
    for step in story.split():
        what, _, key = step.partition(":")
        match what:
            case "+":
                stops.handed_over(key)
            case "resume":
                stops.resumed(key)
            case _:
                stops.answered(key, ANSWERS[what])
    return stops.unexplained


@pytest.mark.parametrize(
    ("story", "count"),
    [
        ("+ ok + ok", 0),
        ("+ failed + paused", 0),
        ("+ failed + paused + paused resume + ok", 0),
        ("+ + cancelled failed", 0),  # the library reports the cause last
        ("+ + paused failed resume + ok", 0),  # handed over between the pause and its report
        ("+ + paused resume failed", 0),
        ("+ + paused resume failed resume + ok", 0),
        ("+ resume failed + paused", 0),  # resumed before the answer came, as after a timeout
        ("+ + paused", 0),  # the other publish may still fail
        ("+ failed resume resume + ok", 0),
        ("+ paused", 1),
        ("+ ok + paused", 1),
        ("+ + paused ok", 1),
        ("+ cancelled", 1),
        ("+ failed resume + paused", 1),  # it stays stopped although it was resumed
        ("+ paused resume + paused", 2),
        ("+:a failed:a +:b paused:b", 1),
        ("resume", 0),
    ],
)
def test_a_stop_is_unexplained_if_no_publish_of_its_key_failed_since_it_was_resumed(story: str, count: int) -> None:
    assert unexplained(story) == count
