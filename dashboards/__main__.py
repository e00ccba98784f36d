"""`python -m dashboards`: write the dashboards, or report the files that are out of date."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from dashboards.board import LinkTargets
from dashboards.boards import files
from prober.config.loading import load
from prober.errors import ConfigError


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or check the files. Return 0 on success, 1 if `--check` found a file out of date, 2 for an invalid configuration."""
    chosen = _parser().parse_args(arguments)
    try:
        objectives = load(chosen.config, os.environ if chosen.config else {}).objectives
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    wanted = files(objectives, LinkTargets(chosen.runbooks, chosen.status_page))
    if chosen.check:
        return _report([name for name, text in wanted.items() if _content(chosen.directory / name) != text])
    chosen.directory.mkdir(parents=True, exist_ok=True)
    for name, text in wanted.items():
        (chosen.directory / name).write_text(text, encoding="utf-8")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m dashboards", description="Write the Grafana dashboards.")
    parser.add_argument("--config", type=Path, help="configuration whose objectives count; by default the default objectives")
    parser.add_argument("--directory", type=Path, default=Path(__file__).parent, help="where to write to")
    parser.add_argument(
        "--runbooks", type=_address, help="address of the folder with the runbooks; without it Grafana asks at the import"
    )
    parser.add_argument(
        "--status-page", type=_address, help="address of the prober's status page; without it Grafana asks at the import"
    )
    parser.add_argument("--check", action="store_true", help="write nothing, say which files are out of date")
    return parser


def _address(text: str) -> str:
    return text.rstrip("/")


def _report(outdated: Sequence[str]) -> int:
    if outdated:
        print(f"out of date: {', '.join(sorted(outdated))}; run `python -m dashboards`", file=sys.stderr)
    return int(bool(outdated))


def _content(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None


if __name__ == "__main__":
    sys.exit(main())
