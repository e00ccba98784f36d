"""What has to occur in the legal runs of a mode: each of it excuses something, and without it the absence of findings proves nothing."""

from __future__ import annotations

from prober.core.rules import Mode

ANY_MODE = (
    "257 epochs",
    "65 epochs",
    "back-off",
    "dead-lettered",
    "dead-lettered before its receipt",
    "failover",
    "left out with a dead-letter policy",
    "long idle period",
    "redelivery of acked",
    "restart",
    "restart inside a run",
    "retention",
    "seek",
    "shadows",
    "spontaneous rewind",
    "stored twice under one id",
    "unknown",
    "waits for another key",
    "zombie",
)

HELD_BY_CLIENTS = (
    "acknowledged, sent again, lost, not sent again",
    "held for long",
    "late ack",
    "lease over",
    "lost ack",
    "lost track of what is held",
    "old ack counts",
    "rejected ack",
)

SITUATIONS: dict[Mode, tuple[str, ...]] = {
    Mode.STREAMING: (
        *ANY_MODE,
        *HELD_BY_CLIENTS,
        "break with holds",
        "flow control used up",
        "half-open",
        "handed over with holds",
        "lost with its stream",
        "move",
        "nobody subscribes",
        "race of two streams",
        "redelivered by itself with a dead-letter policy",
    ),
    Mode.PULL: (
        *ANY_MODE,
        *HELD_BY_CLIENTS,
        "concurrent pulls",
        "lost pull recorded",
        "lost response",
        "lost response with acknowledged messages",
        "nobody pulls",
    ),
    Mode.PUSH: (*ANY_MODE, "answer after the deadline", "failure", "lost answer", "lost request", "never answered"),
}
