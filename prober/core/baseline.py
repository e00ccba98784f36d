"""An adopted start: messages that may be older than the subscription (docs/model.md, section 10)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prober.core.facts import Delivery
    from prober.core.key import KeyChecker
    from prober.core.publications import Publication


def adopt(key: KeyChecker, one: Delivery) -> None:
    """Adopt the first delivery as the baseline: earlier publications may be older than the subscription.

    The first delivery may be a copy that the service stored later under the same id. The subscription existed when one of its sessions was
    open.
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
    """Return whether a publication may be older than the subscription; publications after the first delivered message are not (L3)."""
    first = key.baseline
    behind = first is not None and first.primary and publication.epoch.name == first.epoch and publication.seq > first.seq
    return publication.invoked_t <= key.baseline_t and not behind
