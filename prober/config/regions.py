"""The regions of Google Cloud, to notice one that is misspelled.

Pub/Sub is in every region, and new ones open now and then: what is not in the list may be right, so it is a warning and no error.
"""

from __future__ import annotations

from typing import Final

from prober.brokers.endpoint import parse_endpoint
from prober.config.values import EMBEDDED

SOURCE: Final = "docs.cloud.google.com/bigquery/docs/locations"
AS_OF: Final = "2026-04-15"

REGIONS: Final = frozenset(
    [
        "africa-south1",
        "asia-east1",
        "asia-east2",
        "asia-northeast1",
        "asia-northeast2",
        "asia-northeast3",
        "asia-south1",
        "asia-south2",
        "asia-southeast1",
        "asia-southeast2",
        "asia-southeast3",
        "australia-southeast1",
        "australia-southeast2",
        "europe-central2",
        "europe-north1",
        "europe-north2",
        "europe-southwest1",
        "europe-west1",
        "europe-west2",
        "europe-west3",
        "europe-west4",
        "europe-west6",
        "europe-west8",
        "europe-west9",
        "europe-west10",
        "europe-west12",
        "me-central1",
        "me-central2",
        "me-west1",
        "northamerica-northeast1",
        "northamerica-northeast2",
        "northamerica-south1",
        "southamerica-east1",
        "southamerica-west1",
        "us-central1",
        "us-east1",
        "us-east4",
        "us-east5",
        "us-south1",
        "us-west1",
        "us-west2",
        "us-west3",
        "us-west4",
    ]
)


def region_of(endpoint: str) -> str:
    """The region that an endpoint itself names: Google's, `global`, or `local` for anything else."""
    if endpoint == EMBEDDED:
        return "local"
    parsed = parse_endpoint(endpoint)
    return parsed.region or ("global" if parsed.secure else "local")
