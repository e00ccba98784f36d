"""Record `ordering-prober demo`: `python -m tests.browser.demo_recording [FOLDER]` (`make demo-recording`).

demo.cast   the terminal, for `asciinema play`: https://docs.asciinema.org/manual/asciicast/v2/
demo.webp   the pages that each scene names, one after the other, with its caption, for the README.
"""

from __future__ import annotations

import io
import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from PIL import Image, ImageDraw, ImageFont
from playwright.sync_api import Browser, Page, sync_playwright

from prober.clock import monotonic_s
from tests.browser.looking import ARGUMENTS

FOLDER: Final = Path(__file__).parents[2] / "docs" / "images"
COMMAND: Final = (
    sys.executable,
    "-u",
    "-c",
    "from prober.cli import main; main()",
    "demo",
    "--no-browser",
    "--port",
    "0",
)
COLUMNS, ROWS = 100, 40
WIDTH, HEIGHT, CAPTION, LETTERS = 1100, 720, 56, 24
SHOWN_MS: Final = 3000
_TITLE: Final = re.compile(r"^\d+:\d\d  (.+)$")
_PAGE: Final = re.compile(r"(http://127\.0\.0\.1:\d+\S*)")


def spoken(process: subprocess.Popen[str], cast: list[str]) -> Iterator[str]:
    """The lines of the demo as it prints them; each is added to the cast with its time. The demo is stopped after its last scene."""
    began = monotonic_s()
    assert process.stdout is not None
    for line in process.stdout:
        cast.append(json.dumps([round(monotonic_s() - began, 2), "o", line.replace("\n", "\r\n")]))
        yield line.rstrip()
        if "Ctrl-C stops it" in line:
            process.send_signal(signal.SIGINT)


def pictures(lines: Iterator[str], browser: Browser) -> Iterator[Image.Image]:
    """The status page when the service is healthy and when each fault was found, and each finding."""
    page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
    home = title = ""
    for line in lines:
        if match := _TITLE.match(line):
            title = match[1]
        elif match := _PAGE.search(line):
            home = home or match[1]
            if match[1] != home:
                yield picture(page, home, title, "FAIL")
                yield picture(page, match[1], title)
        elif "the probes report PASS" in line:
            yield picture(page, home, title, "PASS")
    page.close()


def picture(page: Page, url: str, caption: str, headline: str = "") -> Image.Image:
    """A page with its caption above it, as soon as its headline has this text; of a finding, its diagram."""
    page.goto(url)
    page.wait_for_function("text => !text || document.querySelector('.hero')?.innerText.includes(text)", arg=headline)
    page.evaluate("document.querySelector('section[aria-labelledby=history]')?.scrollIntoView()")
    taken = Image.open(io.BytesIO(page.screenshot(animations="disabled")))
    frame = Image.new("RGB", (WIDTH, HEIGHT + CAPTION), "#202124")
    ImageDraw.Draw(frame).text((24, CAPTION // 2), caption, "white", ImageFont.load_default(LETTERS), anchor="lm")
    frame.paste(taken, (0, CAPTION))
    return frame


def main(folder: Path) -> None:
    """Both files."""
    cast = [json.dumps({"version": 2, "width": COLUMNS, "height": ROWS, "title": "ordering-prober demo"})]
    with subprocess.Popen(COMMAND, stdout=subprocess.PIPE, text=True) as process, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
        frames = list(pictures(spoken(process, cast), browser))
        browser.close()
    if process.returncode:
        raise SystemExit(f"the demo ended with exit code {process.returncode}")
    (folder / "demo.cast").write_text("\n".join(cast) + "\n", encoding="utf-8")
    frames[0].save(folder / "demo.webp", save_all=True, append_images=frames[1:], duration=SHOWN_MS, loop=0, quality=70, method=6)
    print(f"{len(frames)} pictures, {(folder / 'demo.webp').stat().st_size // 1000} kB")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
