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

from prober.config.models import ProbeSettings
from prober.core.chances import CHANCES
from prober.embedded.catalogue import CATALOGUE
from prober.errors import ConfigError
from prober.probes.catalogue import ProbeName
from prober.probes.power import SURE, one_in
from prober.schedule.forecast import detectable, hourly_chances
from prober.simulation.detection import FOUND_AT_LEAST, Cell, Detection, rules
from prober.simulation.many import Order, prepare, simulated
from prober.simulation.plan import TO_BE_FOUND
from prober.simulation.program import program
from prober.simulation.results import Results
from prober.simulation.seeds import HOURS_DEFAULT, read_seeds
from prober.simulation.world import defaults
from prober.slo.confidence import upper_bound

SEEDS: Final = range(1, 201)

INTRODUCTION: Final = """\
# What is found, and how well

`ordering-prober simulate` runs the real probes, schedule, recorder, checker and sinks against the state machine of the embedded
service in virtual time ([ARCHITECTURE.md](../ARCHITECTURE.md)). The service notes in a ledger which fault it injected, when and
where; so it is known what could have been found. `python -m prober.simulation.page docs/detection.md` writes this page. Nothing
on it was measured on the real service.

This page is the sum of {simulations:,} simulations (seeds {seeds}) of {each:g} hours each: {runs:,} runs, {events:,} events,
{hours:,.0f} simulated hours, {probe_hours:,.0f} hours of probes, at the wire: Google's client library has threads of its own, which no
simulation can put into an order. Every run is at a network and with workloads drawn from its seed; a quarter of the simulations has
no fault that must be found, but everything that is allowed: benign faults, connections that break, probers that begin again, clocks
that are set, machines that stand still. Half have such a fault and nothing else, a quarter both. `make detection` goes on from what
[detection.json](detection.json) has: the same as numbers, for programs. It gathers 10,000 hours of probes over as many starts as it takes,
as long as the program that is simulated stays the same. That is known by the digest of its source, `{program}`.
"""

MATRIX: Final = """\
## Faults and the probes that find them

*Observable* are runs which the fault struck, by the ledger, while they were judged to their end, and so that a client could see
it ([witnesses.py](../prober/simulation/witnesses.py)): a message that was acknowledged need not come again, whatever the service
had heard of that. A run may be struck once or a hundred times. *Found* are those that reported one of the findings that must catch
the fault; in brackets between which shares the true one lies, with 95 %. *After* is the median from the first strike to the first
such finding. A fault that strikes several probes has a row for the best of them; [detection.json](detection.json) has all. *Arrival
order* and *Google's prober* are [other rules](#other-rules) on the same events.
"""

MISSED: Final = f"""\
Where a probe finds less than {FOUND_AT_LEAST:.0%}, beyond what chance explains, single runs say why:
"""

REMOVED: Final = "with a dead-letter policy the service may have removed what does not come any more"
ENDED: Final = (
    "the run ends soon after its first finding, mostly a gap where the message was to come, and so before that is received"
)
REPEATED: Final = "what changed places was published several times, and of such messages either copy may come first"
SLOW: Final = "what is missing may have been sent behind the redelivery already, which was slow on another session"
EITHER_WAY: Final = "a copy on another stream, sent up to the longest delay before, explains the order on each of them"
LEASED: Final = "a pull is lost, which may have brought the message, and the run ends before its lease is over"
BEFORE: Final = "the message may be a late copy, sent before the key moved, or go on with a run that began before"
BROKEN: Final = "one of the streams breaks soon after, and may have been dead before"
REMOVED_OR_CUT: Final = (
    "streams break so often that the dead-letter policy may have removed what is missing, or all before it is due"
)
GONE_ON: Final = (
    "what went into a stream that broke stays leased, and the key goes on behind it; or only its own copy was sent before it"
)
BEHIND: Final = (
    "the lease of an earlier message of the key is over at about the same time, and what is behind that comes again with it"
)
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
"""Why a probe does not find a fault each time, as far as single runs were looked into."""

OTHERS: Final = """\
## Other rules

Two simpler rules saw the same events. *Arrival order* raises an alarm when a sequence number is more than one above the last
that arrived. *Google's prober* is the published logic of Google's own program (`ordering-keys-prober` on GitHub, method
`OrderedProber.processMessage`): an alarm when a number is more than one above the largest, or above the last one if the message
came to the same subscriber and has the id that the number had. A *clean* run is one whose topic and subscriptions nothing has ever
struck that breaks a promise: an alarm there is false. Some probes do on purpose what these rules were not made for, such as seeks.
"""

POWER: Final = """\
## How rare a fault may be

If the service does wrong each time with this probability, independently, the default schedule finds it within an hour, a day or
a month with {sure:.0%}. This is arithmetic: chances as the probes plan them ([core/chances.py](../prober/core/chances.py)),
over all probes that give them.
"""


def page(seeds: Sequence[tuple[int, int]], hours: float, detection: Detection, probes: Mapping[ProbeName, ProbeSettings]) -> str:
    """The page, of simulations of so many hours; `seeds`: the first and the last of each row of them."""
    introduction = INTRODUCTION.format(
        simulations=detection.simulations,
        seeds=", ".join(f"{first} to {last}" for first, last in seeds),
        runs=detection.runs,
        events=detection.events,
        each=hours,
        hours=detection.hours,
        probe_hours=detection.probe_hours,
        program=program(),
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
    return "\n".join((*sections, POWER.format(sure=SURE), _power(probes), ""))


def _alarms(detection: Detection) -> str:
    """The number of false alarms."""
    false = sum("false alarm" in failure.what for failure in detection.failures)
    clean = detection.clean_runs
    most = _percent(upper_bound(false, clean))
    return (
        f"**False alarms: {false} in {clean:,} clean runs**; so there is one in at most {most} of runs, with 95 %.\n\n"
        f"**Simulations in which a fault was observable and no run found it: {sum(map(len, detection.missing.values()))}.**\n"
    )


def _below(detection: Detection) -> str:
    """Faults found less often than they should be, and faults that no probe can find."""
    lines = [_too_rarely(fault, *detection.best(fault)) for fault in _found_too_rarely(detection)]
    lines += [f"- `{name}`: no run met it." for name in TO_BE_FOUND if CATALOGUE[name].findings and name not in detection.faults]
    if not lines:
        return f"At its best probe, every fault was found in at least {FOUND_AT_LEAST:.0%} of the observable runs.\n"
    head = f"Faults of which the best probe found less than {FOUND_AT_LEAST:.0%} of the observable runs:\n"
    return f"{head}\n" + "\n".join(lines) + "\n"


def _too_rarely(fault: str, probe: str, cell: Cell) -> str:
    """One of them; whether that is more than chance explains, and what benign faults and troubles have to do with it."""
    doubt = "" if cell.is_certainly_below else "; too few runs to say that it is missed"
    calm = f"; {cell.found_calm} of {cell.calm} where nothing else went wrong" if cell.calm < cell.observable else ""
    why = f"; {WHY[fault, probe]}" if (fault, probe) in WHY else ""
    return f"- `{fault}`: {_share(cell)} at `{probe}`{doubt}{calm}{why}"


def _found_too_rarely(detection: Detection) -> Sequence[str]:
    best = {fault: detection.best(fault)[1] for fault in detection.faults}
    return [fault for fault, cell in best.items() if cell.found < FOUND_AT_LEAST * cell.observable]


def _matrix(detection: Detection) -> str:
    """A row for each fault: its best probe, and how many others found it."""
    head = ("fault", "best probe", "found", "as", "after", "other probes", *rules())
    rows = []
    for fault in detection.faults:
        probe, cell = detection.best(fault)
        cells = [other for name, at, other in detection.matrix if name == fault and at != probe]
        finding = f"{sum(other.found > 0 for other in cells)} of {len(cells)}"
        after_s = cell.median_after_s
        others = [f"{cell.others[name]} of {cell.observable}" for name in rules()]
        kinds = ", ".join(kind for kind, _ in cell.kinds.most_common(2))
        after = "" if after_s is None else f"{after_s:.1f} s"
        rows.append((f"`{fault}`", f"`{probe}`", _share(cell), kinds, after, finding, *others))
    return _table(head, rows)


def _missed(detection: Detection) -> str:
    """Why a probe misses some of them: another probe sees them, or none can."""
    cells = [(fault, probe, cell) for fault, probe, cell in detection.matrix if cell.is_certainly_below]
    rows = [(f"`{fault}`", f"`{probe}`", _share(cell), WHY.get((fault, probe), "not looked into")) for fault, probe, cell in cells]
    return f"{MISSED}\n{_table(('fault', 'probe', 'found', 'why not always'), rows)}" if rows else ""


def _others(detection: Detection) -> str:
    """How each rule did."""
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


def _power(probes: Mapping[ProbeName, ProbeSettings]) -> str:
    (target,) = defaults().targets
    hourly = hourly_chances(target.model_copy(update={"probes": dict(probes)}))
    rows = [
        (what, f"{hourly[counter]:,}", *(one_in(found.share) for found in detectable(hourly[counter])))
        for counter, what in CHANCES.items()
        if hourly[counter]
    ]
    return _table(("chances", "an hour", "within an hour", "within a day", "within a month"), rows)


def _share(cell: Cell) -> str:
    low, high = cell.bounds
    return f"{cell.found} of {cell.observable} ({100 * low:.0f} to {100 * high:.0f} %)"


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Writes the page. With `--results` it is of all simulations that the file has, those that are wanted among them.

    What cannot be used as results is one line on stderr. After an interrupt the page has the results so far.
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
    (target,) = defaults().targets
    seeds: Sequence[tuple[int, int]]
    if results is None:
        detection, seeds = Detection.of(simulated(order, wanted.jobs)), ((order.seeds[0], order.seeds[-1]),)
    else:
        with suppress(KeyboardInterrupt):
            deque(simulated(order, wanted.jobs, results), maxlen=0)
        detection, seeds = results.detection, results.seeds
    wanted.page.write_text(page(seeds, wanted.hours, detection, target.probes), encoding="utf-8")


if __name__ == "__main__":
    main()
