"""Trace files: recorded histories as JSON Lines, a header and then one event per line in recorder order.

The format is described in docs/trace-files.md. Reading streams: memory does not grow with the file. Reading is strict: a file that
says something the format does not know how to judge is refused at that line, never guessed at.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterable, Iterator
from functools import partial
from math import inf
from types import TracebackType
from typing import BinaryIO, Final, Self, cast

import orjson

from prober.core.events import Event
from prober.history.trace_codec import EventDecoder, encode_event
from prober.history.trace_header import TraceHeader, decode_header, encode_header

LINE_BYTES_MAX: Final = 1 << 20  # an event has about 200 bytes; a longer line is no trace file, and must not fill the memory
FIRST_EVENT_LINE: Final = 2  # event number n stands in line n + 1


class TraceError(Exception):
    """A file is not a readable trace. The text is one line: `FILE:LINE: what is wrong and what to do`.

    `line` counts from 1, the header's; it is 0 when the file could not be opened at all, and is then left out of the text.
    """

    def __init__(self, path: str, line: int, message: str) -> None:
        super().__init__(f"{path}:{line}: {message}" if line else f"{path}: {message}")
        self.path = path
        self.line = line
        self.message = message


class TraceReader:
    """An opened trace: its header, already read and checked, and its events, read once and in order.

    Iterating raises `TraceError` at the first bad line; the events before it have been given out by then. As a context manager it
    closes the file.
    """

    def __init__(self, stream: BinaryIO, path: str) -> None:
        self.path = path
        self._stream = stream
        self.header = self._read_header()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self._stream.close()

    def _read_header(self) -> TraceHeader:
        for number, line in self._lines(1):
            try:
                return decode_header(line)
            except ValueError as wrong:
                raise self._error(number, wrong, line) from wrong
        raise TraceError(self.path, 1, "the file is empty; the first line must be a header")

    def __iter__(self) -> Iterator[Event]:
        decode = EventDecoder(self.header.subscription, self.header.key).decode
        parse = orjson.loads
        latest = -inf
        for number, line in self._lines(FIRST_EVENT_LINE):
            try:
                event = decode(parse(line))
            except ValueError as wrong:
                raise self._error(number, wrong, line) from wrong
            if event.t < latest:
                raise TraceError(
                    self.path, number, f"time runs backwards, from {latest!r} to {event.t!r}; write events in recorder order"
                )
            latest = event.t
            yield event

    def _lines(self, first: int) -> Iterator[tuple[int, bytes]]:
        number = first - 1
        try:
            for number, line in enumerate(iter(partial(self._stream.readline, LINE_BYTES_MAX + 1), b""), first):
                if len(line) > LINE_BYTES_MAX:
                    raise TraceError(self.path, number, f"the line is longer than {LINE_BYTES_MAX:,} bytes; is this a trace file?")
                yield number, line
        except (OSError, EOFError, zlib.error) as broken:
            raise TraceError(self.path, number + 1, f"cannot be read on: {broken}; copy the file again") from broken

    def _error(self, number: int, wrong: ValueError, line: bytes) -> TraceError:
        return TraceError(
            self.path, number, str(wrong) if not isinstance(wrong, orjson.JSONDecodeError) else _why_not_json(wrong, line)
        )


def _why_not_json(wrong: orjson.JSONDecodeError, line: bytes) -> str:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError as undecodable:
        return f"not UTF-8 at byte {undecodable.start + 1} of the line; write the file as UTF-8"
    if not line.strip():
        return "an empty line; remove it (every line is one JSON object)"
    cut_short = "" if line.endswith(b"\n") else "; the last line may have been cut short"
    return f"not JSON at column {wrong.pos + 1}: {wrong.msg}{cut_short}"


def open_trace(path: str) -> BinaryIO:
    """Open a trace file for reading; a name that ends in .gz is decompressed. Raises `TraceError` if that is impossible."""
    try:
        return cast(BinaryIO, gzip.open(path)) if path.endswith(".gz") else open(path, "rb")
    except OSError as impossible:
        raise TraceError(
            path, 0, f"cannot be opened: {impossible.strerror or impossible}; check the path and its permissions"
        ) from None


def read_trace(source: str | os.PathLike[str] | BinaryIO, path: str | None = None) -> TraceReader:
    """The header and the events of a trace file, or of an open binary stream (`path` is then its name in error messages).

    Raises `TraceError` if it cannot be opened or its header is bad. Memory is bounded by one line.
    """
    if not isinstance(source, (str, os.PathLike)):
        return TraceReader(source, path or str(getattr(source, "name", "<stream>")))
    stream = open_trace(os.fspath(source))
    try:
        return TraceReader(stream, os.fspath(source))
    except TraceError:
        stream.close()
        raise


def write_lines(stream: BinaryIO, header: TraceHeader, events: Iterable[Event]) -> int:
    """Write a trace to an open binary stream; returns the number of events. Reading it gives the same header and events.

    Raises ValueError for what could not be read again: time running backwards, NaN, infinity.
    """
    stream.write(encode_header(header) + b"\n")
    latest = -inf
    count = 0
    for count, event in enumerate(events, 1):
        if event.t < latest:
            raise ValueError(f"time runs backwards at event {count}: {latest!r}, then {event.t!r}")
        latest = event.t
        stream.write(encode_event(event, header.subscription, header.key) + b"\n")
    return count


def write_trace(target: str | os.PathLike[str] | BinaryIO, header: TraceHeader, events: Iterable[Event]) -> int:
    """`write_lines` to a file of that name or to an open binary stream."""
    if not isinstance(target, (str, os.PathLike)):
        return write_lines(target, header, events)
    with open(target, "wb") as stream:
        return write_lines(stream, header, events)
