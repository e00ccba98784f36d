"""What of the generated rules belongs to an installation and not to the objectives: addresses, and what the scrape is called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

RUNBOOKS: Final = "docs/runbooks"
"""Where the runbooks are in this repository; an installation names the address under which people find them."""
DASHBOARDS: Final = "http://localhost:3000"
PAGES: Final = "http://localhost:8080"
SCRAPE_JOB: Final = "ordering-keys-prober"
NEWS_S: Final = 600.0


@dataclass(frozen=True, slots=True)
class Options:
    """Where alerts point to, and what they look at.

    runbooks    base URL of the runbooks; an alert's page is `BASE/ALERT.md`.
    dashboards  base URL of Grafana.
    pages       base URL of the prober's status page.
    scrape_job  the label `job` that Prometheus gives to the prober's series.
    news_s      how long a finding keeps its alert firing: seconds, more than two scrapes.
    """

    runbooks: str = RUNBOOKS
    dashboards: str = DASHBOARDS
    pages: str = PAGES
    scrape_job: str = SCRAPE_JOB
    news_s: float = NEWS_S
