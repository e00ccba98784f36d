"""Prints the reference page: `python -m prober.config > docs/configuration.md`."""

from __future__ import annotations

from prober.config.reference import page

if __name__ == "__main__":
    print(page(), end="")
