"""`python -m tests.dashboards.pictures`: pictures of the dashboards, drawn by Grafana's own components from a real Prometheus.

It starts the service with faults and a Prometheus, or asks the one that `--prometheus` names. Needs npm once (`--npm FOLDER` keeps what it
installs, 400 MB, outside of the tree), Prometheus, Java and Chromium. Nothing of it is part of the tests.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from prober.clock import monotonic_s, wall_s
from tests.commands import ROOT
from tests.dashboards.committed import NAMES, Json, breakdowns, dashboard, interpolated, panels
from tests.dashboards.live import Prometheus, history_of, reports_of, service_and_prometheus
from tests.integration.programs import eventually

HERE = Path(__file__).parent
SOURCES = ("draw.jsx", "frames.js", "shapes.jsx")
WIDTH = 1280
STEPS = 120
REPORTED_S = 180.0  # the service looks for reports once a minute
RATE_WINDOW = "1m"
LOADERS = [f"--loader:.{kind}=dataurl" for kind in ("svg", "ttf", "woff", "woff2")]


def main() -> None:
    """Draws every dashboard."""
    chosen = _arguments()
    npm = Path(chosen.npm)
    _bundle(npm)
    with _prometheus(chosen.prometheus, chosen.minutes) as prometheus, sync_playwright() as play:
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name in chosen.names or NAMES:
            _draw(browser, npm, name, _answered(dashboard(name), prometheus, 60.0 * chosen.minutes), chosen.directory)
        browser.close()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.dashboards.pictures", description="Draw the dashboards.")
    parser.add_argument("names", nargs="*", help=f"which: {', '.join(NAMES)}; by default all")
    parser.add_argument("--prometheus", help="address of a Prometheus that has data; by default one is started")
    parser.add_argument("--minutes", type=float, default=20.0, help="how much time the pictures show")
    parser.add_argument("--npm", default=str(Path(tempfile.gettempdir()) / "dashboard-pictures"), help="where npm installs to")
    parser.add_argument("--directory", type=Path, default=ROOT / "docs" / "images", help="where the pictures go")
    return parser.parse_args()


@contextmanager
def _prometheus(url: str | None, minutes: float) -> Iterator[Prometheus]:
    if url:
        yield Prometheus(url)
        return
    with tempfile.TemporaryDirectory() as folder, service_and_prometheus(Path(folder)) as prometheus:
        _wait(60.0 * minutes - REPORTED_S)
        _nightly(Path(folder))
        _wait(REPORTED_S)
        yield prometheus


def _wait(duration_s: float) -> None:
    until = monotonic_s() + max(0.0, duration_s)
    eventually(lambda: monotonic_s() >= until, duration_s + 10.0)


def _nightly(folder: Path) -> None:
    """The nightly jobs on what the service has recorded so far. That they find something is no failure."""
    today = datetime.fromtimestamp(wall_s(), UTC).date()
    places = ["--history", str(history_of(folder)), "--reports", str(reports_of(folder)), "--date", today.isoformat()]
    subprocess.run([sys.executable, "-m", "spark_jobs", "nightly", *places], cwd=ROOT, check=False)


def _bundle(npm: Path) -> None:
    """Installs Grafana's components, unless they are there, and makes one script of them and ours."""
    npm.mkdir(parents=True, exist_ok=True)
    for source in (*SOURCES, "package.json", "page.html"):
        shutil.copy(HERE / source, npm)
    if not (npm / "node_modules").exists():
        subprocess.run(["npm", "install", "--legacy-peer-deps", "--no-audit", "--no-fund"], cwd=npm, check=True)
        subprocess.run(["node", "node_modules/esbuild/install.js"], cwd=npm, check=True)
    bundler = ["node_modules/.bin/esbuild", "draw.jsx", "--bundle", "--minify", "--outfile=draw.js", "--define:global=window"]
    subprocess.run([*bundler, '--define:process.env.NODE_ENV="production"', "--log-level=error", *LOADERS], cwd=npm, check=True)


def _answered(board: Json, prometheus: Prometheus, period_s: float) -> Json:
    """A dashboard and what Prometheus answers to it, everything chosen, broken down as at first."""
    end = wall_s() // 15 * 15
    start, step = end - period_s, max(1, round(period_s / STEPS))
    by, windows = (breakdowns(board) or [""])[0], {"__rate_interval": RATE_WINDOW, "__range": f"{period_s:g}s"}
    answers: dict[int, list[Json]] = {panel["id"]: [] for panel in panels(board)}
    for panel in panels(board):
        for target in panel.get("targets", []):
            expr = interpolated(target["expr"], by, windows)
            result = prometheus.instant(expr, end) if target.get("instant") else prometheus.over(expr, start, end, step)
            answers[panel["id"]].append({"refId": target["refId"], "legend": target["legendFormat"], "result": result})
    return {"board": board, "answers": answers, "start": start, "end": end, "step": step}


def _draw(browser: Browser, npm: Path, name: str, data: Json, directory: Path) -> None:
    (npm / "data.js").write_text(f"window.DASHBOARD = {json.dumps(data)};", encoding="utf-8")
    page = browser.new_page(viewport={"width": WIDTH, "height": 1000})
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto((npm / "page.html").as_uri())
    page.wait_for_selector("body[data-drawn]")
    if complaints:
        raise SystemExit(f"{name}: {complaints[0]}")
    page.locator("main").screenshot(path=directory / f"dashboard-{name}.png")
    page.close()


if __name__ == "__main__":
    main()
