"""Whether Kubernetes, and the operators, would take an object."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable
from pathlib import Path

import jsonschema
import kubernetes_validate.utils  # type: ignore[import-untyped]
from jsonschema.protocols import Validator

from tests.helm.chart import Document

KUBERNETES = ("1.29.0", "1.32.0", "1.37.0")
SCHEMAS = Path(__file__).parent / "schemas"

# It reads a megabyte of definitions for each object: most of the time that checking an object takes.
kubernetes_validate.utils.schema_contents = functools.cache(kubernetes_validate.utils.schema_contents)


@functools.cache
def _own_schema(kind: str) -> Validator | None:
    """The schema of a kind that Kubernetes does not know."""
    path = SCHEMAS / f"{kind.lower()}.json"
    if not path.exists():
        return None
    schema = json.loads(path.read_text(encoding="utf-8"))
    form = jsonschema.validators.validator_for(schema)
    form.check_schema(schema)
    return form(schema)


@functools.cache
def _complaint(text: str, version: str) -> str:
    """The fault of an object, empty if it has none."""
    document = json.loads(text)
    own = _own_schema(document["kind"])
    try:
        if own is not None:
            own.validate(document)
        else:
            kubernetes_validate.validate(document, version, strict=True)
    except jsonschema.ValidationError as wrong:
        return f"{document['kind']} {document['metadata']['name']}: {wrong.json_path}: {wrong.message}"
    return ""


def complaints(found: Iterable[Document], version: str) -> list[str]:
    """What is wrong with objects."""
    return [complaint for document in found if (complaint := _complaint(json.dumps(document, sort_keys=True), version))]
