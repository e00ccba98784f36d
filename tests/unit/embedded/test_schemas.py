"""Schemas without gRPC: revisions, what a topic asks for, and what the attributes of a message name."""

from __future__ import annotations

import pytest

from prober.embedded import errors
from prober.embedded.messages import PublishDraft
from prober.embedded.resources import SchemaSettings
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


def test_the_number_of_revisions_is_limited() -> None:
    schemas, _ = committed(*"a" * REVISIONS_MAX)
    with refused(errors.Code.RESOURCE_EXHAUSTED):
        schemas.commit(NAME, compiled("b"), 200.0)


def test_a_message_names_the_latest_revision_that_it_matches() -> None:
    schemas, revisions = committed("a", "a", "b")
    assert {len(revision.id) for revision in revisions} == {8}
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
