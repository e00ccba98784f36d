"""What was passed over, until it is told: a skip on hold, and the doubts that it may be told with.

What was seen of a skip may look otherwise a little later: a copy that was sent in between arrives, or a second copy of what was taken
for the only one, so that its place is not certain any more. Until then it is on hold (`redelivery`).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from prober.core.findings import Facts, Kind
from prober.core.sessions import Session

DEAD_LETTER: Final = "with a dead-letter policy redelivery need not be consistent"
COPY: Final = "a copy that arrived later on another session may have been sent in between"
SOUGHT: Final = "{} may have passed over what is missing"
LOST: Final = "what is missing was acknowledged before, and may have been sent again on a stream or pull that was lost"
ELSEWHERE: Final = "what is missing was published in another region, and order holds within one"
RACING: Final = "several sessions raced, so the order of what is missing is not certain"
ACKED_BEFORE: Final = "an acknowledgement was sent for it, which may have been applied"
TOO_MANY: Final = "too many skips are on hold"


class Skip(NamedTuple):
    """A skip on hold: a copy of the position before `position`, or a later one, may still turn up on another session.

    `kind`: what it is told as. Inside a pull response nothing can be sent in between; there `between` are two that followed each other.
    `nacked` is the position of a refused push request that was passed over, 0 for any other skip: that message may turn up.
    `sent_after_t`: what was skipped should have been sent after this. `acked`: all of it had been acknowledged before. `skipped` are
    positions of the region behind `after`, whose places may yet turn out to be uncertain. `beside`: others than `after` that it may have
    been sent behind.
    """

    due_t: float
    t: float
    position: int
    session: Session
    sent_after_t: float
    acked: bool
    witnesses: tuple[int, ...]
    facts: Facts
    kind: Kind = Kind.REDELIVERY_SKIP
    nacked: int = 0
    leaning: int = 0
    between: tuple[int, int] = (0, 0)
    skipped: tuple[int, ...] = ()
    beside: tuple[int, ...] = ()
