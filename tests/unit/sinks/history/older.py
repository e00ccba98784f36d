"""A history as older programs wrote it: under the same version, before columns were added."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pyarrow.parquet as pq

ADDED: Final = ("publish_region", "publish_time_ns", "max_outstanding_messages", "max_outstanding_bytes", "lost")
"""Columns of events that the first files do not have."""


def make_older(location: Path) -> int:
    """Takes the added columns out of every file of events; how many files there are."""
    paths = sorted((location / "events").rglob("*.parquet"))
    for path in paths:
        rows = pq.ParquetFile(path).read()
        pq.write_table(rows.drop_columns(list(ADDED)), path)
    return len(paths)
