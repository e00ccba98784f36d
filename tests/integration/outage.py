"""A total outage of the target, watched by the whole chain: prober, Prometheus with the rules, Alertmanager with the example's routes.

`python -m tests.integration.outage --minutes 45 OUT.md` plays it at its own pace and writes what fired and who was told as a table. Tests
play it faster: `pace` divides every duration of the rules, of the example's configurations and of the probes' schedules, and the outage
with them.
"""

from __future__ import annotations

import argparse
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from prober.clock import monotonic_s
from prober.config.values import write_duration
from tests.integration.programs import Program, eventually, program, series, server, service
from tests.integration.test_paging import Receiver, chain, firing, receiving

MINUTE_S = 60.0
OVER_S = 45 * MINUTE_S
"""By then the longest of the short windows that page, half an hour, has forgotten the outage."""
FIRST_RUNS_S = 120.0
PAGER = "service-pager"


class Outage(StrEnum):
    """How the target goes away: nobody listens any more, or somebody does and never answers."""

    REFUSED = "refused"
    SILENT = "silent"


@dataclass(frozen=True)
class Moment:
    """What was so at a time, in seconds since the outage began: the alerts that fired, and what its pager had been told by then."""

    t: float
    firing: frozenset[str]
    pages: tuple[str, ...]
    resolved: tuple[str, ...]
    unsent: float


@dataclass
class Story:
    """One outage. `paged_after_s` and `over_after_s` count from its beginning and from its end."""

    lasted_s: float
    moments: list[Moment] = field(default_factory=list)
    paged_after_s: float = 0.0
    over_after_s: float = 0.0
    messages: list[dict[str, Any]] = field(default_factory=list)

    @property
    def is_over(self) -> bool:
        """Whether in the end the pager had been told so of everything that it was paged for."""
        return self.over_after_s < inf

    @property
    def during(self) -> list[Moment]:
        """The moments of the outage itself."""
        return [moment for moment in self.moments if moment.t <= self.lasted_s]


def play(folder: Path, *, lasts_s: float, pace: float, how: Outage, look_every_s: float) -> Story:
    """Lets the target be gone for so long, and looks at the alerts and pages now and then until it is over; all as fast as `pace` says."""
    story = Story(lasts_s / pace)
    schedules = {
        f"ORDERING_PROBER_PROBES__{name}__SCHEDULE": f'{{"interval": "{max(2, round(seconds / pace))}s"}}'
        for name, seconds in (("ORDERING", 10), ("REDELIVERY", 30), ("AFFINITY", 30))
    }
    with server() as (target, address), receiving() as receiver:
        with (
            service(PUBSUB_EMULATOR_HOST=address, **schedules) as (_, url),
            chain(url, receiver, folder, pace) as (prometheus, _manager),
        ):
            eventually(lambda: sum(series(url, 'probe_runs_total verdict="pass"')) >= 6, FIRST_RUNS_S)
            eventually(lambda: firing(prometheus) == {"PubsubProberWatchdog"}, FIRST_RUNS_S)
            with _gone(target, address, how) as back:
                begun_t = monotonic_s()
                _watch(story, receiver, prometheus, url, begun_t, begun_t + story.lasted_s, look_every_s)
                back()
                ended_t = monotonic_s()
                while not _is_over(receiver) and monotonic_s() - ended_t < OVER_S / pace + FIRST_RUNS_S:
                    _watch(story, receiver, prometheus, url, begun_t, monotonic_s() + look_every_s, look_every_s)
                story.over_after_s = monotonic_s() - ended_t if _is_over(receiver) else inf
        story.messages = [message for message in receiver.messages if message["receiver"] == PAGER]
    return story


@contextmanager
def _gone(target: Program, address: str, how: Outage) -> Iterator[Any]:
    """The target is gone, until what is given is called."""
    if how is Outage.SILENT:
        target.send(signal.SIGSTOP)
        yield lambda: target.send(signal.SIGCONT)
        return
    target.kill()
    with _Later("embedded", "--port", address.rpartition(":")[2]) as later:
        yield later.start


class _Later:
    """A program that is started when it is wanted."""

    def __init__(self, *arguments: str) -> None:
        self._manager = program(*arguments)
        self._started = False

    def __enter__(self) -> _Later:
        return self

    def start(self) -> None:
        """Starts it, and waits until it answers."""
        self._started = True
        self._manager.__enter__().said(r"Pub/Sub on (\S+:\d+)")

    def __exit__(self, *_: object) -> None:
        if self._started:
            self._manager.__exit__(None, None, None)


def _watch(story: Story, receiver: Receiver, prometheus: str, url: str, begun_t: float, until_t: float, every_s: float) -> None:
    while True:
        t = monotonic_s() - begun_t
        pages = tuple(f"{alert['labels']['alertname']} {_which(alert)}".rstrip() for alert in receiver.alerts(PAGER, "firing"))
        if pages and not story.paged_after_s:
            story.paged_after_s = t
        resolved = tuple(alert["labels"]["alertname"] for alert in receiver.alerts(PAGER, "resolved"))
        unsent = sum(series(url, "publishes_unsent_total{"))
        story.moments.append(Moment(t, frozenset(firing(prometheus)) - {"PubsubProberWatchdog"}, pages, resolved, unsent))
        rest_s = until_t - monotonic_s()
        if rest_s <= 0:
            return
        threading.Event().wait(min(every_s, rest_s))


def _which(alert: Mapping[str, Any]) -> str:
    return str(alert["labels"].get("slo", ""))


def _is_over(receiver: Receiver) -> bool:
    """Whether of every page the pager was told that it is over."""
    told = {name: {_identity(alert) for alert in receiver.alerts(PAGER, name)} for name in ("firing", "resolved")}
    return told["firing"] <= told["resolved"]


def _identity(alert: Mapping[str, Any]) -> frozenset[tuple[str, str]]:
    return frozenset(alert["labels"].items())


def written(story: Story) -> Iterator[str]:
    """The story as the rows of a table: one whenever something changed."""
    yield "| after | alerts that fire | pages so far | resolved so far | publishes not sent |"
    yield "|---|---|---|---|---|"
    before: tuple[Any, ...] = ()
    for moment in story.moments:
        now = (moment.firing, len(moment.pages), len(moment.resolved))
        if now != before or moment is story.moments[-1]:
            names = ", ".join(sorted(moment.firing)) or "none"
            after = write_duration(timedelta(seconds=round(moment.t)))
            yield f"| {after} | {names} | {len(moment.pages)} | {len(moment.resolved)} | {moment.unsent:,.0f} |"
        before = now


def main() -> None:
    """Plays it at its own pace and writes the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=45.0)
    parser.add_argument("--pace", type=float, default=1.0)
    parser.add_argument("--how", type=Outage, choices=list(Outage), default=Outage.REFUSED)
    parser.add_argument("out", type=Path)
    asked = parser.parse_args()
    with TemporaryDirectory() as folder:
        story = play(Path(folder), lasts_s=asked.minutes * MINUTE_S, pace=asked.pace, how=asked.how, look_every_s=10.0 / asked.pace)
    asked.out.write_text(page(story, asked.minutes), encoding="utf-8")


def page(story: Story, minutes: float) -> str:
    """The story as a page of the documentation."""
    lines = [
        "# An outage, as the people on call see it",
        "",
        "Written by `make outage`: the service with its defaults, Prometheus and Alertmanager with the examples of `alerts/`, and a target",
        "that is taken away. One line whenever something changed.",
        "",
        f"The target was gone for {minutes:g} minutes. The first page came after {story.paged_after_s:.0f} s. "
        f"The pager knew that everything was over {story.over_after_s / MINUTE_S:.0f} minutes after the target was back.",
        "",
        *written(story),
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
