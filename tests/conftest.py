"""Settings that hold for every test."""

from __future__ import annotations

import os

from hypothesis import settings

# A slow machine is not a failure. In continuous integration the examples are always the same ones: a red run is due to the change.
settings.register_profile("local", deadline=None, print_blob=True)
settings.register_profile("ci", deadline=None, print_blob=True, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")
