"""Names of messages, holders and times in the sentences about a finding.

A sequence number alone is enough while the key has one epoch and no number occurs twice. Otherwise a message is named with its epoch, and a
number of several records with the message id, if the facts contain it.

The facts contain the epoch of a message: `after` with `after_epoch`, `other_seq` with `other_epoch`, a list such as `skipped` with
`skipped_epochs`, one name for each, or with `skipped_epoch` for all; messages without such a fact belong to `epoch`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from prober.core.findings import EPOCHS, Fact, Facts, Kind
from prober.core.rules import Mode

DAY_S: Final = 86_400
YEAR_10000_S: Final = 253_402_300_800
LISTED_MAX: Final = 4
SHOWN_OF_MANY: Final = 3

HOLDERS: Final[Mapping[Mode, str]] = {Mode.STREAMING: "subscriber", Mode.PULL: "pull response", Mode.PUSH: "push request"}
"""The holders of outstanding messages of a key, by the mode of the subscription."""

_ALONE: Final = ("seq", "after", "by", "nacked", "target", "first_seq", "confirmed_seq", "other_seq")
_LISTS: Final = ("missing", "skipped", "held", "seqs")
_MODES: Final[Mapping[Kind, Mode]] = {
    Kind.PULL_OVERLAP: Mode.PULL,
    Kind.PULL_BATCH_ORDER: Mode.PULL,
    Kind.PUSH_OVERLAP: Mode.PUSH,
    Kind.PUSH_ADVANCE_PAST_NACK: Mode.PUSH,
}


class NamedMessage(NamedTuple):
    """A record of a sequence number of an epoch."""

    seq: int
    epoch: str


def mode_of(kind: Kind, facts: Facts) -> Mode:
    """Return the mode of the subscription of a finding: from its kind or its fact `mode`, else streaming."""
    return _MODES.get(kind) or Mode(str(facts.get("mode", Mode.STREAMING)))


class Names:
    """The names of the messages of one finding, in the order in which its sentence mentions them."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        alone = (self._message(name) for name in _ALONE if whole(facts.get(name)))
        several = (message for name in _LISTS for message in self._messages(name))
        self._times = Counter([*alone, *several])
        self._several_epochs = EPOCHS in facts or len(set(_epochs(facts))) > 1
        self._mentioned: set[NamedMessage] = set()

    @property
    def all(self) -> frozenset[NamedMessage]:
        """All messages that the facts name."""
        return frozenset(self._times)

    def one(self, name: str = "seq") -> str:
        """Return the name of a message: `message 3`, `message 3 of epoch e2`, `message 3 (id b3)`, `another record of message 3`."""
        message = self._message(name)
        stated = self._facts.get("message_id") if name == "seq" and self._times[message] > 1 else None
        message_id = self._facts.get(f"{name}_id") or stated
        text = f"message {message.seq}{self._of_epoch(message)}"
        if message_id:
            text += f" (id {message_id})"
        elif message in self._mentioned:
            text = f"another record of {text}"
        self._mentioned.add(message)
        return text

    def several(self, name: str, count: str = "") -> str:
        """Return a list of names: `message 3`, `messages 3, 4 and 6`, `messages 3, 4, 5 and 17 more`. The fact `count` is its length."""
        messages = self._messages(name)
        total = max(whole(self._facts.get(count)), len(messages))
        shown = messages if total <= LISTED_MAX else messages[:SHOWN_OF_MANY]
        ids = self._ids(name, len(messages))
        groups: dict[tuple[bool, str], list[str]] = {}
        for message, message_id in zip(shown, ids, strict=False):
            again = name != "held" and not message_id and message in self._mentioned  # a held message may be the same record
            group = again, self._of_epoch(message)
            groups.setdefault(group, []).append(f"{message.seq} (id {message_id})" if message_id else str(message.seq))
            self._mentioned.add(message)
        more = [f"{total - len(shown):,} more"] if total > len(shown) else []
        if len(groups) == 1 and (False, "") in groups:
            groups[False, ""] += more
            more = []
        return _joined([_group(seqs, epoch, again=again) for (again, epoch), seqs in groups.items()] + more)

    def _of_epoch(self, message: NamedMessage) -> str:
        return f" of epoch {message.epoch}" if self._several_epochs and message.epoch else ""

    def _message(self, name: str) -> NamedMessage:
        return NamedMessage(whole(self._facts[name]), self._epoch(name))

    def _messages(self, name: str) -> list[NamedMessage]:
        seqs, epochs = seqs_of(self._facts.get(name)), self._facts.get(f"{name}_epochs")
        if isinstance(epochs, tuple) and len(epochs) == len(seqs):
            return [NamedMessage(seq, str(epoch)) for seq, epoch in zip(seqs, epochs, strict=True)]
        return [NamedMessage(seq, self._epoch(name)) for seq in seqs]

    def _ids(self, name: str, count: int) -> Sequence[str]:
        """Return the message ids of a list, empty ones for unambiguous numbers."""
        ids = self._facts.get(f"{name}_ids")
        return [str(one) for one in ids] if isinstance(ids, tuple) and len(ids) == count else [""] * count

    def _epoch(self, name: str) -> str:
        return str(self._facts.get(f"{name.removesuffix('_seq')}_epoch", self._facts.get("epoch", "")))


def named_in(facts: Facts) -> frozenset[NamedMessage]:
    """Return the messages that a finding names."""
    return Names(facts).all


def _epochs(facts: Facts) -> Iterator[str]:
    for name, fact in facts.items():
        if name.endswith("epoch"):
            yield str(fact)
        elif name.endswith("epochs") and isinstance(fact, tuple):
            yield from map(str, fact)


def _group(seqs: Sequence[str], epoch: str, *, again: bool) -> str:
    plural = "s" * (len(seqs) > 1)
    record = ("other records of " if plural else "another record of ") if again else ""
    return f"{record}message{plural} {_joined(seqs)}{epoch}"


def _joined(words: Sequence[str]) -> str:
    """Join words: `a`, `a and b`, `a, b and c`."""
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else "".join(words)


def capital(text: str) -> str:
    """Return the text with a capital first letter."""
    return text[:1].upper() + text[1:]


def seqs_of(fact: Fact | None) -> tuple[int, ...]:
    """Return a fact that is a list of sequence numbers; empty if it is not."""
    return tuple(seq for seq in fact if isinstance(seq, int)) if isinstance(fact, tuple) else ()


def whole(fact: Fact | None) -> int:
    """Return a fact that is a number; 0 if it is not."""
    return int(fact) if isinstance(fact, int | float) else 0


def lasting(seconds: float) -> str:
    """Format a duration: `120 s`, `2.5 s`."""
    return f"{seconds:,.0f} s" if seconds >= 10 else f"{seconds:.3g} s"


def moment(t: float, wall: float | None, *, exactly: bool = False) -> str:
    """Format a time of the recorder's clock, after the time of day if the offset to 1970 is known; `exactly`: to 1 ms."""
    monotonic = f"t={t:.3f} s"
    if wall is None:
        return monotonic
    if not 0 <= t + wall < YEAR_10000_S:  # a clock that shows nothing real
        return monotonic
    return f"{time_of_day(t + wall, exactly=exactly)} ({monotonic})"


def time_of_day(seconds: float, *, exactly: bool = True) -> str:
    """Format a time of day from seconds since 1970: `10:00:02.500 UTC`; without `exactly` to the second."""
    seconds, milliseconds = divmod(round(seconds % DAY_S * 1e6) // 1000, 1000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    fraction = f".{milliseconds:03d}" if exactly else ""
    return f"{hour % 24:02d}:{minute:02d}:{second:02d}{fraction} UTC"
