"""Parts of the OpenAPI document in words, for the page of the API.

FastAPI's own documentation pages load their program from a host on the internet; this page loads none.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, TypeAlias

Schema: TypeAlias = Mapping[str, Any]


def status_in_words(status: str) -> str:
    """Return a status code with its phrase; `default` stands for any other."""
    return f"{status} {HTTPStatus(int(status)).phrase}" if status.isdecimal() else "any other"


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


def example_of(schema: Schema) -> str:
    """Return the first example of a type as text; empty without one."""
    examples = (example for option in (schema, *schema.get("anyOf", ())) for example in option.get("examples", ()))
    return str(next(examples, ""))
