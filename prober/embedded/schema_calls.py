"""The methods of google.pubsub.v1.SchemaService: a request message becomes a call on `schemas`, its result a response message."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

from google.protobuf import empty_pb2
from google.pubsub_v1 import types

from prober.embedded import errors, protobuf, resources
from prober.embedded.registry import Registry
from prober.embedded.schema_types import compile_definition
from prober.embedded.schemas import Definition, MismatchError, Revision, Schemas, mismatch

METHODS: Final[Mapping[str, Any]] = {
    "CreateSchema": types.CreateSchemaRequest.pb(),
    "GetSchema": types.GetSchemaRequest.pb(),
    "ListSchemas": types.ListSchemasRequest.pb(),
    "ListSchemaRevisions": types.ListSchemaRevisionsRequest.pb(),
    "CommitSchema": types.CommitSchemaRequest.pb(),
    "RollbackSchema": types.RollbackSchemaRequest.pb(),
    "DeleteSchemaRevision": types.DeleteSchemaRevisionRequest.pb(),
    "DeleteSchema": types.DeleteSchemaRequest.pb(),
    "ValidateSchema": types.ValidateSchemaRequest.pb(),
    "ValidateMessage": types.ValidateMessageRequest.pb(),
}
"""Class of the request messages of each method."""

_FULL: Final = int(types.SchemaView.FULL)
_BASIC: Final = int(types.SchemaView.BASIC)
_TYPES: Final[Mapping[int, str]] = {
    int(types.Schema.Type.AVRO): "AVRO",
    int(types.Schema.Type.PROTOCOL_BUFFER): "PROTOCOL_BUFFER",
}


class SchemaCalls:
    """The methods by name. `now` returns seconds since the epoch."""

    def __init__(self, schemas: Schemas, registry: Registry, now: Callable[[], float]) -> None:
        self._schemas, self._registry, self._now = schemas, registry, now
        self.methods: Mapping[str, Callable[[Any], Any]] = {
            "CreateSchema": self._create,
            "GetSchema": self._get,
            "ListSchemas": self._list,
            "ListSchemaRevisions": self._list_revisions,
            "CommitSchema": self._commit,
            "RollbackSchema": self._roll_back,
            "DeleteSchemaRevision": self._delete_revision,
            "DeleteSchema": self._delete,
            "ValidateSchema": self._validate_schema,
            "ValidateMessage": self._validate_message,
        }
        """Methods by name, from a request message to a response message or its coroutine. They raise `ServiceError`."""

    async def _create(self, request: Any) -> Any:
        resources.check_project(request.parent)
        name = f"{request.parent}/schemas/{request.schema_id}"
        definition = await _compiled(request.schema)
        return _shown(self._schemas.create(name, definition, self._now()))

    def _get(self, request: Any) -> Any:
        return _shown(self._schemas.revision(request.name), full=request.view != _BASIC)

    def _list(self, request: Any) -> Any:
        names = self._registry.in_project(self._schemas.schemas, request.parent)
        page, token = self._registry.page(names, request.page_size, request.page_token)
        found = [_shown(self._schemas.revision(name), full=request.view == _FULL) for name in page]
        return types.ListSchemasResponse.pb()(schemas=found, next_page_token=token)

    def _list_revisions(self, request: Any) -> Any:
        """Return the revisions, the latest first."""
        revisions = self._schemas.schema(request.name).revisions[::-1]
        numbers = [f"{number:02}" for number in range(len(revisions))]
        page, token = self._registry.page(numbers, request.page_size, request.page_token)
        found = [_shown(revisions[int(number)], full=request.view == _FULL) for number in page]
        return types.ListSchemaRevisionsResponse.pb()(schemas=found, next_page_token=token)

    async def _commit(self, request: Any) -> Any:
        definition = await _compiled(request.schema)
        return _shown(self._schemas.commit(request.name, definition, self._now()))

    def _roll_back(self, request: Any) -> Any:
        return _shown(self._schemas.roll_back(request.name, request.revision_id, self._now()))

    def _delete_revision(self, request: Any) -> Any:
        return _shown(self._schemas.delete_revision(request.name))

    def _delete(self, request: Any) -> Any:
        self._schemas.delete(request.name)
        self._registry.forget_schema(request.name)
        return empty_pb2.Empty()

    async def _validate_schema(self, request: Any) -> Any:
        resources.check_project(request.parent)
        await _compiled(request.schema)
        return types.ValidateSchemaResponse.pb()()

    async def _validate_message(self, request: Any) -> Any:
        resources.check_project(request.parent)
        encoding = protobuf.encoding_from(request.encoding)
        if not encoding:
            raise errors.invalid("encoding")
        if request.WhichOneof("schema_spec") == "schema":
            definition = await _compiled(request.schema)
        else:
            definition = self._schemas.revision(request.name).definition
        try:
            definition.validate(request.message, encoding)
        except MismatchError as error:
            raise mismatch(str(error)) from None
        return types.ValidateMessageResponse.pb()()


async def _compiled(schema: Any) -> Definition:
    """Return the definition of a Schema message, compiled in a thread. UNIMPLEMENTED for a compiled one (`compiled_proto_schema`)."""
    protobuf.refuse(schema, ("compiled_proto_schema",))
    return await asyncio.to_thread(compile_definition, _TYPES.get(schema.type_, ""), schema.definition)


def _shown(revision: Revision, *, full: bool = True) -> Any:
    """Return a revision as a Schema message, without its definition if not `full`."""
    message = types.Schema.pb()(name=revision.name, type_=revision.definition.kind, revision_id=revision.id)
    message.revision_create_time.FromNanoseconds(int(revision.created * 1e9))
    if full:
        message.definition = revision.definition.text
    return message
