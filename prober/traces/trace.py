"""Trace files: recorded histories as JSON Lines, a header and then one event per line in recorder order.

The format is described in docs/trace-files.md. Reading streams: memory does not grow with the file. Reading is strict: a file with contents
that the format does not define is refused at that line, never guessed at.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from math import inf
from types import TracebackType
from typing import BinaryIO, Final, Self, cast
from zipfile import BadZipFile, ZipFile

import orjson

from prober.core.events import Event
from prober.traces.codec import encode_event, event_decoder
from prober.traces.header import TraceHeader, decode_header, encode_header

LINE_BYTES_MAX: Final = 1 << 20  # an event has about 200 bytes; a longer line is no trace file, and must not fill the memory
FIRST_EVENT_LINE: Final = 2  # event number n is in line n + 1
TRACE_IN_BUNDLE: Final = "trace.jsonl"
"""The name of the trace in a support bundle."""
BLOCK_BYTES: Final = 1 << 16  # read at once: lines are split faster by the hundred than one by one


class TraceError(Exception):
    """A file is not a readable trace. The text is one line: `FILE:LINE: problem and remedy`.

    `line` counts from 1, the header's; it is 0 if the file could not be opened, and is then omitted from the text.
    """

    def __init__(self, path: str, line: int, message: str) -> None:
        super().__init__(f"{path}:{line}: {message}" if line else f"{path}: {message}")
        self.path = path
        self.line = line
        self.message = message


class TraceReader:
    """An opened trace: its header, already read and checked, and its events, read once and in order.

    Iterating raises `TraceError` at the first bad line, after the events before it. As a context manager it closes the file.
    """

    def __init__(self, stream: BinaryIO, path: str) -> None:
        self.path = path
        self._stream = stream
        self._last_line_is_whole = True
        self._blocks = self._read_blocks()
        self.header = self._read_header()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self._stream.close()

    def _read_header(self) -> TraceHeader:
        for number, (line, *others) in self._blocks:
            self._blocks = chain([(FIRST_EVENT_LINE, others)], self._blocks)
            try:
                return decode_header(line)
            except ValueError as wrong:
                raise self._error(number, wrong, line) from wrong
        raise TraceError(self.path, 1, "the file is empty; the first line must be a header")

    def __iter__(self) -> Iterator[Event]:
        decode = event_decoder(self.header.subscription, self.header.key)
        latest = -inf
        for first, lines in self._blocks:
            for number, line in enumerate(lines, first):
                try:
                    event = decode(line)
                except ValueError as wrong:
                    raise self._error(number, wrong, line) from wrong
                if event.t < latest:
                    raise TraceError(
                        self.path, number, f"time runs backwards, from {latest!r} to {event.t!r}; write events in recorder order"
                    )
                latest = event.t
                yield event

    def readable(self, unread: Callable[[], None]) -> Iterator[Event]:
        """Yield the events of the valid lines, in the order of the file.

        `unread` is called for each other line. For a file that is still written, or whose writer was killed. Raises `TraceError` only if
        the file cannot be read.
        """
        decode = event_decoder(self.header.subscription, self.header.key)
        for _, lines in self._blocks:
            for line in lines:
                try:
                    event = decode(line)
                except ValueError:
                    if line.strip():
                        unread()
                else:
                    yield event

    def _read_blocks(self) -> Iterator[tuple[int, list[bytes]]]:
        """Yield lines without their line ends, as many as one read returns, with the number of the first of them."""
        # A whole read would wait for a slow pipe, and lose the lines before the broken place of a compressed file.
        read: Callable[[int], bytes] = getattr(self._stream, "read1", self._stream.read)
        number, rest = 1, b""
        try:
            while block := read(BLOCK_BYTES):
                *lines, rest = (rest + block).split(b"\n")
                if len(lines[0] if lines else rest) > LINE_BYTES_MAX:
                    raise TraceError(self.path, number, f"the line is longer than {LINE_BYTES_MAX:,} bytes; is this a trace file?")
                if lines:
                    yield number, lines
                    number += len(lines)
        except (OSError, EOFError, zlib.error, BadZipFile) as broken:
            raise TraceError(self.path, number, f"cannot be read any further: {broken}; copy the file again") from broken
        if rest:
            self._last_line_is_whole = False
            yield number, [rest]

    def _error(self, number: int, wrong: ValueError, line: bytes) -> TraceError:
        if not isinstance(wrong, orjson.JSONDecodeError):
            return TraceError(self.path, number, str(wrong))
        return TraceError(self.path, number, _why_not_json(wrong, line, whole=self._last_line_is_whole))


def _why_not_json(wrong: orjson.JSONDecodeError, line: bytes, *, whole: bool) -> str:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError as undecodable:
        return f"not UTF-8 at byte {undecodable.start + 1} of the line; write the file as UTF-8"
    if not line.strip():
        return "an empty line; remove it (every line is one JSON object)"
    cut_short = "" if whole else "; the last line may have been cut short"
    return f"not JSON at column {wrong.pos + 1}: {wrong.msg}{cut_short}"


def open_trace(path: str) -> BinaryIO:
    """Open a trace file for reading. Raises `TraceError` if that is impossible.

    A name that ends in .gz is decompressed; one in .zip is a support bundle, whose trace is opened.
    """
    try:
        if path.endswith(".zip"):
            return _open_bundle(path)
        return cast(BinaryIO, gzip.open(path)) if path.endswith(".gz") else open(path, "rb")
    except OSError as impossible:
        raise TraceError(
            path, 0, f"cannot be opened: {impossible.strerror or impossible}; check the path and its permissions"
        ) from None


def _open_bundle(path: str) -> BinaryIO:
    try:
        with ZipFile(path) as bundle:
            return cast(BinaryIO, bundle.open(TRACE_IN_BUNDLE))  # which keeps the file open for as long as it is needed
    except KeyError:
        raise TraceError(
            path, 0, f"no {TRACE_IN_BUNDLE} in it: the bundle of a finding without evidence, or another archive"
        ) from None
    except (BadZipFile, RuntimeError, NotImplementedError) as broken:  # not an archive; one with a password; one of a new sort
        raise TraceError(path, 0, f"not a support bundle that can be read: {broken}; download it again") from None


def read_trace(source: str | os.PathLike[str] | BinaryIO, path: str | None = None) -> TraceReader:
    """Return the header and the events of a trace file, or of an open binary stream (`path` is then its name in error messages).

    Raises `TraceError` if it cannot be opened or its header is bad. Memory is bounded by one line, or by the lines of one read.
    """
    if not isinstance(source, (str, os.PathLike)):
        return TraceReader(source, path or str(getattr(source, "name", "<stream>")))
    stream = open_trace(os.fspath(source))
    try:
        return TraceReader(stream, os.fspath(source))
    except TraceError:
        stream.close()
        raise


def write_trace(target: str | os.PathLike[str] | BinaryIO, header: TraceHeader, events: Iterable[Event]) -> int:
    """Write a trace to a file of that name or to an open binary stream; return the number of events.

    Reading it returns the same header and events. Raises ValueError for events that could not be read again (time running backwards, NaN,
    infinity), and OSError.
    """
    if isinstance(target, (str, os.PathLike)):
        with open(target, "wb") as stream:
            return write_trace(stream, header, events)
    target.write(encode_header(header) + b"\n")
    latest = -inf
    count = 0
    for count, event in enumerate(events, 1):
        if event.t < latest:
            raise ValueError(f"time runs backwards at event {count}: {latest!r}, then {event.t!r}")
        latest = event.t
        target.write(encode_event(event, header.subscription, header.key) + b"\n")
    return count
