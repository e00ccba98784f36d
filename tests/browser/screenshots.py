"""Makes the pictures of the pages: `python -m tests.browser.screenshots [FOLDER]`. They show the world of these tests, at noon.

With a folder it also draws the status page in each of `STATES`, in a wide and in a narrow window: to look at, not to commit.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser, sync_playwright

from tests.browser.looking import ARGUMENTS, DESKTOP, PAGES, looking
from tests.browser.states import STATES
from tests.browser.world import served, serving

NARROW: Final = 390
FOLDER: Final = Path(__file__).parents[2] / "docs" / "images"


@dataclass(frozen=True)
class Picture:
    """The upper part of a page in a window."""

    page: str
    height: int = 900


PICTURES: Final[Mapping[str, Picture]] = {
    "status": Picture("status", height=1090),
    "finding": Picture("violation", height=1500),
    "findings": Picture("findings"),
    "hot-keys": Picture("hot keys"),
    "objective": Picture("objective"),
}


def take(browser: Browser, url: str, name: str, folder: Path) -> Path:
    """One picture; where it is."""
    picture = PICTURES[name]
    path = folder / f"{name}.png"
    with looking(browser, url, width=DESKTOP, height=picture.height) as look:
        look.open(PAGES[picture.page])
        look.page.screenshot(path=path, animations="disabled")
    return path


def take_states(browser: Browser, folder: Path) -> None:
    """The status page in every state, wide and narrow."""
    for name, state in STATES.items():
        asked = state()
        asked.tell()
        with serving(asked) as url:
            for width in (DESKTOP, NARROW):
                with looking(browser, url, width=width, height=900) as look:
                    look.open("/")
                    look.page.screenshot(path=folder / f"state-{name}-{width}.png", animations="disabled")


def main(folder: Path) -> None:
    """All pictures."""
    with (
        tempfile.TemporaryDirectory() as place,
        served(Path(place), third_key="customer-88") as world,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
        for name in PICTURES:
            path = take(browser, world.url, name, folder)
            print(f"{path} ({path.stat().st_size // 1000} kB)")
        if folder != FOLDER:
            take_states(browser, folder)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
