"""The committed files are what the code makes, and hang together: numbers, places, links, thresholds, annotations."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest

from api.query_parameters import FindingParameters
from dashboards.__main__ import main
from dashboards.board import Board, LinkTargets, PanelRow, dashboard_json
from dashboards.boards import BOARDS, boards
from dashboards.panels import COUNT, Panel, Words, stat_panel
from dashboards.thresholds import Thresholds
from prober.config.loading import load
from prober.slo.indicators import Indicator
from prober.slo.objectives import DAY_S, HOUR_S, Objective
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
def test_a_dashboard_is_in_utc_and_editable(name: str) -> None:
    board = dashboard(name)
    assert (board["timezone"], board["editable"], board["tags"]) == ("utc", True, ["ordering-keys-prober"])


# --- addresses ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_grafana_asks_for_the_addresses_that_links_need_and_no_dashboard_knows_one(name: str) -> None:
    board, text = dashboard(name), (FOLDER / f"{name}.json").read_text(encoding="utf-8")
    assert "://" not in re.sub("https://[a-z./]*example.com", "", text)
    asked = {one["name"]: one for one in board["__inputs"]}
    assert asked.keys() == set(re.findall(r"\$\{(VAR_[A-Z_]+)\}", text))
    assert all(one["type"] == "constant" and one["value"] == "" and one["description"] for one in asked.values())
    holds = {one["name"]: one["query"] for one in board["templating"]["list"] if one["type"] == "textbox"}
    assert set(holds.values()) == {f"${{{one}}}" for one in asked}


def test_with_addresses_nothing_is_asked(tmp_path: Path) -> None:
    options = ["--runbooks", "https://example.com/runbooks/", "--status-page", "https://prober.example.com"]
    assert main(["--directory", str(tmp_path), *options]) == 0
    board = json.loads((tmp_path / "overview.json").read_text(encoding="utf-8"))
    assert "__inputs" not in board
    holds = {one["name"]: one["query"] for one in board["templating"]["list"] if one["type"] == "textbox"}
    assert holds == {"runbooks": "https://example.com/runbooks", "status_page": "https://prober.example.com"}


def test_what_is_found_leads_to_its_evidence() -> None:
    """Every panel that shows findings against the service, and none that shows those of drills."""
    without = {
        (name, panel["title"])
        for name in NAMES
        for panel in panels(dashboard(name))
        if any("pubsub_prober_findings_total" in target["expr"] for target in panel.get("targets", []))
        and "${status_page:raw}/findings?" not in str(panel["fieldConfig"]["overrides"])
    }
    assert without == set()


def addresses(name: str) -> set[str]:
    """Where the links of a dashboard to the findings lead, with everything filled in as Grafana would."""
    filled = {"status_page:raw": "", "__from:date:iso": "2026-01-02T03:04:05.678Z", "__to:date:iso": "2026-01-02T04:04:05.678Z"}
    filled |= {"__field.labels.kind": "ORDER_GAP", "__value.text": "ORDER_GAP", "__data.fields.Target": "europe"}
    found = re.findall(r"\$\{status_page:raw\}/findings\?[^\"]*since[^\"]*", (FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return {re.sub(r"\$\{([^}]+)\}", lambda one: filled[one[1]], address) for address in found}


def test_the_status_page_understands_the_links_to_evidence() -> None:
    every = {address for name in NAMES for address in addresses(name)}
    assert len(every) >= 4
    for address in every:
        asked = FindingParameters.model_validate(dict(parse_qsl(urlsplit(address).query, strict_parsing=True)))
        assert asked.since is not None
        assert asked.until is not None


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
    assert steps(dashboard("latency"), "End-to-end latency: 50 %, 95 %, 99 %") == [(None, "green"), (latency.threshold_s, "red")]
    assert steps(dashboard("ordering"), "Messages out of order over time") == [(None, "green"), (objectives["order"].budget, "red")]
    assert steps(dashboard("overview"), "Budget burn rate (1 h)") == [(None, "green"), (14.4, "red")]


def test_other_objectives_make_other_thresholds() -> None:
    own = (
        Objective("lax", Indicator.END_TO_END_LATENCY, 0.9, 28 * DAY_S, 3.0),
        Objective("strict", Indicator.END_TO_END_LATENCY, 0.99, 28 * DAY_S, 2.0),
    )
    limits = Thresholds(own)
    assert limits.duration(Indicator.END_TO_END_LATENCY) == ((None, "green"), (2.0, "red"))
    assert limits.burn(HOUR_S) == ((None, "green"), (13.44, "red"))
    assert limits.burn(DAY_S) == ((None, "green"), (2.8, "orange"))
    assert limits.burn(7 * DAY_S) == ((None, "blue"),)
    assert limits.bad_share(Indicator.ORDER) == ((None, "blue"),)


def test_without_an_objective_no_share_above_a_threshold_is_shown() -> None:
    titles = [panel.words.title for board in boards(()) for row in board.rows for panel in row.panels]
    assert "End-to-end latency: 50 %, 95 %, 99 %" in titles
    assert not [title for title in titles if "share above" in title]


def test_two_panels_of_one_title_are_refused() -> None:
    panel = stat_panel(Words("Twice", "The same."), "up", COUNT)
    with pytest.raises(ValueError, match="Twice"):
        dashboard_json(Board("u", "t", "d", (PanelRow("r", (panel, panel)),)), PLACES)


def test_a_panel_keeps_its_number_when_others_come_before_it() -> None:
    def numbers(*titles: str) -> dict[str, str]:
        made = dashboard_json(Board("u", "t", "d", (PanelRow("r", tuple(_number(title) for title in titles)),)), PLACES)
        return dict(re.findall(r'"id": (\d+),(?:.|\n)*?"title": "(\w+)"', made))

    assert set(numbers("b").items()) <= set(numbers("a", "b").items())


def _number(title: str) -> Panel:
    return stat_panel(Words(title, "A number."), "up", COUNT)


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
