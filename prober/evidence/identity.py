"""When two findings, made from different parts of a history, are the same one."""

from __future__ import annotations

import re
from typing import Final, TypeAlias

from prober.core.findings import EPOCHS, Fact, Finding

Identity: TypeAlias = tuple[str, str, str, str, str, frozenset[tuple[str, Fact]]]

_OF_EPOCH: Final = re.compile(r" of epoch [^ ,:]+")


def identity_of(finding: Finding) -> Identity:
    """What makes two findings the same one, wherever their events stand: no times, no positions."""
    lasting = frozenset(
        (name, fact)
        for name, fact in finding.facts.items()
        if not isinstance(fact, float) and "position" not in name and name != EPOCHS
    )
    return (finding.kind, finding.status, finding.subscription, finding.key, finding.doubt, lasting)


def grounds_of(finding: Finding) -> frozenset[str]:
    """Its reasons: every event that one cites stays. Not compared is for how long something was in the way, nor the names of epochs."""
    return frozenset(_OF_EPOCH.sub("", one.partition(":")[0] if one.startswith("not delayed ") else one) for one in finding.reasons)
