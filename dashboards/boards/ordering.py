"""Ordering: the guarantees about ordering keys, by target and vantage."""

from __future__ import annotations

from dashboards.board import Board, PanelRow
from dashboards.boards.subjects import AFFINITY, CHECKS, EVIDENCE, EVIDENCE_OF_KIND, INTEGRITY_KINDS, OVERLAP_KINDS, CheckKind
from dashboards.panels import COUNT, PER_SECOND, SHARE, Look, Panel, TableColumn, Words, graph_panel, stat_panel, table_panel
from dashboards.queries import BY, RANGE, Query, increase_of, rate, rate_of, select, vantage_of
from dashboards.thresholds import ANY_IS_BAD, Thresholds
from prober.alerting.promql import Labels, aggregate, ratio
from prober.alerting.rules import Dashboard
from prober.core.findings import Kind, Status
from prober.sinks.metrics import families
from prober.sinks.metrics.label_values import CheckResult
from prober.sinks.metrics.scopes import TARGET

SURE = (Status.VIOLATION, Status.LIVENESS)
DECIDED = (CheckResult.GOOD, CheckResult.BAD)


def ordering_board(thresholds: Thresholds) -> Board:
    """Return the dashboard of ordering."""
    return Board(
        Dashboard.ORDERING,
        "Ordering keys / Ordering",
        "Are messages received in order, redelivered together, and kept at one subscriber? By subscription, and by vantage.",
        (
            PanelRow("At a glance", (*(_bad_share(checks, thresholds) for checks in CHECKS), _overlaps(), _integrity())),
            PanelRow("By subscription", (_subscriptions(thresholds),)),
            *(PanelRow(checks.name, _panels(checks, thresholds)) for checks in CHECKS),
            PanelRow("At the wire, or through the client library", (_vantages(), _deliveries(), _anomalies())),
        ),
        by=("subscription", "target", "region", "environment", "instance"),
    )


def _bad_share(checks: CheckKind, thresholds: Thresholds) -> Panel:
    words = Words(
        checks.broken,
        f"The guarantee: {checks.meaning} Shown is the share of checks in the time range that found it broken. Grey: nothing was checked.",
        checks.runbooks,
    )
    return stat_panel(words, _share_in(RANGE, checks), SHARE, thresholds.bad_share(checks.indicator), width=4)


def _overlaps() -> Panel:
    words = Words(
        "Overlaps by pull and push",
        "Second batches of a key, or second messages by push, that came while the first was outstanding, in the time range. Leads to the "
        "evidence.",
        ("PubsubOverlapViolated",),
    )
    return _proven(words, OVERLAP_KINDS)


def _integrity() -> Panel:
    words = Words(
        "Corrupt messages",
        "Messages that were never published, were changed, or came twice under one id, in the time range. Leads to the evidence.",
        ("PubsubIntegrityViolated",),
    )
    return _proven(words, INTEGRITY_KINDS)


def _proven(words: Words, kinds: tuple[Kind, ...]) -> Panel:
    found = increase_of(families.FINDINGS, window=RANGE, kind=kinds, status=SURE)
    return stat_panel(words, found, COUNT, ANY_IS_BAD, width=4, address=EVIDENCE)


def _subscriptions(thresholds: Thresholds) -> Panel:
    words = Words(
        "Subscriptions",
        "What was checked on each subscription in the time range: how much, and which share was bad. A share of nothing is not known.",
    )
    by = ("subscription", *TARGET)
    verified = [increase_of(checks.family, by, RANGE, result=DECIDED) for checks in CHECKS]
    columns = [TableColumn("Checked for order", verified[0], COUNT)]
    columns += [
        TableColumn(checks.broken, _share_in(RANGE, checks, by), SHARE, thresholds.bad_share(checks.indicator)) for checks in CHECKS
    ]
    return table_panel(words, Look(SHARE, width=24, height=8), by, columns)


def _panels(checks: CheckKind, thresholds: Thresholds) -> tuple[Panel, ...]:
    moves = (_moves(),) if checks is AFFINITY else ()
    return (_bad(checks, thresholds), _verified(checks), _found(checks), *moves)


def _bad(checks: CheckKind, thresholds: Thresholds) -> Panel:
    words = Words(
        f"{checks.broken} over time",
        f"The guarantee: {checks.meaning} Shown is the share of decided checks that found it broken, by what is chosen above. Above the "
        "dashed line the error budget does not last its period. A gap: nothing was decided.",
        checks.runbooks,
    )
    bad = rate_of(checks.family, BY, result=CheckResult.BAD)
    decided = rate_of(checks.family, BY, result=DECIDED)
    return graph_panel(words, Look(SHARE, thresholds.bad_share(checks.indicator), width=10, height=9), ratio(bad, decided))


def _verified(checks: CheckKind) -> Panel:
    words = Words(
        f"{checks.name} checks",
        f"The guarantee: {checks.meaning} Shown are checks per second, by how they ended. "
        "Undecided ones count neither for nor against the service. Counted when "
        "a run has ended.",
    )
    verified = rate_of(checks.family, "result")
    return graph_panel(words, Look(PER_SECOND, bars=True, width=7, height=9), Query(verified, "{{result}}"))


def _found(checks: CheckKind) -> Panel:
    words = Words(
        f"{checks.name} findings",
        f"The guarantee: {checks.meaning} Shown is what the checker found against it, by kind: violations and missed deadlines. A click "
        "leads to the evidence, which explains the kind.",
        checks.runbooks,
    )
    found = increase_of(families.FINDINGS, "kind", kind=checks.kinds, status=SURE)
    return graph_panel(words, Look(COUNT, bars=True, width=7, height=9), found, address=EVIDENCE_OF_KIND)


def _moves() -> Panel:
    words = Words(
        "Keys that moved to another subscriber",
        "Keys that moved to another subscriber, by whether messages were still outstanding at the first: only then it is unusual. Early "
        "redeliveries went to another subscriber while the first held the messages: allowed, but twice the work.",
    )
    moved = rate_of(families.AFFINITY_MOVES, "outstanding")
    early = Query(rate_of(families.EARLY_REDELIVERIES), "early redeliveries")
    return graph_panel(words, Look(PER_SECOND, bars=True, width=24, height=6), Query(moved, "outstanding: {{outstanding}}"), early)


def _vantages() -> Panel:
    words = Words(
        "Violated guarantees by vantage",
        "The share of checks that went wrong. "
        "What is bad at the wire is the service's doing; what is bad through the library only is the client library's.",
    )
    asked = []
    for checks in CHECKS:
        bad, decided = (
            aggregate(vantage_of(rate(select(checks.family, result=result))), "vantage") for result in (CheckResult.BAD, DECIDED)
        )
        asked.append(Query(ratio(bad, decided), f"{checks.name.lower()}, {{{{vantage}}}}"))
    return graph_panel(words, Look(SHARE), *asked)


def _deliveries() -> Panel:
    words = Words(
        "Deliveries by kind",
        "Messages received per second: for the first time, again, as a copy that a retry of the publisher made, or of somebody else.",
    )
    return graph_panel(words, Look(PER_SECOND, bars=True), rate_of(families.DELIVERIES, "kind"))


def _anomalies() -> Panel:
    words = Words(
        "Anomalies of the client library",
        "Callbacks that began before the last message of their key was answered, keys that stopped without a failed publish, and publishes "
        "past a failed one. Not the service's doing.",
        ("PubsubClientLibraryAnomaly",),
    )
    found = increase_of(families.LIBRARY_ANOMALIES, "kind")
    return graph_panel(words, Look(COUNT, ANY_IS_BAD, bars=True, width=24, height=6), found)


def _share_in(window: str, checks: CheckKind, by: Labels = "") -> str:
    bad = increase_of(checks.family, by, window, result=CheckResult.BAD)
    return ratio(bad, increase_of(checks.family, by, window, result=DECIDED))
