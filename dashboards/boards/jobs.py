"""Nightly jobs: their runs, and their findings."""

from __future__ import annotations

from typing import Final

from dashboards.board import Board, PanelRow
from dashboards.panels import COUNT, SECONDS, Look, Panel, TableColumn, Words, graph_panel, stat_panel, table_panel, text_panel
from dashboards.queries import BY, Query, select
from dashboards.thresholds import ANY_IS_BAD, Thresholds, red_above
from prober.alerting.catalogue import limits
from prober.alerting.promql import Labels, aggregate
from prober.alerting.rules import Dashboard
from prober.sinks.metrics import families
from prober.sinks.metrics.scopes import TARGET

AGE: Final = red_above(limits("prober")["job_late_s"])


def jobs_board(thresholds: Thresholds) -> Board:
    """Return the dashboard of nightly jobs."""
    del thresholds  # the jobs have no objectives
    return Board(
        Dashboard.JOBS,
        "Ordering keys / Nightly jobs",
        "Did the nightly jobs run, and what did they find? The reports themselves are on the status page.",
        (
            PanelRow("Did they run?", (_expected(), _oldest(), _reports(), _jobs(), _ages())),
            PanelRow("Verified again", (_found_late(), _found_late_by())),
            PanelRow("Hot keys", (hot_keys_by_class(), _hot_keys_by())),
        ),
        by=("target", "region", "environment"),
    )


def _succeeded() -> str:
    return aggregate(f"{select(families.JOB_LAST_SUCCESS)} > 0", "job_name", "min")


def _expected() -> Panel:
    words = Words(
        "Nightly jobs configured",
        "Whether the configuration says where the nightly jobs leave their reports. If not, nothing here will ever change.",
    )
    expected = aggregate(select(families.REPORTS_EXPECTED), how="max")
    return stat_panel(words, expected, "bool_yes_no")


def _oldest() -> Panel:
    words = Words(
        "Longest time without a success",
        "Of all jobs, the one whose last success is longest ago. Grey: none has ever succeeded.",
        ("PubsubProberJobLate", "PubsubProberJobNeverSucceeded"),
    )
    age = f"time() - min({_succeeded()})"
    return stat_panel(words, age, SECONDS, AGE, none="never")


def _reports() -> Panel:
    words = Words("Where the reports are", "The reports of the nightly jobs are pages of the prober.")
    markdown = (
        "The reports of a night are on the [status page](${status_page:raw}/): hot keys, what burned the budgets, and what "
        "later verification of the history found. A job that never succeeded has no age here."
    )
    return text_panel(words, markdown, width=12, height=4)


def _jobs() -> Panel:
    words = Words(
        "Last success of each job",
        "When each job last succeeded, and how long ago that is.",
        ("PubsubProberJobLate", "PubsubProberJobNeverSucceeded"),
    )
    columns = [
        TableColumn("Succeeded", f"1000 * {_succeeded()}", "dateTimeAsIso"),
        TableColumn("Ago", f"time() - {_succeeded()}", SECONDS, AGE, 0),
    ]
    return table_panel(words, Look(SECONDS, width=12, height=8), ("job_name",), columns)


def _ages() -> Panel:
    words = Words(
        "Time since the last success", "Rises until a job succeeds. Above the dashed line it is late.", ("PubsubProberJobLate",)
    )
    return graph_panel(words, Look(SECONDS, AGE), Query(f"time() - {_succeeded()}", "{{job_name}}"))


def hot_keys_by_class() -> Panel:
    """Return the panel of the number of hot keys, which other dashboards use too."""
    words = Words(
        "Hot keys by class", "Hot keys in the newest report, by why they are hot. No value: there is no report.", ("PubsubHotKeys",)
    )
    return graph_panel(words, Look(COUNT), Query(aggregate(select(families.HOT_KEYS), "class"), "{{class}}"))


def _hot_keys_by() -> Panel:
    words = Words("Hot keys, broken down", "Hot keys in the newest report, broken down by what is chosen above.")
    return graph_panel(words, Look(COUNT), aggregate(select(families.HOT_KEYS), BY))


def _found_late() -> Panel:
    words = Words(
        "Violated guarantees found only by later verification",
        "By target: findings of the newest report that were not found at the time, or of which nobody knows whether they were. Not known: "
        "of this target nothing was verified, or not everything.",
        ("PubsubViolationFoundLate",),
    )
    found = _reverified((*TARGET, "kind"))
    expr = f"{aggregate(f'{found} > 0', TARGET)} or {aggregate(found, TARGET, 'max')}"  # an unknown kind hides no other
    return table_panel(words, Look(COUNT), TARGET, [TableColumn("Found", expr, COUNT, ANY_IS_BAD)])


def _found_late_by() -> Panel:
    words = Words(
        "Found only by later verification, by kind",
        "The same by kind. Empty: none was found, or it is not known; the table on the left tells which.",
        ("PubsubViolationFoundLate",),
    )
    return graph_panel(words, Look(COUNT), Query(f"{_reverified('target, kind')} > 0", "{{target}} {{kind}}"))


def _reverified(by: Labels) -> str:
    """Return the query of reverified findings; `max`, since several probers may read the same report."""
    return aggregate(select(families.REVERIFIED_FINDINGS), by, "max")
