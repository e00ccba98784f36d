"""What another configuration means for what is probed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from prober.config.changes import restart_keys
from prober.config.loading import load
from prober.config.models import Config
from prober.errors import ConfigError
from prober.schedule.changes import Changes, changes_of
from prober.sinks.metrics import Metrics

TWO = """
targets:
  - {name: a, endpoint: embedded, probes: [ordering, redelivery]}
  - {name: b, endpoint: embedded, probes: [ordering]}
"""
Differ = Callable[..., Changes]


@pytest.fixture
def differ(tmp_path: Path) -> Differ:
    """What changes from one text to another; the prober measures what it did at its start."""

    def changes(before: str, after: str, **environ: str) -> Changes:
        old, new = (_loaded(tmp_path, text, **given) for text, given in ((before, {}), (after, environ)))
        return changes_of(old, new, Metrics(old.objectives).has_bound)

    return changes


def _loaded(folder: Path, text: str, **environ: str) -> Config:
    file = folder / "prober.yaml"
    file.write_text(text, encoding="utf-8")
    return load(file, environ)


ALL = {"a/ordering/wire", "a/redelivery/wire", "b/ordering/wire"}


def told(changes: Changes) -> dict[str, set[str]]:
    return {words: set(names) for words in ("kept", "changed", "gone", "new") if (names := getattr(changes, words))}


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (TWO, {"kept": ALL}),
        (f"# another comment\n{TWO}", {"kept": ALL}),
        (f"{TWO}probes: {{ordering: {{messages: 21}}}}", {"kept": {"a/redelivery/wire"}, "changed": ALL - {"a/redelivery/wire"}}),
        (
            f"{TWO}probes: {{ordering: {{schedule: {{interval: 11s}}}}}}",
            {"kept": {"a/redelivery/wire"}, "changed": ALL - {"a/redelivery/wire"}},
        ),
        (
            TWO.replace("[ordering, redelivery]", "{ordering: {keys: 12}, redelivery: }"),
            {"kept": ALL - {"a/ordering/wire"}, "changed": {"a/ordering/wire"}},
        ),
        (TWO.replace("[ordering, redelivery]", "[ordering]"), {"kept": ALL - {"a/redelivery/wire"}, "gone": {"a/redelivery/wire"}}),
        (TWO.replace("[ordering, redelivery]", "[redelivery, ordering, affinity]"), {"kept": ALL, "new": {"a/affinity/wire"}}),
        (
            TWO.replace("name: b", "name: c"),
            {"kept": ALL - {"b/ordering/wire"}, "gone": {"b/ordering/wire"}, "new": {"c/ordering/wire"}},
        ),
        (
            TWO.replace("name: b,", "name: b, environment: staging,"),
            {"kept": ALL - {"b/ordering/wire"}, "changed": {"b/ordering/wire"}},
        ),
        (
            f"{TWO}probes: {{redelivery: {{vantages: [wire, library]}}}}",
            {"kept": ALL, "new": {"a/redelivery/library"}},
        ),
        (
            f"{TWO}probes: {{redelivery: {{parts: 2}}}}",
            {
                "kept": ALL - {"a/redelivery/wire"},
                "gone": {"a/redelivery/wire"},
                "new": {"a/redelivery/wire/1/2", "a/redelivery/wire/2/2"},
            },
        ),
        (f"{TWO}maintenance: [{{cron: '0 3 * * *', duration: 1h, target: a}}]", {"kept": ALL}),
        (f"{TWO}slos: {{order: {{objective: 99.8%}}, completeness: false}}", {"kept": ALL}),
    ],
)
def test_only_what_changed_begins_anew(differ: Differ, after: str, expected: dict[str, set[str]]) -> None:
    changes = differ(TWO, after)
    assert told(changes) == expected
    assert changes.restart == ()


def test_what_is_read_at_the_start_only_stays_and_is_named(differ: Differ) -> None:
    changes = differ(
        TWO,
        f"{TWO}instance: other\napi: {{port: 9999}}\nhistory: {{retention: 9d, size_max: 1GiB}}\ntelemetry: {{log_level: debug}}\n"
        "embedded: {faults: [jitter]}\nmaintenance: [{cron: '0 3 * * *', duration: 1h, target: a}]\n",
    )
    assert set(changes.restart) == {
        "instance",
        "api.port",
        "history.retention",
        "history.size_max",
        "telemetry.log_level",
        "embedded.faults",
    }
    assert (changes.config.instance, changes.config.api.port, changes.config.embedded.faults) == (None, 8080, ())
    assert len(changes.config.maintenance) == 1


def test_secrets_are_compared_and_never_named_with_their_value(tmp_path: Path) -> None:
    one, other = (_loaded(tmp_path, TWO, ORDERING_PROBER_API__TOKEN=token) for token in ("a" * 20, "b" * 20))
    assert (restart_keys(one, one), restart_keys(one, other)) == ((), ("api.token",))


class TestObjectives:
    FAST = "slos: {fast: {indicator: publish_latency, objective: 99%%, threshold: %s}}"

    def test_a_threshold_that_is_measured_already_is_taken_over(self, differ: Differ) -> None:
        changes = differ(TWO + self.FAST % "250ms", TWO + self.FAST % "100ms")
        assert changes.restart == ()
        (fast,) = (one for one in changes.config.objectives if one.name == "fast")
        assert fast.threshold_s == 0.1

    def test_any_other_waits_for_a_restart_and_the_old_promise_holds(self, differ: Differ) -> None:
        """No bucket of the histogram ends there, so Prometheus could not tell how many were good."""
        changes = differ(TWO + self.FAST % "250ms", TWO + self.FAST % "123ms")
        assert changes.restart == ("slos.fast.threshold",)
        (fast,) = (one for one in changes.config.objectives if one.name == "fast")
        assert fast.threshold_s == 0.25

    def test_a_new_one_of_that_kind_is_not_there_until_then(self, differ: Differ) -> None:
        changes = differ(TWO, TWO + self.FAST % "123ms")
        assert changes.restart == ("slos.fast.threshold",)
        assert "fast" not in changes.config.slos


def test_what_only_several_probers_could_do_is_refused_until_they_share(differ: Differ) -> None:
    much = "probes: {ordering: {keys: 4000, messages: 20, rate: 0, schedule: {interval: 20s}, parts: 20}}\nsharding: {group: g}\n"
    url = {"ORDERING_PROBER_STATUS__URL": "postgresql://u@h/d"}
    with pytest.raises(ConfigError, match=r"without a restart for status.url, sharding.group: targets: all probes together need"):
        differ(TWO, TWO + much, **url)
