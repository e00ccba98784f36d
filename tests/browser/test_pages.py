"""The pages in a real browser, as people use them: they keep themselves up to date, work without a mouse, and lead to the proof."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser, expect

from prober.core.verdict import Verdict
from tests.browser.looking import PAGES, Look, Scheme, looking
from tests.browser.world import HOSTILE, REDELIVERY, World
from tests.commands import run

PERIOD_MS = 5000
"""How often a page looks for news."""
ATTEMPTS = 40
FIRST_STOPS = [
    "Skip to the content",
    "ordering-keys-prober",
    "Status",
    "Incidents",
    "Findings",
    "Runs",
    "Probes",
    "Objectives",
    "Hot keys",
    "API",
    "Metrics",
]


class TestUpdating:
    def test_the_status_page_shows_what_happens(self, browser: Browser, world: World) -> None:
        with looking(browser, world.url) as look:
            look.page.clock.install()
            look.open("/")
            assert look.names("h1") == ["FAIL Redeliveries leave messages out"]
            look.page.locator("#closed-summary").click()
            world.end(REDELIVERY, Verdict.PASS, 500)
            shown_within(look, "UNKNOWN Not everything is known")
            assert look.page.title() == "UNKNOWN · ordering-keys-prober"
            assert look.page.locator("#summary").text_content() == (
                "UNKNOWN: Not everything is known. 2 UNKNOWN, 4 PASS, 1 under maintenance."
            )
            expect(look.page.locator("#closed")).to_have_attribute("open", "")
            assert look.page.evaluate("document.activeElement.id") == "closed-summary"
            world.end(REDELIVERY, Verdict.FAIL, 501)
            shown_within(look, "FAIL Redeliveries leave messages out")
            assert look.complaints == []

    def test_what_is_being_filled_in_is_left_alone(self, browser: Browser, world: World) -> None:
        with looking(browser, world.url) as look:
            look.page.clock.install()
            look.open("/findings")
            look.page.get_by_role("textbox", name="Key").fill("half a k")
            look.page.clock.run_for(PERIOD_MS)
            look.page.wait_for_load_state("networkidle")
            expect(look.page.get_by_role("textbox", name="Key")).to_have_value("half a k")

    def test_a_prober_that_does_not_answer_is_not_shown_as_well(self, browser: Browser, world: World) -> None:
        with looking(browser, world.url) as look:
            look.page.clock.install()
            look.open("/")
            expect(look.page.locator("#silence")).to_be_hidden()
            look.page.context.set_offline(True)
            look.page.clock.run_for(PERIOD_MS)
            expect(look.page.locator("#silence")).to_be_visible()
            expect(look.page.locator("#silence")).to_contain_text("has not answered since")
            assert look.page.title() == "No answer · ordering-keys-prober"
            look.page.context.set_offline(False)
            look.page.clock.run_for(PERIOD_MS)
            expect(look.page.locator("#silence")).to_be_hidden()
            assert "FAIL" in look.page.title()


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
            assert look.focused() == "Redeliveries leave messages out"

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
            look.page.locator(".finding h3 a").first.click()
            expect(look.page.locator("h1")).to_contain_text("Redeliveries leave messages out")
            look.page.locator(".facts div", has_text="Proof").get_by_role("link").click()
            expect(look.page.locator("h1")).to_contain_text("REDELIVERY_SKIP")
            drawing = look.page.get_by_role("img", name="REDELIVERY_SKIP on key orders-1042")
            expect(drawing).to_be_visible()
            expect(drawing).to_contain_text("skips 3")
            look.page.locator(".facts a", has_text="redelivery-europe").click()
            expect(look.page.locator("h1")).to_contain_text("Run redelivery-europe-wire-")

    def test_the_downloaded_trace_is_judged_the_same(self, browser: Browser, world: World, tmp_path: Path) -> None:
        with looking(browser, world.url) as look:
            look.open(PAGES["violation"])
            with look.page.expect_download() as download:
                look.page.get_by_role("link", name="Trace file").click()
            saved = tmp_path / download.value.suggested_filename
            download.value.save_as(saved)
            command = look.page.locator(".command").inner_text().split()
        assert command[0] == "ordering-prober"
        judged = run(*command[1:-1], str(tmp_path / command[-1]))
        assert judged.returncode == 1
        assert "REDELIVERY_SKIP (violation)" in judged.stdout

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
            look.page.get_by_role("button", name="Show").click()
            assert look.names("tbody th a") == ["PUSH_OVERLAP"]
            assert look.complaints == []

    def test_older_ones_are_on_further_pages(self, browser: Browser, world: World) -> None:
        with looking(browser, world.url) as look:
            look.open("/findings?limit=20")
            seen = set(look.page.eval_on_selector_all("tbody th a", "links => links.map(link => link.href)"))
            while look.page.get_by_role("link", name="Older").count():
                look.page.get_by_role("link", name="Older").click()
                look.page.wait_for_load_state("load")
                links = set(look.page.eval_on_selector_all("tbody th a", "links => links.map(link => link.href)"))
                assert not seen & links
                seen |= links
            assert len(seen) > 40
            look.page.get_by_role("link", name="Newest").click()
            assert len(look.names("tbody tr")) == 50

    def test_names_from_outside_are_only_text(self, browser: Browser, world: World) -> None:
        with looking(browser, world.url) as look:
            for page in ("hostile", "hostile key"):
                look.open(PAGES[page])
                assert look.page.locator("main script").count() == 0
                assert look.complaints == []
            look.open(PAGES["hostile"])
            look.page.locator(".facts a", has_text="script").click()
            expect(look.page.get_by_role("textbox", name="Key")).to_have_value(HOSTILE)
            assert len(look.names("tbody tr")) > 0


def shown_within(look: Look, heading: str) -> None:
    """Lets the page's clock run until it shows this; the server gives the same answer for a second."""
    for _ in range(ATTEMPTS):
        look.page.clock.run_for(PERIOD_MS)
        look.page.wait_for_load_state("networkidle")
        if look.names("h1") == [heading]:
            return
    assert look.names("h1") == [heading]
