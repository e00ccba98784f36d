"""What is secret stays so: planted passwords and tokens appear in no log, metric, page, answer or error."""

from __future__ import annotations

import json
import os
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from tests.forking import called
from tests.integration.programs import eventually, get, series, service, status

TOKEN = "planted-token-5f1c"
PASSWORD = "planted-password-77ab"
SECRETS = {
    "ORDERING_PROBER_TARGETS__0__PROBES": '["ordering"]',
    "ORDERING_PROBER_API__TOKEN": TOKEN,
    "ORDERING_PROBER_STATUS__URL": f"postgresql://prober:{PASSWORD}@127.0.0.1:1/status",
    "ORDERING_PROBER_TELEMETRY__LOG_LEVEL": "debug",
}


def body(url: str, headers: dict[str, str] | None = None, data: bytes | None = None) -> str:
    """What is answered, headers and errors included."""
    try:
        with urlopen(Request(url, data=data, headers=headers or {}), timeout=30) as answer:
            return f"{answer.headers}{answer.read().decode()}"
    except HTTPError as error:
        with error:
            return f"{error.headers}{error.read().decode()}"


def assert_kept(text: str) -> None:
    assert TOKEN not in text
    assert PASSWORD not in text


def test_no_page_metric_answer_or_log_has_a_secret() -> None:
    with service(**SECRETS) as (running, url):
        eventually(lambda: sum(series(url, "probe_runs_total")) >= 1)
        eventually(lambda: any("status store" in trouble for trouble in status(url)["troubles"]))
        document = json.loads(get(f"{url}/openapi.json"))
        asked = [path for path, operations in document["paths"].items() if "get" in operations and "{" not in path]
        assert len(asked) > 8
        for path in [*asked, "/", "/docs", "/openapi.json", "/findings", "/api/v1/runs/nothing", "/api/v1/nonsense"]:
            assert_kept(body(url + path))
        for token in ("wrong", TOKEN):
            order = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
            assert_kept(body(f"{url}/api/v1/probes/nonsense/runs", order, b"{}"))
        assert running.stop() == 0
        assert running.lines
        assert_kept("\n".join(running.lines))


@pytest.mark.parametrize("arguments", [("config", "show"), ("slos",)])
def test_no_command_prints_one(arguments: tuple[str, ...]) -> None:
    done = called(*arguments, environ=os.environ | SECRETS)
    assert done.returncode == 0
    assert_kept(done.stdout + done.stderr)


@pytest.mark.parametrize(
    "wrong",
    [
        {"ORDERING_PROBER_STATUS__URL": f"mysql://prober:{PASSWORD}@host/status"},
        {"ORDERING_PROBER_STATUS__URL": f"postgresql://prober:{PASSWORD}@ho st:abc/status"},
        {"ORDERING_PROBER_API__TOKEN": f"{TOKEN}\n"},
        {"ORDERING_PROBER_API__PORT": "nonsense", "ORDERING_PROBER_API__TOKEN": TOKEN},
    ],
)
def test_no_error_about_a_configuration_has_one(wrong: dict[str, str]) -> None:
    done = called("config", "show", environ=os.environ | SECRETS | wrong)
    assert_kept(done.stdout + done.stderr)
