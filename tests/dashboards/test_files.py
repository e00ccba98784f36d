"""The committed files are what the code makes, and hang together: numbers, places, links, thresholds, annotations."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dashboards.__main__ import main
from dashboards.board import Board, LinkTargets, PanelRow, dashboard_json
from dashboards.boards import BOARDS, boards
from dashboards.panels import COUNT, Look, Panel, Words, stat_panel
from dashboards.promql import Query
from dashboards.thresholds import Thresholds
from prober.config import load
from prober.slo.indicators import Indicator
from prober.slo.objectives import DAY_S, Objective
from tests.dashboards.committed import FOLDER, NAMES, Json, dashboard, panels

RUNBOOKS = FOLDER.parent / "docs" / "runbooks"
PLACES = LinkTargets("https://example.com/runbooks", "https://example.com")
TITLES = {
    "okp-overview": "Ordering keys / Overview",
    "okp-ordering": "Ordering keys / Ordering",
    "okp-latency": "Ordering keys / Latency",
    "okp-keys": "Ordering keys / Keys",
    "okp-publisher": "Ordering keys / Publisher",
    "okp-control-plane": "Ordering keys / Control plane",
    "okp-prober": "Ordering keys / Prober health",
    "okp-jobs": "Ordering keys / Nightly jobs",
}


def test_the_committed_dashboards_are_what_the_code_makes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check"]) == 0, capsys.readouterr().err


def test_what_is_out_of_date_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--directory", str(tmp_path)]) == 0
    (tmp_path / "keys.json").write_text("{}")
    assert main(["--directory", str(tmp_path), "--check"]) == 1
    assert "out of date: keys.json" in capsys.readouterr().err


def test_a_configuration_that_cannot_be_used_is_one_clear_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.yaml").write_text("slos: {order: {objective: 2}}")
    assert main(["--config", str(tmp_path / "bad.yaml"), "--directory", str(tmp_path)]) == 2
    assert "objective" in capsys.readouterr().err


def test_uids_and_titles_are_those_that_others_link_to() -> None:
    assert {board["uid"]: board["title"] for board in map(dashboard, NAMES)} == TITLES
    assert len(NAMES) == len(BOARDS) == len(TITLES)


@pytest.mark.parametrize("name", NAMES)
def test_numbers_of_panels_are_unique(name: str) -> None:
    numbers = [panel["id"] for panel in dashboard(name)["panels"]]
    assert len(numbers) == len(set(numbers))
    assert all(0 < one <= 1_000_000 for one in numbers)


@pytest.mark.parametrize("name", NAMES)
def test_panels_do_not_overlap_and_fit(name: str) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in dashboard(name)["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not cells & taken, panel["title"]
        taken |= cells


@pytest.mark.parametrize("name", NAMES)
def test_a_dashboard_is_in_utc_and_not_editable(name: str) -> None:
    board = dashboard(name)
    assert (board["timezone"], board["editable"], board["tags"]) == ("utc", False, ["ordering-keys-prober"])


@pytest.mark.parametrize("name", NAMES)
def test_every_runbook_that_is_linked_exists(name: str) -> None:
    urls = [link["url"] for panel in panels(dashboard(name)) for link in panel.get("links", [])]
    for url in urls:
        assert url.startswith("${runbooks:raw}/")
        assert (RUNBOOKS / url.rpartition("/")[2]).is_file(), url


def linked(board: Json) -> set[str]:
    """The kinds of links at the top."""
    return {link["type"] for link in board["links"]}


@pytest.mark.parametrize("name", NAMES)
def test_dashboards_lead_to_each_other_and_to_the_status_page(name: str) -> None:
    board = dashboard(name)
    assert linked(board) == {"dashboards", "link"}
    named = set(re.findall(r"d/(okp-[a-z-]+)", str(board["panels"])))
    assert named <= set(TITLES)


@pytest.mark.parametrize("name", NAMES)
def test_deployments_drills_and_maintenance_are_marked(name: str) -> None:
    assert [one["name"] for one in dashboard(name)["annotations"]["list"]] == ["Deployments", "Drills", "Maintenance"]


def steps(board: Json, title: str) -> list[tuple[float | None, str]]:
    """The thresholds of a panel."""
    (panel,) = (one for one in panels(board) if one["title"] == title)
    return [(one["value"], one["color"]) for one in panel["fieldConfig"]["defaults"]["thresholds"]["steps"]]


def test_thresholds_are_those_of_the_objectives() -> None:
    objectives = {one.name: one for one in load(None, {}).objectives}
    latency = objectives["end_to_end_latency"]
    assert steps(dashboard("latency"), "End to end: quantiles") == [(None, "green"), (latency.threshold_s, "red")]
    assert steps(dashboard("ordering"), "Order: share that is bad") == [(None, "green"), (objectives["order"].budget, "red")]
    assert steps(dashboard("overview"), "Burn rate, 1 h") == [(None, "green"), (1.0, "orange"), (14.4, "red")]


def test_other_objectives_make_other_thresholds() -> None:
    own = (
        Objective("lax", Indicator.END_TO_END_LATENCY, 0.9, 28 * DAY_S, 3.0),
        Objective("strict", Indicator.END_TO_END_LATENCY, 0.99, 28 * DAY_S, 2.0),
    )
    limits = Thresholds.of(own)
    assert limits.duration(Indicator.END_TO_END_LATENCY) == ((None, "green"), (2.0, "red"))
    assert limits.burn()[-1] == (13.44, "red")
    assert limits.bad_share(Indicator.ORDER) == ((None, "blue"),)


def test_without_an_objective_no_share_above_a_threshold_is_shown() -> None:
    titles = [panel.words.title for board in boards(()) for row in board.rows for panel in row.panels]
    assert "End to end: quantiles" in titles
    assert not [title for title in titles if "share above" in title]


def test_two_panels_of_one_title_are_refused() -> None:
    panel = stat_panel(Words("Twice", "The same."), Look(COUNT), Query("up"))
    with pytest.raises(ValueError, match="Twice"):
        dashboard_json(Board("u", "t", "d", (PanelRow("r", (panel, panel)),)), PLACES)


def test_a_panel_keeps_its_number_when_others_come_before_it() -> None:
    def numbers(*titles: str) -> dict[str, str]:
        made = dashboard_json(Board("u", "t", "d", (PanelRow("r", tuple(_number(title) for title in titles)),)), PLACES)
        return dict(re.findall(r'"id": (\d+),(?:.|\n)*?"title": "(\w+)"', made))

    assert set(numbers("b").items()) <= set(numbers("a", "b").items())


def _number(title: str) -> Panel:
    return stat_panel(Words(title, "A number."), Look(COUNT), Query("up"))


def test_a_number_that_is_not_known_is_grey() -> None:
    for name in NAMES:
        for panel in panels(dashboard(name)):
            if panel["type"] == "stat":
                (mapping,) = panel["fieldConfig"]["defaults"]["mappings"]
                assert mapping["options"]["match"] == "null+nan"
                assert mapping["options"]["result"]["color"] == "#8e8e8e"


def test_the_guide_names_every_dashboard_and_shows_it() -> None:
    guide = (FOLDER.parent / "docs" / "dashboards.md").read_text(encoding="utf-8")
    for uid in TITLES:
        assert f"`{uid}`" in guide
    pictures = set(re.findall(r"\((images/[^)]+)\)", guide))
    assert pictures == {f"images/dashboard-{name}.png" for name in NAMES}
    assert [one for one in pictures if not (FOLDER.parent / "docs" / one).is_file()] == []
