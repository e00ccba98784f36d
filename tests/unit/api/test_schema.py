"""What the OpenAPI document declares is what is answered: requests that agree with it, and such that do not, made up by schemathesis.

Always the same ones, so that a failure is due to the change.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import schemathesis
from fastapi import FastAPI
from hypothesis import HealthCheck, given, settings
from pydantic import SecretStr
from schemathesis import Case, GenerationMode
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import positive_data_acceptance

from api.app import create_app
from prober.config.models import Api, Reads
from tests.nightly import AT_NIGHT
from tests.unit.api.kept import full_view

RIGHT = {"Authorization": "Bearer open sesame"}
WRONG = {"Authorization": "Bearer open sesam"}
EXAMPLES = settings(
    max_examples=15 if AT_NIGHT else 6, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)
PARTS = 4


def app(reads: Reads = Reads.OPEN) -> FastAPI:
    """On a filled store."""
    asked = full_view()
    asked.settings = Api(token=SecretStr("open sesame"), reads=reads)
    return create_app(asked, asked.archive, asked.settings)


@cache
def operations(reads: Reads) -> list[Any]:
    """Everything that can be done."""
    document = schemathesis.openapi.from_asgi("/openapi.json", app(reads), headers=RIGHT)
    return [found.ok() for found in document.get_all_operations() if isinstance(found, Ok)]


@pytest.mark.parametrize("part", range(PARTS))
def test_every_answer_is_as_declared(part: int) -> None:
    for operation in operations(Reads.OPEN)[part::PARTS]:

        @EXAMPLES
        @given(case=operation.as_strategy(generation_mode=GenerationMode.POSITIVE))
        def each(case: Case[Any]) -> None:
            # That a cursor comes from the page before is more than a schema can say.
            case.call_and_validate(headers=RIGHT, excluded_checks=[positive_data_acceptance] if "cursor" in case.query else [])

        each()


@pytest.mark.parametrize("part", range(PARTS))
def test_what_is_not_declared_is_refused(part: int) -> None:
    asked = [operation for operation in operations(Reads.OPEN) if list(operation.query) or operation.body]
    for operation in asked[part::PARTS]:

        @EXAMPLES
        @given(case=operation.as_strategy(generation_mode=GenerationMode.NEGATIVE))
        def each(case: Case[Any]) -> None:
            response = case.call(headers=RIGHT)
            if response.status_code != 414:  # which the check does not take for a refusal
                case.validate_response(response, headers=RIGHT)

        each()


def test_without_the_token_nothing_is_reported() -> None:
    for operation in operations(Reads.TOKEN):
        is_open = operation.path in ("/healthz", "/readyz", "/metrics")

        @settings(EXAMPLES, max_examples=3)
        @given(case=operation.as_strategy())
        def each(case: Case[Any]) -> None:
            response = case.call(headers=WRONG)
            assert response.status_code == (200 if is_open else 401)  # noqa: B023  # called at once

        each()


def test_every_operation_explains_itself() -> None:
    document = app().openapi()
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            where = f"{method} {path}"
            assert operation.get("description"), where
            assert operation["tags"], where
            for parameter in operation.get("parameters", ()):
                assert parameter.get("description"), (where, parameter["name"])
    for name, shape in document["components"]["schemas"].items():
        assert shape.get("description"), name
        for field, of in shape.get("properties", {}).items():
            assert of.get("description"), (name, field)
