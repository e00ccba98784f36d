"""The observers of the whole: each notices what is not healthy, and nothing else."""

from __future__ import annotations

from typing import Any

import grpc
import pytest

from tests.integration.chain import Message, Receiver
from tests.integration.embedded import Clients, running
from tests.whole.loud import Story, complaints_about, first_box
from tests.whole.proxy import proxy_to
from tests.whole.quiet import Observations, bad_objectives, messages_sent, pending_between_runs, unhealthy_runs
from tests.whole.scenarios import BY_NAME
from tests.whole.world import library_streams, method, some

SCRAPED = 'pubsub_prober_num_undelivered_messages{subscription="okp-host-embedded-pull-wire",target="embedded"} 3.0'


def status(running_since: str | None, last_run: dict[str, str] | None) -> dict[str, Any]:
    instance = {"target": "embedded", "probe": "pull", "vantage": "wire", "part": "", "running_since": running_since}
    return {"probe_instances": [{**instance, "last_run": last_run}]}


IDLE, BUSY = status(None, {"run_id": "one"}), status("2026-01-01T00:00:00Z", {"run_id": "one"})


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (IDLE, IDLE, ["num_undelivered_messages is above 0 on okp-host-embedded-pull-wire between runs"]),
        (BUSY, IDLE, []),
        (IDLE, BUSY, []),
        (status(None, None), IDLE, []),
        (IDLE, status(None, {"run_id": "two"}), []),
    ],
)
def test_pending_messages_count_only_between_runs(before: dict[str, Any], after: dict[str, Any], expected: list[str]) -> None:
    assert list(pending_between_runs(before, SCRAPED, after)) == expected


def test_an_empty_backlog_is_quiet() -> None:
    assert list(pending_between_runs(IDLE, SCRAPED.replace("3.0", "0.0"), IDLE)) == []


def test_a_run_that_did_not_pass_is_noticed() -> None:
    runs = [
        {"probe": "pull", "vantage": "wire", "verdict": verdict, "reason": "no answer" * (verdict != "PASS")}
        for verdict in ("PASS", "UNKNOWN")
    ]
    assert list(unhealthy_runs(runs)) == ["pull (wire) ended UNKNOWN: no answer"]


def test_a_bad_objective_is_noticed() -> None:
    slo = {"name": "order", "target": "t", "good": 9, "bad": 1}
    assert list(bad_objectives([slo, {**slo, "bad": 0}])) == ["objective order on t: 1 of 10 are bad"]


def test_the_watchdog_disturbs_nobody() -> None:
    alert = {"status": "firing", "annotations": {"summary": "broken"}}
    messages = [Message(0.0, {"receiver": name, "alerts": [alert]}) for name in ("dead-mans-switch", "prober-tickets")]
    assert list(messages_sent(Receiver(received=messages))) == ["prober-tickets was notified: firing broken"]


def test_observations_are_counted() -> None:
    observations = Observations()
    observations.note(["a"])
    observations.note(["a"])
    assert observations.lines() == ["a (in 2 of 2 looks)"]


def test_the_first_box_is_the_first_section() -> None:
    page = "<nav>Menu</nav><section><h1>OUTAGE: <b>t</b></h1><p>since 14:20</p></section><section>Probes</section>"
    assert first_box(page) == "OUTAGE: t since 14:20"


def test_a_silent_fault_is_a_complaint() -> None:
    scenario = BY_NAME["order"]
    assert len(list(complaints_about(Story("order", 1.0, box="PASS"), scenario, Receiver()))) == 3
    heard = Story("order", 1.0, heard_after_s=20.0, box="FAIL: messages out of order", over_after_s=60.0)
    assert list(complaints_about(heard, scenario, Receiver())) == []


def test_the_proxy_forwards_and_refuses() -> None:
    with running() as server, proxy_to(server.server.address) as proxy:
        clients = Clients(proxy.address)
        clients.create()
        assert len(clients.publish("a", "b")) == 2
        assert clients.texts() == ["a", "b"]
        proxy.refuses = method("Pull", grpc.StatusCode.PERMISSION_DENIED)
        with pytest.raises(Exception, match="refused by the proxy"):
            clients.pull()
        assert len(clients.publish("c")) == 1
        clients.close()


def test_refusals_choose_calls() -> None:
    assert library_streams("StreamingPull", {"x-goog-api-client": "gl-python"}) is grpc.StatusCode.PERMISSION_DENIED
    assert library_streams("StreamingPull", {}) is None
    assert library_streams("Publish", {"x-goog-api-client": "gl-python"}) is None
    refuses = some(0.3, grpc.StatusCode.UNAVAILABLE)
    refused = sum(refuses("Publish", {}) is not None for _ in range(1000))
    assert 250 < refused < 350
