"""What a run has to know of its target: the bounds that verdicts rest on, and what the address tells of where messages are published.

And what another configuration means for what is probed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest

from prober.brokers.base import Vantage
from prober.brokers.endpoint import Endpoint, parse_endpoint
from prober.config.following import restart_keys
from prober.config.loading import load
from prober.config.models import Config
from prober.core.rules import Mode, Rules
from prober.errors import ConfigError
from prober.probes.catalogue import PROBES, ProbeName
from prober.runs.probe_instance import Target
from prober.schedule.instances import (
    DELIVERY_DELAY_MAX_S,
    LOCAL_CLOSE_DETECTION_MAX_S,
    MESSAGE_RETENTION_S,
    Changes,
    PlannedInstance,
    changes_of,
)
from prober.sinks.metrics import Metrics

LOCAL = Endpoint("127.0.0.1:8085", secure=False)
GOOGLE = parse_endpoint("europe-west1")
GLOBAL = parse_endpoint("global")


def target_at(endpoint: Endpoint, vantage: Vantage = Vantage.WIRE, ack_deadline: str = "10s") -> Target:
    config = load(None, {"ORDERING_PROBER_PROBES__ORDERING__ACK_DEADLINE": ack_deadline})
    (settings,) = config.targets
    return PlannedInstance(settings, ProbeName.ORDERING, settings.probes[ProbeName.ORDERING], vantage).at(endpoint)


@pytest.mark.parametrize(("endpoint", "region"), [(GOOGLE, "europe-west1"), (GLOBAL, ""), (LOCAL, "")])
def test_where_messages_are_published_is_claimed_only_where_it_is_known(endpoint: Endpoint, region: str) -> None:
    assert target_at(endpoint).publish_region == region


@pytest.mark.parametrize(
    ("endpoint", "peer", "proven"),
    [
        (GOOGLE, None, True),
        (LOCAL, None, True),
        (GLOBAL, None, False),
        (GOOGLE, GLOBAL, False),
        (GOOGLE, parse_endpoint("us-central1"), True),
        (parse_endpoint("private.googleapis.com"), None, False),
    ],
)
def test_one_publish_region_is_assumed_only_where_the_endpoint_proves_it(
    endpoint: Endpoint, peer: Endpoint | None, *, proven: bool
) -> None:
    assert target_at(replace(endpoint, peer=peer)).rules.one_publish_region is proven


@pytest.mark.parametrize(
    ("endpoint", "peer", "regions"),
    [
        (GOOGLE, parse_endpoint("us-central1"), ("europe-west1", "us-central1")),
        (LOCAL, Endpoint("127.0.0.1:8086", secure=False), ("127.0.0.1:8085", "127.0.0.1:8086")),
        (LOCAL, LOCAL, ("127.0.0.1:8085", "127.0.0.1:8085")),
    ],
)
def test_two_addresses_of_which_nobody_knows_the_region_are_two_regions(
    endpoint: Endpoint, peer: Endpoint, regions: tuple[str, str]
) -> None:
    target = target_at(replace(endpoint, peer=peer))
    assert (target.publish_region, target.peer_region) == regions


@pytest.mark.parametrize("vantage", Vantage)
@pytest.mark.parametrize("endpoint", [GOOGLE, LOCAL], ids=["google", "local"])
def test_the_bounds_say_what_subscriptions_are_made_with(endpoint: Endpoint, vantage: Vantage) -> None:
    rules = target_at(endpoint, vantage).rules
    assert rules.message_retention_s == MESSAGE_RETENTION_S
    assert (rules.retry_backoff_max_s, rules.dead_letter_max_attempts, rules.exactly_once) == (0.0, 0, False)


def test_a_dead_stream_may_look_open_for_as_long_as_where_nothing_is_said_about_it() -> None:
    """What is verified later from an excerpt, without its rules, is verified as it was."""
    assert target_at(GOOGLE).rules.close_detection_max_s == Rules().close_detection_max_s
    assert target_at(LOCAL).rules.close_detection_max_s == LOCAL_CLOSE_DETECTION_MAX_S


@pytest.mark.parametrize("ack_deadline", ["10s", "60s"])
def test_a_deadline_is_longer_than_another_key_may_be_held(ack_deadline: str) -> None:
    for endpoint in (GOOGLE, LOCAL):
        rules = target_at(endpoint, ack_deadline=ack_deadline).rules
        held_s = rules.ack_deadline_s + DELIVERY_DELAY_MAX_S
        assert held_s < min(rules.delivery_deadline_s, rules.stall_deadline_s, rules.unacked_deadline_s)


def test_through_a_client_library_delays_are_unbounded() -> None:
    rules = target_at(GOOGLE, Vantage.LIBRARY).rules
    assert (rules.delivery_delay_max_s, rules.attempts_observed) == (inf, False)


@pytest.mark.parametrize("probe", [ProbeName(name) for name in PROBES])
def test_a_run_waits_until_every_deadline_has_passed(probe: ProbeName) -> None:
    """By pull and push one begins only when the response that holds the key is provably over."""
    (settings,) = load(None, {}).targets
    instance = PlannedInstance(settings, probe, settings.probes[probe], Vantage.WIRE)
    target = instance.at(LOCAL)
    rules = target.rules
    leased_s = rules.ack_deadline_s + rules.delivery_delay_max_s
    held_s = leased_s + rules.ack_settled_s
    if all(plan.mode is Mode.STREAMING for plan in instance.experiment.subscriptions):
        held_s = max(leased_s, rules.ack_settled_s)
    assert (
        target.drain_s > target.quiet_s > held_s + max(rules.delivery_deadline_s, rules.stall_deadline_s, rules.unacked_deadline_s)
    )


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


def reported(changes: Changes) -> dict[str, set[str]]:
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
        (f"{TWO}probes: {{redelivery: {{vantages: [wire, library]}}}}", {"kept": ALL, "new": {"a/redelivery/library"}}),
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
    assert reported(changes) == expected
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

    def test_any_other_waits_for_a_restart_and_the_old_guarantee_holds(self, differ: Differ) -> None:
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
