"""Stories about the client library."""

from __future__ import annotations

from prober.sinks.metrics import families
from prober.sinks.metrics.label_values import LibraryAnomaly
from tests.alerts.stories import HERE, Story, at, of

STARTED = of(families.START)
LABELS = {**HERE, "subscription": "s-library", "kind": str(LibraryAnomaly.UNEXPLAINED_STOP)}


def anomalies(kind: LibraryAnomaly, **labels: str) -> str:
    """The counter of a kind on a subscription of the library vantage."""
    return of(families.LIBRARY_ANOMALIES, subscription="s-library", kind=kind, **labels)


STORIES = (
    Story(
        "PubsubClientLibraryAnomaly",
        "fires at the next evaluation and for an hour",
        {anomalies(LibraryAnomaly.UNEXPLAINED_STOP): "0x80 1x300", STARTED: at("-9000x380")},
        {"20m": 0, "20m15s": 1, "79m": 1, "81m": 0},
        reads=(
            "20m15s",
            LABELS,
            "unexplained_stop: 1 times within the last 1h on subscription s-library of t (e, r). Suspect the version of the client "
            "library, not the service.",
        ),
    ),
    Story(
        "PubsubClientLibraryAnomaly",
        "tells the kinds apart",
        {anomalies(kind): "0x80 1x80" for kind in LibraryAnomaly},
        {"20m": 0, "21m": 3},
    ),
    Story(
        "PubsubClientLibraryAnomaly",
        "also when it is the first thing that a process counts",
        {anomalies(LibraryAnomaly.CALLBACK_OVERLAP): "_x80 4x80"},
        {"20m15s": 1},
    ),
    Story(
        "PubsubClientLibraryAnomaly",
        "not where nothing is counted",
        {anomalies(kind): "0x160" for kind in LibraryAnomaly},
        {"40m": 0},
    ),
)
