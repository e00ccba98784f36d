"""REST of the embedded server: every unary method has the result that it has over gRPC; the form of errors; Google's client."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import socket
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import grpc
import pytest
from google.api_core import exceptions
from google.auth.credentials import AnonymousCredentials
from google.pubsub_v1.services.publisher import PublisherClient
from google.pubsub_v1.services.publisher.transports import PublisherGrpcTransport, PublisherRestTransport
from google.pubsub_v1.services.schema_service import SchemaServiceClient
from google.pubsub_v1.services.schema_service.transports import SchemaServiceGrpcTransport, SchemaServiceRestTransport
from google.pubsub_v1.services.subscriber import SubscriberClient
from google.pubsub_v1.services.subscriber.transports import SubscriberGrpcTransport, SubscriberRestTransport

from prober.embedded import calls, iam, schema_calls
from prober.embedded.faults import parse_fault
from prober.embedded.http_rules import HTTP_RULES
from prober.embedded.rest import BODY_BYTES_MAX
from prober.embedded.schema_types import compile_definition
from prober.embedded.schemas import Schemas
from prober.embedded.server import EmbeddedServer
from tests.integration.embedded import WAIT_S, Running, running

NOW_S: Final = 1_800_000_000.0
TOPIC, SUBSCRIPTION, SNAPSHOT = "projects/p/topics/a+b%c~", "projects/p/subscriptions/orders", "projects/p/snapshots/before"
IMPATIENT_S: Final = 0.5
ENDPOINT: Final = "http://127.0.0.1:9/push"
SCHEMA: Final = "projects/p/schemas/record"
DEFINITION: Final = '{"type": "record", "name": "R", "fields": []}'
REVISION: Final = Schemas(compile_definition).create(SCHEMA, "AVRO", DEFINITION, NOW_S).id
MESSAGE: Final = {"data": b"\x00\xffx", "attributes": {"a": "b"}, "ordering_key": "k"}

REQUESTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "Publish": {"topic": TOPIC, "messages": [MESSAGE, MESSAGE]},
    "CreateTopic": {"name": "projects/p/topics/new", "labels": {"team": "x"}, "message_retention_duration": {"seconds": 600}},
    "GetTopic": {"topic": TOPIC},
    "UpdateTopic": {"topic": {"name": TOPIC, "labels": {"team": "y"}}, "update_mask": {"paths": ["labels", "kms_key_name"]}},
    "DeleteTopic": {"topic": TOPIC},
    "ListTopics": {"project": "projects/p", "page_size": 1},
    "ListTopicSubscriptions": {"topic": TOPIC, "page_size": 7},
    "ListTopicSnapshots": {"topic": TOPIC},
    "DetachSubscription": {"subscription": SUBSCRIPTION},
    "CreateSubscription": {
        "name": "projects/p/subscriptions/new",
        "topic": TOPIC,
        "push_config": {"push_endpoint": ENDPOINT, "oidc_token": {"service_account_email": "a@b.c"}},
        "retry_policy": {"minimum_backoff": {"seconds": 3, "nanos": 500_000_000}},
        "filter": 'attributes.a = "b"',
        "enable_message_ordering": True,
    },
    "GetSubscription": {"subscription": SUBSCRIPTION},
    "UpdateSubscription": {
        "subscription": {"name": SUBSCRIPTION, "ack_deadline_seconds": 77},
        "update_mask": {"paths": ["ack_deadline_seconds"]},
    },
    "ModifyPushConfig": {"subscription": SUBSCRIPTION, "push_config": {"push_endpoint": ENDPOINT}},
    "DeleteSubscription": {"subscription": SUBSCRIPTION},
    "ListSubscriptions": {"project": "projects/p"},
    "CreateSnapshot": {"name": "projects/p/snapshots/new", "subscription": SUBSCRIPTION, "labels": {"team": "x"}},
    "GetSnapshot": {"snapshot": SNAPSHOT},
    "UpdateSnapshot": {"snapshot": {"name": SNAPSHOT, "labels": {"team": "y"}}, "update_mask": {"paths": ["labels"]}},
    "DeleteSnapshot": {"snapshot": SNAPSHOT},
    "ListSnapshots": {"project": "projects/p"},
    "Seek": {"subscription": SUBSCRIPTION, "time": {"seconds": int(NOW_S) - 5}},
    "Acknowledge": {"subscription": SUBSCRIPTION, "ack_ids": ()},
    "ModifyAckDeadline": {"subscription": SUBSCRIPTION, "ack_ids": (), "ack_deadline_seconds": 30},
    "Pull": {"subscription": SUBSCRIPTION, "max_messages": 5},
    "CreateSchema": {"parent": "projects/p", "schema_id": "new", "schema": {"type_": "AVRO", "definition": DEFINITION}},
    "GetSchema": {"name": f"{SCHEMA}@{REVISION}"},
    "ListSchemas": {"parent": "projects/p", "view": "FULL"},
    "ListSchemaRevisions": {"name": SCHEMA, "page_size": 1},
    "CommitSchema": {"name": SCHEMA, "schema": {"type_": "AVRO", "definition": DEFINITION}},
    "RollbackSchema": {"name": SCHEMA, "revision_id": REVISION},
    "DeleteSchemaRevision": {"name": f"{SCHEMA}@{REVISION}"},
    "DeleteSchema": {"name": SCHEMA},
    "ValidateSchema": {"parent": "projects/p", "schema": {"type_": "AVRO", "definition": DEFINITION}},
    "ValidateMessage": {"parent": "projects/p", "name": SCHEMA, "message": b"{}", "encoding": "JSON"},
    "SetIamPolicy": {"resource": TOPIC, "policy": {"bindings": [{"role": "roles/viewer", "members": ["allUsers"]}]}},
    "GetIamPolicy": {"resource": SUBSCRIPTION},
    "TestIamPermissions": {"resource": SNAPSHOT, "permissions": ["pubsub.snapshots.seek"]},
}
"""Method: a request. Acknowledgement ids are filled in."""


class Service:
    """All services through the generated clients of one transport; each of these has the methods of access policies too."""

    def __init__(self, publisher: Any, subscriber: Any, schemas: Any) -> None:
        self._clients = {
            **dict.fromkeys((*calls.PUBLISHER_METHODS, *iam.METHODS), publisher),
            **dict.fromkeys(calls.SUBSCRIBER_METHODS, subscriber),
            **dict.fromkeys(schema_calls.METHODS, schemas),
        }

    def call(self, method: str, **request: Any) -> Any:
        """The response; of a method that lists, the first page; None for an empty one."""
        own = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in method).lstrip("_")
        response = getattr(self._clients[method], own)(request=request, retry=None, timeout=WAIT_S)
        return next(response.pages) if hasattr(response, "pages") else response

    def outcome(self, method: str, request: Mapping[str, Any]) -> object:
        """The response, or the HTTP status of the error and its sentence, without the URL that REST clients put before it."""
        try:
            return self.call(method, **request)
        except exceptions.GoogleAPICallError as error:
            return error.code, re.sub(r"^[A-Z]+ http\S+: ", "", error.message)

    def prepare(self) -> str:
        """Make one resource of each kind, one message outstanding and one to deliver; the id to acknowledge the first."""
        self.call("CreateTopic", name=TOPIC)
        self.call("CreateSubscription", name=SUBSCRIPTION, topic=TOPIC, enable_message_ordering=True)
        self.call("CreateSnapshot", name=SNAPSHOT, subscription=SUBSCRIPTION)
        self.call("Publish", topic=TOPIC, messages=[MESSAGE])
        self.call("CreateSchema", parent="projects/p", schema_id="record", schema={"type_": "AVRO", "definition": DEFINITION})
        self.call("CommitSchema", name=SCHEMA, schema={"type_": "AVRO", "definition": DEFINITION})
        (received,) = self.call("Pull", subscription=SUBSCRIPTION, max_messages=5).received_messages
        self.call("Publish", topic=TOPIC, messages=[MESSAGE | {"ordering_key": "other"}])
        ack_id: str = received.ack_id
        return ack_id

    def resources(self) -> list[Any]:
        """What a call may have changed."""
        lists = [self.call(f"List{kind}", project="projects/p") for kind in ("Topics", "Subscriptions", "Snapshots")]
        return [*lists, self.call("ListSchemas", parent="projects/p")]

    def close(self) -> None:
        for client in set(self._clients.values()):
            client.transport.close()


def by_grpc(server: Running) -> Service:
    return Service(
        PublisherClient(transport=PublisherGrpcTransport(channel=grpc.insecure_channel(server.address))),
        SubscriberClient(transport=SubscriberGrpcTransport(channel=grpc.insecure_channel(server.address))),
        SchemaServiceClient(transport=SchemaServiceGrpcTransport(channel=grpc.insecure_channel(server.address))),
    )


def by_rest(server: Running) -> Service:
    host, nobody = f"http://{server.server.rest_address}", AnonymousCredentials()  # type: ignore[no-untyped-call]
    return Service(
        PublisherClient(transport=PublisherRestTransport(host=host, credentials=nobody)),
        SubscriberClient(transport=SubscriberRestTransport(host=host, credentials=nobody)),
        SchemaServiceClient(transport=SchemaServiceRestTransport(host=host, credentials=nobody)),
    )


def outcomes(connect: Callable[[Running], Service], method: str) -> list[object]:
    """What a request leads to on a server without any resource, and on a prepared one; on each, what there is afterwards."""
    found: list[object] = []
    for prepared in (False, True):
        with running(rest=True, now=lambda: NOW_S) as server:
            service = connect(server)
            ack_id = service.prepare() if prepared else "unknown"
            request = dict(REQUESTS[method])
            if "ack_ids" in request:
                request["ack_ids"] = [ack_id]
            found += [service.outcome(method, request), service.resources()]
            service.close()
    return found


@pytest.mark.parametrize("method", calls.METHODS)
def test_a_method_has_the_same_result_over_rest(method: str) -> None:
    over_grpc = outcomes(by_grpc, method)
    assert outcomes(by_rest, method) == over_grpc
    assert not isinstance(over_grpc[2], tuple), "the request must succeed where there is everything that it names"


def test_every_unary_method_has_a_rule() -> None:
    assert set(calls.METHODS) == {rule.method for rule in HTTP_RULES}
    assert REQUESTS.keys() == calls.METHODS.keys()


@pytest.fixture
def server() -> Iterator[Running]:
    with running(rest=True) as server:
        yield server


def http(server: Running, call: str, document: object = None, *, body: bytes | None = None) -> tuple[int, Any]:
    """Status and JSON of `VERB PATH`."""
    verb, _, path = call.partition(" ")
    sent = json.dumps(document).encode() if document is not None else body
    request = urllib.request.Request(f"http://{server.server.rest_address}{path}", sent, method=verb)
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
