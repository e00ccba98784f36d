"""The first box: each thing that can go wrong leads to its runbook, and what is only unusual is not called a broken promise."""

from __future__ import annotations

from dataclasses import replace

import pytest

from api.headline import NO_PROMISE, UNREACHABLE, headline, words_of
from prober.alerting.rules import RUNBOOKS
from prober.core.findings import Facts, Finding, Kind, Status
from prober.core.kinds import CAN_FAIL, KINDS, USUAL
from prober.core.verdict import Verdict
from prober.sinks.live.incidents import Exemplar, Incident
from prober.sinks.live.snapshot import StatusSnapshot
from tests.commands import ROOT
from tests.unit.api.asking import EUROPE, NOON, ask, end, view
from tests.unit.api.pages import Page

PROMISING = ("promise is broken", "must", "broke a promise", "breaks a promise")


def incident(kind: Kind) -> Incident:
    status = next(one for one in KINDS[kind].statuses if one in (Status.VIOLATION, Status.LIVENESS))
    return Incident(f"r-{kind}", EUROPE.key, kind, status, NOON, NOON, 1, 1, 1, 0, 1, 10, "1", Exemplar("r-1", 3))


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
    assert headline(broken(kind, Kind.STUCK)).title == "2 things are wrong"


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
