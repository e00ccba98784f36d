"""What is drawn across all panels: deployments, drills, and maintenance."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from grafana_foundation_sdk.builders import dashboard as builders

from dashboards.promql import increase, select, total
from dashboards.variables import DATASOURCE
from prober.sinks.metrics import families

STEP: Final = "60s"
WINDOW: Final = "2m"


def everywhere() -> Iterable[builders.AnnotationQuery]:
    """The annotations of every dashboard."""
    now, before = (total(f"{select(families.BUILD)}{offset}", "version", "count") for offset in ("", " offset 5m"))
    yield _annotation("Deployments", f"{now} unless on (version) {before}", "blue", "Deployed", "{{version}}")
    drills = total(increase(select(families.DRILL_RUNS), WINDOW), "drill, verdict")
    yield _annotation("Drills", f"{drills} > 0", "purple", "Drill ended", "{{drill}}: {{verdict}}")
    maintained = total(select(families.UNDER_MAINTENANCE), "target", "max")
    yield _annotation("Maintenance", f"{maintained} > 0", "yellow", "Maintenance", "{{target}}")


def _annotation(name: str, expr: str, colour: str, title: str, text: str) -> builders.AnnotationQuery:
    return (
        builders.AnnotationQuery()
        .name(name)
        .datasource(DATASOURCE)
        .enable(True)
        .icon_color(colour)
        .expr(expr)
        .step(STEP)
        .title_format(title)
        .text_format(text)
    )
