"""Settings of an installation for its rules: the link targets of alerts, and the series read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

DASHBOARDS: Final = "http://localhost:3000"
PAGES: Final = "http://localhost:8080"
SCRAPE_JOB: Final = "ordering-keys-prober"
NEWS_S: Final = 3600.0


@dataclass(frozen=True, slots=True)
class Options:
    """Settings of the rules that belong to an installation and not to the objectives: the targets of links, and the series read.

    runbooks    base URL of the runbooks; an alert's page is `BASE/ALERT.md?LABEL=VALUE&...`, with the labels of the alert. Empty: those
                that the service has, below `pages`.
    dashboards  base URL of Grafana.
    pages       base URL of the prober's status page.
    scrape_job  the label `job` that Prometheus gives to the prober's series.
    news_s      how long a finding keeps its alert firing: seconds, more than two scrapes. A finding that is made again within
                this time is the same page.
    """

    runbooks: str = ""
    dashboards: str = DASHBOARDS
    pages: str = PAGES
    scrape_job: str = SCRAPE_JOB
    news_s: float = NEWS_S

    @property
    def runbooks_url(self) -> str:
        """Base URL of the runbooks."""
        return self.runbooks or f"{self.pages}/runbooks"
