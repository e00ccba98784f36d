"""A probe that counts too little for an objective is refused, with the rate that would do."""

from __future__ import annotations

from pathlib import Path

from tests.unit.config.writing import loaded, problems


def test_a_probe_that_counts_too_little_is_refused_with_the_rate_that_would_do(tmp_path: Path) -> None:
    text = "probes: {{redelivery: {{keys: 10, schedule: {{interval: {interval}}}}}}}"
    (problem,) = problems(tmp_path, text.format(interval="10m"))
    assert problem == (
        "targets[0].probes.redelivery: counts 60 redeliveries an hour, so few that one bad one would fire an alert of slos.redelivery "
        "(99.9% over 30d needs 70). Run it at least every 8m34s, or with 2 times the keys, or lower the objective, or leave it out "
        "(NAME: false)"
    )
    loaded(tmp_path, text.format(interval="8m34s"))  # what it says does
    loaded(tmp_path, text.format(interval="10m").replace("keys: 10", "keys: 20"))


def test_objectives_that_count_the_same_are_refused_together(tmp_path: Path) -> None:
    text = "probes: {ordering: {keys: 2, messages: 2, schedule: {interval: 30s}}}"
    (problem,) = problems(tmp_path, text)
    assert problem.startswith("targets[0].probes.ordering: counts 480 messages an hour")
    assert "alert of slos.order (99.99% over 30d needs 695), slos.completeness (99.99% over 30d needs 695). Run" in problem
    loaded(tmp_path, text.replace("30s", "20s"))  # 720 an hour


def test_the_longest_gap_of_a_cron_counts(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, "probes: {affinity: {keys: 2, schedule: {cron: '*/5 8-17 * * mon-fri'}}}")
    assert "counts 0 messages an hour" in problem  # from Friday evening to Monday morning
    loaded(tmp_path, "probes: {affinity: {keys: 2, schedule: {cron: '*/5 * * * *'}}}")


def test_key_minutes_need_keys(tmp_path: Path) -> None:
    text = "targets: [{name: a, probes: {affinity: {keys: %d}}}]"
    (problem,) = problems(tmp_path, text % 1)
    assert "counts 60 key-minutes an hour" in problem
    assert "Run it with 2 times the keys" in problem
    loaded(tmp_path, text % 2)
