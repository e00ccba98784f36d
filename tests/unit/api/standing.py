"""One application for all tests that ask it a question at a time: to make one takes longer than to answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, Final, Protocol, cast

import pytest
from fastapi import FastAPI

from api import dependencies, recent
from api.app import create_app
from api.view import Archive, View
from prober.clock import monotonic_s
from prober.config.models import Api
from prober.slo.objectives import HOUR_S


class Asked(View, Protocol):
    """A service with what an application needs to know of it."""

    archive: Archive
    settings: Api


@contextmanager
def standing(asked: Asked) -> Iterator[FastAPI]:
    """The application around this service. Since it was last asked an hour has passed: it gives no answer of another test again."""
    if asked.settings not in _MADE:
        _MADE[asked.settings] = _Standing(asked)
    made = _MADE[asked.settings]
    made.view.lent, made.archive.lent = asked, asked.archive
    passed_s = HOUR_S * next(_HOURS)
    with pytest.MonkeyPatch.context() as patch:
        for remembers in (dependencies, recent):
            patch.setattr(remembers, "monotonic_s", lambda: monotonic_s() + passed_s)
        yield made.app


class _Lent:
    """Whatever it stands for at the moment."""

    def __init__(self, lent: object) -> None:
        self.lent = lent

    def __getattr__(self, name: str) -> Any:
        return getattr(self.lent, name)


class _Standing:
    """An application, and what it takes for the service."""

    def __init__(self, asked: Asked) -> None:
        self.view, self.archive = _Lent(asked), _Lent(asked.archive)
        self.app = create_app(cast(View, self.view), cast(Archive, self.archive), asked.settings)


_HOURS: Final = count(1)
_MADE: Final[dict[Api, _Standing]] = {}
