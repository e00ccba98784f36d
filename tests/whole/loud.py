"""Faults as the people on call hear of them, through the whole chain: target, prober, Prometheus, Alertmanager, receiver, status page.

`python -m tests.whole.loud docs/loud.md` plays every scenario and writes who was notified, when, and what the message and the status page
said. The exit code is 1 if a fault stayed silent, reached the wrong receiver, or stayed open after its end.

`--pace` divides the durations of the rules and of Alertmanager, so that an alert that lasts an hour can be seen to resolve. Probes and
deadlines of the checker keep their pace.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from prober.alerting.rules import Severity
from prober.clock import monotonic_s, wall_s
from prober.slo.objectives import MINUTE_S
from tests.integration.chain import Chain, Receiver, chain, receiving
from tests.integration.programs import eventually, get, series
from tests.whole.scenarios import BY_NAME, NOBODY, Scenario
from tests.whole.world import World

PACE: Final = 4.0
"""At a faster one, runs that wait for the deadlines of the checker outlast the windows of the rules."""
CALM_S: Final = 600.0
"""The longest that a healthy world may take until every probe has passed and no alert is pending."""
HEARD_S: Final = 15 * MINUTE_S
STAYS_S: Final = 30.0
"""The fault goes on for this long after its message, so that the messages that follow from it are seen too."""
OVER_S: Final = 2 * 60 * MINUTE_S
PAGERS: Final = ("service-pager", "prober-pager")
LOOK_S: Final = 2.0
PAGE_S: Final = 60.0


@dataclass
class Story:
    """What happened in one scenario. Times are seconds since the fault began; `over_after_s` counts from its end."""

    scenario: str
    pace: float
    heard_after_s: float | None = None
    message: str = ""
    box: str = ""
    notified: list[str] = field(default_factory=list)
    over_after_s: float | None = None
    complaints: list[str] = field(default_factory=list)


class _FirstBox(HTMLParser):
    """Collects the text of the first `section` of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self._depth, self._is_over = 0, False

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        if tag == "section" and not self._is_over:
            self._depth += 1

    def handle_endtag(self, tag: str) -> None:
        if tag == "section" and self._depth:
            self._depth -= 1
            self._is_over = not self._depth

    def handle_data(self, data: str) -> None:
        if self._depth and not self._is_over:
            self.words += data.split()


def first_box(page: str) -> str:
    """The text of the first box of the status page, in one line."""
    parser = _FirstBox()
    parser.feed(page)
    return " ".join(parser.words)


def play(scenario: Scenario, folder: Path, pace: float) -> Story:
    """Inject the fault into a healthy world, wait for the message, end the fault, and wait until everybody knows that it is over."""
    story = Story(scenario.name, pace)
    with ExitStack() as running:
        receiver = running.enter_context(receiving())
        world = World(scenario.setting, folder, running)
        watched = running.enter_context(chain(world.urls, receiver, folder, pace=pace))
        eventually(lambda: _is_calm(world, watched), CALM_S, LOOK_S)
        _report(scenario, "healthy; the fault begins")
        begun_at = wall_s()
        with scenario.inject(world):
            _hear(story, scenario, world, watched, receiver, begun_at)
        _report(scenario, f"heard after {_seconds(story.heard_after_s)}; the fault ends")
        ended_t = monotonic_s()
        if _wait(lambda: not _open(receiver) and not _firing(scenario, watched), OVER_S / pace):
            story.over_after_s = monotonic_s() - ended_t
        story.notified = list(_notified(receiver, begun_at))
    story.complaints = list(complaints_about(story, scenario, receiver))
    _report(scenario, "; ".join(story.complaints) or f"over after {_seconds(story.over_after_s)}")
    return story


def _report(scenario: Scenario, news: str) -> None:
    """Print progress, beside the story on standard output."""
    print(f"{scenario.name}: {news}", file=sys.stderr, flush=True)


def _is_calm(world: World, watched: Chain) -> bool:
    """Whether every probe instance has passed, and nothing fires."""
    for url in world.urls:
        instances = json.loads(get(f"{url}/api/v1/status"))["probe_instances"]
        if not instances or any(instance["verdict"] != "PASS" for instance in instances):
            return False
    scraped = watched.query("sum(pubsub_prober_probe_runs_total)")
    expected = sum(sum(series(url, "probe_runs_total{")) for url in world.urls)
    return bool(scraped) and float(scraped[0]["value"][1]) >= expected - len(world.urls) and not watched.firing()


def _hear(story: Story, scenario: Scenario, world: World, watched: Chain, receiver: Receiver, begun_at: float) -> None:
    """Wait for the message, then note it and the status page."""

    def heard() -> bool:
        return bool(_firing(scenario, watched) if scenario.receiver == NOBODY else _messages(scenario, receiver))

    if not _wait(heard, HEARD_S):
        story.box = first_box(get(f"{world.urls[0]}/", PAGE_S))
        return
    story.heard_after_s = wall_s() - begun_at
    story.message = next(iter(_messages(scenario, receiver)), "")
    threading.Event().wait(STAYS_S)
    story.box = first_box(get(f"{world.urls[0]}/", PAGE_S))


def _wait(condition: Any, patience_s: float) -> bool:
    give_up_t = monotonic_s() + patience_s
    while not condition():
        if monotonic_s() > give_up_t:
            return False
        threading.Event().wait(LOOK_S)
    return True


def _messages(scenario: Scenario, receiver: Receiver) -> list[str]:
    """The summaries of the alerts that the right receiver got."""
    alerts = receiver.alerts(scenario.receiver, "firing")
    return [alert["annotations"]["summary"] for alert in alerts if alert["labels"]["alertname"] in scenario.alerts]


def _firing(scenario: Scenario, watched: Chain) -> list[str]:
    """The alerts of the scenario that fire; of one that pages without its tickets, whose windows last for days."""
    found = (labels for labels in watched.firing() if labels["alertname"] in scenario.alerts)
    return [labels["alertname"] for labels in found if scenario.receiver not in PAGERS or labels["severity"] == Severity.CRITICAL]


def _identity(alert: dict[str, Any]) -> frozenset[tuple[str, str]]:
    return frozenset(alert["labels"].items())


def _open(receiver: Receiver) -> set[frozenset[tuple[str, str]]]:
    """The alerts that a pager has not been notified of the end of."""
    state: dict[frozenset[tuple[str, str]], str] = {}
    for pager in PAGERS:
        for message in receiver.messages:
            if message["receiver"] == pager:
                state |= {_identity(alert): alert["status"] for alert in message["alerts"]}
    return {alert for alert, status in state.items() if status == "firing"}


def _notified(receiver: Receiver, begun_at: float) -> Iterator[str]:
    """Each receiver with the alerts that it got and the time of the first message; a message that only resolves an alert is none."""
    seen = set()
    for message in receiver.received:
        for alert in message.content["alerts"]:
            labels = alert["labels"]
            name = " ".join(filter(None, [labels["alertname"], labels.get("slo", "")]))
            if alert["status"] == "resolved" or message.receiver == "dead-mans-switch":
                continue
            if (message.receiver, name) not in seen:
                seen.add((message.receiver, name))
                yield f"{message.receiver}: {name} after {message.at - begun_at:.0f} s"


def complaints_about(story: Story, scenario: Scenario, receiver: Receiver) -> Iterator[str]:
    """What is wrong with how a fault was heard; nothing if all is well."""
    if story.heard_after_s is None:
        yield f"{scenario.receiver} did not get {' or '.join(scenario.alerts)}"
    if scenario.box.lower() not in story.box.lower():
        yield f"the first box of the status page does not contain {scenario.box!r}"
    if story.over_after_s is None:
        yield "its alerts did not resolve"
    for pager in PAGERS:
        if pager != scenario.receiver and receiver.alerts(pager, "firing"):
            yield f"{pager} was paged too: {sorted({one['labels']['alertname'] for one in receiver.alerts(pager, 'firing')})}"


def page(stories: Sequence[Story]) -> str:
    """The page of the documentation; it names the scenarios that it has no story of."""
    missing = [scenario.what for name, scenario in BY_NAME.items() if name not in {story.scenario for story in stories}]
    lines = [
        "# Notifications of faults",
        "",
        "This page shows who was notified of each fault, and when, from target and prober through Prometheus to the receiver. `make loud`",
        "plays the faults and writes it. [loud.json](loud.json) contains messages, status pages and further alerts. The pace divides the",
        "durations of rules and Alertmanager, not those of probes; `make loud PACE=1` shows the real waits. Several faults share a",
        "machine, so the data has tickets about a slow prober.",
        "",
        "| fault | notified | alert | after | over after | pace |",
        "|---|---|---|---|---|---|",
        *(_row(story) for story in stories),
        "",
        *([f"Not measured yet: {'; '.join(missing)}.", ""] if missing else []),
    ]
    return "\n".join(lines)


def _row(story: Story) -> str:
    scenario = BY_NAME[story.scenario]
    who = scenario.receiver if scenario.notified else "none (information only)"
    cells = (
        scenario.what,
        who,
        scenario.alerts[0].removeprefix("Pubsub"),
        _seconds(story.heard_after_s),
        _seconds(story.over_after_s),
        f"{story.pace:g}",
    )
    return "| " + " | ".join(cells) + " |"


def _seconds(number: float | None) -> str:
    return "never" if number is None else f"{number:.0f} s"


def _alone(name: str, pace: float) -> Story:
    """Play a scenario in a process of its own."""
    command = [sys.executable, "-m", "tests.whole.loud", "--pace", str(pace), "--scenario", name, "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        return Story(name, pace, complaints=["the scenario ended with an error of the harness, see above"])
    return Story(**json.loads(lines[-1]))


def main() -> int:
    """Play the scenarios, write the page, and return the exit code."""
    parser = argparse.ArgumentParser(description="Play faults through the whole chain.")
    parser.add_argument("--pace", type=float, default=PACE, help="divides the durations of the rules and of Alertmanager")
    parser.add_argument("--jobs", type=int, default=3, help="scenarios that run at the same time")
    parser.add_argument(
        "--scenario", action="append", choices=list(BY_NAME), default=[], help="play only this one; may be repeated"
    )
    parser.add_argument("--json", action="store_true", help="play one scenario in this process and print its story")
    parser.add_argument("out", type=Path, nargs="?", help="the page; its data is kept beside it")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that every program that was started is stopped
    names = asked.scenario or list(BY_NAME)
    if asked.json:
        with TemporaryDirectory() as folder:
            print(json.dumps(asdict(play(BY_NAME[names[0]], Path(folder), asked.pace))))
        return 0
    with ThreadPoolExecutor(asked.jobs) as pool:
        stories = [_keep(asked.out, story) for story in pool.map(lambda name: _alone(name, asked.pace), names)]
    complaints = [f"{story.scenario}: {complaint}" for story in stories for complaint in story.complaints]
    print("\n".join(complaints) or "LOUD: every fault was heard, and its end too")
    return 1 if complaints else 0


def _keep(out: Path | None, story: Story) -> Story:
    """Write a story into the page and its data, in place of an older one of the same scenario."""
    if out is None:
        print(_row(story))
        return story
    data = out.with_suffix(".json")
    known = json.loads(data.read_text(encoding="utf-8")) if data.exists() else {}
    known[story.scenario] = asdict(story)
    kept = {name: known[name] for name in BY_NAME if name in known}
    data.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    out.write_text(page([Story(**one) for one in kept.values()]), encoding="utf-8")
    return story


if __name__ == "__main__":
    sys.exit(main())
