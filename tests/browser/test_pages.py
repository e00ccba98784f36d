"""The pages in a real browser, as people use them: they keep themselves up to date, work without a mouse, and lead to the proof."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, expect

from prober.clock import monotonic_s
from prober.core.verdict import Verdict
from tests.browser.looking import PAGES, Look, Scheme, looking
from tests.browser.world import REDELIVERY, World
from tests.commands import run
from tests.streams import HOSTILE

PERIOD_MS = 5000
"""How often a page looks for news."""
PATIENCE_S = 60.0
FIRST_STOPS = [
    "Skip to the content",
    "ordering-keys-prober",
    "Status",
    "Incidents",
    "Findings",
    "Runs",
    "Live",
    "Probes",
    "Objectives",
    "Comparisons",
    "Hot keys",
    "Runbooks",
    "API",
    "Metrics",
]


class TestUpdating:
    def test_the_status_page_shows_what_happens(self, browser: Browser, world: World) -> None:
        with looking(browser, world.url) as look:
            look.page.clock.install()
            look.open("/")
            assert look.names("h1") == ["FAIL Redeliveries skip messages on europe since 11:57 UTC"]
            look.page.locator("#hot-summary").click()
            world.end(REDELIVERY, Verdict.PASS, 500)
            news = look.page.locator(".wrong", has_text="3 findings in 3 of 4 verified runs of 1 probe")
            _run_until(
                look, news, is_there=False
            )  # the server gives the same answer for a second, or for three while it makes another
            assert look.page.title() == "FAIL · ordering-keys-prober"
            assert look.page.locator("#summary").text_content() == (
                "FAIL: Redeliveries skip messages on europe since 11:57 UTC. 2 UNKNOWN, 4 PASS, 1 MAINTENANCE."
            )
            expect(look.page.locator("#hot-fold")).to_have_attribute("open", "")
            assert look.page.evaluate("document.activeElement.id") == "hot-summary"
            world.end(REDELIVERY, Verdict.FAIL, 501)
            expect(look.page.locator(".wrong")).to_contain_text("runs of 1 probe")
            assert look.complaints == []

    def test_what_is_being_filled_in_is_left_alone(self, browser: Browser, world: World) -> None:
        with looking(browser, world.url) as look:
            look.page.clock.install()
            look.open("/findings")
            look.page.get_by_role("textbox", name="Key").fill("half a k")
            look_again(look)
            expect(look.page.get_by_role("textbox", name="Key")).to_have_value("half a k")

    def test_a_prober_that_does_not_answer_is_not_shown_as_well(self, browser: Browser, world: World) -> None:
        with looking(browser, world.url) as look:
            look.page.clock.install()
            look.open("/")
            expect(look.page.locator("#silence")).to_be_hidden()
            look.page.context.set_offline(True)
            look_again(look)
            expect(look.page.locator("#silence")).to_be_visible()
            expect(look.page.locator("#silence")).to_contain_text("has not answered since")
            assert look.page.title() == "No answer · ordering-keys-prober"
            look.page.context.set_offline(False)
            _run_until(look, look.page.locator("#silence"), visible=False)
            assert "FAIL" in look.page.title()


class TestReadingAList:
    """A list does not move while somebody is about to press something in it."""

    def test_under_the_pointer(self, browser: Browser, world: World) -> None:
        with looking(browser, world.url) as look:
            look.page.clock.install()
            look.open("/runs")
            row = look.page.locator("tbody tr").nth(3)
            row.hover()
            said, place = row.inner_text(), row.bounding_box()
            for number in (600, 601):
                world.end(REDELIVERY, Verdict.PASS, number)
            news = look.page.get_by_role("button", name="2 new: show")
            _run_until(look, news)
            assert (row.inner_text(), row.bounding_box()) == (said, place)
            expect(look.page.get_by_role("status").filter(has=news)).to_have_count(1)
            news.click()
            expect(news).to_be_hidden()
            assert {"redelivery-europe-wire-600", "redelivery-europe-wire-601"} <= set(look.names("tbody th a"))
            assert look.focused() in {"redelivery-europe-wire-600", "redelivery-europe-wire-601"}
            assert look.complaints == []

    def test_with_the_focus_in_it(self, browser: Browser, world: World) -> None:
        with looking(browser, world.url) as look:
            look.page.clock.install()
            look.open("/runs")
            link = look.page.locator("tbody th a").nth(3)
            link.focus()
            world.end(REDELIVERY, Verdict.PASS, 602)
            _run_until(look, look.page.get_by_role("button", name="1 new: show"))
            assert look.focused() == link.inner_text()

    def test_what_was_left_behind_is_kept_up_to_date_and_its_row_in_its_place(self, browser: Browser, world: World) -> None:
        with looking(browser, world.url) as look:
            look.page.clock.install()
            look.open("/runs")
            row = look.page.locator("tbody tr").nth(3)
            row.hover()
            name, place = look.names("tbody th a")[3], row.bounding_box()
            world.end(REDELIVERY, Verdict.PASS, 603)
            _run_until(look, look.page.get_by_role("link", name="redelivery-europe-wire-603"), is_there=False)
            assert place is not None
            now = look.page.locator("tbody tr", has_text=name).bounding_box()
            assert now is not None
            assert abs(now["y"] - place["y"]) < 1.0


class TestHelpForTheReader:
    def test_local_time_stands_beside_utc(self, browser: Browser, world: World) -> None:
        with looking(browser, world.url, zone="Asia/Kathmandu") as look:
            look.open(PAGES["violation"])
            found = look.page.locator(".facts time").first
            expect(found).to_have_text("2026-03-01 11:59:12 UTC (17:44:12 UTC+5:45)")
            expect(found).to_have_attribute("title", "2026-03-01 11:59:12 UTC = 17:44:12 UTC+5:45 here")
            look.open("/runs")
            expect(look.page.locator("tbody time").first).to_have_attribute("title", re.compile("UTC = .* UTC[+]5:45 here"))

    def test_who_lives_in_utc_reads_it_once(self, browser: Browser, world: World) -> None:
        with looking(browser, world.url) as look:
            look.open(PAGES["violation"])
            expect(look.page.locator(".facts time").first).to_have_text("2026-03-01 11:59:12 UTC")

    def test_what_is_wanted_elsewhere_is_copied(self, browser: Browser, world: World) -> None:
        with looking(browser, world.url) as look:
            look.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
            look.open(PAGES["violation"])
            names = {"the command", "the name of the finding", "the id of message 4"}
            for name in names:
                button = look.page.get_by_role("button", name=f"Copy {name}", exact=True)
                button.focus()
                look.page.keyboard.press("Enter")
                expect(look.page.get_by_role("status").filter(has_text=f"Copied: {name}")).to_have_count(1)
                source = look.page.locator(f"[data-copy='{name}']").inner_text()
                assert look.page.evaluate("navigator.clipboard.readText()") == source
                assert look.focused() == "Copied"

    def test_it_is_copied_without_a_clipboard_of_the_browser(self, browser: Browser, world: World) -> None:
        with looking(browser, world.url) as look:
            look.page.add_init_script("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
            look.open(PAGES["violation"])
            look.page.get_by_role("button", name="Copy the command").click()
            expect(look.page.get_by_role("status").filter(has_text="Copied: the command")).to_have_count(1)


class TestPictures:
    def test_a_cell_of_the_timeline_leads_to_its_run(self, browser: Browser, world: World) -> None:
        with looking(browser, world.url) as look:
            look.open("/")
            cell = look.page.locator("a.cell.fail[href*='redelivery-europe']").last
            assert "FAIL" in (cell.get_attribute("title") or "")
            look.follow(cell)
            expect(look.page.locator("h1")).to_contain_text("Run redelivery-europe-wire-")

    def test_charts_are_drawn_again_after_a_refresh(self, browser: Browser, world: World) -> None:
        with looking(browser, world.url) as look:
            look.open(PAGES["probe at a target"])
            expect(look.page.locator(".plot canvas")).to_have_count(3)
            look.page.evaluate("refresh()")
            look.page.wait_for_function("document.querySelectorAll('.plot canvas').length === 3")
            assert look.complaints == []

    def test_a_chart_says_its_values_under_the_pointer(self, browser: Browser, world: World) -> None:
        with looking(browser, world.url) as look:
            look.open(PAGES["probe at a target"])
            over = look.page.locator(".plot .u-over").first
            box = over.bounding_box()
            assert box is not None
            over.hover(position={"x": box["width"] - 20, "y": 50})
            expect(look.page.locator(".plot .u-legend .u-value").nth(1)).to_contain_text("ms")


class TestWithoutAMouse:
    def test_the_order_of_stops(self, browser: Browser, world: World) -> None:
        with looking(browser, world.url) as look:
            look.open("/")
            stops = []
            for _ in FIRST_STOPS:
                look.page.keyboard.press("Tab")
                stops.append(look.focused())
            assert stops == FIRST_STOPS

    def test_the_bar_can_be_skipped(self, browser: Browser, world: World) -> None:
        with looking(browser, world.url) as look:
            look.open(PAGES["violation"])
            look.page.keyboard.press("Tab")
            expect(look.page.locator(".skip")).to_be_in_viewport()
            look.page.keyboard.press("Enter")
            assert look.page.evaluate("document.activeElement.id") == "main"
            look.page.keyboard.press("Tab")
            assert look.focused() == "Redeliveries skip messages on europe"

    def test_details_open(self, browser: Browser, world: World) -> None:
        with looking(browser, world.url) as look:
            look.open(PAGES["violation"])
            expect(look.page.locator("#text pre")).to_be_hidden()
            look.page.locator("#text-summary").focus()
            look.page.keyboard.press("Enter")
            expect(look.page.locator("#text pre")).to_contain_text("X <-- wrong")

    def test_a_drawing_that_is_too_wide_is_scrolled(self, browser: Browser, world: World) -> None:
        with looking(browser, world.url, width=300) as look:
            look.open(PAGES["violation"])
            drawing = look.page.get_by_role("region", name="Diagram, can be scrolled")
            drawing.focus()
            look.page.keyboard.press("ArrowRight")
            expect(drawing).to_have_js_property("scrollLeft", 40)


class TestFindings:
    def test_from_the_status_page_to_the_proof(self, browser: Browser, world: World) -> None:
        with looking(browser, world.url) as look:
            look.open("/")
            look.follow(look.page.locator(".finding h3 a").first)
            expect(look.page.locator("h1")).to_contain_text("Redeliveries skip messages")
            drawing = look.page.locator("#drawing-wide").get_by_role("img", name="REDELIVERY_SKIP on key orders-1042")
            expect(drawing).to_be_visible()
            expect(drawing).to_contain_text("skips 3")
            expect(look.page.get_by_role("link", name="Support bundle (zip)")).to_be_visible()
            look.follow(look.page.get_by_role("link", name="More about this finding"))
            expect(look.page.locator("h1")).to_contain_text("REDELIVERY_SKIP")
            expect(drawing).to_be_visible()
            look.follow(look.page.locator(".facts a", has_text="redelivery-europe"))
            expect(look.page.locator("h1")).to_contain_text("Run redelivery-europe-wire-")

    def test_the_downloaded_trace_is_verified_the_same(self, browser: Browser, world: World, tmp_path: Path) -> None:
        with looking(browser, world.url) as look:
            look.open(PAGES["violation"])
            with look.page.expect_download() as download:
                look.page.get_by_role("link", name="Trace file").click()
            saved = tmp_path / download.value.suggested_filename
            download.value.save_as(saved)
            command = look.page.locator(".command code").inner_text().split()
        assert command[0] == "ordering-prober"
        verified = run(*command[1:-1], str(tmp_path / command[-1]))
        assert verified.returncode == 1
        assert "REDELIVERY_SKIP (violation)" in verified.stdout

    def test_the_diagram_by_itself(self, browser: Browser, world: World) -> None:
        grounds = []
        schemes: tuple[Scheme, ...] = ("light", "dark")
        for scheme in schemes:
            with looking(browser, world.url, scheme=scheme) as look:
                assert look.open(f"/api/v1{PAGES['violation']}/diagram.svg") == 200
                assert look.complaints == []
                grounds.append(look.page.evaluate("getComputedStyle(document.querySelector('.ground')).fill"))
        assert grounds == ["rgb(255, 255, 255)", "rgb(27, 29, 33)"]

    def test_the_list_is_filtered_by_a_form(self, browser: Browser, world: World) -> None:
        with looking(browser, world.url) as look:
            look.open("/findings")
            assert len(look.names("tbody tr")) == 50
            look.page.get_by_label("Kind").select_option("PUSH_OVERLAP")
            look.page.get_by_label("Status").select_option("violation")
            look.follow(look.page.get_by_role("button", name="Show"))
            assert look.names("tbody th a") == ["PUSH_OVERLAP"]
            assert look.complaints == []

    @pytest.mark.parametrize(
        ("path", "rows", "choices"),
        [
            ("/runs", "tbody tr", {"Probe": "redelivery", "Vantage": "wire"}),
            ("/findings", "tbody tr", {"Probe": "redelivery", "Vantage": "wire"}),
            ("/incidents", ".finding", {"Target": "europe", "Symptom": "redelivery"}),
        ],
    )
    def test_every_list_has_a_time_range_and_filters(
        self, browser: Browser, world: World, path: str, rows: str, choices: dict[str, str]
    ) -> None:
        with looking(browser, world.url) as look:
            look.open(path)
            for label, value in choices.items():
                look.page.get_by_label(label).select_option(value)
            look.page.get_by_label("Since (UTC)").fill("2026-03-01T11:50:00")
            look.page.get_by_label("Before (UTC)").fill("2026-03-01T11:59:00")
            look.follow(look.page.get_by_role("button", name="Show"))
            assert "since=2026-03-01T11%3A50" in look.page.url
            expect(look.page.get_by_label("Since (UTC)")).to_have_value("2026-03-01T11:50")
            shown = look.names(rows)
            assert shown
            assert all("redelivery" in row for row in shown)
            look.page.get_by_label("Before (UTC)").fill("2026-03-01T11:50:00")
            look.follow(look.page.get_by_role("button", name="Show"))
            assert look.names(rows) == []

    def test_older_ones_are_on_further_pages(self, browser: Browser, world: World) -> None:
        with looking(browser, world.url) as look:
            look.open("/findings?limit=20")
            seen = set(look.page.eval_on_selector_all("tbody th a", "links => links.map(link => link.href)"))
            while look.page.get_by_role("link", name="Older").count():
                look.follow(look.page.get_by_role("link", name="Older"))
                links = set(look.page.eval_on_selector_all("tbody th a", "links => links.map(link => link.href)"))
                assert not seen & links
                seen |= links
            assert len(seen) > 40
            look.follow(look.page.get_by_role("link", name="Newest"))
            assert len(look.names("tbody tr")) == 50

    def test_names_from_outside_are_only_text(self, browser: Browser, world: World) -> None:
        with looking(browser, world.url) as look:
            for page in ("hostile", "hostile key"):
                look.open(PAGES[page])
                assert look.page.locator("main script").count() == 0
                assert look.complaints == []
            look.open(PAGES["hostile"])
            look.follow(look.page.locator(".facts a", has_text="script"))
            expect(look.page.get_by_role("textbox", name="Key")).to_have_value(HOSTILE)
            assert len(look.names("tbody tr")) > 0


def look_again(look: Look) -> None:
    """Lets the page's clock run for a period, and waits until the page has the answer or knows that there is none."""
    look.page.clock.run_for(PERIOD_MS)
    look.page.evaluate("refresh()")


def _run_until(look: Look, shown: Locator, *, is_there: bool = True, visible: bool = True) -> None:
    """Lets the page's clock run until something is to be seen or no more, while somebody gives signs of life or has left."""
    end_t = monotonic_s() + PATIENCE_S
    while shown.is_visible() != visible and monotonic_s() < end_t:
        if is_there:
            look.page.keyboard.press("Shift")
        look_again(look)
    expect(shown).to_be_visible(visible=visible)


def shown_within(look: Look, heading: str) -> None:
    """Lets the page's clock run until it shows this; the server gives the same answer for a second."""
    end_t = monotonic_s() + PATIENCE_S
    while look.names("h1") != [heading] and monotonic_s() < end_t:
        look_again(look)
    assert look.names("h1") == [heading]
