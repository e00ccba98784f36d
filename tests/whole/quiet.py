"""The healthy service as its operator sees it: no alert, no bad check, no pending message and no UNKNOWN run.

`python -m tests.whole.quiet --minutes 15` runs the service with its defaults, a Prometheus with the rules of this project and an
Alertmanager with its example. Beside them runs a CPU load, as on a shared machine. The exit code is 1 if the operator would have seen
anything but health; each line of the output is one such observation.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from prober.clock import monotonic_s
from prober.slo.objectives import MINUTE_S
from tests.integration.chain import Chain, Receiver, chain, receiving
from tests.integration.programs import eventually, get, program

LOOK_S: Final = 2.0
STALE_S: Final = 2.5
"""The API answers from the store, which a prober writes within this time."""
PENDING: Final = ("num_undelivered_messages", "stalled_keys", "oldest_unacked_message_age_seconds")
"""Gauges that are 0 on every subscription whose probe has no run in progress."""
WATCHDOG_RECEIVER: Final = "dead-mans-switch"
LOAD: Final = "while True: sum(range(10_000))"


@dataclass
class Observations:
    """Everything that is not healthy, each once, with the number of looks that saw it."""

    seen: dict[str, int] = field(default_factory=dict)
    looks: int = 0

    def note(self, complaints: Iterable[str]) -> None:
        """Add what one look saw."""
        self.looks += 1
        for complaint in complaints:
            self.seen[complaint] = self.seen.get(complaint, 0) + 1

    def lines(self) -> list[str]:
        """One line for each observation."""
        return [f"{complaint} (in {count} of {self.looks} looks)" for complaint, count in self.seen.items()]


def pending_between_runs(before: Mapping[str, Any], metrics: str, after: Mapping[str, Any]) -> Iterator[str]:
    """Pending messages on the subscriptions of probe instances that had no run in progress while the metrics were read.

    `before` and `after` are answers of `/api/v1/status` around the scrape: no run was in progress then, and none ended in between.
    """
    idle = _idle(before).items() & _idle(after).items()
    for line in metrics.splitlines():
        name, _, rest = line.removeprefix("pubsub_prober_").partition("{")
        subscription = rest.partition('subscription="')[2].partition('"')[0]
        if name in PENDING and any(one in subscription for one, _ in idle) and float(line.rpartition(" ")[2]) > 0.0:
            yield f"{name} is above 0 on {subscription} between runs"


def _idle(status: Mapping[str, Any]) -> dict[str, str]:
    """The last run of each probe instance without a run in progress, by the part of its subscriptions' names that tells it apart."""
    return {
        "-"
        + "-".join(
            filter(None, (instance["target"], instance["probe"], instance["vantage"], instance["part"].replace("/", "-")))
        ): (instance["last_run"]["run_id"])
        for instance in status["probe_instances"]
        if instance["running_since"] is None and instance["last_run"] is not None
    }


def unhealthy_runs(runs: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The runs that did not pass, with the reason."""
    for run in runs:
        if run["verdict"] != "PASS":
            yield f"{run['probe']} ({run['vantage']}) ended {run['verdict']}: {run['reason']}"


def bad_objectives(slos: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The objectives that are not at 100 % good."""
    for slo in slos:
        if slo["bad"]:
            yield f"objective {slo['name']} on {slo['target']}: {slo['bad']} of {slo['good'] + slo['bad']} are bad"


def messages_sent(receiver: Receiver) -> Iterator[str]:
    """The alerts that somebody was notified of."""
    for message in receiver.messages:
        if message["receiver"] != WATCHDOG_RECEIVER:
            for alert in message["alerts"]:
                yield f"{message['receiver']} was notified: {alert['status']} {alert['annotations']['summary']}"


def look(url: str, running: Chain) -> Iterator[str]:
    """What is not healthy at this moment: pending messages between runs, and alerts."""
    before = _status(url)
    threading.Event().wait(STALE_S)
    metrics = get(f"{url}/metrics")
    threading.Event().wait(STALE_S)
    after = _status(url)
    yield from pending_between_runs(before, metrics, after)
    for labels in running.firing():
        yield f"{labels['alertname']} fires: {', '.join(f'{name}={value}' for name, value in sorted(labels.items()))}"


def conclude(url: str, running: Chain, receiver: Receiver) -> Iterator[str]:
    """What was not healthy at any time."""
    yield from unhealthy_runs(_all(url, "runs"))
    yield from (f"finding {one['kind']} ({one['status']})" for one in _all(url, "findings") if one["status"] != "indeterminate")
    yield from bad_objectives(_all(url, "slos"))
    yield from messages_sent(receiver)
    yield from (f"rule failed: {rule}" for rule in running.unhealthy())
    unseen = [instance["probe"] for instance in _status(url)["probe_instances"] if instance["last_run"] is None]
    yield from (f"no run of {probe} ended" for probe in unseen)


def _status(url: str) -> dict[str, Any]:
    return dict(json.loads(get(f"{url}/api/v1/status")))


def _all(url: str, path: str) -> Iterator[dict[str, Any]]:
    cursor = ""
    while True:
        page = json.loads(get(f"{url}/api/v1/{path}{cursor}"))
        yield from page["items"]
        if not page.get("next_cursor"):
            return
        cursor = f"?cursor={page['next_cursor']}"


@contextmanager
def cpu_load(processes: int) -> Iterator[None]:
    """Keep the processors busy with this many processes."""
    busy = [subprocess.Popen([sys.executable, "-c", LOAD]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def watch(folder: Path, minutes: float, load: int, faults: list[str]) -> Observations:
    """Run the service for so many minutes after its first pass and return what was not healthy."""
    observations = Observations()
    environ = {
        "ORDERING_PROBER_API__PORT": "0",
        "ORDERING_PROBER_STATUS__URL": f"sqlite:///{folder}/status.db",
        "ORDERING_PROBER_EMBEDDED__FAULTS": json.dumps(faults),
    }
    with receiving() as receiver, cpu_load(load), program("run", environ=environ) as service:
        url = service.said(r"status page: (\S+)/")
        with chain([url], receiver, folder) as running:
            eventually(lambda: receiver.alerts(WATCHDOG_RECEIVER, "firing"))
            until_t = monotonic_s() + minutes * MINUTE_S
            while monotonic_s() < until_t:
                observations.note(look(url, running))
                threading.Event().wait(LOOK_S)
            observations.note(conclude(url, running, receiver))
    return observations


def main() -> int:
    """Watch the service, print what was not healthy, and return the exit code."""
    parser = argparse.ArgumentParser(description="Run the healthy service and report everything that is not quiet.")
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--load", type=int, default=1, help="processes that keep a processor busy beside the service")
    parser.add_argument("--fault", action="append", default=[], help="a fault to inject, to see that the command notices it")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that every program that was started is stopped
    with TemporaryDirectory() as folder:
        observations = watch(Path(folder), asked.minutes, asked.load, asked.fault)
    for line in observations.lines():
        print(line)
    print(f"{'NOT QUIET' if observations.seen else 'QUIET'}: {asked.minutes:g} minutes, {observations.looks} looks")
    return 1 if observations.seen else 0


if __name__ == "__main__":
    sys.exit(main())
