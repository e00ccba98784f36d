"""The opportunities that the checker counts are those that the service had, and the probes find what they are for; what they say that
they send is what they send.

At the wire in virtual time (`tests.virtual_time`), through Google's client library over real gRPC.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from prober.brokers.base import Vantage
from prober.cli.check_runs import CheckRequest, run_checks
from prober.config.loading import load
from prober.core.verdict import Verdict
from prober.embedded.catalogue import CATALOGUE
from prober.embedded.faults import Armed, parse_fault
from prober.embedded.server import EmbeddedServer
from prober.probes.catalogue import PROBES, ProbeName
from prober.probes.cost import message_bytes
from prober.probes.payload import Stamp
from prober.runs.backlog import Backlog
from prober.runs.resources import Provisioner
from prober.runs.result import RunResult
from prober.runs.runner import new_run_id
from prober.schedule import instances
from prober.schedule.instances import instances_of
from tests.nightly import nightly_but
from tests.virtual_time import in_virtual_time

PROBE_OF = {
    "redeliver_single": "redelivery",
    "redeliver_unacked_only": "redelivery",
    "split_holder": "affinity",
    "overlap_push": "push",
    "push_past_failure": "push",
    "diverge_subscriptions": "publish",
    "overlap_pull": "pull",
    "redeliver_after_confirmed_ack": "exactly_once",
    "dead_letter_stalls_keys": "dead_letter",
}
SEARCHED = {"overlap_push", "push_past_failure", "split_holder"}
"""Faults whose every finding takes the checker a search; by day `test_check` injects them into few keys."""

PLANNED_OFF = {
    ("affinity", "opportunities_affinity"): 0.35,
    ("pull", "opportunities_overlap"): 0.35,
    ("push", "opportunities_overlap"): 0.1,
    ("publish", "opportunities_divergence"): 0.15,
    ("publish", "publishes_confirmed"): 0.15,
    ("exactly_once", "opportunities_confirmed"): 0.1,
    ("region", "opportunities_order"): 0.005,  # two more where both endpoints are in one region
}
"""How far a run may be off, as a share: what is decided by time beside the dice."""
DELIVERIES_OFF = {
    "ordering": 0.0,
    "redelivery": 0.05,
    "affinity": 0.15,
    "pull": 0.15,
    "push": 0.05,
    "publish": 0.15,
    "isolation": 0.05,
    "hot_key": 0.0,
    "control_group": 0.0,
    "dead_letter": 0.0,
    "exactly_once": 0.0,
    "seek": 0.0,
    "control_plane": 0.0,
    "limits": 0.0,
    "region": 0.0,
    "scale": 0.0,
    "long_lived": 0.0,
}
"""How far deliveries may be off, as a share: which subscriber leaves, or is replaced, when it holds what is decided by dice and time; so is
what was stored of a publish whose answer nobody waited for."""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each fault could have been injected."""
    could = Counter[str]()
    strikes = Armed.strikes

    def counted(self: Armed, key: str, now: float) -> bool:
        could[self.fault.name] += 1
        return strikes(self, key, now)

    monkeypatch.setattr(Armed, "strikes", counted)
    return could


@pytest.fixture
def lasting(monkeypatch: pytest.MonkeyPatch) -> list[Provisioner]:
    """The topics and subscriptions of runs, which last as those of a service do."""
    places: list[Provisioner] = []

    def made(*args: Any, lasting: bool, **settings: Any) -> Provisioner:
        places.append(Provisioner(*args, lasting=not lasting, **settings))
        return places[-1]

    monkeypatch.setattr(instances, "Provisioner", made)
    return places


def run(probe: str, *faults: str, vantage: Vantage = Vantage.WIRE, seed: int = 0) -> RunResult:
    async def scenario() -> RunResult:
        async with EmbeddedServer(faults=map(parse_fault, faults)) as server:
            request = CheckRequest(probes=(probe,), endpoint=server.address, vantage=vantage, seed=seed)
            (result,) = await run_checks(load(None, {}), request, {}, lambda _: None)
            return result

    return asyncio.run(scenario()) if vantage is Vantage.LIBRARY else in_virtual_time(scenario, seed)


def decided(asked: Counter[str], probe: str, *faults: str, vantage: Vantage = Vantage.WIRE) -> RunResult:
    """A run that a busy machine left undecided is carried out again, and counted anew."""
    for _ in range(3):
        asked.clear()
        result = run(probe, *faults, vantage=vantage)
        if result.verdict is not Verdict.UNKNOWN:
            break
    return result


@pytest.mark.parametrize(("vantage", "off"), [(Vantage.WIRE, 0.0), (Vantage.LIBRARY, 0.1)])
def test_redeliveries_that_could_have_gone_wrong_are_counted_as_opportunities(
    asked: Counter[str], vantage: Vantage, off: float
) -> None:
    """Never more than there were; through the library, which may have messages that nobody knows of, a little less."""
    result = decided(asked, "redelivery", "redeliver_single:p=0", "redeliver_unacked_only:p=0", vantage=vantage)
    assert result.verdict is Verdict.PASS, result.reason
    for counter, fault in (
        ("opportunities_redelivery", "redeliver_single"),
        ("opportunities_redelivery_acked", "redeliver_unacked_only"),
    ):
        assert (1 - off) * asked[fault] <= result.counters[counter] <= asked[fault]


def test_what_must_not_be_redelivered_is_counted_as_opportunities(asked: Counter[str]) -> None:
    """Never more than there were: what is held counts only if the message behind it provably was sent meanwhile."""
    result = decided(asked, "exactly_once", "redeliver_after_confirmed_ack:p=0", "forget_holds:p=0")
    assert result.verdict is Verdict.PASS, result.reason
    assert result.counters["opportunities_confirmed"] == asked["redeliver_after_confirmed_ack"]
    assert 0.95 * asked["forget_holds"] <= result.counters["opportunities_outstanding"] <= asked["forget_holds"]


def test_dead_letters_after_which_keys_could_have_stood_still_are_counted_as_opportunities(asked: Counter[str]) -> None:
    result = decided(asked, "dead_letter", "dead_letter_stalls_keys:p=0")
    assert result.verdict is Verdict.PASS, result.reason
    assert result.counters["opportunities_dead_letter"] == asked["dead_letter_stalls_keys"]


def test_batches_that_could_have_overlapped_are_counted_as_opportunities(asked: Counter[str]) -> None:
    result = run("pull", "overlap_pull:p=0")
    assert 0 < result.counters["opportunities_overlap"] <= asked["overlap_pull"]


@pytest.mark.parametrize("fault", nightly_but(PROBE_OF.keys() - SEARCHED, PROBE_OF))
def test_what_goes_wrong_in_one_case_of_five_is_found_at_once(fault: str) -> None:
    result = run(PROBE_OF[fault], f"{fault}:p=0.2,seed=7", seed=7)
    assert result.verdict is Verdict.FAIL
    assert {str(kind) for kind, status in result.counts if status in ("violation", "liveness")} & set(CATALOGUE[fault].findings)


@pytest.mark.parametrize("probe", PROBES)
def test_a_run_passes_as_planned_and_nothing_is_pending_after_it(
    probe: str, asked: Counter[str], lasting: list[Provisioner]
) -> None:
    """Its publishes and deliveries are those of its cost, its opportunities those of the plan."""
    (instance,) = (instance for instance in instances_of(load(None, {}).targets[0]) if instance.probe == probe)
    result = run(probe, "split_holder:p=0")
    assert (result.verdict, result.reason) == (Verdict.PASS, "")
    planned = instance.experiment.traffic(instance.workload)
    unverified = sum(result.counters.get(f"{where}_deliveries", 0) for where in ("unordered", "backoff", "sibling"))
    delivered = result.counters["deliveries_first"] + result.counters.get("deliveries_redelivery", 0) + unverified
    delivered += 2 * result.counters.get("dead_lettered", 0)  # published once more, and received from there
    delivered += 2 * result.counters.get("publishes_without_key", 0)  # on both subscriptions
    assert result.counters["publishes_invoked"] == planned.published - planned.unrecorded
    assert delivered == pytest.approx(planned.delivered, rel=DELIVERIES_OFF[probe])
    for counter, opportunities in instance.experiment.opportunities(instance.workload).items():
        assert result.counters[counter] == pytest.approx(opportunities, rel=PLANNED_OFF.get((probe, counter), 0.0))
    assert result.counters.get("opportunities_affinity", 0) <= asked["split_holder"]
    assert_nothing_is_pending(result, lasting)


@pytest.mark.parametrize("probe", [ProbeName.DEAD_LETTER, ProbeName.PUBLISH])
def test_nothing_is_pending_after_a_run_through_the_library(probe: ProbeName, lasting: list[Provisioner]) -> None:
    result = run(probe, vantage=Vantage.LIBRARY)
    assert result.verdict is Verdict.PASS, result.reason
    assert_nothing_is_pending(result, lasting)


def assert_nothing_is_pending(result: RunResult, lasting: Sequence[Provisioner]) -> None:
    backlogs = lasting[0].backlogs
    assert backlogs
    assert set(backlogs.values()) == {Backlog()}
    assert "messages_written_off" not in result.counters


def test_a_message_is_as_long_as_it_is_billed_for() -> None:
    for probe in PROBES:
        attributes = Stamp(new_run_id(probe), 12).attributes(f"{probe}-1", b"")
        carried = sum(map(len, attributes)) + sum(map(len, attributes.values()))
        assert carried < message_bytes((0,)) < carried + 80
