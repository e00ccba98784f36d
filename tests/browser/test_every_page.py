"""Every page in a real browser, in the light and in the dark, wide and narrow: it loads, fits, talks to nobody else, and is accessible."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Browser, Page, expect

from tests.browser.looking import ABSENT, DESKTOP, PAGES, PHONE, Scheme, looking
from tests.browser.world import World
from tests.nightly import AT_NIGHT

GRAVE = frozenset({"serious", "critical"})
"""What axe-core calls so must not be."""


LONG: Final = {
    "status": 15592,
    "incidents": 5788,
    "runs": 8891,
    "run": 2939,
    "key": 26813,
    "objective": 4600,
    "unknown objective": 8050,
    "reference": 79602,
}
"""How long pages are, in pixels at a width of 390, when every row is a card and nothing is folded."""


def grave(page: Page) -> list[str]:
    """What axe-core finds on a page with everything unfolded."""
    page.evaluate("document.querySelectorAll('details').forEach(element => element.open = true)")
    found = Axe().run(page).response
    assert found["passes"]
    return [
        f"{violation['id']}: {violation['help']}: {node['html'][:200]}"
        for violation in found["violations"]
        if violation["impact"] in GRAVE
        for node in violation["nodes"][:3]
    ]


EXAMINED_TWICE: Final = ("status", "incident", "violation", "probe", "objective", "hot keys")
"""Pages with colours of their own, which are examined in the dark by day, too; all others are at night."""


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize(("width", "scheme"), [(DESKTOP, "light"), (PHONE, "dark")])
def test_it_loads_fits_and_is_accessible(browser: Browser, world: World, name: str, width: int, scheme: Scheme) -> None:
    with looking(browser, world.url, width=width, scheme=scheme) as look:
        assert look.open(PAGES[name]) == 200
        expect(look.page.locator("h1")).to_have_count(1)
        assert look.page.evaluate("document.documentElement.scrollWidth") <= width
        if scheme == "light" or name in EXAMINED_TWICE or AT_NIGHT:
            assert grave(look.page) == []
        assert look.complaints == []
        assert look.hosts == {urlsplit(world.url).netloc}


def test_what_is_not_there_is_said_on_a_page(browser: Browser, world: World) -> None:
    with looking(browser, world.url, width=PHONE) as look:
        for path in ABSENT:
            assert look.open(path) == 404
            expect(look.page.locator("h1")).to_have_text("Not here")
        assert grave(look.page) == []
        look.follow(look.page.get_by_role("link", name="Back to the status page"))
        expect(look.page).to_have_url(f"{world.url}/")


@pytest.mark.parametrize(("page", "was"), LONG.items())
def test_on_a_phone_a_long_page_is_a_third_of_what_it_holds(browser: Browser, world: World, page: str, was: int) -> None:
    with looking(browser, world.url, width=390) as look:
        look.open(PAGES[page])
        assert look.page.evaluate("document.documentElement.scrollHeight") <= was / 3


def test_what_is_folded_on_a_phone_opens_by_hand_and_by_address(browser: Browser, world: World) -> None:
    with looking(browser, world.url, width=390) as look:
        look.open(PAGES["run"])
        expect(look.page.locator("#counters-fold dl")).to_be_hidden()
        look.page.locator("#counters-summary").click()
        expect(look.page.locator("#counters-fold dl")).to_be_visible()
        look.open("/")
        look.open(f"{PAGES['run']}#counted")
        expect(look.page.locator("#counted-fold table")).to_be_visible()


def test_the_schemes_differ(browser: Browser, world: World) -> None:
    grounds = []
    schemes: tuple[Scheme, ...] = ("light", "dark")
    for scheme in schemes:
        with looking(browser, world.url, scheme=scheme) as look:
            look.open(PAGES["violation"])
            page, drawing = look.page.locator("body"), look.page.locator(".wide .lanes .ground")
            grounds.append(
                (
                    page.evaluate("element => getComputedStyle(element).backgroundColor"),
                    drawing.evaluate("element => getComputedStyle(element).fill"),
                )
            )
    assert grounds == [("rgb(247, 247, 245)", "rgb(255, 255, 255)"), ("rgb(19, 20, 23)", "rgb(27, 29, 33)")]


def test_a_page_that_is_not_accessible_is_noticed(browser: Browser, world: World) -> None:
    with looking(browser, world.url) as look:
        look.open("/findings")
        look.page.evaluate("document.querySelectorAll('label').forEach(label => label.replaceWith(...label.children))")
        assert grave(look.page) != []


def test_a_page_that_is_too_wide_is_noticed(browser: Browser, world: World) -> None:
    with looking(browser, world.url, width=PHONE) as look:
        look.open("/findings")
        look.page.evaluate("document.getElementById('main').append('x'.repeat(500))")
        look.page.evaluate("document.body.style.overflowWrap = 'normal'")
        assert look.page.evaluate("document.documentElement.scrollWidth") > PHONE


def test_on_paper_it_is_light(browser: Browser, world: World) -> None:
    with looking(browser, world.url, scheme="dark") as look:
        look.open(PAGES["violation"])
        look.page.emulate_media(media="print", color_scheme="dark")
        colour = look.page.locator("h1").evaluate("element => getComputedStyle(element).color")
        ground = look.page.locator(".wide .lanes .ground").evaluate("element => getComputedStyle(element).fill")
        assert (colour, ground) == ("rgb(29, 31, 35)", "rgb(255, 255, 255)")
        expect(look.page.locator("nav").first).to_be_hidden()
