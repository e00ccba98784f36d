"""A soak: all probes on their default schedules, while the service under test does everything odd that it is allowed to do.

    python -m benchmarks.soak [--minutes M] [--picture FILE]

Two processes, started as a user would: the embedded server with every benign fault armed, and the service, which probes it. Every few
seconds their memory and the service's own metrics are read, printed as a table and in the end drawn. The faults of what is promised
with exactly-once delivery only are armed for all other keys. The exit code is 1 if one of these is broken:

* nobody is accused: no violation, no liveness finding;
* every run that the schedule asked for was begun, unless the one before still waited for the service, and every probe of which a run ended
  passed at least once;
* the event loop wakes up less than `LAG_MAX_S` late in 99 of 100 cases;
* nothing of the prober failed or was dropped;
* after `WARM_UP_S` the memory of the service is flat: from the second quarter of the rest to the last it grows by less than `GROWTH_MAX`.
  A soak that is too short for that says so.

Where others kept the processors busy, neither skipped runs nor the event loop are judged: that says nothing about the service.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Final

from prometheus_client.parser import text_string_to_metric_families

from benchmarks.drawing import Panel, Series, picture
from benchmarks.memory import MIB, PAGE_BYTES
from prober.config.loading import load
from prober.config.models import ProbeName
from prober.core.findings import FAILING
from prober.core.verdict import Verdict
from prober.embedded.catalogue import CATALOGUE
from prober.sinks.metrics.families import PREFIX
from prober.sinks.metrics.label_values import SkipReason
from tests.integration.programs import Program, get, program

EVERY_S: Final = 5.0
LAG_MAX_S: Final = 0.1
LAG_SHARE: Final = 0.99
WARM_UP_S: Final = 600.0
GROWTH_MAX: Final = 0.05
NOT_EXACTLY_ONCE: Final = "[!e]*"
"""All keys but those of the probe `exactly_once`."""
SHARES: Final[Mapping[str, float]] = {
    "jitter": 0.05,
    "lost_tail": 0.1,
    "lost_pull_answer": 0.02,
    "stream_break": 0.001,
    "half_open_stream": 0.0005,
}
SHARE: Final = 0.005
"""Of the cases in which a fault could strike, unless `SHARES` says otherwise: often enough to strike all the time, rarely enough that runs
still come to their end.
"""
BUSY_MAX: Final = 0.02
"""A machine on which the service waits for a processor for more than this share of the time is too busy to judge its event loop."""


def benign_faults() -> list[str]:
    """Every benign fault of the catalogue, as the command line takes it."""
    return [
        f"{name}:p={SHARES.get(name, SHARE):g}" + (f",key={NOT_EXACTLY_ONCE}" if known.exactly_once else "")
        for name, known in CATALOGUE.items()
        if known.benign
    ]


@dataclass(frozen=True, slots=True)
class Sample:
    """How everything stood, so many seconds after the begin.

    computed_s  for how long the thread of the service's event loop had a processor.
    waited_s    for how long it could have gone on and had none, because others had them.
    lags        how often the loop was late by at most so many seconds, cumulated.
    """

    t: float
    service_mib: float
    server_mib: float
    computed_s: float
    waited_s: float
    lags: Mapping[float, float]
    runs: Mapping[tuple[str, str], float]
    expected: Mapping[str, float]
    skipped: Mapping[tuple[str, str], float]
    findings: Mapping[tuple[str, str], float]
    failures: Mapping[str, float]

    @property
    def accused(self) -> dict[str, float]:
        """The findings that accuse the service, by kind."""
        return {kind: count for (kind, status), count in self.findings.items() if status in FAILING and count}

    def verdicts(self, probe: str | None = None) -> Counter[str]:
        """How many runs ended how."""
        total: Counter[str] = Counter()
        for (name, verdict), count in self.runs.items():
            if count and probe in (None, name):
                total[verdict.upper()] += int(count)
        return total


def lag_s(now: Sample, before: Sample | None = None) -> float:
    """The bound below which 99 of 100 delays of the loop were, since an earlier sample; infinite if no bound of the histogram is that."""
    counts = {bound: count - (before.lags[bound] if before is not None else 0.0) for bound, count in now.lags.items()}
    enough = LAG_SHARE * max(counts.values(), default=0.0)
    return min((bound for bound, count in counts.items() if count >= enough), default=float("inf"))


def resident_mib(pid: int) -> float:
    """What a process occupies now."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_BYTES / MIB


def scheduled_s(pid: int) -> tuple[float, float]:
    """For how long the first thread of a process had a processor, and for how long it waited for one."""
    computed, waited, _ = Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()
    return int(computed) / 1e9, int(waited) / 1e9


def sample(url: str, t: float, service: Program, server: Program) -> Sample:
    """Reads everything."""
    sums: dict[str, dict[Any, float]] = defaultdict(lambda: defaultdict(float))
    names = {
        "probe_runs": ("probe", "verdict"),
        "probe_runs_expected": ("probe",),
        "scheduler_skips": ("probe", "reason"),
        "findings": ("kind", "status"),
        "internal_errors": ("component",),
        "events_dropped": ("component",),
        "history_failures": (),
        "status_failures": (),
    }
    lags: dict[float, float] = {}
    for family in text_string_to_metric_families(get(f"{url}/metrics")):
        short = family.name.removeprefix(f"{PREFIX}_")
        for one in family.samples:
            if short == "loop_lag_seconds" and one.name.endswith("_bucket"):
                lags[float(one.labels["le"])] = one.value
            elif short in names and one.name.endswith("_total"):
                labels = tuple(one.labels[name] for name in names[short])
                sums[short][labels[0] if len(labels) == 1 else labels] += one.value
    failures = {f"{name} of {part}": count for name in ("internal_errors", "events_dropped") for part, count in sums[name].items()}
    failures |= {name: sum(sums[name].values()) for name in ("history_failures", "status_failures")}
    return Sample(
        t,
        resident_mib(service.process.pid),
        resident_mib(server.process.pid),
        *scheduled_s(service.process.pid),
        lags,
        sums["probe_runs"],
        sums["probe_runs_expected"],
        sums["scheduler_skips"],
        sums["findings"],
        {name: count for name, count in failures.items() if count},
    )


@dataclass(slots=True)
class Soak:
    """All samples, and all runs and faults that struck, as they are told at the end."""

    samples: list[Sample] = field(default_factory=list)
    struck: Mapping[str, int] = field(default_factory=dict)
    runs: Sequence[Mapping[str, Any]] = ()

    def broken(self) -> Iterator[str]:
        """What was to hold and did not, in words."""
        last = self.samples[-1]
        yield from (f"{count:.0f} x {kind}" for kind, count in last.accused.items())
        if not self.busy:
            yield from self.missed()
            if lag_s(last) > LAG_MAX_S:
                yield f"the event loop was up to {lag_s(last):g} s late in {LAG_SHARE:.0%} of the cases"
        for probe in ProbeName:
            if not last.expected.get(probe):
                yield f"{probe} was never asked for"
            elif not last.verdicts(probe)[Verdict.PASS] and last.verdicts(probe):
                yield f"{probe} never passed: {dict(last.verdicts(probe))}"
        yield from (f"{count:.0f} x {name}" for name, count in last.failures.items())
        yield from (f"{name} never struck" for name, known in CATALOGUE.items() if known.benign and not self.struck.get(name))
        growth = self.growth
        if growth is not None and growth > GROWTH_MAX:
            yield f"the memory of the service grew by {growth:.1%} after {WARM_UP_S:.0f} s"

    def missed(self) -> Iterator[str]:
        """The runs that were not begun, and no longer one before them says why."""
        for (probe, reason), count in self.samples[-1].skipped.items():
            during = self.during_others(probe) if reason == SkipReason.OVERLAP else 0
            if count > during:
                yield f"{probe}: {count:.0f} runs skipped, {reason}; {during} of them while another waited for the service"

    def during_others(self, probe: str) -> int:
        """How many points of a probe's schedule came while a run of it had not ended."""
        interval = load(None, {}).targets[0].probes[ProbeName(probe)].schedule.interval
        assert interval is not None  # by default no probe follows a crontab
        return sum(int(run["duration_s"] // interval.total_seconds()) for run in self.runs if run["probe"] == probe)

    @property
    def busy(self) -> bool:
        """Whether the machine had too much else to do for the lag of the event loop to say something about the service."""
        first, last = self.samples[0], self.samples[-1]
        return last.waited_s - first.waited_s > BUSY_MAX * (last.t - first.t)

    @property
    def growth(self) -> float | None:
        """By which part of it the memory of the service grew after the warm-up; None if there was not enough time to tell."""
        warm = [one.service_mib for one in self.samples if one.t >= WARM_UP_S]
        if self.samples[-1].t < 2 * WARM_UP_S:
            return None
        quarter = len(warm) // 4
        return median(warm[-quarter:]) / median(warm[quarter : 2 * quarter]) - 1.0

    def panels(self) -> list[Panel]:
        """The picture of it."""
        pairs = [(before, now) for before, now in zip(self.samples, self.samples[1:], strict=False)]
        memory = [
            Series("service", [(one.t, one.service_mib) for one in self.samples]),
            Series("embedded server", [(one.t, one.server_mib) for one in self.samples]),
        ]
        ended = [Series(str(verdict), [(one.t, one.verdicts()[verdict]) for one in self.samples]) for verdict in Verdict]
        lag = Series("99 of 100", [(now.t, 1000.0 * min(lag_s(now, before), 10.0)) for before, now in pairs])
        accused = Series("accusations", [(one.t, sum(one.accused.values())) for one in self.samples])
        skipped = Series("skipped runs", [(one.t, sum(one.skipped.values())) for one in self.samples])
        return [
            Panel("Resident memory, MiB", memory),
            Panel("Event loop late, ms: 99 of 100 times at most (bounds of the histogram)", [lag]),
            Panel("Runs ended, by verdict", ended),
            Panel("What may not be", [accused, skipped]),
        ]


@contextmanager
def started() -> Iterator[tuple[Program, Program, str, str]]:
    """The service and the server it probes, the URL of the service's page, and that of the server's ledger."""
    armed = [word for fault in benign_faults() for word in ("--fault", fault)]
    with (
        program("embedded", "--port", "0", "--admin-port", "0", *armed) as server,
        TemporaryDirectory() as folder,
    ):
        address = server.said(r"Pub/Sub on (\S+:\d+)")
        admin = server.said(r"(http://\S+)/faults")
        target = {"NAME": "soak", "ENDPOINT": address, "PEER": address, "PROJECT": "soak", "ENVIRONMENT": "test"}
        environ = {f"ORDERING_PROBER_TARGETS__0__{name}": value for name, value in target.items()}
        environ |= {"ORDERING_PROBER_API__PORT": "0", "ORDERING_PROBER_STATUS__URL": f"sqlite:///{folder}/status.db"}
        environ |= {"ORDERING_PROBER_HISTORY__LOCATION": f"{folder}/history"}
        with program("run", environ=environ) as service:
            yield service, server, service.said(r"status page: (\S+)/"), admin


def soak(minutes: float) -> Soak:
    """Does it, and prints a line for each minute."""
    seen = Soak()
    with started() as (service, server, url, admin):
        began_t = time.monotonic()
        print(
            "minute  service MiB  server MiB  loop lag p99 ms  CPU %  waits %  runs PASS/FAIL/UNKNOWN  skipped  accused", flush=True
        )
        before: Sample | None = None
        while (t := time.monotonic() - began_t) < 60.0 * minutes:
            seen.samples.append(now := sample(url, t, service, server))
            if before is None or now.t // 60 > before.t // 60:
                print(_line(now, before), flush=True)
                before = now
            time.sleep(max(0.0, EVERY_S - (time.monotonic() - began_t - t)))
        seen.samples.append(now := sample(url, 60.0 * minutes, service, server))
        print(_line(now, before), flush=True)
        seen.struck = json.loads(get(f"{admin}/ledger"))["counts"]
        seen.runs = list(_runs(url))
        service.stop()
    return seen


def _runs(url: str) -> Iterator[Mapping[str, Any]]:
    """All runs, as the API lists them."""
    after = ""
    while True:
        page = json.loads(get(f"{url}/api/v1/runs?limit=100{after}"))
        yield from page["items"]
        if page["next_cursor"] is None:
            return
        after = f"&cursor={page['next_cursor']}"


def _line(now: Sample, before: Sample | None) -> str:
    verdicts = now.verdicts()
    since = before or now
    passed_s = max(1.0, now.t - since.t)
    computed, waited = 100 * (now.computed_s - since.computed_s) / passed_s, 100 * (now.waited_s - since.waited_s) / passed_s
    ended = "/".join(str(verdicts[verdict]) for verdict in (Verdict.PASS, Verdict.FAIL, Verdict.UNKNOWN))
    columns = (
        f"{now.t / 60:6.1f}",
        f"{now.service_mib:11.1f}",
        f"{now.server_mib:10.1f}",
        f"{1000 * lag_s(now, before):15.0f}",
        f"{computed:5.0f}",
        f"{waited:7.0f}",
        f"{ended:>22}",
        f"{sum(now.skipped.values()):7.0f}",
        f"{sum(now.accused.values()):7.0f}",
    )
    return "  ".join(columns)


def report(seen: Soak) -> None:
    """Prints how the runs of each probe ended and why, and how often each fault struck."""
    last = seen.samples[-1]
    reasons: dict[str, Counter[str]] = defaultdict(Counter)
    for run in seen.runs:
        if run["verdict"] != Verdict.PASS:
            reasons[run["probe"]][f"{run['verdict']}: {run['reason']}"] += 1
    print("\nprobe           expected  PASS  FAIL  UNKNOWN")
    for probe in ProbeName:
        verdicts = last.verdicts(probe)
        counts = "  ".join(f"{verdicts[verdict]:>{len(verdict)}}" for verdict in (Verdict.PASS, Verdict.FAIL, Verdict.UNKNOWN))
        print(f"{probe:15} {last.expected.get(probe, 0.0):8.0f}  {counts}")
        for reason, count in reasons[probe].most_common(3):
            print(f"{'':16}{count} x {reason}")
    print("\nfault struck, times: " + ", ".join(f"{name} {count:,}" for name, count in sorted(seen.struck.items())))
    print(f"\nloop lag, 99 of 100: at most {1000 * lag_s(last):g} ms")
    print(f"the event loop's thread computed for {last.computed_s:.0f} s and waited for a processor for {last.waited_s:.0f} s")
    if seen.busy:
        print("others kept the processors busy: neither skipped runs nor the event loop are judged")
    growth = seen.growth
    told = "too short to tell" if growth is None else f"{growth:+.1%} from the second quarter to the last"
    print(f"memory of the service after {WARM_UP_S:.0f} s: {told}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Soaks, reports, draws; says what is broken."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--picture", type=Path, default=Path("soak.svg"), help="where to draw it, as SVG")
    wanted = parser.parse_args(arguments)
    seen = soak(wanted.minutes)
    report(seen)
    wanted.picture.write_text(picture(seen.panels(), "s"), encoding="utf-8")
    print(f"drawn: {wanted.picture}")
    broken = list(seen.broken())
    for what in broken:
        print(f"broken: {what}")
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
