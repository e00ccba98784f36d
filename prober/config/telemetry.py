"""The section about traces and logs."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import BeforeValidator, Field

from prober.config.values import HttpUrl, Section, read_ratio


class LogFormat(StrEnum):
    """How log lines look."""

    TEXT = "text"
    JSON = "json"


class LogLevel(StrEnum):
    """From which level on lines are written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Telemetry(Section):
    """Traces and logs of the prober itself."""

    otlp_endpoint: HttpUrl | None = None
    """Collector for traces, OTLP over gRPC, such as http://localhost:4317; without it there are none. Headers, if it needs any, come
    from OTEL_EXPORTER_OTLP_HEADERS."""
    sampling: Annotated[float, BeforeValidator(read_ratio), Field(ge=0, le=1)] = 0.1
    """The share of passed runs that is traced. Others always are."""
    log_format: LogFormat = LogFormat.TEXT
    """One JSON object per line, or text."""
    log_level: LogLevel = LogLevel.INFO
    """The least important lines to write."""
