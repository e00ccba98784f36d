"""The tables of the status store. What they look like in a database that exists is up to the migrations, which tests compare to this.

Times are seconds since 1970. Lists are read newest first and page by page, so every filter that the API offers has an index that ends
with the order of the list: (when, name).
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import JSON, BigInteger, Boolean, Column, Double, Index, Integer, LargeBinary, MetaData, Table, Text, text

METADATA: Final = MetaData(naming_convention={"ix": "ix_%(table_name)s_%(column_0_N_name)s", "pk": "pk_%(table_name)s"})


def _needed(
    name: str, kind: type[Text] | type[Double[float]] | type[BigInteger] | type[Boolean] | type[JSON] | type[LargeBinary]
) -> Column[Any]:
    return Column(name, kind, nullable=False)


def _maybe(name: str, kind: type[Text] | type[Double[float]] | type[BigInteger]) -> Column[Any]:
    return Column(name, kind, nullable=True)


def _key(name: str, kind: type[Text] | type[Double[float]] | type[Integer]) -> Column[Any]:
    return Column(name, kind, primary_key=True)


probers: Final = Table(
    "probers",
    METADATA,
    _key("instance", Text),
    _needed("version", Text),
    _needed("started_at", Double),
    _needed("last_heartbeat_at", Double),
    _needed("troubles", JSON),
    Column("configuration", JSON(none_as_null=True), nullable=True),
    _needed("own", JSON),
    _needed("streams", JSON),
)

sites: Final = Table(
    "sites",
    METADATA,
    _key("instance", Text),
    _key("target", Text),
    _key("probe", Text),
    _key("vantage", Text),
    _key("part", Text),
    _needed("last_heartbeat_at", Double),
    _needed("interval_s", Double),
    _needed("schedule", Text),
    _needed("environment", Text),
    _needed("region", Text),
    _needed("endpoint", Text),
    _needed("promise", Text),
    _needed("topic", Text),
    _needed("subscription", Text),
    _needed("labels", JSON),
    _maybe("verdict", Text),
    _maybe("status", Text),
    _maybe("since", Double),
    _maybe("last_run_id", Text),
    _maybe("last_pass_at", Double),
    _maybe("next_run_at", Double),
    _maybe("running_since", Double),
    _maybe("overdue_s", Double),
    _needed("runs", JSON),
    _needed("runs_expected", BigInteger),
    _needed("runs_skipped", BigInteger),
    _maybe("last_skip_reason", Text),
    _maybe("last_skip_at", Double),
    _maybe("maintenance", Text),
)

runs: Final = Table(
    "runs",
    METADATA,
    _key("run_id", Text),
    _needed("target", Text),
    _needed("probe", Text),
    _needed("vantage", Text),
    _needed("part", Text),
    _needed("environment", Text),
    _needed("region", Text),
    _needed("verdict", Text),
    _needed("reason", Text),
    _needed("started_at", Double),
    _needed("ended_at", Double),
    _needed("duration_s", Double),
    _needed("seed", BigInteger),
    _needed("topic", Text),
    _needed("subscription", Text),
    _needed("counts", JSON),
    _needed("counters", JSON),
    _needed("checks", JSON),
    _needed("durations", JSON),
    _needed("figures", JSON),
    _needed("unreachable", Boolean),
    _needed("internal_error", Boolean),
    _needed("findings_omitted", BigInteger),
    _needed("prober", JSON),
    _needed("instance", Text),
    Index(None, "started_at", "run_id"),
    Index(None, "probe", "started_at", "run_id"),
    Index(None, "verdict", "started_at", "run_id"),
    Index(None, "probe", "verdict", "started_at", "run_id"),
    Index(None, "target", "started_at", "run_id"),
    Index(None, "vantage", "started_at", "run_id"),
    Index(None, "part", "started_at", "run_id"),
    Index(None, "instance", "started_at", "run_id"),
    Index(None, "target", "probe", "verdict", "started_at", "run_id"),
    Index(None, "target", "probe", "vantage", "part", "started_at", "run_id"),
)

findings: Final = Table(
    "findings",
    METADATA,
    _key("finding_id", Text),
    _needed("run_id", Text),
    _needed("target", Text),
    _needed("probe", Text),
    _needed("vantage", Text),
    _needed("part", Text),
    _needed("instance", Text),
    _needed("found_at", Double),
    _needed("kind", Text),
    _needed("status", Text),
    _needed("subscription", Text),
    _needed("key", Text),
    _needed("t", Double),
    _needed("after", BigInteger),
    _needed("witnesses", JSON),
    _needed("facts", JSON),
    _needed("doubt", Text),
    _needed("assumptions", JSON),
    _needed("reasons", JSON),
    _needed("explanation", Text),
    _needed("unproven_because", Text),
    _maybe("closed_at", Double),
    _maybe("incident_id", Text),
    Index(None, "found_at", "finding_id"),
    Index(None, "incident_id", "found_at", "finding_id"),
    Index(None, "kind", "found_at", "finding_id"),
    Index(None, "status", "found_at", "finding_id"),
    Index(None, "kind", "status", "found_at", "finding_id"),
    Index(None, "key", "found_at", "finding_id"),
    Index(None, "subscription", "found_at", "finding_id"),
    Index(None, "target", "found_at", "finding_id"),
    Index(None, "probe", "found_at", "finding_id"),
    Index(None, "vantage", "found_at", "finding_id"),
    Index(None, "part", "found_at", "finding_id"),
    Index(None, "instance", "found_at", "finding_id"),
    Index(None, "run_id", "found_at", "finding_id"),
)

_OPEN: Final = text("closed_at IS NULL")
Index("ix_findings_open", findings.c.found_at, findings.c.finding_id, postgresql_where=_OPEN, sqlite_where=_OPEN)
Index(
    "ix_findings_open_site",
    findings.c.target,
    findings.c.probe,
    findings.c.vantage,
    findings.c.part,
    findings.c.found_at,
    postgresql_where=_OPEN,
    sqlite_where=_OPEN,
)

incidents: Final = Table(
    "incidents",
    METADATA,
    _key("incident_id", Text),
    _needed("target", Text),
    _needed("symptom", Text),
    _needed("first_at", Double),
    _needed("last_at", Double),
    _needed("closes_at", Double),
    _needed("affected", JSON),
    _needed("runs", BigInteger),
    _needed("runs_total", BigInteger),
    _needed("unsent", BigInteger),
    _needed("exemplar_id", Text),
    _maybe("exemplar_events", BigInteger),
    _maybe("closed_at", Double),
    _maybe("acknowledged_at", Double),
    _maybe("acknowledged_by", Text),
    _maybe("acknowledged_note", Text),
    _maybe("acknowledged_until", Double),
    Index(None, "first_at", "incident_id"),
    Index(None, "symptom", "first_at", "incident_id"),
    Index(None, "target", "first_at", "incident_id"),
    Index(None, "target", "symptom", "first_at", "incident_id"),
    Index(None, "last_at", "incident_id"),
)
Index(
    "ix_incidents_open",
    incidents.c.target,
    incidents.c.symptom,
    unique=True,
    postgresql_where=_OPEN,
    sqlite_where=_OPEN,
)

evidence: Final = Table(
    "evidence",
    METADATA,
    _key("finding_id", Text),
    _needed("trace", Text),
    _needed("proven", Boolean),
    _needed("complete", Boolean),
    _needed("among", BigInteger),
    _needed("witnesses", JSON),
    _needed("opened", JSON),
)

key_evidence: Final = Table(
    "key_evidence",
    METADATA,
    _key("finding_id", Text),
    _needed("packed", LargeBinary),
    _needed("proven", Boolean),
    _needed("among", BigInteger),
    _needed("witnesses", JSON),
    _needed("opened", JSON),
)

slices: Final = Table(
    "slices",
    METADATA,
    _key("objective", Text),
    _key("definition", Text),
    _key("length_s", Integer),
    _key("begins_at", Double),
    _key("target", Text),
    _key("process", Text),
    _needed("good", BigInteger),
    _needed("bad", BigInteger),
    _needed("undecided", BigInteger),
    Index(None, "length_s", "begins_at"),
)

identity: Final = Table("identity", METADATA, _key("store_id", Text))
"""One row, written with the table."""

leases: Final = Table(
    "leases",
    METADATA,
    _key("name", Text),
    _needed("holder", Text),
    _needed("until", Double),
)
