"""Avro and protocol buffer schemas, compiled by fastavro and by the compiler and runtime of protocol buffers.

The libraries are an extra of this package: Avro schemas need fastavro, protocol buffer schemas need grpcio-tools.
"""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import tempfile
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message, message_factory

from prober.embedded import errors
from prober.embedded.schemas import Definition, MismatchError, Validator

DEFINITION_BYTES_MAX: Final = 300_000
"""Maximum size of a definition (documentation, "Schema overview")."""
_PROTOC_TIMEOUT_S: Final = 30.0
_SOURCE: Final = "schema.proto"
_PROBLEM: Final = re.compile(rf"^.*\b{re.escape(_SOURCE)}:(\d+:\d+: .*)$", re.MULTILINE)
"""Error line of protoc: path, line, column and text. Its log lines have another form."""


def compile_definition(kind: str, text: str) -> Definition:
    """Compile a definition. Protocol buffers are compiled in a separate process, so this blocks: call it in a thread.

    INVALID_ARGUMENT for a definition that is not valid, is too large or has not exactly one top-level type, UNIMPLEMENTED if the library is
    missing.
    """
    size = len(text.encode())
    if not size:
        raise errors.invalid("schema.definition")
    if size > DEFINITION_BYTES_MAX:
        raise errors.too_large("schema.definition", size, DEFINITION_BYTES_MAX)
    if kind == "AVRO":
        return Definition(kind, text, _avro(text))
    if kind == "PROTOCOL_BUFFER":
        return Definition(kind, text, _protocol_buffer(text))
    raise errors.invalid("schema.type")


def _need(module: str, distribution: str, what: str) -> None:
    if find_spec(module) is None:
        raise errors.ServiceError(
            errors.Code.UNIMPLEMENTED,
            f"The embedded server needs {distribution} for {what}: pip install {distribution}.",
        )


def _refused(problem: object) -> errors.ServiceError:
    return errors.ServiceError(errors.Code.INVALID_ARGUMENT, f"Invalid schema definition: {problem}")


# --- Avro -------------------------------------------------------------------------------------------------------------------------


def _avro(definition: str) -> Validator:
    """Return a validator for an Avro schema. JSON is Avro's JSON encoding: values of a union include their type.

    Fields outside the schema are ignored there.
    """
    _need("fastavro", "fastavro", "Avro schemas")
    fastavro: Any = import_module("fastavro")
    try:
        parsed = json.loads(definition)
        if not isinstance(parsed, dict):
            raise _refused("it has not exactly one top-level type")
        schema = fastavro.parse_schema(parsed)
    except (fastavro.schema.SchemaParseException, fastavro.schema.UnknownType, ValueError, TypeError, KeyError) as error:
        raise _refused(_line(error)) from None

    def validate(data: bytes, encoding: str) -> None:
        try:
            value = _avro_json(fastavro, schema, data) if encoding == "JSON" else _avro_binary(fastavro, schema, data)
            fastavro.validate(value, schema, raise_errors=True)
        except fastavro.validation.ValidationError as error:
            raise _avro_mismatch("; ".join(f"{one.field} is not of type {_type(one.schema)}" for one in error.errors)) from None

    return validate


def _avro_json(fastavro: Any, schema: Any, data: bytes) -> Any:
    document = _json(data)
    if schema["type"] == "record" and not isinstance(document, dict):
        raise _avro_mismatch("it is not a JSON object")
    decoders: list[Any] = []

    def decoder(stream: Any) -> Any:
        decoders.append(fastavro.io.json_decoder.AvroJSONDecoder(stream))
        return decoders[-1]

    try:  # fastavro takes each line for a value
        return next(fastavro.json_reader(io.StringIO(json.dumps(document)), schema, decoder=decoder))
    except Exception:  # whatever the data leads fastavro into, AttributeError and IndexError for instance
        field = decoders[-1]._key if decoders else None
        raise _avro_mismatch(f"field {field} is missing or its value is not valid" if field else "it is of another type") from None


def _avro_binary(fastavro: Any, schema: Any, data: bytes) -> Any:
    stream = io.BytesIO(data)
    try:
        value = fastavro.schemaless_reader(stream, schema, None)
    except EOFError:
        raise _avro_mismatch("the data end before the value does") from None
    except Exception:  # as above
        raise _avro_mismatch("the data are not the binary encoding of a value") from None
    if stream.tell() != len(data):
        raise _avro_mismatch(f"{len(data) - stream.tell()} bytes after the end of the value")
    return value


def _avro_mismatch(problem: str) -> MismatchError:
    return MismatchError(f"message does not match the Avro schema: {problem}")


def _type(schema: Any) -> str:
    """Return the name of an Avro type; of a union all its types."""
    if isinstance(schema, list):
        return " or ".join(map(_type, schema))
    return str(schema.get("name", schema["type"])) if isinstance(schema, dict) else str(schema)


def _json(data: bytes) -> Any:
    """Return the value of a JSON text. Raises MismatchError, also for NaN and infinities, which Python accepts."""
    try:
        return json.loads(data, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise MismatchError(f"message is not JSON: {_line(error)}") from None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON value")


# --- protocol buffers -------------------------------------------------------------------------------------------------------------


def _protocol_buffer(definition: str) -> Validator:
    file = _file_descriptor(definition)
    if len(file.message_type) != 1 or file.enum_type:
        raise _refused("it has not exactly one top-level message")
    if file.dependency:
        raise _refused("imports are not supported")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    name = f"{file.package}.{file.message_type[0].name}".lstrip(".")
    kind: Any = message_factory.GetMessageClass(pool.FindMessageTypeByName(name))

    def validate(data: bytes, encoding: str) -> None:
        parsed = kind()
        try:
            if encoding == "JSON":
                if not isinstance(_json(data), dict):  # json_format takes an empty list or text for an empty object
                    raise MismatchError("message is not a JSON object")
                json_format.Parse(data, parsed)
            else:
                parsed.ParseFromString(data)
        except (json_format.ParseError, message.DecodeError, UnicodeDecodeError) as error:
            raise MismatchError(_line(error)) from None
        if not parsed.IsInitialized():
            raise MismatchError(f"required fields are missing: {', '.join(parsed.FindInitializationErrors())}")

    return validate


def _file_descriptor(definition: str) -> Any:
    """Return the compiled form of a definition. protoc runs in a separate process, since it writes its errors to stderr."""
    _need("grpc_tools", "grpcio-tools", "protocol buffer schemas")
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, _SOURCE), Path(folder, "schema.bin")
        source.write_text(definition, encoding="utf-8")
        command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{folder}", f"--descriptor_set_out={target}", source.name]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PROTOC_TIMEOUT_S, check=False)
        if done.returncode:
            raise _refused("; ".join(_PROBLEM.findall(done.stderr)) or "the compiler of protocol buffers refuses it")
        return descriptor_pb2.FileDescriptorSet.FromString(target.read_bytes()).file[0]


def _line(problem: object) -> str:
    return " ".join(str(problem).split()) or type(problem).__name__
