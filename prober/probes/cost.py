"""Cost of a probe at Pub/Sub: messages, billed bytes and price of a run.

Google bills the volume that is published and delivered (https://cloud.google.com/pubsub/pricing, a copy read on 2026-11-22; the page has no
date of its own): $40 per TiB in every region. The volume of a message is its data, its attributes, 20 bytes for the timestamp and its
message id. Each publish, push or pull request counts as at least 1,000 bytes. The service may put any number of messages into a response of
a stream. So the price lies between two bounds: responses so full that the minimum plays no role, and one message per response. The first 10
GiB per month of a billing account are free; neither that nor traffic between regions is counted here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from prober.probes.payload import Stamp

USD_PER_TIB: Final = 40.0
REQUEST_BYTES_MIN: Final = 1000
MONTH_S: Final = 30 * 86_400.0

_TIB: Final = 2**40
_TIMESTAMP_BYTES: Final = 20
_MESSAGE_ID_BYTES: Final = 17
_TYPICAL_KEY: Final = "redelivery-10-refused-12"
_TYPICAL_STAMP: Final = Stamp("redelivery-0123456789ab", 100)


@dataclass(frozen=True, slots=True)
class Traffic:
    """Traffic of an undisturbed run.

    requests    publish requests, of one key each.
    published   messages in them.
    delivered   messages received, including the redeliveries that the probe causes.
    unrecorded  published messages without a record, which count for no indicator.
    """

    requests: int
    published: int
    delivered: int
    unrecorded: int = 0


@dataclass(frozen=True, slots=True)
class Bounds:
    """Lower and upper bound of a quantity."""

    least: float
    most: float

    def __add__(self, other: Bounds) -> Bounds:
        return Bounds(self.least + other.least, self.most + other.most)

    def times(self, factor: float) -> Bounds:
        """Return both bounds multiplied by `factor`."""
        return Bounds(self.least * factor, self.most * factor)


def message_bytes(sizes: Sequence[int]) -> float:
    """Return the mean billed volume of a probe message in bytes, over payload sizes used in turn."""
    attributes = _TYPICAL_STAMP.attributes(_TYPICAL_KEY, b"")
    around = sum(len(name) + len(value) for name, value in attributes.items()) + len(_TYPICAL_KEY)
    return sum(sizes) / len(sizes) + around + _TIMESTAMP_BYTES + _MESSAGE_ID_BYTES


def billed_bytes(traffic: Traffic, sizes: Sequence[int], *, batched: bool = True) -> Bounds:
    """Return the billed volume of a run. `batched`: each burst is one request, as at the wire; a client library may send any number."""
    each = message_bytes(sizes)
    alone = max(each, REQUEST_BYTES_MIN)
    bursts = max(traffic.published * each, traffic.requests * REQUEST_BYTES_MIN)
    publishing = Bounds(bursts, bursts if batched else traffic.published * alone)
    return publishing + Bounds(traffic.delivered * each, traffic.delivered * alone)


def price_usd(volume: Bounds) -> Bounds:
    """Return the list price of a volume, in US dollars."""
    return volume.times(USD_PER_TIB / _TIB)
