"""How a page is looked at: in a window of a size, in the light or in the dark, with an ear for what goes wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias
from urllib.parse import quote, urlsplit

from playwright.sync_api import Browser, Locator, Page

from tests.browser.world import ORDERS
from tests.streams import HOSTILE

Scheme: TypeAlias = Literal["light", "dark"]

ARGUMENTS: Final = ("--no-sandbox", "--disable-dev-shm-usage")
"""Root may use no sandbox, and containers often have little shared memory."""
DESKTOP: Final = 1280
PHONE: Final = 360
PAGES: Final = {
    "status": "/",
    "status over days": "/?range=7d",
    "incidents": "/incidents",
    "incident": "/incidents/redelivery-europe-wire-087-redelivery",
    "findings": "/findings",
    "open findings": "/findings?open=true&kind=REDELIVERY_SKIP",
    "no findings": "/findings?kind=FILTER_LEAK",
    "violation": "/findings/redelivery-europe-wire-089-1",
    "everything on a key": "/findings/redelivery-europe-wire-089-1?show=key",
    "indeterminate": "/findings/ordering-t58-1",
    "pull": "/findings/ordering-t40-1",
    "hostile": "/findings/ordering-t02-1",
    "runs": "/runs",
    "run": "/runs/redelivery-europe-wire-089",
    "probes": "/probes",
    "probe": "/probes/ordering",
    "probe at a target": "/probes/redelivery?target=europe&vantage=wire&part=",
    "objectives": "/slos",
    "comparisons": "/comparisons",
    "key": f"/keys?key={ORDERS}",
    "hostile key": f"/keys?key={quote(HOSTILE, safe='')}",
    "hot keys": "/hot-keys",
    "objective": "/slos/redelivery",
    "objective over days": "/slos/redelivery?range=7d",
    "unknown objective": "/slos/stalled_keys",
    "runbooks": "/runbooks",
    "runbook": "/runbooks/PubsubRedeliveryViolated",
    "reference": "/docs",
}
"""Every page, also in its odd states."""
ABSENT: Final = (
    "/findings/none",
    "/incidents/none",
    "/runs/none",
    "/slos/none",
    "/probes/none",
    "/runbooks/none",
    "/nowhere/at/all",
)


@dataclass
class Look:
    """A page in a window. `complaints` is what the browser said in its console; `hosts` whom it asked for something."""

    page: Page
    url: str
    complaints: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)

    def open(self, path: str) -> int:
        """Goes to a page and waits until everything is there; the status of the answer."""
        answer = self.page.goto(self.url + path, wait_until="load")
        assert answer is not None
        return answer.status

    def follow(self, what: Locator) -> None:
        """Clicks on what leads to another page, and waits until everything is there."""
        with self.page.expect_navigation(wait_until="load"):
            what.click()

    def names(self, selector: str) -> list[str]:
        """The text of every element that agrees with a selector."""
        return [" ".join(text.split()) for text in self.page.locator(selector).all_inner_texts()]

    def focused(self) -> str:
        """The text, or else the name, of what has the focus."""
        said = self.page.evaluate(
            "(document.activeElement.innerText || document.activeElement.id || document.activeElement.tagName).trim()"
        )
        return str(said)


@contextmanager
def looking(
    browser: Browser, url: str, *, width: int = DESKTOP, height: int = 800, scheme: Scheme = "light", zone: str = "UTC"
) -> Iterator[Look]:
    """A window of its own, in a time zone, closed in the end."""
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce", timezone_id=zone
    )
    look = Look(context.new_page(), url)
    look.page.on("console", lambda message: look.complaints.append(message.text))
    look.page.on("pageerror", lambda error: look.complaints.append(str(error)))
    look.page.on("request", lambda request: look.hosts.add(urlsplit(request.url).netloc))
    try:
        yield look
    finally:
        context.close()
