"""Troubles of a soak: start and end of each, its visible effect, and the failures that it excuses.

They follow one after the other, with as much quiet between them as the time permits (`Timetable`).
"""

from __future__ import annotations

import errno
import json
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from math import inf
from typing import Final
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from benchmarks.soak.samples import HISTORY_DROPPED, Sample
from benchmarks.soak.setting import DISK_MIB, Setting
from prober.core.verdict import Verdict
from prober.embedded.catalogue import CATALOGUE
from prober.embedded.faults import parse_fault
from prober.sinks.metrics.label_values import SkipReason

CONNECTIONS: Final = 1_000
SEEN_FROM: Final = 300
"""Additional descriptors that prove the idle connections: the service keeps at most 512."""
AFTER_S: Final = 45.0
"""Seconds after a trouble in which consequences may appear: a run in progress ends, a thread retries."""
MINUTE_S: Final = 60.0
PLANTED_S: Final = 80.0
"""Duration of a planted fault: longer than the interval of the probe that meets it."""
CHUNK: Final = bytes(1 << 20)

FIRST_S: Final = 120.0
"""Start of the first trouble: every probe has run before."""
FIRST_SHARE: Final = 0.2
TROUBLED_MAX: Final = 0.6
"""Maximum share of the time slot of a trouble; the rest is for its consequences, and for quiet."""


@dataclass(frozen=True)
class Trouble:
    """A temporary disturbance.

    lasts_s    duration in seconds, if there is enough time.
    inflicted  context manager that causes it.
    shows      whether a sample shows it, compared with the last sample before it started.
    excuses    excused failures of the prober, by their names in a sample, and excused reasons to skip runs.
    planted    fault that violates a guarantee, in the server's notation, and that must be found. Empty: no violation may be reported.
    """

    name: str
    lasts_s: float
    inflicted: Callable[[], AbstractContextManager[None]]
    shows: Callable[[Sample, Sample], bool]
    excuses: frozenset[str] = frozenset()
    planted: str = ""

    def explains(self, kind: str, key: str) -> bool:
        """Return whether a finding on a key is about the planted fault."""
        if not self.planted:
            return False
        fault = parse_fault(self.planted)
        return fnmatchcase(key, fault.key) and kind in CATALOGUE[fault.name].findings


@dataclass(frozen=True, slots=True)
class Spell:
    """A trouble, with its start and end. `before`: last sample without it."""

    trouble: Trouble
    began_t: float
    ended_t: float
    before: Sample

    def covers(self, t: float, after_s: float = AFTER_S) -> bool:
        """Return whether its consequences may be visible at a time."""
        return self.began_t <= t <= self.ended_t + after_s


def troubles(setting: Setting) -> tuple[Trouble, ...]:
    """Return all troubles that this machine permits, in the order of their time.

    The full disk is the first: the process keeps the memory for the data that waits meanwhile, which is not counted as growth if it happens
    early.
    """
    return (
        *full_disks(setting),
        planted(setting, "swap_in_batch:p=0.3,key=ordering-[024]"),
        Trouble(
            "the status store is killed",
            40.0,
            partial(killed_store, setting),
            lambda before, now: now.value("status_failures") > before.value("status_failures"),
            frozenset({"status_failures"}),
        ),
        Trouble(
            "the target hangs",
            20.0,
            partial(hanging_target, setting),
            lambda before, now: now.verdicts()[Verdict.UNKNOWN] > before.verdicts()[Verdict.UNKNOWN],
        ),
        Trouble(
            "a wrong configuration",
            20.0,
            partial(wrong_file, setting),
            lambda _, now: now.value("config_last_reload_successful") < now.probers,
        ),
        planted(setting, "redeliver_unacked_only:p=0.5,key=redelivery-*[02468]"),
        Trouble(
            f"the clock is {STEP_S:g} s ahead",
            40.0,
            partial(clock_ahead, setting),
            lambda before, now: now.skipped(SkipReason.MISFIRE) > before.skipped(SkipReason.MISFIRE),
            frozenset({SkipReason.MISFIRE}),
        ),
        Trouble(
            f"{CONNECTIONS:,} idle connections",
            MINUTE_S,
            partial(idle_connections, setting),
            lambda before, now: now.service.descriptors > before.service.descriptors + SEEN_FROM,
        ),
    )


def planted(setting: Setting, fault: str) -> Trouble:
    """Return the trouble of a fault that violates a guarantee."""
    return Trouble(
        fault.partition(":")[0],
        PLANTED_S,
        partial(armed, setting, fault),
        lambda before, now: sum(now.reported.values()) > sum(before.reported.values()),
        planted=fault,
    )


def full_disks(setting: Setting) -> Iterator[Trouble]:
    """Yield the trouble of the history's full disk, if the history has a disk of its own."""
    if setting.disk is not None:
        yield Trouble(
            "the disk of the history is full",
            30.0,
            partial(full_disk, setting),
            lambda before, now: now.value("history_failures") > before.value("history_failures"),
            frozenset({"history_failures", HISTORY_DROPPED}),
        )


# --- causes of troubles ------------------------------------------------------------------------------------------------------


@contextmanager
def armed(setting: Setting, fault: str) -> Iterator[None]:
    """Arm a fault of the target."""
    document = json.dumps({"fault": fault}).encode()
    with urlopen(Request(f"{setting.admin}/faults", document)) as answer:
        number = json.loads(answer.read())["number"]
    yield
    with urlopen(Request(f"{setting.admin}/faults/{number}", method="DELETE")):
        pass


@contextmanager
def killed_store(setting: Setting) -> Iterator[None]:
    """Kill the server of the status store, and restart it at the end."""
    setting.store.kill()
    yield
    setting.store.start()


@contextmanager
def hanging_target(setting: Setting) -> Iterator[None]:
    """Suspend the target: it answers no request, and closes no connection."""
    setting.target.send(signal.SIGSTOP)
    yield
    setting.target.send(signal.SIGCONT)


@contextmanager
def wrong_file(setting: Setting) -> Iterator[None]:
    """Write an invalid configuration, then a valid one with one more key for `redelivery`.

    The probe restarts.
    """
    text = setting.service.configuration.read_text(encoding="utf-8")
    setting.service.configuration.write_text("targets: 7\n", encoding="utf-8")
    yield
    setting.service.configuration.write_text(f"{text}probes:\n  redelivery: {{keys: 13}}\n", encoding="utf-8")


@contextmanager
def full_disk(setting: Setting) -> Iterator[None]:
    """Fill the disk of the history's spool."""
    assert setting.disk is not None
    ballast = setting.disk / "ballast"
    with ballast.open("wb", buffering=0) as stream:
        try:
            for _ in range(DISK_MIB + 1):
                stream.write(CHUNK)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
    yield
    ballast.unlink()


@contextmanager
def clock_ahead(setting: Setting) -> Iterator[None]:
    """Set the service's wall clock forward, and back at the end."""
    setting.service.process.send_signal(FORWARD)
    yield
    setting.service.process.send_signal(BACK)


@contextmanager
def idle_connections(setting: Setting) -> Iterator[None]:
    """Connect many clients that send no request."""
    address = urlsplit(setting.service.url)
    with ExitStack() as clients:
        for _ in range(CONNECTIONS):
            clients.enter_context(socket.create_connection((address.hostname or "", address.port or 0)))
        yield


class Timetable:
    """Schedule that starts and ends troubles during a soak. `spells`: the started ones; the last one ends with the block."""

    def __init__(self, troubles: Sequence[Trouble], seconds: float) -> None:
        self.spells: list[Spell] = []
        first_s = min(FIRST_S, FIRST_SHARE * seconds)
        self._each_s = (seconds - first_s) / len(troubles)
        self._waiting = [(first_s + number * self._each_s, trouble) for number, trouble in enumerate(troubles)]
        self._lasting = ExitStack()
        self._t = 0.0

    def __enter__(self) -> Timetable:
        return self

    def __exit__(self, *_: object) -> None:
        if self.spells and self.spells[-1].ended_t == inf:
            self._end(self._t)

    def look(self, now: Sample) -> str:
        """End or start the trouble that is due; return that in words."""
        self._t = now.t
        if self.spells and self.spells[-1].ended_t == inf:
            return self._end(now.t) if now.t >= self.spells[-1].began_t + self._lasts_s(self.spells[-1].trouble) else ""
        if self._waiting and now.t >= self._waiting[0][0]:
            return self._begin(self._waiting.pop(0)[1], now)
        return ""

    def _lasts_s(self, trouble: Trouble) -> float:
        return min(trouble.lasts_s, TROUBLED_MAX * self._each_s)

    def _begin(self, trouble: Trouble, now: Sample) -> str:
        self.spells.append(Spell(trouble, now.t, inf, now))
        self._lasting.enter_context(trouble.inflicted())
        return f"{trouble.name}: begins"

    def _end(self, t: float) -> str:
        self._lasting.close()
        self.spells[-1] = replace(self.spells[-1], ended_t=t)
        return f"{self.spells[-1].trouble.name}: ends"


# --- `ordering-prober` on a machine whose clock is set while it runs: `python -m benchmarks.soak.troubles ARGUMENTS` -------------


STEP_S: Final = 30.0
FORWARD: Final = signal.SIGUSR1
BACK: Final = signal.SIGUSR2


class SteppedClock:
    """A clock that SIGUSR1 sets forward by `STEP_S`, and SIGUSR2 back. C code still reads the real clock."""

    def __init__(self, true: Callable[[], float]) -> None:
        self._true = true
        self._ahead_s = 0.0

    def __call__(self) -> float:
        """Return seconds since 1970, with the offset."""
        return self._true() + self._ahead_s

    def step(self, number: int, _frame: object) -> None:
        """Handle one of the signals."""
        self._ahead_s += STEP_S if number == FORWARD else -STEP_S


def main() -> int:
    """Run the command with this clock in all threads."""
    clock = SteppedClock(time.time)
    time.time = clock
    for number in (FORWARD, BACK):
        signal.signal(number, clock.step)
    from prober.cli import main as command  # takes the clock when it is imported

    return command()


if __name__ == "__main__":
    sys.exit(main())
