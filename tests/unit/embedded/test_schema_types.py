"""Definitions of schemas as validators: Avro and protocol buffers, in both encodings."""

from __future__ import annotations

import io
import json

import fastavro
import pytest

from prober.embedded import errors, schema_types
from prober.embedded.schema_types import DEFINITION_BYTES_MAX, compile_definition
from prober.embedded.schemas import MismatchError

AVRO = {
    "type": "record",
    "name": "State",
    "fields": [
        {"name": "name", "type": "string"},
        {"name": "code", "type": ["null", "int"], "default": None},
    ],
}
PROTO = 'syntax = "proto3"; package a.b; message State { string name = 1; int32 code = 2; enum Kind { NONE = 0; } }'


def in_avro(record: dict[str, object]) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(AVRO), record)
    return stream.getvalue()


def test_avro_data_that_matches() -> None:
    validate = compile_definition("AVRO", json.dumps(AVRO)).validate
    validate(in_avro({"name": "Alaska", "code": None}), "BINARY")
    validate(b'{"name": "Alaska",\n "code": {"int": 3}}', "JSON")
    validate(b'{"name": "Alaska"}', "JSON")


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (b"", "BINARY"),
        (in_avro({"name": "Alaska"}) + b"x", "BINARY"),
        (in_avro({"name": "Alaska"})[:-1], "BINARY"),
        (b"", "JSON"),
        (b"nothing", "JSON"),
        (b"\xff", "JSON"),
        (b"[]", "JSON"),
        (b'{"code": null}', "JSON"),
        (b'{"name": 1, "code": null}', "JSON"),
        (b'{"name": "Alaska", "code": 3}', "JSON"),
        (b'{"name": "Alaska", "code": {"int": 3000000000}}', "JSON"),
        (b'{"name": "Alaska", "other": NaN}', "JSON"),
        (b"[" * 100_000, "JSON"),
    ],
)
def test_avro_data_that_does_not_match(data: bytes, encoding: str) -> None:
    validate = compile_definition("AVRO", json.dumps(AVRO)).validate
    with pytest.raises(MismatchError):
        validate(data, encoding)


@pytest.mark.parametrize(
    ("data", "encoding", "problem"),
    [
        (b"null", "JSON", "it is not a JSON object"),
        (b"[]", "JSON", "it is not a JSON object"),
        (b"{}", "JSON", "field name is missing or its value is not valid"),
        (b'{"name": "Alaska", "code": 3}', "JSON", "field code is missing or its value is not valid"),
        (b'{"name": 1}', "JSON", "State.name is not of type string"),
        (b"", "BINARY", "the data end before the value does"),
        (b"\x02a\x06", "BINARY", "the data are not the binary encoding of a value"),
        (b"\x02a\x00x", "BINARY", "1 bytes after the end of the value"),
    ],
)
def test_the_problem_of_avro_data_is_a_sentence(data: bytes, encoding: str, problem: str) -> None:
    validate = compile_definition("AVRO", json.dumps(AVRO)).validate
    with pytest.raises(MismatchError) as caught:
        validate(data, encoding)
    assert str(caught.value) == f"message does not match the Avro schema: {problem}"


def test_protocol_buffers_that_match() -> None:
    validate = compile_definition("PROTOCOL_BUFFER", PROTO).validate
    validate(b"\x0a\x06Alaska\x10\x03", "BINARY")
    validate(b'{"name": "Alaska", "code": 3}', "JSON")


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (b"\x0a\x06Alas", "BINARY"),
        (b"nothing", "JSON"),
        (b"\xff", "JSON"),
        (b'{"name": 1}', "JSON"),
        (b'{"other": 1}', "JSON"),
        (b"[]", "JSON"),
        (b'""', "JSON"),
        (b"[" * 100_000, "JSON"),
    ],
)
def test_protocol_buffers_that_do_not_match(data: bytes, encoding: str) -> None:
    validate = compile_definition("PROTOCOL_BUFFER", PROTO).validate
    with pytest.raises(MismatchError):
        validate(data, encoding)


def test_required_fields_of_proto2() -> None:
    validate = compile_definition(
        "PROTOCOL_BUFFER", 'syntax = "proto2"; message M { required int32 a = 1; optional int32 b = 2; }'
    ).validate
    with pytest.raises(MismatchError, match="required fields are missing: a"):
        validate(b"\x10\x01", "BINARY")


@pytest.mark.parametrize(
    ("kind", "definition"),
    [
        ("", "{}"),
        ("AVRO", ""),
        ("AVRO", "x" * (DEFINITION_BYTES_MAX + 1)),
        ("AVRO", "nothing"),
        ("AVRO", "[]"),
        ("AVRO", '"string"'),
        ("AVRO", '{"type": "record"}'),
        ("AVRO", '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "unknown"}]}'),
        ("PROTOCOL_BUFFER", "nothing"),
        ("PROTOCOL_BUFFER", 'syntax = "proto3";'),
        ("PROTOCOL_BUFFER", 'syntax = "proto3"; message A {} message B {}'),
        ("PROTOCOL_BUFFER", 'syntax = "proto3"; message A {} enum B { NONE = 0; }'),
        ("PROTOCOL_BUFFER", 'syntax = "proto3"; import "google/protobuf/any.proto"; message A { google.protobuf.Any a = 1; }'),
    ],
)
def test_definitions_that_are_refused(kind: str, definition: str) -> None:
    with pytest.raises(errors.ServiceError, match="INVALID_ARGUMENT"):
        compile_definition(kind, definition)


@pytest.mark.parametrize(
    ("definition", "problem"),
    [
        ("nothing", '1:1: Expected top-level statement (e.g. "message").'),
        ('syntax = "proto3"; message A { B b = 1; }', '1:32: "B" is not defined.'),
    ],
)
def test_the_problem_of_a_protocol_buffer_definition_is_what_protoc_says(definition: str, problem: str) -> None:
    with pytest.raises(errors.ServiceError) as caught:
        compile_definition("PROTOCOL_BUFFER", definition)
    assert caught.value.message == f"Invalid schema definition: {problem}"


@pytest.mark.parametrize(("kind", "library"), [("AVRO", "fastavro"), ("PROTOCOL_BUFFER", "grpcio-tools")])
def test_a_library_that_is_missing(monkeypatch: pytest.MonkeyPatch, kind: str, library: str) -> None:
    monkeypatch.setattr(schema_types, "find_spec", lambda module: None)
    with pytest.raises(errors.ServiceError, match=f"UNIMPLEMENTED: .* needs {library} for .* schemas: pip install {library}"):
        compile_definition(kind, "{}")
