"""The first box: each thing that can go wrong leads to its runbook, and what is only unusual is not called a violated guarantee."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest

from api.headline import BLIND, NOT_GUARANTEED, UNREACHABLE, UNVERIFIED, about, headline, not_the_service, silences
from prober.config.following import ConfigurationStatus
from prober.config.values import EMBEDDED
from prober.core.findings import Facts, Finding, Kind, Status
from prober.core.kinds import CAN_FAIL, Symptom, symptom_of
from prober.core.verdict import Verdict
from prober.runs.probe_instance import InstanceKey
from prober.sinks.live.condition import Condition
from prober.sinks.live.incidents import Acknowledgement, Exemplar, Incident
from prober.sinks.live.snapshot import StatusSnapshot
from prober.slo.budgets import BurnState
from prober.slo.objectives import AlertState, Urgency
from tests.commands import RUNBOOKS
from tests.unit.api.asking import EUROPE, NOON, US, ask, end, view
from tests.unit.api.pages import Page

GUARANTEEING = ("guarantee is broken", "guarantee is violated", "must", "violated a guarantee", "violates a guarantee")


def incident(kind: Kind, instance: InstanceKey = EUROPE.key) -> Incident:
    """A fault that one of two runs showed a minute ago."""
    name = f"r-{symptom_of(kind)}"
    affected = {instance: Counter({kind: 2})}
    return Incident(
        name, instance.target, symptom_of(kind), NOON - 60, NOON - 60, NOON + 600, affected, 1, 2, 0, Exemplar("r-1", 3)
    )


OUTAGE_OF_EUROPE = Incident(
    "r-outage", "europe", Symptom.OUTAGE, NOON - 300, NOON - 60, NOON + 600, {EUROPE.key: Counter()}, 3, 3, 212
)


def shown(*incidents: Incident, status: Condition = Condition.PASS, runs: Sequence[tuple[Verdict, str]] = ()) -> StatusSnapshot:
    """One probe instance in this condition after these runs, and open incidents."""
    asked = view(EUROPE)
    for number, (verdict, reason) in enumerate(runs):
        end(asked, EUROPE, verdict, reason=reason, at=NOON - 30.0 + 10.0 * number)
    (instance,) = asked.snapshot().probe_instances
    return replace(asked.snapshot(), probe_instances=(replace(instance, status=status),), incidents=incidents)


@pytest.mark.parametrize("kind", CAN_FAIL)
def test_every_kind_that_can_be_open_leads_to_a_runbook_that_exists(kind: Kind) -> None:
    (line,) = headline(shown(incident(kind))).lines
    assert (RUNBOOKS / f"{line.runbook}.md").is_file()


@pytest.mark.parametrize("runbook", [UNREACHABLE, UNVERIFIED, BLIND])
def test_so_does_what_is_no_finding(runbook: str) -> None:
    assert (RUNBOOKS / f"{runbook}.md").is_file()


def test_a_fault_has_its_begin_how_bad_it_is_where_and_when_it_closes() -> None:
    said = headline(shown(incident(Kind.ORDER_GAP)))
    assert said.title == "Messages arrive out of order on europe since 11:59 UTC"
    assert said.lines[0].facts == (
        "2 findings in 1 of 2 verified runs of 1 probe",
        "ordering (wire), last seen 1 min ago",
        "closes by 12:10 UTC if not seen again",
    )
    assert (said.lines[0].runbook, said.lines[0].incident_id) == ("PubsubOrderViolated", "r-order")


def test_an_outage_comes_first_with_what_was_not_sent() -> None:
    known = shown(incident(Kind.ORDER_GAP), OUTAGE_OF_EUROPE, status=Condition.OUTAGE)
    said = headline(known)
    assert (known.status, said.title) == (Condition.OUTAGE, "europe cannot be reached since 11:55 UTC")
    assert said.lines[0].facts == (
        "212 publishes not sent, 3 runs could not reach it",
        "1 of 1 probe affected",
        "closes with the first run of an affected probe that reaches the target",
    )
    assert [line.condition for line in said.lines] == [Condition.OUTAGE, Condition.FAIL]


def test_several_faults_are_counted_since_the_first() -> None:
    older = replace(incident(Kind.STUCK), first_at=NOON - 3600.0)
    assert headline(shown(incident(Kind.ORDER_GAP), older)).title == "2 faults since 11:00 UTC"


def test_the_fault_that_began_first_comes_first() -> None:
    older = replace(incident(Kind.STUCK), first_at=NOON - 3600.0)
    lines = headline(shown(incident(Kind.ORDER_GAP), older)).lines
    assert [line.since for line in lines] == [NOON - 3600.0, NOON - 60.0]


def test_the_command_that_silences_an_incident_names_all_its_kinds() -> None:
    kinds = Counter({Kind.ORDER_GAP: 1, Kind.ORDER_INVERSION: 2})
    both = replace(incident(Kind.ORDER_GAP), affected={EUROPE.key: kinds}, incident_id="it's")
    command, budgets = (shlex.split(one.replace("\\\n", " ")) for one in silences(both))
    assert command[:4] == ["amtool", "--alertmanager.url=http://ALERTMANAGER:9093", "silence", "add"]
    assert command[4:] == [
        "--duration=1h",
        "--comment=incident it's",
        "alertname=~PubsubOrderViolated",
        "target=europe",
        "kind=~ORDER_GAP|ORDER_INVERSION",
    ]
    assert budgets[-2:] == ["alertname=~PubsubErrorBudgetBurn|PubsubErrorBudgetExhausted", "target=europe"]
    assert "alertname=~PubsubTargetUnreachable" in silences(OUTAGE_OF_EUROPE)[0]


def test_a_runbook_names_the_proof_only_if_it_is_of_the_kind_that_it_is_about() -> None:
    one = incident(Kind.ORDER_GAP)
    both = replace(one, affected={EUROPE.key: Counter({Kind.ORDER_GAP: 1, Kind.ORDER_INVERSION: 2})})
    assert ("id" in about(one), "id" in about(both)) == (True, False)


def test_an_acknowledged_fault_comes_last() -> None:
    known = replace(incident(Kind.ORDER_GAP), acknowledged=Acknowledgement(NOON, "ada", "known", None))
    lines = headline(shown(known, incident(Kind.STUCK))).lines
    assert [line.note for line in lines] == ["", "Acknowledged by ada: known"]


def test_usual_behaviour_warns_and_says_that_no_guarantee_is_broken() -> None:
    known = shown(incident(Kind.AFFINITY_SPLIT), status=Condition.WARN)
    assert (known.status, headline(known).lines[0].note) == (Condition.WARN, NOT_GUARANTEED)


def test_an_open_incident_is_no_pass_though_the_newest_run_passed() -> None:
    assert shown(incident(Kind.ORDER_GAP)).status is Condition.FAIL


def test_incidents_of_unprobed_and_maintained_places_do_not_count() -> None:
    for known in (shown(incident(Kind.STUCK, US.key)), shown(incident(Kind.STUCK), status=Condition.MAINTENANCE)):
        assert headline(known).lines == ()


def test_a_blind_target_is_named_with_the_most_frequent_reason() -> None:
    known = shown(status=Condition.UNKNOWN, runs=[(Verdict.UNKNOWN, "PERMISSION_DENIED")] * 2)
    said = headline(known)
    assert (known.status, said.causes) == (Condition.BLIND, ())
    assert said.title == "europe answers, and no run can be verified since 11:59 UTC"
    assert said.lines[0].facts == ("1 probe without a verdict", "PERMISSION_DENIED")
    assert said.lines[0].runbook == BLIND


def test_reasons_of_unknown_are_named_with_their_probes() -> None:
    known = shown(status=Condition.UNKNOWN, runs=[(Verdict.UNKNOWN, "no publish timed out; use a longer run")])
    known = replace(
        known,
        probe_instances=(
            known.probe_instances[0],
            replace(known.probe_instances[0], probe_instance=replace(EUROPE, vantage="library")),
        ),
    )
    said = headline(known)
    assert [(cause.where, cause.reason) for cause in said.causes] == [
        ("ordering on europe (wire), ordering on europe (library)", "no publish timed out; use a longer run")
    ]
    assert said.title == "2 probes without a verdict"


def test_the_first_minutes_show_the_progress() -> None:
    known = view(EUROPE).snapshot()
    assert (known.status, headline(known).title) == (Condition.STARTING, "0 of 1 probe have a verdict")


def test_a_fail_that_is_not_written_yet_is_named() -> None:
    said = headline(shown(status=Condition.FAIL, runs=[(Verdict.FAIL, "STUCK")]))
    assert (said.title, said.causes[0].reason) == ("1 probe found a broken guarantee", "STUCK")


@pytest.mark.parametrize("path", ["/", "/incidents", "/incidents/run-1-affinity", "/findings", "/findings/run-1-1", "/runs/run-1"])
def test_no_page_calls_a_split_a_violated_guarantee(path: str) -> None:
    facts: Facts = {"seq": 3, "subscriber": "B", "holder": "A", "held": (1, 2)}
    asked = view(EUROPE)
    split = Finding(Kind.AFFINITY_SPLIT, Status.VIOLATION, "s", "k", 2.0, (1, 2), facts)
    end(asked, EUROPE, Verdict.FAIL, split, reason="AFFINITY_SPLIT", at=NOON)
    response = ask(asked, path)
    assert response.status_code == 200
    said = Page(response.text).said().replace(NOT_GUARANTEED, "")
    assert [word for word in GUARANTEEING if word in said] == []


def burning(**rates: float) -> StatusSnapshot:
    """All probe instances pass, and these objectives page."""
    known = view(EUROPE).snapshot()
    (shown, *_) = known.slos
    fires = [
        replace(
            shown,
            objective=replace(shown.objective, name=name),
            burn=(BurnState(Urgency.PAGE, 3600.0, rate, 14.4, AlertState.FIRING if rate > 14.4 else AlertState.QUIET),),
        )
        for name, rate in rates.items()
    ]
    (instance,) = known.probe_instances
    return replace(
        known,
        verdict=Verdict.PASS,
        probe_instances=(replace(instance, verdict=Verdict.PASS, status=Condition.PASS),),
        slos=tuple(fires),
    )


def test_passing_probes_do_not_hide_what_pages() -> None:
    assert headline(burning(publish_availability=2.0)).title == "All probes pass"
    one = headline(burning(publish_availability=39.4, order=2.0))
    assert one.title == "All probes pass, but publish_availability burns its error budget"
    assert [(burns.objective, burns.times) for burns in one.burning] == [("publish_availability", 39.4)]
    several = headline(burning(publish_availability=39.4, stalled_keys=43.0))
    assert several.title == "All probes pass, but 2 objectives burn their error budgets"
    assert [burns.objective for burns in several.burning] == ["stalled_keys", "publish_availability"]


def test_an_embedded_server_is_named_with_the_faults_that_it_injects() -> None:
    found = shown(incident(Kind.ORDER_GAP))
    assert headline(found).not_the_service == ()
    (instance,), (prober,) = found.probe_instances, found.probers
    embedded = replace(instance, probe_instance=replace(instance.probe_instance, endpoint=f"{EMBEDDED} (127.0.0.1:8085)"))
    found = replace(found, probe_instances=(embedded,))
    sentence = "europe is the prober's embedded server, not Google Cloud Pub/Sub."
    assert headline(found).not_the_service == (sentence,)
    configured = replace(prober, configuration=ConfigurationStatus("", "", NOON, faults=("reorder_run@0.01",)))
    assert not_the_service(replace(found, probers=(configured,)), ["europe", "us"]) == (
        f"{sentence} It injects faults, as configured: reorder_run@0.01.",
    )
