"""The command `status`: its summary of an answer of the API, its exit code, and how it reaches the service."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from prober.cli import main
from prober.cli.process import ExitCode
from prober.cli.status import Chosen, Subject, address_of, condition, path_of, series, summary
from prober.config.models import Api
from prober.core.verdict import Verdict
from prober.errors import ConfigError
from prober.sinks.live.condition import Condition
from tests.unit.api.asking import EUROPE, STUCK, US, StubView, ask, end, view


def asked(service: StubView) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The two answers that the summary reads."""
    return ask(service, "/api/v1/status").json(), ask(service, "/api/v1/incidents?open=true").json()["items"]


@pytest.fixture
def broken() -> StubView:
    """One target with an incident, and one whose run was UNKNOWN."""
    service = view(EUROPE, US)
    end(service, EUROPE, Verdict.FAIL, STUCK)
    end(service, US, Verdict.UNKNOWN, reason="PERMISSION_DENIED: pull")
    return service


class TestSummary:
    def test_everything(self, broken: StubView) -> None:
        broken.troubles = ("the history cannot be written: disk full",)
        answer, incidents = asked(broken)
        lines = list(summary(answer, incidents, Chosen()))
        assert lines[0].startswith("FAIL at ")
        assert lines[1] == "open incidents: 1"
        assert lines[2].startswith("  FAIL: Confirmed messages are not delivered on europe since ")
        assert lines[2].endswith("1 finding in 1 of 1 verified run, by ordering (STUCK); page /incidents/run-1-loss")
        assert "not passing, of 2 probe instances: 2" in lines
        assert any(line.startswith("  redelivery on us (library): UNKNOWN") and "PERMISSION_DENIED" in line for line in lines)
        assert "  the history cannot be written: disk full" in lines

    def test_a_healthy_service(self) -> None:
        service = view(EUROPE)
        end(service, EUROPE, Verdict.PASS)
        answer, incidents = asked(service)
        lines = list(summary(answer, incidents, Chosen()))
        assert lines[0].startswith("PASS at ")
        assert {"open incidents: none", "not passing, of 1 probe instances: none", "problems of the prober: none"} <= set(lines)

    def test_one_target_has_its_own_verdict(self, broken: StubView) -> None:
        answer, incidents = asked(broken)
        assert condition(answer, Chosen(target="us")) is Condition.UNKNOWN
        assert condition(answer, Chosen(target="europe")) is Condition.FAIL
        assert not any("europe" in line for line in summary(answer, incidents, Chosen(target="us")))

    def test_incidents_are_chosen_by_what_they_affect(self, broken: StubView) -> None:
        _, (incident,) = asked(broken)
        assert Chosen(target="europe", probe="ordering", kind="STUCK").concerns(incident)
        for other in (Chosen(target="us"), Chosen(probe="pull"), Chosen(kind="GHOST")):
            assert not other.concerns(incident)

    def test_the_status_before_the_first_run_and_in_an_outage_is_that_of_the_page(self) -> None:
        service = view(EUROPE)
        answer, incidents = asked(service)
        assert condition(answer, Chosen(target="europe")) is Condition.STARTING
        assert any("): STARTING; last PASS none known;" in line for line in summary(answer, incidents, Chosen()))
        end(service, EUROPE, Verdict.UNKNOWN, unreachable=True)
        answer, incidents = asked(service)
        assert condition(answer, Chosen(target="europe")) is condition(answer, Chosen()) is Condition.OUTAGE
        lines = list(summary(answer, incidents, Chosen()))
        (outage,) = (line for line in lines if "OUTAGE: europe cannot be reached since" in line)
        assert "publishes not sent: 0, 1 run could not reach the target, by ordering" in outage
        assert any("): OUTAGE; last PASS" in line for line in lines)

    def test_an_unknown_name_is_no_health(self, broken: StubView) -> None:
        answer, incidents = asked(broken)
        assert condition(answer, Chosen(target="asia")) is Condition.UNKNOWN
        assert next(summary(answer, incidents, Chosen(target="asia"))) == (
            "no probe instance matches; the service probes ordering on europe, redelivery on us"
        )


def test_paths_of_subjects() -> None:
    chosen = Chosen(target="a b", kind="STUCK", slo="order/x")
    assert path_of(Subject.FINDINGS, chosen) == "/api/v1/findings?kind=STUCK&target=a+b&limit=5"
    assert path_of(Subject.SLOS, chosen) == "/api/v1/slos/order%2Fx"
    assert path_of(Subject.HOT_KEYS, Chosen()) == "/api/v1/hot-keys"


def test_series_of_a_target() -> None:
    page = '# HELP a_x\na_x{target="us"} 1\na_x{target="eu"} 2\na_x{component="c"} 3\nb 4\n'
    assert list(series(page, Chosen(metric="a_", target="us"))) == ['a_x{target="us"} 1', 'a_x{component="c"} 3']


def test_addresses() -> None:
    assert address_of(Api()) == "http://127.0.0.1:8080"
    assert address_of(Api(host="0.0.0.0", port=9000)) == "http://127.0.0.1:9000"
    assert address_of(Api(host="::")) == "http://[::1]:8080"
    with pytest.raises(ConfigError, match="give --url"):
        address_of(Api(port=0))


@contextmanager
def answering(status: int, body: str) -> Iterator[tuple[str, list[str]]]:
    """A server with one answer: its address, and the tokens that requests presented."""
    tokens: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            tokens.append(self.headers.get("Authorization", ""))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format: str, *args: object) -> None:
            """Prints nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", tokens
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_it_presents_the_token_and_uses_no_proxy(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    token = "t" * 32
    monkeypatch.setenv("ORDERING_PROBER_API__TOKEN", token)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with answering(200, '{"items": []}') as (url, tokens):
        assert main(["status", "comparisons", "--url", f"{url}/"]) == 0
    assert tokens == [f"Bearer {token}"]
    assert capsys.readouterr().out == '{\n  "items": []\n}\n'


@pytest.mark.parametrize(
    ("status", "body", "code", "words"),
    [
        (404, '{"detail": "no objective is called x"}', 2, ": no objective is called x"),
        (404, "none", 2, "/api/v1/slos/x: 404 Not Found"),
        (503, "down", 3, "503 Service Unavailable"),
        (200, "<html>", 2, "is not the API of this program"),
    ],
)
def test_an_error_is_one_line(status: int, body: str, code: int, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with answering(status, body) as (url, _):
        assert main(["status", "slos", "--slo", "x", "--url", url]) == code
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line


def test_a_service_that_is_down(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--url", "http://127.0.0.1:9"]) == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert line == (
        "ordering-prober: nothing answers at http://127.0.0.1:9; is the service running? Otherwise give --config FILE or --url URL"
    )


@pytest.mark.parametrize("url", ["localhost", "foo://x", "http://", "http://x:port", "http://a b"])
def test_an_address_that_is_none(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--url", url]) == 2
    assert capsys.readouterr().err == f"ordering-prober: --url {url}: not an address; write one like http://localhost:8080\n"


@pytest.mark.parametrize("subject", ["hot-keys", "reports"])
def test_without_reports_a_subject_has_no_answer(subject: str, capsys: pytest.CaptureFixture[str]) -> None:
    with answering(404, '{"detail": "history.reports is not configured"}') as (url, _):
        assert main(["status", subject, "--url", url]) == ExitCode.UNKNOWN
    assert capsys.readouterr().err == f"ordering-prober: {url}: history.reports is not configured\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--target", "europ"], "no target is called europ; did you mean europe?"),
        (["--probe", "orderng"], "no probe is called orderng; did you mean ordering?"),
        (["findings", "--target", "asia"], "no target is called asia; there is europe"),
        (["findings", "--probe", "orderng"], "no probe is called orderng; did you mean ordering?"),
        (["hot-keys", "--target", "asia"], "no target is called asia; there is europe"),
        (["metrics", "--target", "asia"], "no target is called asia; there is europe"),
        (["findings", "--kind", "STUK"], "no kind of finding is called STUK; did you mean STUCK?"),
        (["--kind", "stuck"], "no kind of finding is called stuck; did you mean STUCK?"),
    ],
)
def test_an_unknown_name_is_refused(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    instances = [{"target": "europe", "probe": "ordering"}]
    with answering(200, json.dumps({"items": [], "probe_instances": instances})) as (url, _):
        assert main(["status", *arguments, "--url", url]) == ExitCode.MALFORMED
    assert capsys.readouterr().err == f"ordering-prober: {message}\n"


def test_findings_of_a_target_that_is_no_longer_probed_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with answering(200, json.dumps({"items": [{"target": "old"}], "probe_instances": []})) as (url, _):
        assert main(["status", "findings", "--target", "old", "--url", url]) == ExitCode.PASS
    assert json.loads(capsys.readouterr().out)["items"] == [{"target": "old"}]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("uptime", "--target", "x"), "`status uptime` takes no option that selects: leave --target out"),
        (("slos", "--kind", "STUCK"), "`status slos` takes only --slo: leave --kind out"),
        (("--slo", "x"), "`status` takes only --target, --probe, --kind: leave --slo out"),
    ],
)
def test_an_option_without_effect_is_refused(arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", *arguments]) == ExitCode.MALFORMED
    assert said in capsys.readouterr().err
