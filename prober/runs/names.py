"""How the subscriptions of a probe are called: each like the first one, with a name of its own before the part that changes."""

from __future__ import annotations

import re
from typing import Final

from prober.probes.catalogue import PROBES

CHANGING: Final = "-([0-9a-f]{8})-[0-9a-f]{6}"
_FULL_NAME: Final = re.compile(rf"(?P<steady>projects/[^/]+/subscriptions/okp-.*)(?P<changing>{CHANGING})")


def subscriptions_of(probe: str, first: str) -> tuple[str, ...]:
    """Full names of all that runs of a probe receive from, the first one first; none if that is empty.

    A name that is not ours stands alone, and so does that of a probe that is no more.
    """
    if not first:
        return ()
    found = _FULL_NAME.fullmatch(first)
    known = next((known for name, known in PROBES.items() if name == probe), None)
    if found is None or known is None:
        return (first,)
    return first, *(f"{found['steady']}-{plan.name}{found['changing']}" for plan in known.subscriptions[1:])
