"""A missing status store: lists are refused with 503, and the state of the process is still shown."""

from __future__ import annotations

import pytest

from tests.unit.api.asking import EUROPE, StubView, archive_at, ask, copy_of, view

LISTS = (
    "/api/v1/runs",
    "/api/v1/runs/run-1",
    "/api/v1/findings",
    "/api/v1/findings/f/trace",
    "/api/v1/keys?key=k",
    "/api/v1/subscriptions",
    "/api/v1/slos",
    "/api/v1/slos/order",
    "/api/v1/uptime",
)


def missing() -> StubView:
    """A service whose store was taken away."""
    asked = view(EUROPE)
    asked.archive = archive_at(copy_of("empty"))
    with asked.archive.queries.database.writing() as connection:
        connection.exec_driver_sql("DROP TABLE runs")
        connection.exec_driver_sql("DROP TABLE findings")
        connection.exec_driver_sql("DROP TABLE evidence")
    return asked


@pytest.mark.parametrize("path", LISTS)
def test_a_list_is_answered_with_503_and_a_time_to_retry(path: str) -> None:
    response = ask(missing(), path)
    assert (response.status_code, response.headers["retry-after"]) == (503, "5")
    assert response.json()["detail"] == "the status store cannot be reached at the moment"


@pytest.mark.parametrize("path", ["/", "/api/v1/status", "/api/v1/probes", "/healthz", "/metrics"])
def test_the_state_of_this_process_is_still_shown(path: str) -> None:
    assert ask(missing(), path).status_code == 200
