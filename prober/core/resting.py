"""Keys at rest: a topic may have a million keys, of which few are in use at a time.

A key that was idle for long enough to give up its window is put away as bytes, in less than a tenth of the memory, until something
happens to it again; so are, when there are more than `WARM_KEYS_MAX`, those that have been there longest. Only a key
*at rest* is put away: nothing about it can be found before its next event (`KeyChecker.at_rest`). So neither the passing of time nor the
end of the history concerns it, save that it gives up its window in time; what is done to every key at once, such as a seek, it is told
when it comes back. Putting away changes no finding and no count.

With a bound on how many keys are remembered (`Rules.keys_max`), those at rest longest are forgotten, and counted. What comes on a key that
is new from then on may have come before: nothing is certain any more about where it stands in the log.

A key as bytes is what `pickle` makes of it, compressed after the sample of one that was put away earlier. What it shares with others
(its subscriptions, their rules, sessions that are open) is not part of it: it refers to that by number.
"""

from __future__ import annotations

from array import array
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Sequence
from heapq import heapify
from itertools import chain
from math import inf
from operator import attrgetter
from pickle import Pickler, Unpickler
from types import MethodType
from typing import Any, Final, NamedTuple, TypeAlias
from zlib import DEFLATED, compressobj, decompressobj

from prober.core.attempts import PublishAttempts
from prober.core.collector import Counts, FindingsCollector
from prober.core.divergence import DivergenceCheck
from prober.core.epoch_order import EpochOrder, Overtaken, RealTime
from prober.core.foreign import ForeignMessages
from prober.core.group import KeyGroup
from prober.core.holder import HolderCheck
from prober.core.key import KeyChecker
from prober.core.liveness import LivenessCheck
from prober.core.order import OrderCheck
from prober.core.overtakings import Overtakings
from prober.core.owed import Owed
from prober.core.places import Places
from prober.core.positions import LearnedLog
from prober.core.publications import EpochRecord, Publication
from prober.core.redelivery import RedeliveryCheck
from prober.core.rules import Assumptions, Rules
from prober.core.sessions import Session, Span, Track, Tracks
from prober.core.skips import Beginning
from prober.core.splits import Acknowledgements, Break, Splits
from prober.core.subscription import Subscription
from prober.core.unrecorded import Numbering, NumbersCheck, UnrecordedEpoch

WARM_KEYS_MAX = 20_000
"""Keys kept as objects though they may be put away; more only while more are not at rest."""

LOOKS = 2
"""Keys looked at when there are too many: more than one, so that a surplus shrinks; few, since those in use are looked at in vain."""

HEAVY_BYTES = 1024
"""A key at rest with more than this comes back when it is due, for it may have a window to give up."""

MISSED_MAX = 256
"""Operations remembered for the keys at rest; beyond that all are told."""

_LEVEL, _WINDOW_BITS, _MEMORY_LEVEL = 1, 12, 5
_SAMPLE_MAX = 1 << _WINDOW_BITS
"""How keys are compressed: quickly, and looking back no further than the sample reaches."""

Operation: TypeAlias = Callable[[KeyGroup], None]

Due: TypeAlias = tuple[float, int, str, int]
"""When a key has to be looked at again, a number for those of one time, the key, and the index of the subscription."""

DUE_SLACK, DUE_PER_KEY = 1024, 4
"""How long the queue of what is due may be before what is left of forgotten keys is taken out of it."""

Missed: TypeAlias = tuple[float, Operation]
"""Something that was done to every key, and up to when time had passed for them before."""


class WokenKey(NamedTuple):
    """A key that was at rest, and what was done to every key meanwhile."""

    group: KeyGroup
    missed: Sequence[Missed]


class Keys:
    """The keys of a topic, by name. `warm` are those that are objects now: to look up and to iterate over, not to change."""

    def __init__(self, counts: Counts, rules: Iterable[Rules] = (), due: list[Due] | None = None) -> None:
        """`rules`: of all subscriptions; the least `keys_max` holds, more are remembered only while more are not at rest.

        `due`: the queue of what has to be decided, from which is taken what concerns keys that were forgotten.
        """
        self._counts = counts
        self._due = [] if due is None else due
        self._keys_max = min((one.keys_max for one in rules if one.keys_max), default=0)
        self.warm: OrderedDict[str, KeyGroup] = OrderedDict()
        self._resting: dict[str, bytes] = {}
        self._missed: list[Missed] = []
        self._forgotten = 0
        self._shared = _Shared()
        self._sample = b""

    @property
    def _warm_max(self) -> int:
        return min(WARM_KEYS_MAX, self._keys_max or WARM_KEYS_MAX)

    def __len__(self) -> int:
        return len(self.warm) + len(self._resting)

    def resting(self) -> list[str]:
        """The names of the keys at rest."""
        return list(self._resting)

    def add(self, group: KeyGroup) -> None:
        """A key that is new, or that has come back."""
        self.make_room(1)
        self.warm[group.key] = group

    def take(self, key: str) -> WokenKey | None:
        """A key at rest, to be told what it missed and added again; None if there is none of that name."""
        frozen = self._resting.pop(key, None)
        if frozen is None:
            return None
        group, told = self._thaw(frozen)
        return WokenKey(group, self._missed[told - self._forgotten :])

    def is_heavy(self, key: str) -> bool:
        """Whether a key is at rest and takes much memory all the same."""
        return len(self._resting.get(key, b"")) > HEAVY_BYTES

    def make_room(self, wanted: int = 0) -> None:
        """Puts keys away, at most `LOOKS`, and forgets some, if there are too many.

        Objects of any key must not be used any more after this.
        """
        for _ in range(min(LOOKS, len(self.warm))):
            if len(self.warm) + wanted <= self._warm_max:
                break
            key, group = next(iter(self.warm.items()))
            if group.at_rest:
                self.put_away(key)
            else:
                self.warm.move_to_end(key)
        while self._keys_max and self._resting and len(self) + wanted > self._keys_max:
            self._forget(next(iter(self._resting)))

    def _forget(self, key: str) -> None:
        """The queue is looked through now and then, so that it grows no more than what is remembered."""
        self._thaw(self._resting.pop(key))  # gives back the sessions that it was lent
        self._counts.keys_forgotten += 1
        if len(self._due) > DUE_SLACK + DUE_PER_KEY * len(self):
            self._due[:] = [entry for entry in self._due if self._wakes(entry)]
            heapify(self._due)

    def _wakes(self, entry: Due) -> bool:
        """Whether an entry of the queue still says when a key has to be looked at."""
        due_t, _, key, index = entry
        group = self.warm.get(key)
        return self.is_heavy(key) if group is None else due_t == group.checkers[index].due_t

    def put_away(self, key: str) -> None:
        """Puts a key at rest away. Its objects must not be used any more after this."""
        self._resting[key] = self._freeze(self.warm.pop(key))

    def miss(self, t: float, operation: Operation) -> bool:
        """Notes what was done to the keys that are warm; True when all others have to be told before more is noted."""
        if self._resting:
            self._missed.append((t, operation))
        return len(self._missed) >= MISSED_MAX

    def forget_missed(self) -> None:
        """Every key has been told what it missed."""
        self._forgotten += len(self._missed)
        self._missed.clear()

    def _freeze(self, group: KeyGroup) -> bytes:
        file = _Memory()
        _Freezer(file, self._shared).dump((group, self._forgotten + len(self._missed)))
        group.checkers = ()  # they refer to the group: apart, all of it is given back at once
        state = file.read()
        self._sample = self._sample or state[:_SAMPLE_MAX]
        packer = compressobj(_LEVEL, DEFLATED, -_WINDOW_BITS, _MEMORY_LEVEL, zdict=self._sample)
        return packer.compress(state) + packer.flush()

    def _thaw(self, frozen: bytes) -> tuple[KeyGroup, int]:
        state = decompressobj(-_WINDOW_BITS, zdict=self._sample).decompress(frozen)
        group, told = _Thawer(_Memory(state), self._shared).load()
        return group, told


class _Shared:
    """What keys share, by number: things that live as long as the keys, and sessions as long as a key at rest refers to them."""

    def __init__(self) -> None:
        self.things: dict[int, object] = {}
        self._numbers: dict[int, int] = {}
        self._uses = Counter[int]()
        self._next = 0

    def number(self, thing: object) -> int:
        """The number of a thing, which is kept from now on."""
        number = self._numbers.get(id(thing))
        if number is None:
            number = self._numbers[id(thing)] = self._next
            self._next += 1
            self.things[number] = thing
        return number

    def lend(self, session: Session) -> int:
        """The number of a session, to be given back once."""
        number = self.number(session)
        self._uses[number] += 1
        return number

    def give_back(self, number: int) -> object:
        """The session of that number; it is let go when it was given back as often as it was lent."""
        session = self.things[number]
        self._uses[number] -= 1
        if not self._uses[number]:
            del self._uses[number], self.things[number], self._numbers[id(session)]
        return session


_SHARED: Final = frozenset({Subscription, Assumptions, Rules, Counts, MethodType})
"""Types of what keys share."""

_KINDS: Final[tuple[type, ...]] = (
    KeyGroup,
    DivergenceCheck,
    EpochRecord,
    Publication,
    KeyChecker,
    FindingsCollector,
    LearnedLog,
    RedeliveryCheck,
    Beginning,
    OrderCheck,
    Places,
    EpochOrder,
    RealTime,
    Overtaken,
    Overtakings,
    HolderCheck,
    Splits,
    Acknowledgements,
    Break,
    PublishAttempts,
    LivenessCheck,
    ForeignMessages,
    Owed,
    Tracks,
    Track,
    Span,
    Session,
    UnrecordedEpoch,
    NumbersCheck,
    Numbering,
)
"""Types of what belongs to one key. A type that is in neither list is pickled as usual: that takes more time and memory."""


def _slots(kind: type) -> tuple[str, ...]:
    """The names of its attributes."""
    return tuple(chain.from_iterable(vars(base).get("__slots__", ()) for base in kind.__mro__))


_CODES: Final = {kind: code for code, kind in enumerate(_KINDS)}
_READ: Final = [attrgetter(*_slots(kind)) for kind in _KINDS]
_WRITE: Final = {kind: [getattr(kind, name).__set__ for name in _slots(kind)] for kind in _KINDS}


def _new(code: int) -> object:
    kind: Any = _KINDS[code]
    return kind.__new__(kind)


def _fill(thing: object, values: Sequence[object]) -> None:
    for write, value in zip(_WRITE[type(thing)], values, strict=False):
        write(thing, value)


_KNOWN: Final[dict[str, Callable[..., object]]] = {"_new": _new, "_fill": _fill, "array": array}
"""What every key needs to be made again, by name: found sooner than by import."""


def _shared(number: int) -> object:
    """Stands in the bytes for what is shared; the `_Thawer` says which thing that is."""
    raise LookupError(number)


def _session(number: int) -> object:
    """The same for a session that is open."""
    raise LookupError(number)


class _Freezer(Pickler):
    """Writes a key by the numbers of its types and the values of their slots."""

    def __init__(self, file: _Memory, shared: _Shared) -> None:
        super().__init__(file, protocol=5)
        self._things = shared

    def reducer_override(self, thing: Any) -> Any:
        """Asked once for everything that is not a plain value. A session that is over never changes again, so it is copied."""
        kind = type(thing)
        if kind is Session and thing.closed_t == inf:
            return _session, (self._things.lend(thing),)
        code = _CODES.get(kind)
        if code is not None:
            return _new, (code,), _READ[code](thing), None, None, _fill
        if kind is array:
            return array, (thing.typecode, thing.tobytes())
        if kind in _SHARED:
            return _shared, (self._things.number(thing),)
        return NotImplemented


class _Thawer(Unpickler):
    """Makes a key again; what it shares is looked up."""

    def __init__(self, file: _Memory, shared: _Shared) -> None:
        super().__init__(file)
        self._known = {**_KNOWN, "_shared": shared.things.__getitem__, "_session": shared.give_back}

    def find_class(self, module: str, name: str) -> Any:
        """Asked for every type and function by name."""
        return self._known.get(name) or super().find_class(module, name)


class _Memory:
    """A file in memory, as far as pickle needs one; the core uses no `io`."""

    __slots__ = ("_at", "_content")

    def __init__(self, content: bytes = b"") -> None:
        self._content = content
        self._at = 0

    def write(self, part: bytes) -> None:
        self._content += bytes(part)

    def read(self, size: int | None = None) -> bytes:
        end = len(self._content) if size is None else self._at + size
        part = self._content[self._at : end]
        self._at = end
        return part

    def readline(self) -> bytes:
        raise EOFError("keys are pickled without lines")
