"""Mistakes in configurations: `mistakes.txt` has, mistake by mistake, a configuration and its error, whole and with its line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from prober.config.loading import load
from prober.config.workloads import MESSAGES_PER_S
from tests.unit.config.writing import complaints, loaded

TABLE = Path(__file__).with_name("mistakes.txt").read_text(encoding="utf-8")
MISTAKES = [
    (written.strip("\n") + "\n", re.findall(r"^=> (.+)$", reported, re.MULTILINE))
    for written, reported in re.findall(r"((?:(?!=> ).*\n)+)((?:=> .*\n)+)", TABLE)
]
LENGTH_MAX = 350


@pytest.mark.parametrize(("written", "reported"), MISTAKES)
def test_a_mistake_is_reported_in_one_line(tmp_path: Path, written: str, reported: list[str]) -> None:
    assert complaints(tmp_path, written) == reported


def test_the_table_is_read_whole() -> None:
    assert len(MISTAKES) > 100
    assert sum(len(reported) for _, reported in MISTAKES) == TABLE.count("=> ")


@pytest.mark.parametrize(("written", "reported"), MISTAKES)
def test_what_is_reported_is_short_and_says_where(written: str, reported: list[str]) -> None:
    for line in reported:
        assert len(line) <= LENGTH_MAX
        said = re.match(r"is not YAML: line (\d+): |\S+ \(line (\d+)\): ", line)
        assert said is not None, line
        assert 1 <= int(said[1] or said[2]) <= written.count("\n")


@pytest.mark.parametrize(
    "right",
    [
        "history: {location: /data, retention: 2d, size_max: 64MiB}",
        "history: {location: gs://bucket/history, reports: gs://bucket/reports}",
        "history: {location: /data/history, reports: /data/history/reports}",
        "history: {location: /data/history, spool: /data/history/_spool}",
        "sharding: {group: a}\nstatus: {url: 'postgresql://u:p@h/n'}",
        "status: {url: 'sqlite:////var/lib/prober/status.db'}",
        "probes: {ordering: {deadlines: {delivery: 1m, stall: 1m, unacked: 1m, drain: 1m}}}",
        "probes: {ordering: {rate: 100}}",  # 1,000 messages in 10 s
        "probes: {ordering: {sizes: [256, 4kB]}}",
        "probes: {ordering: {schedule: {interval: 10}}}",
        "slos: {publish_latency: {threshold: 0.5s}}",
        "api: {port: 8080}\nembedded: {port: 0}\ndrills: {port: 9096}",
        "api: {host: '::1'}",
        "history:\ntargets:\n",
        "history: {size_max: 2TB}",
        "targets:\n  - &eu {name: eu, labels: &l {team: a}}\n  - {<<: *eu, name: us}\n  - {<<: [*eu], name: asia, labels: {<<: *l}}\n",
    ],
)
def test_what_is_nearly_a_mistake_is_none(tmp_path: Path, right: str) -> None:
    loaded(tmp_path, right)


def test_a_line_is_reported_for_what_several_targets_share(tmp_path: Path) -> None:
    text = "targets: [{name: a}, {name: b, probes: {ordering: {rate: 10}}}]\nprobes:\n  ordering:\n    keys: 50\n"
    (problem,) = complaints(tmp_path, text)
    assert problem.startswith("targets[1].probes.ordering (line 1): a run publishes 5,000 messages")


def test_an_environment_variable_is_reported_and_no_line(tmp_path: Path) -> None:
    (problem,) = complaints(tmp_path, "history: {retention: 30d}", {"ORDERING_PROBER_HISTORY__RETENTION": "30"})
    assert problem.startswith("ORDERING_PROBER_HISTORY__RETENTION (history.retention): 30 what? write 30d")


def test_shared_work_may_be_more_than_one_prober_can_do(tmp_path: Path) -> None:
    much = "probes: {ordering: {keys: 100, messages: 100, schedule: {interval: 3s}, rate: 0}}\n"
    targets = "targets: [{name: a}, {name: b}, {name: c}, {name: d}, {name: e}]\n"
    (problem,) = complaints(tmp_path, targets + much)
    assert "need about 3 probers" in problem
    assert f"{2 * next(iter(MESSAGES_PER_S.values())):,} messages a second" in problem
    loaded(tmp_path, targets + much + "sharding: {group: a}\nstatus: {url: 'postgresql://u:p@h/n'}\n")


def test_a_local_folder_is_the_same_with_and_without_its_scheme(tmp_path: Path) -> None:
    (problem,) = complaints(tmp_path, "history: {location: 'file:" + "///data/history', reports: /data/./history/}")
    assert problem.startswith("history.reports (line 1): must not be the same as history.location")


def test_who_opens_no_store_needs_no_url(tmp_path: Path) -> None:
    path = tmp_path / "prober.yaml"
    path.write_text("sharding: {group: a}\n", encoding="utf-8")
    assert load(path, {}, opens_store=False).sharding.group == "a"


def test_a_recursive_alias_ends(tmp_path: Path) -> None:
    (problem,) = complaints(tmp_path, "targets: &a [*a]")
    assert problem.startswith("targets")
