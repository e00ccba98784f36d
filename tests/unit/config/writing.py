"""Configurations as a test writes them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

import pytest

from prober.config.loading import load
from prober.config.models import Config
from prober.errors import ConfigError

LINE = re.compile(r" \(line \d+\):")


def loaded(folder: Path, text: str, environ: Mapping[str, str] | None = None) -> Config:
    """What a file with this text, and this environment, say together."""
    path = folder / "prober.yaml"
    path.write_text(dedent(text), encoding="utf-8")
    return load(path, environ or {})


def problems(folder: Path, text: str, environ: Mapping[str, str] | None = None) -> list[str]:
    """The lines of the error that they cause, without the file's name and the numbers of its lines."""
    return [LINE.sub(":", reported) for reported in complaints(folder, text, environ)]


def complaints(folder: Path, text: str, environ: Mapping[str, str] | None = None) -> list[str]:
    """The lines of the error that they cause, without the file's name."""
    with pytest.raises(ConfigError) as caught:
        loaded(folder, text, environ)
    first, *more = str(caught.value).removeprefix(f"{folder / 'prober.yaml'}: ").splitlines()
    if not more:
        return [first]
    assert first == f"{len(more)} problems"
    return [line.strip() for line in more]
