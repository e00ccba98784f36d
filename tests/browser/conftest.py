"""A browser, and something to look at. Where there is no Chromium, these tests are skipped with one line; in CI that is a failure."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.browser.looking import ARGUMENTS
from tests.browser.world import World, served


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The service, with everything going on. What the tests of a module make happen stays among them."""
    with served(tmp_path_factory.mktemp("world")) as running:
        yield running


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Chromium without a window."""
    chromium = shutil.which("chromium")
    if chromium is None:
        message = "the pages are not looked at: install chromium (Debian: apt-get install chromium)"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a browser writes beside its profile goes with the test."""
    monkeypatch.chdir(tmp_path)
