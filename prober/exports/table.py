"""The table that a BigQuery subscription wrote. One query, which reads only the columns that are needed; nothing is written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

from prober.exports.extra import google_errors, required
from prober.exports.message import ExportError, MessageFields, Row

SCHEME: Final = "bigquery:"
METADATA: Final = ("subscription_name", "message_id", "publish_time", "attributes")
_NAME: Final = re.compile(r"[A-Za-z0-9][\w.:-]*\.[\w-]+\.[\w-]+")
_PAGE: Final = 10_000


def is_table(source: str) -> bool:
    """Whether a source is a table and not files."""
    return source.startswith(SCHEME)


def table_rows(source: str, fields: MessageFields, since: float | None, until: float | None) -> Iterator[Row]:
    """The rows of `bigquery:PROJECT.DATASET.TABLE`, in no order; only those published in that time, in seconds since 1970.

    Raises `ExportError`.
    """
    name = source.removeprefix(SCHEME).lstrip("/")
    if not _NAME.fullmatch(name):
        raise ExportError(f"{source}: is no table; write {SCHEME}PROJECT.DATASET.TABLE")
    project = name.rsplit(".", 2)[0]
    with google_errors(source):
        bigquery = required("google.cloud.bigquery", "google-cloud-bigquery")
        client = bigquery.Client(project=project)
        columns = _columns(client.get_table(name), fields)
        asked = bigquery.QueryJobConfig(query_parameters=_parameters(bigquery, since, until))
        for row in client.query_and_wait(_query(name, columns, since, until), job_config=asked, page_size=_PAGE):
            yield dict(row.items())


def _columns(table: Any, fields: MessageFields) -> list[str]:
    """Those that there are of the needed ones."""
    paths = (fields.key, fields.number)
    wanted = {*METADATA, *(path.path[0] for path in paths if path is not None and path.place == "column")}
    wanted |= {"data"} if any(path is not None and path.place == "json" for path in paths) else set()
    found = [column.name for column in table.schema if column.name in wanted]
    if not found:
        raise ExportError(
            f"{table.reference}: has none of the columns {', '.join(sorted(wanted))}: was it written without metadata?"
        )
    return found


def _query(name: str, columns: list[str], since: float | None, until: float | None) -> str:
    limits = ["publish_time >= @since"] * (since is not None) + ["publish_time < @until"] * (until is not None)
    where = f" WHERE {' AND '.join(limits)}" if limits else ""
    return f"SELECT {', '.join(f'`{column}`' for column in columns)} FROM `{name}`{where}"


def _parameters(bigquery: Any, since: float | None, until: float | None) -> list[Any]:
    given = (("since", since), ("until", until))
    return [
        bigquery.ScalarQueryParameter(name, "TIMESTAMP", datetime.fromtimestamp(at, UTC)) for name, at in given if at is not None
    ]
