"""Schemas over gRPC with Google's client: revisions, topics with schema settings, what publish refuses, what subscribers see."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import fastavro
import grpc
import pytest
from google.api_core import exceptions
from google.protobuf.field_mask_pb2 import FieldMask
from google.pubsub_v1 import SchemaServiceClient
from google.pubsub_v1.services.schema_service.transports import SchemaServiceGrpcTransport
from google.pubsub_v1.types import Encoding, Schema, SchemaSettings, SchemaView, Topic

from prober.embedded import schema_calls
from prober.embedded.schema_types import compile_definition
from prober.embedded.schemas import Definition
from tests.integration.embedded import WAIT_S, Clients, running

PROJECT = "projects/test"
NAME = f"{PROJECT}/schemas/state"
AVRO = json.dumps({"type": "record", "name": "State", "fields": [{"name": "name", "type": "string"}]})
AVRO_2 = json.dumps({"type": "record", "name": "State", "fields": [{"name": "count", "type": "int"}]})
PROTO = 'syntax = "proto3"; message State { string name = 1; }'


@pytest.fixture
def address() -> Iterator[str]:
    with running() as server:
        yield server.address


@pytest.fixture
def clients(address: str) -> Iterator[Clients]:
    opened = Clients(address)
    yield opened
    opened.close()


@pytest.fixture
def schemas(address: str) -> Iterator[SchemaServiceClient]:
    with grpc.insecure_channel(address) as channel:
        yield SchemaServiceClient(transport=SchemaServiceGrpcTransport(channel=channel))


def create(schemas: SchemaServiceClient, definition: str = AVRO, kind: int = Schema.Type.AVRO, name: str = "state") -> Schema:
    return schemas.create_schema(parent=PROJECT, schema=Schema(type_=kind, definition=definition), schema_id=name)


def commit(schemas: SchemaServiceClient, definition: str) -> Schema:
    return schemas.commit_schema(name=NAME, schema=Schema(name=NAME, type_=Schema.Type.AVRO, definition=definition))


def create_topic(clients: Clients, encoding: int = Encoding.JSON, **settings: str) -> Any:
    topic = clients.publisher.create_topic(
        Topic(name=clients.topic, schema_settings=SchemaSettings(schema=NAME, encoding=encoding, **settings))
    )
    clients.create_subscription()
    return topic


def test_a_schema_is_created_shown_listed_and_deleted(schemas: SchemaServiceClient) -> None:
    made = create(schemas)
    assert (made.name, made.type_, made.definition) == (NAME, Schema.Type.AVRO, AVRO)
    assert made.revision_create_time is not None
    assert schemas.get_schema(name=NAME) == made
    assert not schemas.get_schema(request={"name": NAME, "view": SchemaView.BASIC}).definition
    create(schemas, name="other")
    listed = list(schemas.list_schemas(request={"parent": PROJECT, "page_size": 1}))
    assert [(one.name, one.definition) for one in listed] == [(f"{PROJECT}/schemas/other", ""), (NAME, "")]
    assert [one.definition for one in schemas.list_schemas(request={"parent": PROJECT, "view": SchemaView.FULL})] == [AVRO, AVRO]
    schemas.delete_schema(name=NAME)
    with pytest.raises(exceptions.NotFound):
        schemas.get_schema(name=NAME)


def test_revisions_are_committed_rolled_back_listed_and_deleted(schemas: SchemaServiceClient) -> None:
    first, second = create(schemas), commit(schemas, AVRO_2)
    assert schemas.get_schema(name=NAME).revision_id == second.revision_id
    assert schemas.get_schema(name=f"{NAME}@{first.revision_id}").definition == AVRO
    third = schemas.rollback_schema(name=NAME, revision_id=first.revision_id)
    assert third.definition == AVRO
    listed = [one.revision_id for one in schemas.list_schema_revisions(request={"name": NAME, "page_size": 2})]
    assert listed == [third.revision_id, second.revision_id, first.revision_id]
    left = schemas.delete_schema_revision(request={"name": f"{NAME}@{third.revision_id}"})
    assert left.revision_id == second.revision_id


def test_errors_of_the_schema_service(schemas: SchemaServiceClient) -> None:
    create(schemas)
    with pytest.raises(exceptions.AlreadyExists):
        create(schemas)
    with pytest.raises(exceptions.InvalidArgument, match="Invalid schema definition"):
        create(schemas, "nothing", name="other")
    with pytest.raises(exceptions.InvalidArgument):
        create(schemas, name="1")
    with pytest.raises(exceptions.InvalidArgument):
        schemas.commit_schema(name=NAME, schema=Schema(type_=Schema.Type.PROTOCOL_BUFFER, definition=PROTO))
    with pytest.raises(exceptions.NotFound):
        schemas.rollback_schema(name=NAME, revision_id="00000000")
    with pytest.raises(exceptions.FailedPrecondition):
        schemas.delete_schema_revision(request={"name": f"{NAME}@{schemas.get_schema(name=NAME).revision_id}"})
    with pytest.raises(exceptions.MethodNotImplemented, match="does not support compiled_proto_schema"):
        schemas.create_schema(
            request={"parent": PROJECT, "schema_id": "x", "schema": {"compiled_proto_schema": {"root_message": "M"}}}
        )


def test_other_calls_are_answered_while_a_schema_is_compiled(
    clients: Clients, schemas: SchemaServiceClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiling, go_on = threading.Event(), threading.Event()

    def compile_slowly(kind: str, text: str) -> Definition:
        compiling.set()
        assert go_on.wait(WAIT_S)
        return compile_definition(kind, text)

    monkeypatch.setattr(schema_calls, "compile_definition", compile_slowly)
    with ThreadPoolExecutor() as pool:
        made = pool.submit(create, schemas)
        assert compiling.wait(WAIT_S)
        clients.create()
        assert not made.done()
        go_on.set()
        assert made.result(WAIT_S).definition == AVRO


def test_definitions_and_messages_are_validated_without_a_topic(schemas: SchemaServiceClient) -> None:
    create(schemas)
    good, bad = b'{"name": "Alaska"}', b'{"name": 1}'
    adhoc = Schema(type_=Schema.Type.PROTOCOL_BUFFER, definition=PROTO)
    schemas.validate_schema(parent=PROJECT, schema=adhoc)
    for spec in ({"name": NAME}, {"schema": adhoc}):
        schemas.validate_message(request={"parent": PROJECT, "message": good, "encoding": Encoding.JSON, **spec})
        with pytest.raises(exceptions.InvalidArgument, match="Message failed schema validation"):
            schemas.validate_message(request={"parent": PROJECT, "message": bad, "encoding": Encoding.JSON, **spec})
    with pytest.raises(exceptions.InvalidArgument):
        schemas.validate_schema(parent=PROJECT, schema=Schema(type_=Schema.Type.AVRO, definition="{}"))


def test_a_topic_accepts_what_matches_and_says_by_which_revision(clients: Clients, schemas: SchemaServiceClient) -> None:
    first = create(schemas)
    topic = create_topic(clients)
    assert topic.schema_settings == SchemaSettings(schema=NAME, encoding=Encoding.JSON)
    assert clients.publisher.get_topic(topic=clients.topic) == topic
    second = commit(schemas, AVRO_2)
    clients.publish('{"name": "Alaska"}', '{"count": 3}')
    received = [one.message for one in clients.pull()]
    assert [dict(message.attributes) for message in received] == [
        {
            "googclient_schemaencoding": "JSON",
            "googclient_schemaname": NAME,
            "googclient_schemarevisionid": revision.revision_id,
        }
        for revision in (first, second)
    ]


def test_a_request_with_a_message_that_does_not_match_stores_nothing(clients: Clients, schemas: SchemaServiceClient) -> None:
    create(schemas)
    create_topic(clients)
    with pytest.raises(exceptions.InvalidArgument, match="Message failed schema validation"):
        clients.publish_request({"data": b'{"name": "Alaska"}'}, {"data": b"{}"})
    assert clients.pull_now() == []
    clients.publish('{"name": "Alaska"}')
    assert clients.texts() == ['{"name": "Alaska"}']


@pytest.mark.parametrize("kind", [Schema.Type.AVRO, Schema.Type.PROTOCOL_BUFFER])
def test_binary_messages(clients: Clients, schemas: SchemaServiceClient, kind: int) -> None:
    create(schemas, AVRO if kind is Schema.Type.AVRO else PROTO, kind)
    create_topic(clients, Encoding.BINARY)
    avro = io.BytesIO()
    fastavro.schemaless_writer(avro, fastavro.parse_schema(json.loads(AVRO)), {"name": "Alaska"})
    data = avro.getvalue() if kind is Schema.Type.AVRO else b"\x0a\x06Alaska"
    clients.publish_request({"data": data})
    (received,) = clients.pull()
    assert received.message.data == data
    assert received.message.attributes["googclient_schemaencoding"] == "BINARY"
    with pytest.raises(exceptions.InvalidArgument):
        clients.publish_request({"data": data[:-1]})


def test_the_range_of_revisions_of_a_topic_changes_by_a_mask(clients: Clients, schemas: SchemaServiceClient) -> None:
    first, second = create(schemas), commit(schemas, AVRO_2)
    create_topic(clients)
    mask = FieldMask(paths=["schema_settings.first_revision_id", "schema_settings.last_revision_id"])

    def bounded(low: str, high: str) -> Any:
        settings = SchemaSettings(first_revision_id=low, last_revision_id=high)
        return clients.publisher.update_topic(topic=Topic(name=clients.topic, schema_settings=settings), update_mask=mask)

    changed = bounded(second.revision_id, second.revision_id).schema_settings
    assert (changed.schema, changed.encoding, changed.first_revision_id) == (NAME, Encoding.JSON, second.revision_id)
    clients.publish_request({"data": b'{"count": 3}'})
    with pytest.raises(exceptions.InvalidArgument):
        clients.publish_request({"data": b'{"name": "Alaska"}'})
    with pytest.raises(exceptions.InvalidArgument):
        bounded(second.revision_id, first.revision_id)
    removed = clients.publisher.update_topic(topic=Topic(name=clients.topic), update_mask=FieldMask(paths=["schema_settings"]))
    assert not removed.schema_settings.schema
    clients.publish_request({"data": b"anything"})


def test_settings_that_are_refused(clients: Clients, schemas: SchemaServiceClient) -> None:
    with pytest.raises(exceptions.NotFound):
        create_topic(clients)
    create(schemas)
    with pytest.raises(exceptions.InvalidArgument):
        create_topic(clients, Encoding.ENCODING_UNSPECIFIED)
    with pytest.raises(exceptions.NotFound):
        create_topic(clients, first_revision_id="00000000")


def test_a_topic_shows_that_its_schema_is_deleted(clients: Clients, schemas: SchemaServiceClient) -> None:
    create(schemas)
    create_topic(clients)
    schemas.delete_schema(name=NAME)
    create(schemas)
    changed = clients.publisher.update_topic(
        topic=Topic(name=clients.topic, labels={"a": "b"}), update_mask=FieldMask(paths=["labels"])
    )
    assert changed.schema_settings.schema == "_deleted-schema_"
    assert clients.publisher.get_topic(topic=clients.topic) == changed
    with pytest.raises(exceptions.FailedPrecondition):
        clients.publish_request({"data": b'{"name": "Alaska"}'})
