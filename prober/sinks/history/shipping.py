"""From the spool to the place of the history: ended segments become Parquet files, this process's own and those that dead ones left.

A segment is taken out of the spool only when all its files are where they belong. Until then everything can be done again, so a store
that cannot be reached costs time and nothing else.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from prober.errors import ProberError
from prober.sinks.history.encoding import files_of
from prober.sinks.history.spool import Segment, Spool, abandoned, read_frames, set_aside
from prober.sinks.history.store import HistoryRetention, HistoryStore, enforce

RETENTION_EVERY_S: Final = 600.0
ABANDONED_EVERY_S: Final = 60.0

_log = logging.getLogger(__name__)


class Shipper:
    """Brings segments home. Used by one thread; what it counts may be read by any.

    error     why the last attempt failed, in one line; empty if it did not.
    written   files written.
    """

    def __init__(self, location: str, spool_root: Path, policy: HistoryRetention, failed: Callable[[], None]) -> None:
        self.error = ""
        self.written = 0
        self.written_at: float | None = None
        self._location = location
        self._root = spool_root
        self._policy = policy
        self._failed = failed
        self._store: HistoryStore | None = None
        self._abandoned_due_t = self._retention_due_t = float("-inf")

    def ship(self, spool: Spool | None, now_t: float, wall_s: float) -> bool:
        """Ships what there is. False if the store, or the disk, did not let it: then what is left waits for the next call.

        `now_t` is the monotonic clock, `wall_s` seconds since 1970.
        """
        try:
            self._ship(spool, now_t, wall_s)
        except (OSError, ProberError) as error:
            problem = str(error).partition("\n")[0] or repr(error)
            if problem != self.error:
                _log.warning("the history cannot be written to its location and waits in the spool: %s", problem)
            self.error = problem
            self._failed()
            return False
        self.error = ""
        return True

    def _ship(self, spool: Spool | None, now_t: float, wall_s: float) -> None:
        store = self._store = self._store or HistoryStore(self._location)
        if now_t >= self._abandoned_due_t:
            with abandoned(self._root) as segments:
                for segment in segments:
                    self._bring(segment, store, wall_s)
            self._abandoned_due_t = now_t + ABANDONED_EVERY_S
        while spool is not None and spool.ended:
            self._bring(spool.ended[0], store, wall_s)
            spool.ended.popleft()
        if now_t >= self._retention_due_t:
            enforce(self._policy, store, datetime.fromtimestamp(wall_s, UTC))
            self._retention_due_t = now_t + RETENTION_EVERY_S

    def _bring(self, segment: Segment, store: HistoryStore, wall_s: float) -> None:
        """Writes the files of a segment and takes it out of the spool."""
        try:
            frames, torn = read_frames(segment.path)
        except FileNotFoundError:
            self._failed()
            _log.warning("%s was deleted before it was written to the history; its events are lost", segment.path)
            return
        if torn:
            _log.warning("%s: the last %d bytes are incomplete and left out", segment.path, torn)
        try:
            for file in files_of(frames, segment.process, segment.number):
                store.write(file.path, file.content)
                self.written += 1
                self.written_at = wall_s
        except OSError:
            raise
        except Exception:  # a mistake of ours, or of the disk; the segments behind it must not wait for ever
            self._failed()
            _log.exception("internal error: segment %s cannot be read; it is kept as %s", segment.path, set_aside(segment))
            return
        with suppress(FileNotFoundError):
            segment.path.unlink()
