"""The verdict of a run or a history: pass, fail or unknown, never turned into anything better by a fault of ours."""

from __future__ import annotations

from enum import StrEnum


class Verdict(StrEnum):
    """What a history says about the service."""

    PASS = "PASS"
    FAIL = "FAIL"
    UNKNOWN = "UNKNOWN"


def verdict_of(findings_failed: bool, drained: bool, owed: bool) -> Verdict:
    """The verdict of one judged history.

    findings_failed     a finding of status violation or liveness was made: a promise was broken, whatever else is unknown.
    drained             the history ends with `Ended(drained=True)`: publishing had stopped and deliveries were waited for.
    owed                something accepted is still owed to a subscriber.

    A history that did not drain may still owe what was about to come, so it is unknown. One that says it drained and yet owes
    something is unknown too: either the wait was too short to call it stuck, or the record is incomplete. So `drained` cannot turn
    the answer into a pass, and does not enter it.
    """
    if findings_failed:
        return Verdict.FAIL
    return Verdict.UNKNOWN if owed else Verdict.PASS
