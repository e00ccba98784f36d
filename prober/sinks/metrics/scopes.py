"""Scopes of metric families: the labels that name their subject."""

from __future__ import annotations

from typing import Final

TARGET: Final = ("target", "environment", "region")
TOPIC: Final = (*TARGET, "topic")
SUBSCRIPTION: Final = (*TARGET, "subscription")
PROBE_INSTANCE: Final = (*TARGET, "probe", "vantage", "part")
"""A probe on a target, at a vantage, with a part of its keys. `part` is empty if the keys are not divided."""
TOP_KEY: Final = (*SUBSCRIPTION, "rank")
"""A key of an observed stream: rank 1 has the highest score (`sinks.top_keys`)."""
OWN: Final = (*TARGET, "own_subscription")
DRILL: Final = ("drill",)
COMPARED: Final = ("baseline", "candidate")
JOB: Final = ("job", "job_name", "environment")
"""`job` and `job_name` have the same value.

Prometheus replaces `job` by its own label, unless its configuration honors labels.
"""
