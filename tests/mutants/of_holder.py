"""Bugs in the one-holder rule: what is held, what may have been released, late copies, half-open streams, subscribers."""

# ruff: noqa: E501 - a mutant is one line

from __future__ import annotations

from tests.mutants.mutant import Mutant, excuse, rule

MUTANTS: tuple[Mutant, ...] = (
    rule("ack-settles-without-lag", "rules.py", "return self.ack_lag_max_s + self.delivery_delay_max_s", "return self.delivery_delay_max_s", "An acknowledgement takes no time to be applied."),
    excuse("splits-decided-before-a-close", "holder.py", "due_t = arrival.t + max(close_s, rules.delivery_delay_max_s)", "due_t = arrival.t + rules.delivery_delay_max_s", "A split is decided although a stream may turn out to be dead."),
    excuse("splits-decided-too-early", "holder.py", "due_t = arrival.t + max(close_s, rules.delivery_delay_max_s)", "due_t = arrival.t + close_s", "A split is decided although a rewind may be on its way."),
)  # fmt: skip
