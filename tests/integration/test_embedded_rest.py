"""REST of the embedded server: names and enums in URLs, waiting pulls, the form of errors, limits and faults."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import socket
import urllib.error
import urllib.request
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import pytest

from prober.embedded.faults import parse_fault
from prober.embedded.rest import BODY_BYTES_MAX
from prober.embedded.server import EmbeddedServer
from tests.integration.embedded import WAIT_S, Running, running

IMPATIENT_S: Final = 0.5


@pytest.fixture
def server() -> Iterator[Running]:
    with running(rest=True) as server:
        yield server


def http(
    server: Running, call: str, document: object = None, *, body: bytes | None = None, encoding: str = "identity"
) -> tuple[int, Any]:
    """Status and JSON of `VERB PATH`."""
    verb, _, path = call.partition(" ")
    sent = json.dumps(document).encode() if document is not None else body
    request = urllib.request.Request(
        f"http://{server.server.rest_address}{path}", sent, {"Content-Encoding": encoding}, method=verb
    )
    try:
        with urllib.request.urlopen(request, timeout=WAIT_S) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


PATH_T, PATH_S = "/v1/projects/p/topics/orders", "/v1/projects/p/subscriptions/orders"


def test_names_in_the_query_and_in_the_body(server: Running) -> None:
    for number in range(3):
        assert http(server, f"PUT /v1/projects/p/topics/topic{number}", {})[0] == 200
    status, page = http(server, "GET /v1/projects/p/topics?pageSize=2&alt=json&key=none&$alt=json;enum-encoding=int")
    assert (status, [topic["state"] for topic in page["topics"]]) == (200, [1, 1])
    status, rest = http(server, f"GET /v1/projects/p/topics?page_size=2&page_token={page['nextPageToken']}")
    assert (status, [topic["state"] for topic in rest["topics"]]) == (200, ["ACTIVE"])
    changed = {"topic": {"labels": {"a": "b"}}}
    status, topic = http(server, "PATCH /v1/projects/p/topics/topic1?updateMask=labels,messageRetentionDuration", changed)
    assert (status, topic["name"], topic["labels"]) == (200, "projects/p/topics/topic1", {"a": "b"})


def test_a_name_with_characters_that_a_url_escapes(server: Running) -> None:
    assert http(server, "PUT /v1/projects/p/topics/a+b%25c~", {})[1]["name"] == "projects/p/topics/a+b%c~"


@pytest.mark.parametrize("view", ["FULL", "2"])
def test_an_enum_in_the_query(server: Running, view: str) -> None:
    schema = {"type": "AVRO", "definition": '{"type": "record", "name": "R", "fields": []}'}
    made = http(server, "POST /v1/projects/p/schemas?schemaId=record", schema)[1]
    assert http(server, f"GET /v1/projects/p/schemas?view={view}") == (200, {"schemas": [made]})


@pytest.mark.parametrize("data", ["%%%", "aGk=x", "a b=", "A"])
def test_data_that_is_not_base64_is_refused(server: Running, data: str) -> None:
    http(server, f"PUT {PATH_T}", {})
    assert http(server, f"POST {PATH_T}:publish", {"messages": [{"data": "AP8="}, {"data": "-_8"}]})[0] == 200
    assert http(server, f"POST {PATH_T}:publish", {"messages": [{"data": "AP8="}, {"data": data}]})[0] == 400


@pytest.mark.parametrize(
    ("encoding", "body", "status"),
    [
        pytest.param("gzip", gzip.compress(b"{}"), 200, id="gzip"),
        pytest.param("deflate", zlib.compress(b"{}"), 200, id="deflate"),
        pytest.param("gzip", b"{}", 400, id="not compressed"),
        pytest.param("gzip", gzip.compress(b"{}")[:-1], 400, id="cut short"),
        pytest.param("gzip", gzip.compress(b" " * (BODY_BYTES_MAX + 1)), 400, id="too large"),
        pytest.param("br", b"{}", 400, id="unknown encoding"),
    ],
)
def test_a_compressed_body(server: Running, encoding: str, body: bytes, status: int) -> None:
    found, answer = http(server, f"PUT {PATH_T}", body=body, encoding=encoding)
    assert (found, answer.get("error", {}).get("status")) == (status, None if status == 200 else "INVALID_ARGUMENT")


def test_a_pull_that_does_not_wait_and_one_that_waits(server: Running) -> None:
    http(server, f"PUT {PATH_T}", {})
    http(server, f"PUT {PATH_S}", {"topic": "projects/p/topics/orders", "enableMessageOrdering": True})
    assert http(server, f"POST {PATH_S}:pull", {"maxMessages": 1, "returnImmediately": True}) == (200, {})
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(http, server, f"POST {PATH_S}:pull", {"max_messages": 1})
        message = {"data": "AP94", "attributes": {"a": "b"}, "orderingKey": "k"}
        status, published = http(server, f"POST {PATH_T}:publish", {"messages": [message]})
        assert status == 200
        status, pulled = waiting.result(WAIT_S)
    (received,) = pulled["receivedMessages"]
    expected = {**message, "messageId": published["messageIds"][0], "publishTime": received["message"]["publishTime"]}
    assert received["message"] == expected
    assert http(server, f"POST {PATH_S}:acknowledge", {"ackIds": [received["ackId"]]}) == (200, {})


def test_a_pull_whose_client_is_gone_takes_no_message(server: Running) -> None:
    http(server, f"PUT {PATH_T}", {})
    http(server, f"PUT {PATH_S}", {"topic": "projects/p/topics/orders"})
    with pytest.raises(TimeoutError):
        urllib.request.urlopen(f"http://{server.server.rest_address}{PATH_S}:pull", b'{"maxMessages": 1}', timeout=IMPATIENT_S)
    http(server, f"POST {PATH_T}:publish", {"messages": [{"data": "eA=="}]})
    pulled = http(server, f"POST {PATH_S}:pull", {"maxMessages": 1, "returnImmediately": True})[1]
    assert len(pulled["receivedMessages"]) == 1


@pytest.mark.parametrize(
    ("call", "document", "code", "status", "sentence"),
    [
        ("GET /", None, 404, "NOT_FOUND", "No method of Pub/Sub is GET /."),
        ("PATCH /v1/projects/p/topics", {}, 404, "NOT_FOUND", "No method of Pub/Sub is PATCH /v1/projects/p/topics."),
        (f"POST {PATH_T}:frobnicate", {}, 404, "NOT_FOUND", f"No method of Pub/Sub is POST {PATH_T}:frobnicate."),
        (f"GET {PATH_T}", None, 404, "NOT_FOUND", "Resource not found (resource=orders)."),
        (
            f"PUT {PATH_S}",
            {"topic": "projects/p/topics/orders", "messageTransforms": [{}]},
            501,
            "UNIMPLEMENTED",
            "message_transforms",
        ),
        ("PUT /v1/projects/p/topics/there", {}, 409, "ALREADY_EXISTS", "Resource already exists in the project (resource=there)."),
        ("PUT /v1/projects/p/topics/x:publish", {}, 400, "INVALID_ARGUMENT", "Invalid resource name given"),
        ("POST /v1/projects/p/topics/there:publish", {"messages": []}, 400, "INVALID_ARGUMENT", ""),
        ("POST /v1/projects/p/topics/there:publish", {"messages": [{"datum": ""}]}, 400, "INVALID_ARGUMENT", "datum"),
        ("POST /v1/projects/p/topics/there:publish", {"messages": 1}, 400, "INVALID_ARGUMENT", "Invalid JSON payload"),
        ("POST /v1/projects/p/topics/there:publish", {"messages": [1]}, 400, "INVALID_ARGUMENT", "Invalid JSON payload"),
        ("POST /v1/projects/p/topics/there:publish", {"messages": [{"data": "a"}]}, 400, "INVALID_ARGUMENT", "Invalid JSON"),
        ("POST /v1/projects/p/topics/there:publish", {"messages": [{"data": "\ud800"}]}, 400, "INVALID_ARGUMENT", "Invalid JSON"),
        ("POST /v1/projects/p/topics/there:publish", {"\ud800": 1}, 400, "INVALID_ARGUMENT", "Invalid JSON"),
        ("POST /v1/projects/p/topics/there:publish", {"messages": {"a": 1}}, 400, "INVALID_ARGUMENT", "Invalid JSON"),
        ("POST /v1/projects/p/topics/there:publish", [], 400, "INVALID_ARGUMENT", "Invalid JSON payload"),
        ("GET /v1/projects/p/topics?pageSize=many", None, 400, "INVALID_ARGUMENT", "Invalid JSON payload"),
        ("GET /v1/projects/p/topics?nothing=1", None, 400, "INVALID_ARGUMENT", "nothing"),
        ("GET /v1/projects/p/topics?project.x=1", None, 400, "INVALID_ARGUMENT", "project.x"),
        ("POST /v1/projects/p/topics/there:publish?messages.data=1", {}, 400, "INVALID_ARGUMENT", ""),
    ],
)
def test_an_error(server: Running, call: str, document: object, code: int, status: str, sentence: str) -> None:
    http(server, "PUT /v1/projects/p/topics/there", {})
    found, answer = http(server, call, document)
    error = answer["error"]
    assert (found, error["code"], error["status"]) == (code, code, status)
    assert sentence in error["message"]


@pytest.mark.parametrize(
    "body", [b"{", b"\xff", b"[" * 100_000, b"x" * (BODY_BYTES_MAX + 1)], ids=["cut", "no text", "too deep", "too large"]
)
def test_a_body_that_is_no_json_or_too_large(server: Running, body: bytes) -> None:
    status, answer = http(server, f"POST {PATH_T}:publish", body=body)
    assert (status, answer["error"]["status"]) == (400, "INVALID_ARGUMENT")


def test_a_limit_is_that_of_the_service(server: Running) -> None:
    http(server, f"PUT {PATH_T}", {})
    data = base64.b64encode(bytes(10_000_001)).decode()
    status, answer = http(server, f"POST {PATH_T}:publish", {"messages": [{"data": data}]})
    assert (status, answer["error"]["status"]) == (400, "INVALID_ARGUMENT")
    assert "Invalid JSON" not in answer["error"]["message"]


def test_reasons_of_acknowledgements_that_fail(server: Running) -> None:
    http(server, f"PUT {PATH_T}", {})
    http(server, f"PUT {PATH_S}", {"topic": "projects/p/topics/orders", "enableExactlyOnceDelivery": True})
    http(server, f"POST {PATH_T}:publish", {"messages": [{"data": "eA=="}]})
    ack_id = http(server, f"POST {PATH_S}:pull", {"maxMessages": 1})[1]["receivedMessages"][0]["ackId"]
    http(server, f"POST {PATH_S}:modifyAckDeadline", {"ackIds": [ack_id], "ackDeadlineSeconds": 0})
    status, answer = http(server, f"POST {PATH_S}:acknowledge", {"ackIds": [ack_id]})
    assert status == 400
    (info,) = answer["error"]["details"]
    assert info["@type"] == "type.googleapis.com/google.rpc.ErrorInfo"
    assert info["metadata"] == {ack_id: "PERMANENT_FAILURE_INVALID_ACK_ID"}


def test_faults_apply() -> None:
    faults = [parse_fault("admin_error:count=1"), parse_fault("publish_unavailable:count=1")]
    with running(faults, rest=True) as server:
        for call, document in (
            (f"PUT {PATH_T}", {}),
            (f"POST {PATH_T}:publish", {"messages": [{"data": "eA==", "orderingKey": "k"}]}),
        ):
            status, answer = http(server, call, document)
            assert (status, answer["error"]["status"]) == (503, "UNAVAILABLE")
            assert http(server, call, document)[0] == 200
        assert server.server.faults.ledger.counts == {"admin_error": 1, "publish_unavailable": 1}


@pytest.mark.skipif(not socket.has_ipv6, reason="this machine has no IPv6")
def test_it_listens_on_the_host_of_the_server() -> None:
    with running(rest=True, host="::1") as server:
        assert server.server.rest_address.startswith("[::1]:")
        assert http(server, f"PUT {PATH_T}", {})[0] == 200


def test_a_rest_port_that_is_taken(server: Running) -> None:
    port = int(server.server.rest_address.rpartition(":")[2])

    async def start() -> None:
        with pytest.raises(OSError, match=f"{port}"):
            await EmbeddedServer(rest_port=port).start()

    asyncio.run(start())
