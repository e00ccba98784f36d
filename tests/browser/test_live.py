"""The live view in a real browser: it grows as events happen, pauses on request, and leads from a finding to its messages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from prober.clock import monotonic_s
from prober.core.events import PublishInvoked
from prober.sinks.live.feed import VIEWERS_MAX, WatchedRun
from tests.browser.looking import DESKTOP, PHONE, Scheme, looking
from tests.browser.test_every_page import grave
from tests.browser.world import serving
from tests.unit.api.asking import EUROPE, StubView, view
from tests.unit.api.watching import RUN, end, see, under_way


@pytest.fixture
def watched() -> StubView:
    return view(EUROPE)


@pytest.fixture
def run(watched: StubView) -> WatchedRun:
    return under_way(watched.feed)


@pytest.fixture
def url(watched: StubView, run: WatchedRun) -> Iterator[str]:
    with serving(watched) as address:
        yield address


def publish(run: WatchedRun, seq: int) -> None:
    see(run, PublishInvoked(3.0 + seq / 10, "late", RUN, seq))


@pytest.mark.parametrize(("width", "scheme"), [(DESKTOP, "light"), (PHONE, "dark")])
def test_it_fits_and_is_accessible(browser: Browser, url: str, width: int, scheme: Scheme) -> None:
    with looking(browser, url, width=width, scheme=scheme) as look:
        assert look.open("/live") == 200
        assert look.page.evaluate("document.documentElement.scrollWidth") <= width
        assert grave(look.page) == []
        assert look.complaints == []


@pytest.mark.parametrize("width", [PHONE, 920])
def test_its_rows_need_no_scrolling_sideways(browser: Browser, url: str, width: int) -> None:
    with looking(browser, url, width=width) as look:
        look.open("/live")
        assert look.page.evaluate("(place => place.scrollWidth - place.clientWidth)(document.getElementById('live-steps'))") == 0


def test_on_a_phone_a_row_has_key_lane_and_event_and_a_finding_is_whole(browser: Browser, url: str) -> None:
    with looking(browser, url, width=390) as look:
        look.open("/live")
        assert look.names("#event-7") == ["1.000 <key> subscriber 2 → 2"]
        for part in (*look.page.locator("#event-7 :is(th, td:not(:empty))").all(), look.page.locator("td.reason")):
            box = part.bounding_box()
            assert box is not None
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= 390


def test_it_counts_its_viewer_and_says_how_long_nothing_has_happened(browser: Browser, url: str, run: WatchedRun) -> None:
    with looking(browser, url) as look:
        look.open("/live")
        expect(look.page.locator("#live-note")).to_contain_text("1 of 5 viewers.")
        expect(look.page.locator("#live-note")).to_contain_text("No event for")
        see(run, PublishInvoked(monotonic_s(), "late", RUN, 1))
        expect(look.page.locator("#live-note")).not_to_contain_text("No event for")


def test_a_link_to_a_row_goes_with_the_row(browser: Browser, url: str, run: WatchedRun) -> None:
    with looking(browser, url) as look:
        look.open("/live")
        expect(look.page.get_by_role("link", name="event 5")).to_have_count(1)
        look.page.evaluate("document.getElementById('live-steps').dataset.kept = 5")
        publish(run, 1)
        expect(look.page.locator("td.reason")).to_contain_text("event 5 (no longer shown), event 7")
        expect(look.page.locator("#live-missed")).to_have_text("5")


def test_without_scripts_it_is_a_snapshot_that_reloads(browser: Browser, url: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{url}/live")
    expect(page.locator("#event-7")).to_contain_text("2")
    assert page.locator("noscript meta[http-equiv=refresh]").count() == 1
    expect(page.get_by_role("button", name="Pause")).to_be_hidden()
    context.close()


def test_it_grows_until_the_run_ends(browser: Browser, url: str, run: WatchedRun) -> None:
    with looking(browser, url) as look:
        look.open("/live")
        publish(run, 1)
        expect(look.page.locator("#event-9")).to_contain_text("publish 1")
        end(run)
        expect(look.page.locator("#event-11")).to_contain_text("the run ended: FAIL")
        expect(look.page.get_by_role("link", name="newest run")).to_have_count(1)
        expect(look.page.locator("#live-others")).to_contain_text("FAIL")


def test_it_holds_still_while_it_is_paused(browser: Browser, url: str, run: WatchedRun) -> None:
    with looking(browser, url) as look:
        look.open("/live")
        look.page.get_by_role("button", name="Pause").click()
        publish(run, 1)
        look.page.get_by_role("button", name="Go on").click()
        publish(run, 2)
        expect(look.page.locator("#event-10")).to_contain_text("publish 2")
        expect(look.page.locator("#event-9")).to_have_count(1)


def test_one_viewer_too_many_is_refused(browser: Browser, url: str, watched: StubView) -> None:
    watched.feed.viewers = VIEWERS_MAX
    with looking(browser, url) as look:
        look.open("/live")
        expect(look.page.locator("#live-state")).to_contain_text("not followed: too many viewers")
        expect(look.page.locator("#event-7")).to_have_count(1)


def test_a_finding_leads_to_its_messages(browser: Browser, url: str) -> None:
    with looking(browser, url) as look:
        look.open("/live")
        look.page.get_by_role("link", name="event 5").click()
        assert look.page.evaluate("document.querySelector(':target').innerText").split() == ["0.400", "<key>", "publish", "2", "→"]
