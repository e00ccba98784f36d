"""Run of a soak: results, charts and violated rules."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks import soak as package
from benchmarks.soak import samples, telling
from benchmarks.soak.samples import Sample, sample
from benchmarks.soak.setting import Setting, started
from benchmarks.soak.troubles import Timetable, troubles
from benchmarks.soak.violations import Soak
from prober.config.loading import load
from tests.integration.programs import get

EVERY_S: Final = 5.0
LOOKS: Final = 30
"""Maximum number of reads of metrics and store at the end, until both have the same runs, which continue meanwhile."""


def soak(minutes: float) -> Soak:
    """Run a soak, and print a line for each minute and each trouble."""
    with started() as setting:
        targets = [target for prober in setting.probers for target in load(prober.configuration, {}).targets]
        seen = Soak(targets, time.time())
        began_t = time.monotonic()
        print(telling.HEAD, flush=True)
        with Timetable(troubles(setting), 60.0 * minutes) as timetable:
            seen.spells = timetable.spells
            while (t := time.monotonic() - began_t) < 60.0 * minutes:
                watch(seen, look(setting, t), timetable)
                time.sleep(max(0.0, EVERY_S - (time.monotonic() - began_t - t)))
        conclude(seen, setting, began_t)
    return seen


def look(setting: Setting, t: float) -> Sample:
    """Return a sample of all parts."""
    urls = [prober.url for prober in setting.probers]
    return sample(t, urls, setting.service.process.pid, setting.target.process.pid)


def watch(seen: Soak, now: Sample, timetable: Timetable) -> None:
    """Process a sample."""
    seen.samples.append(now)
    minute = [one for one in seen.samples if one.t // 60 == now.t // 60]
    if minute == [now]:
        print(telling.line(now, next((one for one in seen.samples if one.t >= now.t - 60.0), now)), flush=True)
    if change := timetable.look(now):
        print(f"{now.t / 60:6.1f}  {change}", flush=True)


def conclude(seen: Soak, setting: Setting, began_t: float) -> None:
    """Read the data of the report."""
    for _ in range(LOOKS):
        seen.samples.append(look(setting, time.monotonic() - began_t))
        seen.counted, seen.runs = samples.counted(seen.last), samples.runs(setting.service.url)
        if seen.counted.total() == len(seen.runs):
            break
    seen.findings = list(samples.violations(setting.service.url))
    seen.injected = json.loads(get(f"{setting.admin}/ledger"))["counts"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a soak with these arguments; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=(package.__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--picture", type=Path, default=Path("soak.svg"), help="where to draw it, as SVG")
    wanted = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the process that starts it also stops its children
    seen = soak(wanted.minutes)
    print("\n".join(telling.report(seen)))
    telling.draw(seen, wanted.picture)
    print(f"drawn: {wanted.picture}")
    broken = list(seen.broken())
    for what in broken:
        print(f"broken: {what}")
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
