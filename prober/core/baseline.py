"""An adopted start: what may be older than a subscription (docs/model.md, section 10)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prober.core.facts import Delivery
    from prober.core.key import KeyChecker
    from prober.core.publications import Publication


def adopt(key: KeyChecker, one: Delivery) -> None:
    """The subscription may be younger than what was published before the first message that it delivers.

    That one may be a copy that the service stored later under the same id. The subscription existed when a session of it was open.
    """
    key.adopts = False
    publication, eps = one.publication, key.rules.clock_error_s
    seen_t = min(key.subscription.first_seen_t, one.t) + eps
    if publication is None or not one.primary:
        key.baseline_t = one.t + eps  # the time at which the service stored it is unknown
    else:
        key.baseline_t = max(publication.ordered_t, seen_t) if one.stamp else publication.ordered_t
    stored_again = one.stamp and (publication is None or publication.ordered_t < seen_t)
    key.baseline = None if stored_again else one
    for lane in key.lanes.values():
        for other in [other for other in lane.pending if may_predate(key, other) and other.token != one.token]:
            del lane.pending[other]
            key.excuse(other)


def may_predate(key: KeyChecker, publication: Publication) -> bool:
    """Whether a publication may be older than the subscription; what stands behind its first message is not (L3)."""
    first = key.baseline
    behind = first is not None and first.primary and publication.epoch.name == first.epoch and publication.seq > first.seq
    return publication.invoked_t <= key.baseline_t and not behind
