"""The OpenAPI document in the form for a page: its operations and schemas, with types in words.

FastAPI's own documentation pages load their program from a host on the internet; this page loads none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

Schema = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class DocumentedAnswer:
    """A response of an operation: status code (or `default`) with its phrase, and media type and schema of the body, if any."""

    status: str
    description: str
    media_type: str
    schema: str


@dataclass(frozen=True, slots=True)
class Field:
    """A field of an object, or the value of a parameter."""

    name: str
    type: str
    description: str
    example: str


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter, and its location: query or path."""

    place: str
    field: Field
    required: bool


@dataclass(frozen=True, slots=True)
class DocumentedBody:
    """Body of a request: media type, name of the schema, whether it is optional, and examples as JSON, by purpose."""

    media_type: str
    schema: str
    optional: bool
    examples: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class DocumentedOperation:
    """One method of one path."""

    method: str
    path: str
    description: str
    answers: tuple[DocumentedAnswer, ...]
    parameters: tuple[Parameter, ...] = ()
    body: DocumentedBody | None = None

    @property
    def asks_nothing(self) -> bool:
        """Whether its path needs no parameter, so that it can be linked."""
        return self.method == "GET" and not any(parameter.required for parameter in self.parameters)


@dataclass(frozen=True, slots=True)
class DocumentedSchema:
    """A named schema: an object with fields, or an enumeration."""

    name: str
    description: str
    fields: tuple[Field, ...]
    values: tuple[str, ...]


def operations(document: Mapping[str, Any]) -> Iterator[DocumentedOperation]:
    """Yield the operations in the order of the document."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            answers = tuple(_answer(status, response) for status, response in sorted(operation["responses"].items()))
            parameters = tuple(map(_parameter, operation.get("parameters", ())))
            body = _body(operation.get("requestBody"))
            yield DocumentedOperation(method.upper(), path, operation.get("description", ""), answers, parameters, body)


def shapes(document: Mapping[str, Any]) -> Iterator[DocumentedSchema]:
    """Yield the schemas in alphabetical order, as in the document."""
    for name, schema in document.get("components", {}).get("schemas", {}).items():
        fields = tuple(_field(field, of) for field, of in schema.get("properties", {}).items())
        yield DocumentedSchema(name, schema.get("description", ""), fields, tuple(map(str, schema.get("enum", ()))))


def type_in_words(schema: Schema) -> str:
    """Return a type on one line: `Run`, `time or null`, `list of string`, `map to integer`."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " or ".join(type_in_words(option) for option in schema["anyOf"])
    if schema.get("type") == "array":
        return f"list of {type_in_words(schema.get('items', {}))}"
    if schema.get("type") == "object" and isinstance(schema.get("additionalProperties"), Mapping):
        return f"map to {type_in_words(schema['additionalProperties'])}"
    if schema.get("format") == "date-time":
        return "time"
    return str(schema.get("type", "any"))


def _answer(status: str, response: Schema) -> DocumentedAnswer:
    phrase = f"{status} {HTTPStatus(int(status)).phrase}" if status.isdecimal() else "any other"
    for media_type, content in response.get("content", {}).items():
        schema = content.get("schema", {})
        return DocumentedAnswer(phrase, response["description"], media_type, type_in_words(schema) if "$ref" in schema else "")
    return DocumentedAnswer(phrase, response["description"], "", "")


def _body(asked: Schema | None) -> DocumentedBody | None:
    if asked is None:
        return None
    for media_type, content in asked["content"].items():
        options = content["schema"].get("anyOf", (content["schema"],))
        schema = " or ".join(type_in_words(option) for option in options if option.get("type") != "null")
        examples = tuple((name, json.dumps(example["value"])) for name, example in content.get("examples", {}).items())
        return DocumentedBody(media_type, schema, not asked.get("required", False), examples)
    return None


def _parameter(parameter: Schema) -> Parameter:
    schema = parameter["schema"]
    field = _field(parameter["name"], {**schema, "description": parameter.get("description", "")})
    return Parameter(parameter["in"], field, parameter.get("required", False))


def _field(name: str, schema: Schema) -> Field:
    examples = [example for option in (schema, *schema.get("anyOf", ())) for example in option.get("examples", ())]
    return Field(name, type_in_words(schema), schema.get("description", ""), str(examples[0]) if examples else "")
