"""The history of a simulation: the writer of the service, without its threads. The same seed writes the same files."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from prober.config.sections import HistorySettings
from prober.runs.sink import RunSink
from prober.sinks.history.writer import HistorySink, HistoryWriter

FLUSH_EVERY_S: Final = 60.0


@asynccontextmanager
async def recorded(location: str | None, process: str) -> AsyncIterator[list[RunSink]]:
    """Provide the sinks that write the history; none without a location.

    `process` names the files.
    """
    if location is None:
        yield []
        return
    writer = HistoryWriter(HistorySettings(location=location), process=process)
    flushing = asyncio.create_task(_keep_flushing(writer), name="history")
    try:
        yield [HistorySink(writer)]
    finally:
        flushing.cancel()
        writer.flush()
        writer.end_segment()
        writer.ship()
        writer.close()


async def _keep_flushing(writer: HistoryWriter) -> None:
    while True:
        await asyncio.sleep(FLUSH_EVERY_S)
        writer.flush()
