"""The page docs/detection.md: `python -m prober.simulation.page docs/detection.md`. It simulates, so it takes a while."""

from __future__ import annotations

import argparse
import os
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Final

from prober.embedded.catalogue import CATALOGUE
from prober.errors import ConfigError
from prober.simulation.detection import FOUND_AT_LEAST, Cell, Detection, rules
from prober.simulation.many import Order, prepare, simulated
from prober.simulation.plan import TO_BE_FOUND
from prober.simulation.results import Results
from prober.simulation.seeds import HOURS_DEFAULT, read_seeds
from prober.slo.confidence import upper_bound

SEEDS: Final = range(1, 201)

INTRODUCTION: Final = """\
# Fault detection in simulations

This page shows which faults the probes find, for a decision on trust in a verdict. `ordering-prober simulate` runs the real probes,
recorder and checker against the embedded service in virtual time. The service records each injected fault. No result is from Google's
service, and none from Google's client library, whose threads no simulation can order.

{simulations:,} simulations (seeds {seeds}) of {each:g} hours each: {runs:,} runs, {events:,} events, {probe_hours:,.0f} hours of probes.
Networks and workloads depend on the seed. Half of them have one fault. A quarter has only legal disturbances: broken connections, restarts,
clock changes, process pauses. A quarter has both. [detection.json](detection.json) contains the results of each probe. `make detection`
extends them while the simulated program stays the same.
"""

MATRIX: Final = """\
## Faults and the probes that find them

*Found* counts runs of the best probe with a finding that proves the fault, of the runs in which a client could see it
([witnesses.py](../prober/simulation/witnesses.py)). *After* is the median time to the finding.
"""

MISSED: Final = f"""\
## Limits of other probes

These probes provably find less than {FOUND_AT_LEAST:.0%} of a fault that another probe finds:
"""

REMOVED: Final = "the dead-letter policy may have removed the missing message"
ENDED: Final = "the run ends after its first finding, before the faulty message arrives"
REPEATED: Final = "either copy of a repeated publish may come first"
SLOW: Final = "the missing message may be on its way on a slow session"
EITHER_WAY: Final = "an earlier copy on another stream explains the order"
LEASED: Final = "a lost pull may have taken the message, and the run ends before its lease"
BEFORE: Final = "the message may be a late copy, or continue an earlier redelivery"
BROKEN: Final = "a stream breaks soon after, and may have been dead before"
REMOVED_OR_CUT: Final = "streams break so often that the dead-letter policy may have removed the message"
GONE_ON: Final = "the message in a broken stream stays leased, and the key continues behind it"
BEHIND: Final = "the lease of an earlier message ends at the same time, and its redelivery includes this one"
WHY: Final[Mapping[tuple[str, str], str]] = MappingProxyType(
    {
        ("never_redeliver", "dead_letter"): REMOVED,
        ("resume_past_unacked", "dead_letter"): REMOVED,
        ("stall_key", "dead_letter"): REMOVED,
        ("stall_all", "dead_letter"): REMOVED,
        ("stall_run", "dead_letter"): REMOVED,
        ("drop", "dead_letter"): REMOVED,
        ("phantom", "pull"): ENDED,
        ("wrong_key", "push"): ENDED,
        ("wrong_key", "pull"): ENDED,
        ("duplicate_id", "pull"): ENDED,
        ("swap_across_batches", "publish"): REPEATED,
        ("swap_in_batch", "publish"): REPEATED,
        ("stall_run", "pull"): SLOW,
        ("reorder_run", "exactly_once"): EITHER_WAY,
        ("never_redeliver", "pull"): LEASED,
        ("split_holder", "affinity"): BEFORE,
        ("forget_holds", "exactly_once"): BROKEN,
        ("lease_short", "exactly_once"): BEHIND,
        ("lone_duplicate", "isolation"): BROKEN,
        ("dead_letter_stalls_keys", "dead_letter"): REMOVED_OR_CUT,
        ("hole", "exactly_once"): GONE_ON,
        ("late_fill", "exactly_once"): GONE_ON,
        ("reorder_run", "affinity"): EITHER_WAY,
    }
)
"""Reason why a probe does not find a fault each time, for the examined runs."""

OTHERS: Final = """\
## Other rules

Two simpler rules saw the same events. *Arrival order* raises an alarm if a number is more than one above the last. *Google's prober* is the
published `OrderedProber.processMessage` of `ordering-keys-prober` on GitHub: an alarm if a number is more than one above the largest, or
above the last one in the case of a redelivery to the same subscriber. *Clean* runs had no fault that breaks a guarantee. Some probes
provoke legal redeliveries that these rules do not model.
"""


def page(seeds: Sequence[tuple[int, int]], hours: float, detection: Detection) -> str:
    """Return the page for simulations of `hours` each; `seeds`: first and last seed of each range."""
    introduction = INTRODUCTION.format(
        simulations=detection.simulations,
        seeds=", ".join(f"{first} to {last}" for first, last in seeds),
        runs=detection.runs,
        events=detection.events,
        each=hours,
        probe_hours=detection.probe_hours,
    )
    sections = (
        introduction,
        _alarms(detection),
        _below(detection),
        MATRIX,
        _matrix(detection),
        _missed(detection),
        OTHERS,
        _others(detection),
    )
    return "\n".join(sections)


def _alarms(detection: Detection) -> str:
    """Return the sentence on the number of false alarms."""
    false = sum("false alarm" in failure.what for failure in detection.failures)
    clean = detection.clean_runs
    most = _percent(upper_bound(false, clean))
    return (
        f"**False alarms: {false} in {clean:,} clean runs** (at most {most} of runs, with 95 % confidence). "
        f"**Simulations with an observable fault and no finding: {sum(map(len, detection.missing.values()))}.**\n"
    )


def _below(detection: Detection) -> str:
    """List faults found less often than they should be, and faults that no probe can find."""
    lines = [_too_rarely(fault, *detection.best(fault)) for fault in _found_too_rarely(detection)]
    unmet = [f"`{name}`" for name in TO_BE_FOUND if CATALOGUE[name].findings and name not in detection.faults]
    if unmet:
        lines.append(f"- No run met {', '.join(unmet)}; `ordering-prober simulate --fault NAME` tests single faults.")
    if not lines:
        return f"At its best probe, every fault was found in at least {FOUND_AT_LEAST:.0%} of the observable runs.\n"
    return "\n".join(
        [f"Faults whose best probe found less than {FOUND_AT_LEAST:.0%} of the observable runs, or that no run met:\n", *lines, ""]
    )


def _too_rarely(fault: str, probe: str, cell: Cell) -> str:
    """Describe a fault found too rarely: random variation, influence of other disturbances, and the reason."""
    doubt = "" if cell.is_significantly_below else "; too few runs to prove that it is missed"
    calm = f"; {cell.found_calm} of {cell.calm} without other disturbances" if cell.calm < cell.observable else ""
    why = f"; {WHY[fault, probe]}" if (fault, probe) in WHY else ""
    return f"- `{fault}`: {_share(cell)} at `{probe}`{doubt}{calm}{why}"


def _found_too_rarely(detection: Detection) -> Sequence[str]:
    best = {fault: detection.best(fault)[1] for fault in detection.faults}
    return [fault for fault, cell in best.items() if cell.found < FOUND_AT_LEAST * cell.observable]


def _matrix(detection: Detection) -> str:
    """Return the table of faults with their best probes."""
    rows = []
    for fault in detection.faults:
        probe, cell = detection.best(fault)
        after_s = cell.median_after_s
        kinds = ", ".join(kind for kind, _ in cell.kinds.most_common(1))
        rows.append(
            (f"`{fault}`", f"`{probe}`", f"{cell.found} of {cell.observable}", kinds, "" if after_s is None else f"{after_s:.1f} s")
        )
    return _table(("fault", "best probe", "found", "as", "after"), rows)


def _missed(detection: Detection) -> str:
    """Return the table of causes for which a probe misses faults: another probe sees them, or none can."""
    cells: dict[str, list[str]] = {}
    for fault, probe, cell in detection.matrix:
        if cell.is_significantly_below:
            share = f"{100 * cell.found / cell.observable:.0f} %"
            cells.setdefault(WHY.get((fault, probe), "not examined"), []).append(f"`{fault}` at `{probe}` ({share})")
    return f"{MISSED}\n{_table(('cause', 'faults'), [(why, ', '.join(found)) for why, found in cells.items()])}" if cells else ""


def _others(detection: Detection) -> str:
    """Return the table of the results of each rule."""
    observable, found, by_rule = 0, 0, Counter[str]()
    for _, _, cell in detection.matrix:
        observable += cell.observable
        found += cell.found
        by_rule += cell.others
    false = sum("false alarm" in failure.what for failure in detection.failures)
    clean = f"of {detection.clean_runs:,} clean runs"
    rows = [("this project", f"{found:,} of {observable:,}", f"{false} {clean}")]
    rows += [(name, f"{by_rule[name]:,} of {observable:,}", f"{detection.false_alarms[name]:,} {clean}") for name in rules()]
    return _table(("rule", "alarms in observable runs", "false alarms"), rows)


def _share(cell: Cell) -> str:
    low, high = cell.bounds
    return f"{cell.found} of {cell.observable} ({100 * low:.0f} to {100 * high:.0f} %)"


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the page. With `--results` it covers all simulations in the file, including the ordered ones.

    An unusable results file is reported in one line on stderr. After an interrupt the page contains the results so far.
    """
    parser = argparse.ArgumentParser(prog="python -m prober.simulation.page", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("page", type=Path)
    parser.add_argument("--seeds", type=read_seeds, help=f"such as 1..200; without results {SEEDS[0]}..{SEEDS[-1]}, else none more")
    parser.add_argument("--hours", type=float, default=HOURS_DEFAULT, help="how long each is; %(default)g without this")
    parser.add_argument("--results", type=Path, help="file that keeps what was simulated: the next start goes on from there")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    wanted = parser.parse_args(arguments)
    try:
        results = None if wanted.results is None else Results(wanted.results, wanted.hours)
    except ConfigError as error:
        parser.error(str(error))
    order = Order(wanted.seeds or (SEEDS if results is None else SEEDS[:0]), wanted.hours)
    prepare()
    seeds: Sequence[tuple[int, int]]
    if results is None:
        detection, seeds = Detection.of(simulated(order, wanted.jobs)), ((order.seeds[0], order.seeds[-1]),)
    else:
        with suppress(KeyboardInterrupt):
            deque(simulated(order, wanted.jobs, results), maxlen=0)
        detection, seeds = results.detection, results.seeds
    wanted.page.write_text(page(seeds, wanted.hours, detection), encoding="utf-8")


if __name__ == "__main__":
    main()
