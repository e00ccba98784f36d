"""What a run has to know of its target: the bounds that verdicts rest on, and what the address tells of where messages are published."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from prober.brokers.base import Vantage
from prober.brokers.endpoint import Endpoint, parse_endpoint
from prober.config.loading import load
from prober.config.models import ProbeName
from prober.core.rules import Mode, Rules
from prober.probes.catalogue import PROBES
from prober.runs.site import Target
from prober.schedule.instances import DELIVERY_DELAY_MAX_S, LOCAL_CLOSE_DETECTION_MAX_S, MESSAGE_RETENTION_S, PlannedSite

LOCAL = Endpoint("127.0.0.1:8085", secure=False)
GOOGLE = parse_endpoint("europe-west1")


def target_at(endpoint: Endpoint, vantage: Vantage = Vantage.WIRE, ack_deadline: str = "10s") -> Target:
    config = load(None, {"ORDERING_PROBER_PROBES__ORDERING__ACK_DEADLINE": ack_deadline})
    (settings,) = config.targets
    return PlannedSite(settings, ProbeName.ORDERING, settings.probes[ProbeName.ORDERING], vantage).at(endpoint)


@pytest.mark.parametrize(("endpoint", "region"), [(GOOGLE, "europe-west1"), (parse_endpoint("global"), ""), (LOCAL, "")])
def test_where_messages_are_published_is_claimed_only_where_it_is_known(endpoint: Endpoint, region: str) -> None:
    assert target_at(endpoint).publish_region == region


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
    """What is judged later from an excerpt, without its rules, is judged as it was."""
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
    """By pull and push one begins only when the response that holds the key is certainly over."""
    (settings,) = load(None, {}).targets
    site = PlannedSite(settings, probe, settings.probes[probe], Vantage.WIRE)
    target = site.at(LOCAL)
    rules = target.rules
    held_s = rules.ack_deadline_s + rules.ack_settled_s
    if all(plan.mode is Mode.STREAMING for plan in site.experiment.subscriptions):
        held_s = max(rules.ack_deadline_s, rules.ack_settled_s)
    assert target.drain_s > held_s + max(rules.delivery_deadline_s, rules.stall_deadline_s, rules.unacked_deadline_s)
