"""The verdict of a run or a history: pass, fail or unknown. A fault of the prober never improves it."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

STILL_PENDING: Final = (
    "the history ended while messages were pending, so a late message and a lost one cannot be distinguished; if this persists, "
    "record for longer (a probe: deadlines.drain)"
)
"""The text of why a history without a finding is UNKNOWN."""


class Verdict(StrEnum):
    """The verdict of a history about the service."""

    PASS = "PASS"
    FAIL = "FAIL"
    UNKNOWN = "UNKNOWN"


def verdict_of(*, failed: bool, pending: bool) -> Verdict:
    """Return the verdict of one verified history.

    failed   a finding of status violation or liveness was made: the service violated a guarantee, whatever else is unknown.
    pending  an accepted message is still pending.

    The messages of a history that did not drain may have been about to arrive, so its verdict is unknown. So is that of a drained history
    with pending messages: either the wait was too short to report a stuck key, or the record is incomplete.
    """
    if failed:
        return Verdict.FAIL
    return Verdict.UNKNOWN if pending else Verdict.PASS


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the worst of several verdicts: FAIL, then UNKNOWN, then PASS; UNKNOWN if there are none."""
    found = set(verdicts)
    return next((verdict for verdict in (Verdict.FAIL, Verdict.UNKNOWN, Verdict.PASS) if verdict in found), Verdict.UNKNOWN)
