"""A Pub/Sub server through the generated clients of gRPC or REST, and results of calls that can be compared between servers."""

from __future__ import annotations

import re
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import grpc
from google.api_core import exceptions
from google.auth.credentials import AnonymousCredentials
from google.protobuf import json_format
from google.pubsub_v1.services.publisher import PublisherClient
from google.pubsub_v1.services.publisher.transports import PublisherGrpcTransport, PublisherRestTransport
from google.pubsub_v1.services.schema_service import SchemaServiceClient
from google.pubsub_v1.services.schema_service.transports import SchemaServiceGrpcTransport, SchemaServiceRestTransport
from google.pubsub_v1.services.subscriber import SubscriberClient
from google.pubsub_v1.services.subscriber.transports import SubscriberGrpcTransport, SubscriberRestTransport
from google.pubsub_v1.types import StreamingPullRequest

from prober.embedded import calls, iam, schema_calls
from tests.compat.requests import MESSAGE, SCHEMA, Names, Requests, requests
from tests.integration.embedded import WAIT_S

Outcome = Mapping[str, dict[str, Any]]

STREAMING_PULL: Final = "StreamingPull"
"""The only method that REST does not have."""

VARYING: Final = frozenset(
    {"ackId", "etag", "expireTime", "messageId", "messageIds", "nextPageToken", "publishTime", "revisionCreateTime", "revisionId"}
)
"""Fields whose values differ between two servers, or between two calls to one."""


class Service:
    """All services through the generated clients of one transport; each of these has the methods of access policies too."""

    def __init__(self, publisher: Any, subscriber: Any, schemas: Any) -> None:
        self._clients = {
            **dict.fromkeys((*calls.PUBLISHER_METHODS, *iam.METHODS), publisher),
            **dict.fromkeys((*calls.SUBSCRIBER_METHODS, STREAMING_PULL), subscriber),
            **dict.fromkeys(schema_calls.METHODS, schemas),
        }

    def call(self, method: str, **request: Any) -> Any:
        """The response; of a method that lists, the first page; of a stream, the first response; None for an empty one."""
        if method == STREAMING_PULL:
            return _first_response(self._clients[method], request)
        own = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in method).lstrip("_")
        response = getattr(self._clients[method], own)(request=request, retry=None, timeout=WAIT_S)
        return next(response.pages) if hasattr(response, "pages") else response

    def result(self, method: str, request: Mapping[str, Any], project: str) -> dict[str, Any]:
        """The response as JSON; of an error the status code of HTTP and the message."""
        try:
            response = self.call(method, **request)
        except exceptions.GoogleAPICallError as error:
            return {"code": error.code, "message": re.sub(r"^[A-Z]+ http\S+: ", "", error.message)}
        if response is None:
            return {}
        message = type(response).pb(response) if hasattr(type(response), "pb") else response
        result: dict[str, Any] = _comparable(json_format.MessageToDict(message), project)
        return result

    def prepare(self, names: Names) -> Names:
        """Make one resource of each kind, with an outstanding message and one to deliver; the names, with the id of the delivery."""
        self.call("CreateTopic", name=names.topic)
        self.call("CreateSubscription", name=names.subscription, topic=names.topic, enable_message_ordering=True)
        self.call("CreateSnapshot", name=names.snapshot, subscription=names.subscription)
        self.call("Publish", topic=names.topic, messages=[MESSAGE])
        schema = self.call("CreateSchema", parent=names.project, schema_id="record", schema=SCHEMA)
        self.call("CommitSchema", name=names.schema, schema=SCHEMA)
        (received,) = self.call("Pull", subscription=names.subscription, max_messages=5).received_messages
        self.call("Publish", topic=names.topic, messages=[MESSAGE | {"ordering_key": "other"}])
        return replace(names, ack_id=received.ack_id, revision=schema.revision_id)

    def resources(self, names: Names) -> dict[str, Any]:
        """Everything that a call may have changed."""
        project = names.project
        lists: Requests = {
            "ListTopics": {"project": project},
            "ListSubscriptions": {"project": project},
            "ListSnapshots": {"project": project},
            "ListSchemas": {"parent": project, "view": "FULL"},
        }
        return {method: self.result(method, request, project) for method, request in lists.items()}

    def close(self) -> None:
        for client in set(self._clients.values()):
            client.transport.close()


def _first_response(subscriber: Any, request: Mapping[str, Any]) -> Any:
    """Open a stream that stays open until a response arrives."""
    received = threading.Event()

    def opened() -> Iterator[Any]:
        yield StreamingPullRequest(request)
        received.wait(WAIT_S)

    try:
        return next(iter(subscriber.streaming_pull(requests=opened(), retry=None, timeout=WAIT_S)))
    finally:
        received.set()


def by_grpc(address: str) -> Service:
    return Service(
        PublisherClient(transport=PublisherGrpcTransport(channel=grpc.insecure_channel(address))),
        SubscriberClient(transport=SubscriberGrpcTransport(channel=grpc.insecure_channel(address))),
        SchemaServiceClient(transport=SchemaServiceGrpcTransport(channel=grpc.insecure_channel(address))),
    )


def by_rest(address: str) -> Service:
    host, nobody = f"http://{address}", AnonymousCredentials()  # type: ignore[no-untyped-call]
    return Service(
        PublisherClient(transport=PublisherRestTransport(host=host, credentials=nobody)),
        SubscriberClient(transport=SubscriberRestTransport(host=host, credentials=nobody)),
        SchemaServiceClient(transport=SchemaServiceRestTransport(host=host, credentials=nobody)),
    )


TRANSPORTS: Final[Mapping[str, Callable[[str], Service]]] = {"grpc": by_grpc, "rest": by_rest}


@dataclass(frozen=True)
class Server:
    """The addresses of one server by transport."""

    grpc: str
    rest: str

    def outcome(self, transport: str, method: str) -> Outcome:
        """What one request returns in a project without resources and in one with resources, and the resources after each."""
        service, preparing = TRANSPORTS[transport](getattr(self, transport)), by_grpc(self.grpc)
        empty = Names(f"projects/p{uuid.uuid4().hex}")
        full = preparing.prepare(Names(f"projects/p{uuid.uuid4().hex}"))
        try:
            return {
                "empty": service.result(method, requests(empty)[method], empty.project),
                "empty, after": preparing.resources(empty),
                "full": service.result(method, requests(full)[method], full.project),
                "full, after": preparing.resources(full),
            }
        finally:
            service.close()
            preparing.close()


def changes(expected: Outcome, found: Outcome) -> Iterator[str]:
    """The differences of two outcomes: another status code, or the names of fields. Effects of another status code are left out."""
    for request in ("empty", "full"):
        code, other = (int(one[request].get("code", 200)) for one in (expected, found))
        if code != other:
            yield f"{request}: {code} -> {other}"
            continue
        for place in (request, f"{request}, after"):
            if differing := [
                name for name in expected[place] | found[place] if expected[place].get(name) != found[place].get(name)
            ]:
                yield f"{place}: {', '.join(differing)}"


def _comparable(value: Any, project: str) -> Any:
    """A response without what is different each time."""
    if isinstance(value, dict):
        return {key: "..." if key in VARYING else _comparable(inner, project) for key, inner in value.items()}
    if isinstance(value, list):
        return [_comparable(inner, project) for inner in value]
    return value.replace(project, "projects/p") if isinstance(value, str) else value
