"""Schemas without gRPC: revisions, what a topic asks for, and what the attributes of a message name."""

from __future__ import annotations

import pytest

from prober.embedded import errors
from prober.embedded.messages import PublishDraft
from prober.embedded.resources import DELETED_SCHEMA, SchemaSettings
from prober.embedded.schemas import REVISIONS_MAX, Definition, MismatchError, Revision, Schemas

NAME = "projects/p/schemas/state"


def compiled(definition: str, kind: str = "AVRO") -> Definition:
    """In a schema language with one rule: the data begins with the definition."""

    def validate(data: bytes, encoding: str) -> None:
        if not data.startswith(definition.encode()):
            raise MismatchError(f"not {definition}")

    return Definition(kind, definition, validate)


def committed(*definitions: str) -> tuple[Schemas, list[Revision]]:
    """A schema with these revisions, one a second."""
    schemas = Schemas()
    first = schemas.create(NAME, compiled(definitions[0]), 100.0)
    rest = [schemas.commit(NAME, compiled(text), 101.0 + number) for number, text in enumerate(definitions[1:])]
    return schemas, [first, *rest]


def refused(code: errors.Code) -> pytest.RaisesExc[errors.ServiceError]:
    return pytest.RaisesExc(errors.ServiceError, check=lambda error: error.code is code)


def test_a_schema_has_its_latest_revision_and_all_others_by_id() -> None:
    schemas, (first, second) = committed("a", "b")
    assert schemas.revision(NAME) is second
    assert schemas.revision(f"{NAME}@{first.id}") is first
    assert len({first.id, second.id}) == 2
    assert len(first.id) == 8
    with refused(errors.Code.NOT_FOUND):
        schemas.revision(f"{NAME}@00000000")


def test_what_cannot_be_created_or_committed() -> None:
    schemas, _ = committed("a")
    with refused(errors.Code.ALREADY_EXISTS):
        schemas.create(NAME, compiled("b"), 1.0)
    with refused(errors.Code.INVALID_ARGUMENT):
        schemas.commit(NAME, compiled("b", "PROTOCOL_BUFFER"), 1.0)
    with refused(errors.Code.NOT_FOUND):
        schemas.commit("projects/p/schemas/other", compiled("b"), 1.0)
    with refused(errors.Code.INVALID_ARGUMENT):
        schemas.commit(f"{NAME}@{schemas.revision(NAME).id}", compiled("b"), 1.0)
    assert len(schemas.schema(NAME).revisions) == 1


def test_a_rollback_adds_a_revision() -> None:
    schemas, (first, second) = committed("a", "b")
    again = schemas.roll_back(NAME, first.id, 200.0)
    assert (again.definition.text, again.created) == ("a", 200.0)
    assert [one.id for one in schemas.schema(NAME).revisions] == [first.id, second.id, again.id]
    with refused(errors.Code.INVALID_ARGUMENT):
        schemas.roll_back(NAME, "", 201.0)


def test_the_number_of_revisions_is_limited() -> None:
    schemas, _ = committed(*"a" * REVISIONS_MAX)
    with refused(errors.Code.RESOURCE_EXHAUSTED):
        schemas.commit(NAME, compiled("b"), 200.0)


def test_the_only_revision_cannot_be_deleted() -> None:
    schemas, (first, second) = committed("a", "b")
    assert schemas.delete_revision(f"{NAME}@{second.id}") is first
    with refused(errors.Code.FAILED_PRECONDITION):
        schemas.delete_revision(f"{NAME}@{first.id}")
    with refused(errors.Code.INVALID_ARGUMENT):
        schemas.delete_revision(NAME)
    schemas.delete(NAME)
    with refused(errors.Code.NOT_FOUND):
        schemas.schema(NAME)


def test_a_message_names_the_latest_revision_that_it_matches() -> None:
    schemas, revisions = committed("a", "a", "b")
    stamped = schemas.stamped(SchemaSettings(NAME, "JSON"), [PublishDraft(b"a", {"x": "y"}, "k"), PublishDraft(b"b")])
    assert stamped[0] == PublishDraft(
        b"a",
        {
            "x": "y",
            "googclient_schemaencoding": "JSON",
            "googclient_schemaname": NAME,
            "googclient_schemarevisionid": revisions[1].id,
        },
        "k",
    )
    assert stamped[1].attributes["googclient_schemarevisionid"] == revisions[2].id


def test_one_message_that_matches_no_revision_refuses_the_request() -> None:
    schemas, (first, _) = committed("a", "b")
    with pytest.raises(errors.ServiceError, match=f"INVALID_ARGUMENT: Invalid data in message.*revision_id={first.id}.*not a"):
        schemas.stamped(SchemaSettings(NAME, "JSON"), [PublishDraft(b"a"), PublishDraft(b"c")])


def test_the_range_of_a_topic_bounds_what_may_match() -> None:
    schemas, (first, second, third) = committed("a", "b", "c")

    def accepted(text: str, *bounds: str) -> bool:
        try:
            schemas.stamped(SchemaSettings(NAME, "JSON", *bounds), [PublishDraft(text.encode())])
        except errors.ServiceError:
            return False
        return True

    assert [accepted(text, second.id) for text in "abc"] == [False, True, True]
    assert [accepted(text, "", second.id) for text in "abc"] == [True, True, False]
    assert [accepted(text, second.id, second.id) for text in "abc"] == [False, True, False]
    schemas.delete_revision(f"{NAME}@{second.id}")
    assert [accepted(text, second.id) for text in "abc"] == [False, False, True]
    assert not accepted("b", second.id, second.id)
    with refused(errors.Code.INVALID_ARGUMENT):
        schemas.check_settings(SchemaSettings(NAME, "JSON", third.id, first.id))


def test_settings_that_no_topic_may_have() -> None:
    schemas, _ = committed("a")
    schemas.check_settings(None)
    schemas.check_settings(SchemaSettings(NAME, "BINARY"))
    with refused(errors.Code.INVALID_ARGUMENT):
        schemas.check_settings(SchemaSettings(NAME, ""))
    with refused(errors.Code.NOT_FOUND):
        schemas.check_settings(SchemaSettings("projects/p/schemas/other", "JSON"))
    with refused(errors.Code.NOT_FOUND):
        schemas.check_settings(SchemaSettings(NAME, "JSON", "00000000"))


def test_a_deleted_schema_accepts_nothing_and_no_schema_accepts_all() -> None:
    schemas, _ = committed("a")
    drafts = [PublishDraft(b"x")]
    assert schemas.stamped(None, drafts) is drafts
    with refused(errors.Code.FAILED_PRECONDITION):
        schemas.stamped(SchemaSettings(DELETED_SCHEMA, "JSON"), drafts)
