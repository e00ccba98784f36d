"""Which answers to deliveries of one key may still be under way.

A client cannot see when an acknowledgement or refusal is applied: at the latest `ack_lag_max_s` after it was sent. It ends a hold of its
own message only, but of any delivery of it: one that is applied late ends the hold of a later delivery.
"""

from __future__ import annotations

from typing import Final

from prober.core.events import LONG_AGO
from prober.core.positions import ACKED, REFUSED, LearnedLog
from prober.core.rules import Rules

ANSWERS_KEPT: Final = 64
"""Answers remembered one by one; all that are older are taken to have been sent when the latest of those was."""


class Acknowledgements:
    """When each message of a key was last acknowledged or refused: the latest exactly, others rather too late than too early."""

    __slots__ = ("_forgotten_t", "_latest", "_log", "_rules")

    def __init__(self, log: LearnedLog, rules: Rules) -> None:
        self._log = log
        self._rules = rules
        self._latest: dict[int, float] | None = None
        self._forgotten_t = LONG_AGO

    def sent(self, position: int, t: float) -> None:
        """An answer for the position is on its way."""
        latest = self._latest
        if latest is None:
            latest = self._latest = {}
        if position in latest:
            del latest[position]
        latest[position] = t
        if len(latest) > ANSWERS_KEPT:
            self._forgotten_t = latest.pop(next(iter(latest)))

    def may_end(self, position: int, sent_t: float) -> bool:
        """Whether one of them may be applied after `sent_t`, and end a hold of the position that began then."""
        if not self._log.flags(position) & (ACKED | REFUSED):
            return False
        answered_t = self._forgotten_t if self._latest is None else self._latest.get(position, self._forgotten_t)
        return answered_t + self._rules.ack_lag_max_s + self._rules.clock_error_s >= sent_t

    def rest(self) -> None:
        """Gives the memory back."""
        if self._latest:
            self._forgotten_t = max(self._forgotten_t, *self._latest.values())
        self._latest = None
