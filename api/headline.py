"""The first box of the status page: what is broken, how much, since when, and what to do. Words only; nothing is decided here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from api.formatting import name, why
from api.words import counted, number, share
from prober.alerting.service import alerts_of
from prober.core.kinds import SYMPTOMS, USUAL
from prober.core.verdict import Verdict
from prober.runs.site import SiteKey
from prober.sinks.live.incidents import Incident
from prober.sinks.live.snapshot import Outage, SiteSnapshot, StatusSnapshot
from prober.slo.objectives import AlertState, Urgency

CAUSES_SHOWN_MAX: Final = 3
SYMPTOMS_SHOWN_MAX: Final = 5
UNREACHABLE: Final = "PubsubTargetUnreachable"
NO_PROMISE: Final = "no promise is broken: Google documents the opposite as usual, and does not guarantee it"
"""Said of `USUAL` wherever it is open."""
NOT_PROBED: Final = "nobody probes there any more"

SPENT: Final = "PubsubErrorBudgetExhausted"
BURNS: Final = "PubsubErrorBudgetBurn"
TROUBLES: Final = {
    "the configuration file was refused": "PubsubProberConfigRefused",
    "has sent no heartbeat": "PubsubProberDown",
    "is stuck": "PubsubProberRunsMissing",
    "history cannot be written": "PubsubProberHistoryFailing",
    "are missing from": "PubsubProberEventsDropped",
    "the reports of the nightly jobs cannot be read": "PubsubProberJobLate",
    "the other probers cannot be asked": "PubsubProberStatusStoreDown",
    "the status store cannot be written": "PubsubProberStatusStoreFailing",
    "the status store cannot be reached": "PubsubProberStatusStoreDown",
    "what the status store has is out of date": "PubsubProberStatusStoreFailing",
}
"""What problems of the prober say of themselves, and what to do about each; the first one that fits."""

_TITLES: Final = {Verdict.PASS: "All probes pass", Verdict.FAIL: "A probe fails", Verdict.UNKNOWN: "Not everything is known"}
_STATUSES: Final = {Verdict.FAIL: "FAIL", Verdict.UNKNOWN: "UNKNOWN", Verdict.PASS: "PASS", None: "under maintenance"}


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that is wrong.

    what       it, as the beginning of a sentence. `much`: how much of it, as its end.
    since      when it began; `where`: where.
    runbook    what to do about it, by name.
    incident_id   the incident that says most about it; empty: it is none.
    note       what else is to be known, such as who knows already.
    quiet      the newest runs that could have shown it did not.
    about      values for the placeholders of the runbook.
    """

    what: str
    much: str
    since: float
    where: str
    runbook: str
    incident_id: str = ""
    note: str = ""
    quiet: bool = False
    about: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Burning:
    """An objective whose error budget is being spent so fast that it pages: `times` as fast as would spend it in exactly its period."""

    objective: str
    target: str
    times: float


@dataclass(frozen=True, slots=True)
class Headline:
    """The state in one glance: a few words, how many sites stand how, what is wrong, and why the sites that this leaves out are not PASS.

    more      further things that are wrong.
    burning   the objectives that page somebody, worst first: runs may all pass while too many publishes fail.
    """

    title: str
    counts: str
    lines: tuple[Line, ...]
    more: int
    burning: tuple[Burning, ...]
    causes: tuple[str, ...]


def headline(snapshot: StatusSnapshot) -> Headline:
    """What is to be read first. An outage first, then what nobody has acknowledged, then the rest."""
    statuses = Counter(site.status for site in snapshot.sites)
    counts = ", ".join(f"{number(statuses[status])} {word}" for status, word in _STATUSES.items() if statuses[status])
    lines, burning = (*_outages(snapshot.sites), *_symptoms(snapshot)), _burning(snapshot)
    return Headline(
        _title(snapshot, lines) + _but(snapshot, burning),
        counts or "nothing is probed",
        lines[:SYMPTOMS_SHOWN_MAX],
        max(0, len(lines) - SYMPTOMS_SHOWN_MAX),
        burning,
        _causes(snapshot),
    )


def runbook_of(incident: Incident) -> str:
    """The runbook of the alert that an incident fires, most likely; empty if its kind fires none."""
    alerts = alerts_of(incident.kind)
    return alerts[-1 if incident.status.value == "liveness" else 0] if alerts else ""


def about(incident: Incident) -> Mapping[str, str]:
    """Values for the placeholders of the incident's runbook."""
    site = incident.site
    return {"target": site.target, "probe": site.probe, "kind": incident.kind, "id": incident.exemplar.finding_id}


def runbook_of_trouble(trouble: str) -> str:
    """The runbook for a problem of the prober, by the words that it has; empty: there is none."""
    return next((runbook for words, runbook in TROUBLES.items() if words in trouble), "")


def words_of(incident: Incident) -> str:
    """What is going on, as the beginning of a sentence."""
    words = SYMPTOMS[incident.kind]
    return words[0].upper() + words[1:]


def state(incident: Incident) -> str:
    """Whether it is over, and what it takes to say so, in a sentence."""
    if incident.closed_at is not None:
        return "It is over."
    left = max(1, incident.closes_after - incident.met_in_a_row)
    return f"It is over when {counted(left, 'run')} in a row could have shown it and did not."


def trend(incident: Incident) -> str:
    """The history in words, for those who do not see it."""
    return f"seen in {incident.history.count('1')} of the last {counted(len(incident.history), 'run')} that could have shown it"


def share_of(incident: Incident) -> str:
    """How much of what was counted since it began went wrong, or in how many runs it was found."""
    if incident.bad and incident.bad_share is not None:
        return share(incident.bad_share)
    return _found([incident])


def _found(incidents: Collection[Incident]) -> str:
    findings, runs, chances = (sum(getattr(one, name) for one in incidents) for name in ("findings", "runs", "chances"))
    return f"{counted(findings, 'finding')} in {number(runs)} of {counted(chances, 'run')}"


def _title(snapshot: StatusSnapshot, lines: tuple[Line, ...]) -> str:
    if snapshot.sites and all(site.verdict is None for site in snapshot.sites):
        return "Nothing is known yet"
    if any(site.outage for site in snapshot.sites):
        return lines[0].what
    statuses = {site.status for site in snapshot.sites}
    if not lines or snapshot.verdict is Verdict.PASS or (Verdict.FAIL not in statuses and Verdict.UNKNOWN in statuses):
        return _TITLES[snapshot.verdict]
    if seen := [line for line in lines if not line.quiet]:
        return _together(seen, snapshot.incidents)
    # The run that fails a site may not be written yet, so that only its verdict is known.
    return _together(lines, snapshot.incidents) + (", but not in the newest runs" if snapshot.verdict is Verdict.UNKNOWN else "")


def _together(lines: Sequence[Line], incidents: Iterable[Incident]) -> str:
    """Several things in a few words."""
    what = {line.what for line in lines}
    if len(what) == 1:
        return what.pop()
    if all(incident.kind in USUAL for incident in incidents):
        return "Something unusual goes on"
    return f"{number(len(what))} things are wrong"


def _but(snapshot: StatusSnapshot, burning: Sequence[Burning]) -> str:
    """What makes a title wrong that says that all is well."""
    if snapshot.verdict is not Verdict.PASS or not burning:
        return ""
    first = burning[0].objective
    return (
        f", but {first} burns its error budget"
        if len(burning) == 1
        else f", but {len(burning)} objectives burn their error budgets"
    )


def _burning(snapshot: StatusSnapshot) -> tuple[Burning, ...]:
    found = []
    for slo in snapshot.slos:
        fires = [burn for burn in slo.burn if burn.state is AlertState.FIRING and burn.severity is Urgency.PAGE]
        if fires:
            found.append(Burning(slo.objective.name, slo.target, max(burn.burn_rate or 0.0 for burn in fires)))
    return tuple(sorted(found, key=lambda one: -one.times))


def _outages(sites: Iterable[SiteSnapshot]) -> Iterator[Line]:
    """One line a target, if none of its sites reaches it; else one for each that does not."""
    by_target: dict[str, list[SiteSnapshot]] = {}
    for site in sites:
        if site.maintenance is None:
            by_target.setdefault(site.site.target, []).append(site)
    for target, watched in by_target.items():
        out = [(site, site.outage) for site in watched if site.outage is not None]
        if len(out) == len(watched):
            yield _outage(target, target, [outage for _, outage in out])
        else:
            yield from (_outage(target, f"{target} by {site.site.probe} ({site.site.vantage})", [outage]) for site, outage in out)


def _outage(target: str, what: str, outages: list[Outage]) -> Line:
    unsent = sum(outage.unsent for outage in outages)
    much = f"{number(unsent)} publishes were not sent" if unsent else counted(sum(one.runs for one in outages), "run")
    return Line(f"{what} cannot be reached", much, min(one.since for one in outages), "", UNREACHABLE, about={"target": target})


def _symptoms(snapshot: StatusSnapshot) -> list[Line]:
    """Incidents with the same symptom on one target together, whichever probe shows it; what somebody knows apart. What is worst first."""
    now, probed = snapshot.at, {site.site.key: site.status for site in snapshot.sites}
    groups: dict[tuple[str, str, bool, bool], list[Incident]] = {}
    for one in snapshot.incidents:
        if one.site not in probed or probed[one.site] is not None:  # not under maintenance
            sort = (SYMPTOMS[one.kind], one.site.target, one.site in probed, one.is_acknowledged(now))
            groups.setdefault(sort, []).append(one)
    ranked = sorted(groups.values(), key=lambda group: _rank(group, now))
    return [_symptom(group, now, is_probed=group[0].site in probed) for group in ranked]


def _rank(group: list[Incident], now: float) -> tuple[bool, bool, bool, float]:
    """The smallest is told first. What must never happen has no share."""
    return (
        group[0].is_acknowledged(now),
        all(one.kind in USUAL for one in group),
        all(one.met_in_a_row for one in group),
        -max(1.0 if one.bad_share is None else one.bad_share for one in group),
    )


def _symptom(group: list[Incident], now: float, *, is_probed: bool) -> Line:
    shown = max(group, key=lambda one: (one.bad_share or 0.0, one.findings))
    first = min(group, key=lambda one: one.first_at)
    where = f"{', '.join(sorted({one.site.probe for one in group}))} on {shown.site.target}"
    return Line(
        words_of(shown),
        _much(group),
        first.first_at,
        where,
        runbook_of(shown),
        shown.incident_id,
        _note(group, shown, now, is_probed=is_probed),
        quiet=not is_probed or all(one.met_in_a_row for one in group),
        about=about(shown),
    )


def _much(group: list[Incident]) -> str:
    """Of each site the kind that says most: all kinds with one symptom count the same things."""
    by_site: dict[SiteKey, Incident] = {}
    for one in group:
        if one.site not in by_site or (one.decided, one.findings) > (by_site[one.site].decided, by_site[one.site].findings):
            by_site[one.site] = one
    telling = by_site.values()
    bad, decided = sum(one.bad for one in telling), sum(one.decided for one in telling)
    return share(bad / decided) if bad else _found(telling)


def _note(group: list[Incident], shown: Incident, now: float, *, is_probed: bool) -> str:
    said = shown.acknowledged
    if said is not None and shown.is_acknowledged(now):
        return f"acknowledged by {said.by}" + (f": {said.note}" if said.note else "")
    if not is_probed:
        return NOT_PROBED
    quiet = min(one.met_in_a_row for one in group)
    unseen = "not seen in the newest run" if quiet == 1 else f"not seen in the last {counted(quiet, 'run')}"
    return "; ".join([unseen] * bool(quiet) + [NO_PROMISE] * (shown.kind in USUAL))


def _causes(snapshot: StatusSnapshot) -> tuple[str, ...]:
    """Why sites stand as bad as the verdict says that no line is about. Names at most three."""
    told = {incident.site for incident in snapshot.incidents} if snapshot.verdict is Verdict.FAIL else set()
    causes = [
        f"{name(site.site)}: {why(site)}"
        for site in snapshot.sites
        if site.status is snapshot.verdict and why(site) and site.outage is None and site.site.key not in told
    ]
    more = len(causes) - CAUSES_SHOWN_MAX
    return (*causes[:CAUSES_SHOWN_MAX], *([f"and {number(more)} more"] if more > 0 else []))
