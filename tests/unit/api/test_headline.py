"""The first box: each thing that can go wrong leads to its runbook, and what is only unusual is not called a broken promise."""

from __future__ import annotations

from dataclasses import replace

import pytest

from api.headline import NO_PROMISE, NOT_PROBED, UNREACHABLE, headline, words_of
from prober.alerting.rules import RUNBOOKS
from prober.core.findings import Facts, Finding, Kind, Status
from prober.core.kinds import CAN_FAIL, KINDS, USUAL
from prober.core.verdict import Verdict
from prober.sinks.live.incidents import Exemplar, Incident
from prober.sinks.live.snapshot import StatusSnapshot
from prober.slo.budgets import BurnState
from prober.slo.objectives import AlertState, Urgency
from tests.commands import ROOT
from tests.unit.api.asking import EUROPE, NOON, US, ask, end, view
from tests.unit.api.pages import Page

PROMISING = ("promise is broken", "must", "broke a promise", "breaks a promise")


def incident(kind: Kind) -> Incident:
    status = next(one for one in KINDS[kind].statuses if one in (Status.VIOLATION, Status.LIVENESS))
    bad, decided = (1, 10) if KINDS[kind].indicator else (0, 0)
    return Incident(f"r-{kind}", EUROPE.key, kind, status, NOON, NOON, 1, 1, 1, 0, bad, decided, "1", Exemplar("r-1", 3))


def broken(*kinds: Kind) -> StatusSnapshot:
    asked = view(EUROPE)
    (site,) = asked.snapshot().sites
    failing = replace(site, verdict=Verdict.FAIL, status=Verdict.FAIL)
    return replace(asked.snapshot(), verdict=Verdict.FAIL, sites=(failing,), incidents=tuple(map(incident, kinds)))


@pytest.mark.parametrize("kind", CAN_FAIL)
def test_every_kind_that_can_be_open_leads_to_a_runbook_that_exists(kind: Kind) -> None:
    (line,) = headline(broken(kind)).lines
    assert (ROOT / RUNBOOKS / f"{line.runbook}.md").is_file()


def test_so_does_an_outage() -> None:
    assert (ROOT / RUNBOOKS / f"{UNREACHABLE}.md").is_file()


@pytest.mark.parametrize("kind", sorted(USUAL))
def test_what_is_only_unusual_breaks_no_promise(kind: Kind) -> None:
    said = headline(broken(kind))
    assert (said.title, said.lines[0].note) == (words_of(incident(kind)), NO_PROMISE)
    assert headline(quiet(2, kind)).lines[0].note == f"not seen in the last 2 runs; {NO_PROMISE}"
    assert headline(broken(kind, Kind.STUCK)).title == "2 things are wrong"


def quiet(runs: int, *kinds: Kind) -> StatusSnapshot:
    """All sites pass, and so many runs ago something was seen that is not known to be over."""
    asked = view(EUROPE)
    (site,) = asked.snapshot().sites
    passing = replace(site, verdict=Verdict.PASS, status=Verdict.PASS)
    seen = tuple(replace(incident(kind), met_in_a_row=runs) for kind in kinds)
    return replace(asked.snapshot(), verdict=Verdict.UNKNOWN, sites=(passing,), incidents=seen)


def test_what_the_newest_runs_did_not_show_is_still_named() -> None:
    assert headline(quiet(1, Kind.ORDER_GAP)).title == "Messages arrive out of order, but not in the newest runs"
    assert headline(quiet(1, Kind.ORDER_GAP, Kind.STUCK)).title == "2 things are wrong, but not in the newest runs"
    before_it_is_written = replace(quiet(1, Kind.ORDER_GAP), verdict=Verdict.FAIL, sites=broken().sites)
    assert headline(before_it_is_written).title == "Messages arrive out of order"
    notes = [headline(quiet(runs, Kind.STUCK)).lines[0].note for runs in (1, 3)]
    assert notes == ["not seen in the newest run", "not seen in the last 3 runs"]


def test_one_symptom_is_one_line_whichever_probes_show_it() -> None:
    one = incident(Kind.ORDER_GAP)
    others = tuple(replace(one, site=one.site._replace(probe=probe), bad=0) for probe in ("redelivery", "affinity"))
    known = broken()
    sites = tuple(replace(known.sites[0], site=replace(EUROPE, probe=seen.site.probe)) for seen in (one, *others))
    said = headline(replace(known, sites=sites, incidents=(one, *others)))
    (line,) = said.lines
    assert (said.title, line.much, line.where) == (line.what, "3.3 %", "affinity, ordering, redelivery on europe")
    uncounted = tuple(replace(seen, kind=Kind.PHANTOM, bad=0, decided=0, findings=5) for seen in (one, *others))
    assert headline(replace(known, sites=sites, incidents=uncounted)).lines[0].much == "15 findings in 3 of 3 runs"


def test_what_must_never_happen_is_told_before_what_has_a_share() -> None:
    said = headline(broken(Kind.ORDER_GAP, Kind.PHANTOM))
    assert [line.what for line in said.lines] == [words_of(incident(kind)) for kind in (Kind.PHANTOM, Kind.ORDER_GAP)]


def test_what_nobody_probes_any_more_is_said_to_be_so_and_what_is_under_maintenance_is_left_out() -> None:
    known = broken(Kind.STUCK)
    elsewhere = replace(incident(Kind.STUCK), site=US.key)
    gone = headline(replace(known, verdict=Verdict.PASS, sites=quiet(1).sites, incidents=(elsewhere,)))
    assert (gone.title, [line.note for line in gone.lines]) == ("All probes pass", [NOT_PROBED])
    assert headline(replace(known, sites=(replace(known.sites[0], status=None, maintenance="upgrade"),))).lines == ()


def test_why_a_site_is_unknown_is_said_also_where_an_incident_is_open() -> None:
    known = quiet(1, Kind.STUCK)
    said = headline(replace(known, sites=(replace(known.sites[0], status=Verdict.UNKNOWN),)))
    assert said.title == "Not everything is known"
    assert "no run has ended yet" in said.causes[0]


def test_before_it_is_known_what_failed_no_promise_is_named() -> None:
    assert headline(broken()).title == "A probe fails"


@pytest.mark.parametrize(
    "path", ["/", "/incidents", "/incidents/run-1-AFFINITY_SPLIT", "/findings", "/findings/run-1-1", "/runs/run-1"]
)
def test_no_page_calls_a_split_a_broken_promise(path: str) -> None:
    facts: Facts = {"seq": 3, "subscriber": "B", "holder": "A", "held": (1, 2)}
    asked = view(EUROPE)
    end(asked, EUROPE, Verdict.FAIL, Finding(Kind.AFFINITY_SPLIT, Status.VIOLATION, "s", "k", 2.0, (1, 2), facts), at=NOON)
    response = ask(asked, path)
    assert response.status_code == 200
    said = Page(response.text).said().replace(NO_PROMISE, "").replace(NO_PROMISE[1:], "")
    assert [word for word in PROMISING if word in said] == []


def burning(**rates: float) -> StatusSnapshot:
    """All sites pass, and these objectives page."""
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
    (site,) = known.sites
    return replace(
        known, verdict=Verdict.PASS, sites=(replace(site, verdict=Verdict.PASS, status=Verdict.PASS),), slos=tuple(fires)
    )


def test_passing_probes_do_not_hide_what_pages() -> None:
    assert headline(burning(publish_availability=2.0)).title == "All probes pass"
    one = headline(burning(publish_availability=39.4, order=2.0))
    assert one.title == "All probes pass, but publish_availability burns its error budget"
    assert [(burns.objective, burns.times) for burns in one.burning] == [("publish_availability", 39.4)]
    several = headline(burning(publish_availability=39.4, stalled_keys=43.0))
    assert several.title == "All probes pass, but 2 objectives burn their error budgets"
    assert [burns.objective for burns in several.burning] == ["stalled_keys", "publish_availability"]
    failing = replace(burning(stalled_keys=43.0), verdict=Verdict.UNKNOWN)
    assert (headline(failing).title, len(headline(failing).burning)) == ("Not everything is known", 1)
