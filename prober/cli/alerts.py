"""The command `ordering-prober alerts`: writes the rule files, or says that they are not what the objectives ask for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Final

import typer

from prober.alerting.files import rule_files
from prober.alerting.promql import prom_duration
from prober.alerting.rules import DASHBOARDS, NEWS_S, PAGES, RUNBOOKS, SCRAPE_JOB, Options
from prober.config.loading import load
from prober.config.values import duration_s
from prober.errors import ConfigError

NEWS: Final = prom_duration(NEWS_S)


def alerts(
    config: Annotated[
        str | None, typer.Option(metavar="FILE", help="The configuration; without it the default objectives.")
    ] = None,
    directory: Annotated[Path, typer.Option(help="Where the rule files are.")] = Path("alerts"),
    check: Annotated[bool, typer.Option("--check", help="Write nothing; exit code 2 if a file is not up to date.")] = False,
    runbooks: Annotated[str, typer.Option(metavar="URL", help="Where people find the runbooks.")] = RUNBOOKS,
    dashboards: Annotated[str, typer.Option(metavar="URL", help="Where Grafana is.")] = DASHBOARDS,
    pages: Annotated[str, typer.Option(metavar="URL", help="Where the prober's status page is.")] = PAGES,
    scrape_job: Annotated[str, typer.Option(metavar="NAME", help="What the scrape of the prober is called.")] = SCRAPE_JOB,
    news: Annotated[str, typer.Option(metavar="DURATION", help="How long a finding keeps its alert firing.")] = NEWS,
) -> None:
    """Write Prometheus rules for the objectives of a configuration: recordings, burn rates, alerts."""
    options = Options(runbooks.rstrip("/"), dashboards.rstrip("/"), pages.rstrip("/"), scrape_job, duration_s(news))
    texts = rule_files(load(config, os.environ).objectives, options)
    for name, text in texts.items():
        if check:
            _compare(directory / name, text)
        else:
            _write(directory / name, text)
    print(f"{directory}: {'up to date' if check else 'written'}: {', '.join(texts)}")


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror or error}") from error


def _compare(path: Path, text: str) -> None:
    try:
        there = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from error
    if there != text:
        raise ConfigError(f"{path}: is not what the configuration asks for; write it again without --check")
