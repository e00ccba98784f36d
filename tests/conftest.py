"""Settings that hold for every test, and Google's emulator for those that need it."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator

import pytest
from hypothesis import settings
from xdist.remote import Producer  # type: ignore[import-untyped]

from tests.contract.emulator import find_emulator, running_emulator
from tests.nightly import AT_NIGHT
from tests.sharing import Sharing, rank

# It makes 38 parsers when jsonschema imports it, for formats that no schema here has: a fifth of the time that collecting the tests takes.
sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]

# A slow machine is not a failure. In continuous integration the examples are always the same ones: a red run is due to the change.
EXAMPLES = 100 if AT_NIGHT else 30
settings.register_profile("local", deadline=None, print_blob=True, max_examples=EXAMPLES)
settings.register_profile("ci", deadline=None, print_blob=True, max_examples=EXAMPLES, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")


WORKERS_MAX = 8


def pytest_xdist_auto_num_workers() -> int:
    """Twice as many as there are cores, within reason: of those that begin with what takes long, every second one waits."""
    return min(WORKERS_MAX, 2 * (os.cpu_count() or 1))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Exclude modules and tests from garbage collection: they stay until the end, and a collection takes longer than most tests."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes long begins first."""
    items.sort(key=lambda item: rank(item.nodeid))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Sharing | None:
    """With `--dist loadscope`, what is done by one worker is what `tests.sharing` says."""
    return Sharing(config, log) if config.getoption("dist") == "loadscope" else None


@pytest.fixture(scope="session")
def emulator_address() -> Iterator[str]:
    """Where Google's emulator listens; missing is a failure in continuous integration and a skip elsewhere."""
    command = find_emulator()
    if command is None:
        reason = "Google's emulator is missing: install it with `gcloud components install pubsub-emulator`, and Java 11 or newer"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    with running_emulator(command) as address:
        yield address
