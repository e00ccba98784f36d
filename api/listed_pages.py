"""Pages of runs and findings, written from what the store says, in half the time that their models take to look at it and write it.

A page is what its model would write, byte by byte (`tests/unit/api/test_listed_pages.py`): the model remains what the document describes.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from typing import Any, get_args

import orjson

from api.models.base import Answer
from api.response_cache import EncodedAnswer, tag_of
from prober.sinks.status.records import ListedFinding, ListedRun, Page


def encode_page(page: Page[ListedRun] | Page[ListedFinding], model: type[Answer]) -> EncodedAnswer:
    """The answer for a page, whose items have the fields of this model, in this order."""
    said = {"next_cursor": page.next_cursor, "items": list(_items(page, times_of(model)))}
    body = orjson.dumps(said, option=orjson.OPT_UTC_Z)
    return EncodedAnswer(body, tag_of(body), page.next_cursor)


@cache
def times_of(model: type[Answer]) -> tuple[str, ...]:
    """The fields that are times: seconds since 1970 in the store."""
    return tuple(name for name, field in model.model_fields.items() if _is_time(field.annotation))


def _is_time(annotation: object) -> bool:
    """Whether a field may hold one, beside null."""
    return annotation is datetime or any(map(_is_time, get_args(annotation)))


def _items(page: Page[ListedRun] | Page[ListedFinding], times: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    for listed in page.items:
        item: dict[str, Any] = dict(zip(listed._fields, listed, strict=True))
        for name in times:
            if item[name] is not None:
                item[name] = _time(item[name])
        yield item


def _time(at: float) -> datetime:
    """Half a microsecond, which only an odd number of 128ths of a second ends with, is rounded up, as models do."""
    return datetime.fromtimestamp(at + 2**-22 if at * 128 % 2 == 1 else at, UTC)
