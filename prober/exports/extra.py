"""The libraries of the optional extra `exports`, imported when somebody needs them, and their errors as one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Final

from google.api_core.exceptions import Forbidden, GoogleAPIError, NotFound, Unauthorized
from google.auth.exceptions import GoogleAuthError

from prober.exports.message import ExportError

EXTRA: Final = "exports"
_LENGTH_MAX: Final = 300


def required(module: str, distribution: str) -> Any:
    """A library. Raises `ExportError` if it is not installed."""
    try:
        return import_module(module)
    except ImportError:
        raise ExportError(f"{distribution} is not installed: pip install 'ordering-keys-prober[{EXTRA}]'") from None


@contextmanager
def google_errors(where: str) -> Iterator[None]:
    """What Google's libraries and the system raise inside becomes an `ExportError` that says what to do."""
    try:
        yield
    except (Forbidden, Unauthorized) as error:
        roles = "roles/storage.objectViewer for a bucket, roles/bigquery.dataViewer and roles/bigquery.jobUser for a table"
        raise ExportError(f"{where}: no permission to read it ({_line(error)}); it takes {roles}") from None
    except NotFound as error:
        raise ExportError(f"{where}: does not exist ({_line(error)})") from None
    except GoogleAuthError as error:
        raise ExportError(f"{where}: no credentials ({_line(error)}); try: gcloud auth application-default login") from None
    except (GoogleAPIError, OSError) as error:
        raise ExportError(f"{where}: cannot be read ({_line(error)})") from None


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:_LENGTH_MAX]
