"""The embedded server as a server: start, stop, restart, faults over gRPC, the endpoint for drills, the command."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from typing import Any

import grpc
import pytest
from google.api_core import exceptions
from google.cloud import pubsub_v1

from prober.cli import main
from prober.cli.process import ExitCode
from prober.embedded.catalogue import CATALOGUE, describe_faults
from prober.embedded.faults import parse_fault
from tests.integration.embedded import WAIT_S, Clients, Collected, running

IMPATIENT_S = 1.0  # less than a fault makes a call take

SERVE = """
import asyncio
from prober.embedded.faults import parse_fault
from prober.embedded.server import serve_embedded
asyncio.run(serve_embedded(0, [parse_fault("jitter:p=0.5")], 0, say=lambda line: print(line, flush=True)))
"""


def http(method: str, url: str, document: object = None) -> tuple[int, Any]:
    """Status and JSON body of a request."""
    body = None if document is None else json.dumps(document).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=WAIT_S) as response:
            text = response.read()
            return response.status, json.loads(text) if text else None
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


def test_ids_do_not_repeat_after_a_restart() -> None:
    ids: list[str] = []
    for _ in range(2):
        with running() as server:
            clients = Clients(server.address)
            clients.create()
            ids += clients.publish("1", "2", "3")
            clients.close()
    assert ids == sorted(set(ids))


def test_a_pattern_that_nothing_matched_is_reported_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    with running(map(parse_fault, ("drop:key=nothing-*", "drop:p=0.5,key=*", "jitter"))) as server:
        clients = Clients(server.address)
        clients.create()
        clients.publish("1")
        clients.close()
    assert [record.message for record in caplog.records if record.name == "prober.embedded.server"] == [
        "the fault drop:key=nothing-* was never injected: nothing in its time matched 'nothing-*'"
    ]


def test_a_port_that_is_taken() -> None:
    with running() as server:
        port = server.server.address.rpartition(":")[2]
        code = f"import asyncio; from prober.embedded.server import serve_embedded; asyncio.run(serve_embedded({port}))"
        outcome = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=WAIT_S, check=False)
    assert f"OSError: cannot listen on 127.0.0.1:{port}" in outcome.stderr


@pytest.mark.skipif(not socket.has_ipv6, reason="this machine has no IPv6")
def test_it_listens_on_ipv6() -> None:
    with running(host="::1") as server:
        assert server.address.startswith("[::1]:")
        clients = Clients(server.address)
        clients.create()
        assert len(clients.publish("1")) == 1
        clients.close()


def test_a_host_that_is_no_address_is_one_clear_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["embedded", "--host", "nowhere"]) == ExitCode.MALFORMED
    assert capsys.readouterr().err == (
        "ordering-prober: --host must be an IPv4 or IPv6 address of this machine, such as 127.0.0.1 or ::1, not 'nowhere'\n"
    )


def test_subscribers_survive_broken_streams() -> None:
    with running([parse_fault("stream_break:p=0.3,count=5")]) as server:
        clients = Clients(server.address)
        clients.create()
        got = Collected()

        def receive(message: Any) -> None:
            got.add(int(message.data))
            message.ack()

        future = clients.subscriber.subscribe(clients.subscription, receive)
        for n in range(30):
            clients.publish(str(n))
        while len(set(got.items)) < 30:
            got.wait(len(got.items) + 1)
        future.cancel()
        future.result(WAIT_S)
        clients.close()
        assert server.server.faults.ledger.counts["stream_break"] > 0
    first = list(dict.fromkeys(got.items))
    assert first == list(range(30))


def test_a_lost_reply_makes_the_client_publish_twice() -> None:
    with running([parse_fault("reply_lost:count=1")]) as server:
        clients = Clients(server.address)
        clients.create()
        clients.publish("1")
        assert clients.texts() == ["1", "1"]
        clients.close()


def test_a_lost_acknowledgement_brings_the_message_again() -> None:
    with running([parse_fault("ack_lost:count=1")]) as server:
        clients = Clients(server.address)
        clients.create(ack_deadline_seconds=10)
        clients.publish("1")
        (first,) = clients.pull()
        clients.ack(first)
        clients.subscriber.modify_ack_deadline(
            request={"subscription": clients.subscription, "ack_ids": [first.ack_id], "ack_deadline_seconds": 1}
        )
        assert clients.texts() == ["1"]
        clients.close()


def test_calls_that_are_answered_late_have_their_effect_at_once_and_those_that_fail_have_none() -> None:
    with running(
        [parse_fault("admin_error:count=1"), parse_fault("admin_slow:count=1"), parse_fault("publish_slow:count=1")]
    ) as server:
        clients = Clients(server.address)
        create = clients.publisher.transport.create_topic
        topic = pubsub_v1.types.Topic(name=clients.topic)
        with pytest.raises(grpc.RpcError) as failed:
            create(topic, timeout=WAIT_S)
        assert failed.value.code() is grpc.StatusCode.UNAVAILABLE
        with pytest.raises(grpc.RpcError) as late:
            create(topic, timeout=IMPATIENT_S)
        assert late.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        clients.create_subscription()
        request = pubsub_v1.types.PublishRequest(topic=clients.topic, messages=[{"data": b"x", "ordering_key": "k"}])
        with pytest.raises(grpc.RpcError) as late:
            clients.publisher.transport.publish(request, timeout=IMPATIENT_S)
        assert late.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        assert clients.texts() == ["x"]
        assert server.server.faults.ledger.counts == {"admin_error": 1, "admin_slow": 1, "publish_slow": 1}
        clients.close()


def test_drills() -> None:
    with running(admin=True) as server:
        url = f"http://{server.server.admin_address}"
        assert http("GET", f"{url}/healthz") == (200, {"status": "ok"})
        armed = {"number": 1, "fault": "publish_unavailable:count=2", "active": True, "injected": 0}
        assert http("POST", f"{url}/faults", {"fault": "publish_unavailable:count=2"}) == (201, armed)
        clients = Clients(server.address)
        clients.create()
        with pytest.raises(exceptions.ServiceUnavailable, match="The service was unable to fulfill your request"):
            clients.publish_request({"data": b"x", "ordering_key": "k"})
        assert clients.publish("y")  # the client tries until the fault is used up
        assert http("GET", f"{url}/faults") == (200, {"items": [{**armed, "active": False, "injected": 2}]})
        status, ledger = http("GET", f"{url}/ledger?limit=1")
        assert (status, ledger["counts"], len(ledger["items"])) == (200, {"publish_unavailable": 2}, 1)
        assert (ledger["items"][0]["fault"], ledger["items"][0]["key"]) == ("publish_unavailable", "k")
        assert http("POST", f"{url}/faults", {"fault": "stall_key:key=k"})[0] == 201
        clients.publish("z")
        assert [one.message.data for one in clients.pull_now()] == []
        assert http("DELETE", f"{url}/faults/2") == (204, None)
        assert clients.texts() == ["y", "z"]
        assert http("DELETE", f"{url}/faults/2")[0] == 404
        assert http("DELETE", f"{url}/faults") == (204, None)
        assert http("GET", f"{url}/faults") == (200, {"items": []})
        clients.close()


@pytest.mark.parametrize("document", [{"fault": "dorp"}, {"fault": 3}, {}, [], "x"])
def test_a_drill_that_cannot_be(document: object) -> None:
    with running(admin=True) as server:
        status, problem = http("POST", f"http://{server.server.admin_address}/faults", document)
        assert status == 400
        assert problem["status"] == 400
        assert problem["detail"]


def test_the_catalogue_is_shown() -> None:
    with running(admin=True) as server:
        status, catalogue = http("GET", f"http://{server.server.admin_address}/catalogue")
    assert (status, [item["name"] for item in catalogue["items"]]) == (200, list(CATALOGUE))
    text = describe_faults()
    for description in CATALOGUE.values():
        assert description.name in text
        assert description.sentence in text


def test_the_command_serves_until_it_is_asked_to_stop() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", SERVE], stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        address = process.stdout.readline().split()[2].rstrip(":")
        drills = process.stdout.readline().split()[-1]
        clients = Clients(address)
        clients.create()
        clients.publish("1")
        assert clients.texts() == ["1"]
        assert http("GET", drills)[1]["items"][0]["fault"] == "jitter:p=0.5"
        clients.close()
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT_S) == 0
