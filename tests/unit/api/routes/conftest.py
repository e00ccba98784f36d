"""A filled store for the pages, which takes seconds to make."""

from __future__ import annotations

import pytest

from tests.browser.world import World, made


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A filled store. What a test changes it puts back; runs may be added."""
    return made(tmp_path_factory.mktemp("world"))
