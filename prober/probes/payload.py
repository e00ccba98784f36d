"""Content of a probe message: its identity, and a checksum of all of it.

Attributes name the epoch, the sequence number and the generation; the ordering key is the message's own. The checksum (CRC-32) covers
epoch, ordering key, sequence number, generation and the data, so it reveals a message that was changed, truncated or moved to another key.
The data itself is arbitrary: probes use it for size only.

Attributes added by clients (their names start with `googclient_`) are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from zlib import crc32

from prober.core.events import fact

EPOCH = "okp_epoch"
SEQ = "okp_seq"
GENERATION = "okp_generation"
CHECKSUM = "okp_checksum"
MARK = "okp_even"
EVEN = 2
"""Divisor of the sequence numbers whose messages carry the mark: even numbers."""
EVEN_ONLY = f"attributes:{MARK}"
"""Filter of a subscription that marked messages pass, in Pub/Sub's filter language."""


@fact(frozen=True, slots=True)
class Stamp:
    """The identity of a probe message; sequence numbers count from 1 per epoch and key."""

    epoch: str
    seq: int
    generation: int = 0

    def attributes(self, ordering_key: str, data: bytes) -> dict[str, str]:
        """Return the attributes to publish the message with."""
        return {
            EPOCH: self.epoch,
            SEQ: str(self.seq),
            GENERATION: str(self.generation),
            CHECKSUM: _checksum(self, ordering_key, data),
            **({} if self.seq % EVEN else {MARK: "1"}),
        }


@fact(frozen=True, slots=True)
class Read:
    """A received probe message: its stamp, and its defect ("checksum"), None if it is unchanged."""

    stamp: Stamp
    defect: str | None


def read(ordering_key: str, data: bytes, attributes: Mapping[str, str]) -> Read | None:
    """Return the stamp of a received message; None if it has none and so is not a probe's."""
    try:
        stamp = Stamp(attributes[EPOCH], int(attributes[SEQ]), int(attributes[GENERATION]))
        claimed = attributes[CHECKSUM]
    except (KeyError, ValueError):
        return None
    return Read(stamp, None if claimed == _checksum(stamp, ordering_key, data) else "checksum")


def _checksum(stamp: Stamp, ordering_key: str, data: bytes) -> str:
    identity = f"{stamp.epoch}\n{ordering_key}\n{stamp.seq}\n{stamp.generation}\n"
    return f"{crc32(data, crc32(identity.encode())):08x}"
