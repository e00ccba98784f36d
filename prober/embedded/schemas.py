"""Schemas by name, their revisions, and the check of messages against them (proto, service SchemaService).

A schema is a list of revisions, the oldest first. A revision never changes: a commit and a rollback add a revision. Definitions arrive
compiled, so this module depends neither on Avro nor on protocol buffers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from prober.embedded import errors, resources
from prober.embedded.messages import CLIENT_ATTRIBUTES, PublishDraft

REVISIONS_MAX: Final = 20
"""Maximum number of revisions of one schema (documentation, "Schema overview")."""

Validator: TypeAlias = Callable[[bytes, str], None]
"""Check of the data of a message in an encoding, `JSON` or `BINARY`; raises `MismatchError`."""


class MismatchError(Exception):
    """Mismatch of the data of a message and a schema; the text contains the location."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A compiled definition. `kind`: `AVRO` or `PROTOCOL_BUFFER`."""

    kind: str
    text: str
    validate: Validator


@dataclass(frozen=True, slots=True)
class Revision:
    """One revision of a schema. `created` in seconds since the epoch; `number` ascends within the schema and is never used twice."""

    name: str
    definition: Definition
    id: str
    created: float
    number: int


@dataclass(slots=True, eq=False)
class Schema:
    """A schema: its revisions, the oldest first, and the number of each id it has ever had."""

    revisions: list[Revision]
    numbers: dict[str, int] = field(default_factory=dict)

    def bounds(self, settings: resources.SchemaSettings) -> tuple[int, int]:
        """Return the numbers of the first and the last revision that may validate, both inclusive."""
        return self.numbers.get(settings.first_revision_id, 0), self.numbers.get(settings.last_revision_id, len(self.numbers))


class Schemas:
    """All schemas of the service. A failed operation raises `ServiceError` and changes nothing, as in `registry`."""

    def __init__(self) -> None:
        self.schemas: dict[str, Schema] = {}

    # --- schemas ----------------------------------------------------------------------------------------------------------------

    def create(self, name: str, definition: Definition, now: float) -> Revision:
        """Create a schema; return its first revision. Raises ALREADY_EXISTS."""
        resources.check_name(name, "schemas")
        if name in self.schemas:
            raise errors.already_exists(name)
        self.schemas[name] = Schema([])
        return self._append(name, definition, now)

    def schema(self, name: str) -> Schema:
        """Return a schema by its name without a revision. Raises NOT_FOUND."""
        return resources.find(self.schemas, name, "schemas")

    def revision(self, name: str) -> Revision:
        """Return revision `projects/P/schemas/ID@REVISION`, without `@REVISION` the latest. Raises NOT_FOUND."""
        schema, _, wanted = name.partition("@")
        revisions = self.schema(schema).revisions
        if not wanted:
            return revisions[-1]
        for revision in revisions:
            if revision.id == wanted:
                return revision
        raise errors.not_found(name)

    def delete(self, name: str) -> None:
        """Delete a schema with all revisions. The caller updates its topics."""
        self.schema(name)
        del self.schemas[name]

    # --- revisions --------------------------------------------------------------------------------------------------------------

    def commit(self, name: str, definition: Definition, now: float) -> Revision:
        """Add a revision. INVALID_ARGUMENT if its type differs from the schema's, RESOURCE_EXHAUSTED after 20 revisions."""
        latest = self.schema(name).revisions[-1]
        if definition.kind != latest.definition.kind:
            raise errors.invalid("schema.type")
        return self._append(name, definition, now)

    def roll_back(self, name: str, revision_id: str, now: float) -> Revision:
        """Add a revision with the definition of an earlier one (proto, RollbackSchema). Errors as for `commit`."""
        self.schema(name)
        if not revision_id:
            raise errors.invalid("revision_id")
        earlier = self.revision(f"{name}@{revision_id}")
        return self._append(name, earlier.definition, now)

    def delete_revision(self, name: str) -> Revision:
        """Delete a revision; return the latest remaining. FAILED_PRECONDITION if it is the only one."""
        schema, _, wanted = name.partition("@")
        if not wanted:
            raise errors.invalid("name")
        revision, revisions = self.revision(name), self.schemas[schema].revisions
        if len(revisions) == 1:
            raise errors.precondition("The only revision of a schema cannot be deleted. Delete the schema.")
        revisions.remove(revision)
        return revisions[-1]

    def _append(self, name: str, definition: Definition, now: float) -> Revision:
        schema = self.schemas[name]
        if len(schema.revisions) >= REVISIONS_MAX:
            raise errors.ServiceError(
                errors.Code.RESOURCE_EXHAUSTED, f"A schema has at most {REVISIONS_MAX} revisions. Delete one to add another."
            )
        number = len(schema.numbers)
        own_id = hashlib.sha256(f"{name} {now} {number}".encode()).hexdigest()[:8]
        revision = Revision(name, definition, own_id, now, number)
        schema.revisions.append(revision)
        schema.numbers[own_id] = number
        return revision

    # --- topics -----------------------------------------------------------------------------------------------------------------

    def check_settings(self, settings: resources.SchemaSettings | None) -> None:
        """Check that the schema and revisions of a topic exist. Raises NOT_FOUND or INVALID_ARGUMENT.

        INVALID_ARGUMENT: there is no encoding, or the revisions are in the wrong order.
        """
        if settings is None:
            return
        first, last = self.schema(settings.schema).bounds(settings)
        if not settings.encoding:
            raise errors.invalid("schema_settings.encoding")
        for revision_id in (settings.first_revision_id, settings.last_revision_id):
            if revision_id:
                self.revision(f"{settings.schema}@{revision_id}")
        if first > last:
            raise errors.invalid("schema_settings.first_revision_id")

    def stamped(self, settings: resources.SchemaSettings | None, drafts: Sequence[PublishDraft]) -> Sequence[PublishDraft]:
        """Return messages with the attributes for the schema and for the revision that each matched.

        INVALID_ARGUMENT if a message matches no revision of the topic's range, tried from the latest to the earliest; then none is
        published.
        """
        if settings is None:
            return drafts
        if settings.schema == resources.DELETED_SCHEMA:
            raise errors.precondition("The schema of the topic is deleted.")
        allowed = self._allowed(settings)
        return [self._stamped(settings, allowed, draft) for draft in drafts]

    def _allowed(self, settings: resources.SchemaSettings) -> list[Revision]:
        schema = self.schemas[settings.schema]
        first, last = schema.bounds(settings)
        return [revision for revision in reversed(schema.revisions) if first <= revision.number <= last]

    def _stamped(self, settings: resources.SchemaSettings, allowed: list[Revision], draft: PublishDraft) -> PublishDraft:
        problem = "no revision is allowed"
        for revision in allowed:
            try:
                revision.definition.validate(draft.data, settings.encoding)
            except MismatchError as error:
                problem = f"last checked revision: revision_id={revision.id} failed with status: {error}"
                continue
            own = {"encoding": settings.encoding, "name": settings.schema, "revisionid": revision.id}
            attributes = {f"{CLIENT_ATTRIBUTES}schema{name}": value for name, value in own.items()}
            return replace(draft, attributes={**draft.attributes, **attributes})
        raise mismatch(f"Could not validate message with any schema revision for schema: {settings.schema}, {problem}")


def mismatch(detail: str) -> errors.ServiceError:
    """Return INVALID_ARGUMENT for a message that does not match."""
    return errors.ServiceError(errors.Code.INVALID_ARGUMENT, f"Invalid data in message: Message failed schema validation. {detail}")
