"""The format of log lines: text for people, or one JSON object per line for machines. The rest is the standard library's `logging`.

Modules log through `logging.getLogger(__name__)`, and pass fields as `extra`:

    _log.info("run ended", extra={"target": "production", "verdict": "PASS"})

    2026-12-20T12:00:00.123Z INFO prober.service: run ended target=production verdict=PASS
    {"time": "2026-12-20T12:00:00.123Z", "severity": "INFO", "logger": "prober.service", "message": "run ended", "target": "production"}

Names in JSON are those that Google Cloud Logging recognizes (docs.cloud.google.com/logging/docs/structured-logging).

Values without a JSON form are written as text; a secret of the configuration as a row of asterisks.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:  # the jobs run where Spark is, which has no OpenTelemetry
    from opentelemetry import trace

OURS: Final = ("api", "prober", "spark_jobs", "uvicorn")
"""Loggers that use the configured level. Libraries write warnings and worse."""

_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message"}
"""The attributes of every record, and those that uvicorn adds for terminals: all others are fields."""

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def set_up(stream: TextIO, level_name: str, *, as_json: bool) -> None:
    """Send all log records of this process to `stream`, each as one line; warnings of Python too.

    level_name   the least important level of the prober's own loggers, such as `info`.

    Handlers that others have installed are removed. uvicorn installs its own when it is configured, unless its `log_config` is None.
    """
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter() if as_json else TextFormatter())
    level = logging.getLevelNamesMapping()[level_name.upper()]
    logging.basicConfig(level=max(level, logging.WARNING), handlers=[handler], force=True)
    logging.captureWarnings(True)
    for name in ("google", "uvicorn", "uvicorn.access", "uvicorn.error"):
        _forward(logging.getLogger(name))
    for name in OURS:
        logging.getLogger(name).setLevel(level)


def span_context_of(run_id: str) -> trace.SpanContext:
    """Return the trace and the root span that a run has, or would have if it were traced. They derive from its id."""
    from opentelemetry import trace

    digest = blake2b(run_id.encode(), digest_size=24).digest()
    return trace.SpanContext(int.from_bytes(digest[:16]), int.from_bytes(digest[16:]), is_remote=False)


def trace_id_of(run_id: str) -> str:
    """Return the trace id of a run: 32 hexadecimal digits."""
    return f"{span_context_of(run_id).trace_id:032x}"


def lines_of_run(run_id: str) -> AbstractContextManager[trace.Span]:
    """Assign the trace of a run to the lines logged inside, in this task and those that it starts."""
    from opentelemetry import trace

    return trace.use_span(trace.NonRecordingSpan(span_context_of(run_id)), record_exception=False, set_status_on_exception=False)


def _forward(logger: logging.Logger) -> None:
    """Reset a logger to its state without configuration."""
    for handler in tuple(logger.handlers):
        logger.removeHandler(handler)
    logger.setLevel(logging.NOTSET)
    logger.propagate = True


def _fields(record: logging.LogRecord) -> dict[str, object]:
    return {name: value for name, value in vars(record).items() if name not in _STANDARD}


def _time(record: logging.LogRecord) -> str:
    """Format the time of a record by RFC 3339 in UTC, with milliseconds."""
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class JsonFormatter(logging.Formatter):
    """One JSON object per line: time, severity, logger, message, the fields, `exception` with the traceback, and the active span.

    A field with the name of one of these is omitted. Numbers without a JSON form are written as text.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as JSON, in ASCII."""
        line = {"time": _time(record), "severity": record.levelname, "logger": record.name, "message": record.getMessage()}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return _json({**line, **_fields(record), **line, **_active_span()})


def _active_span() -> dict[str, object]:
    """Return the OpenTelemetry span of this thread or task: of a run, or of an instrumentation of the API.

    Whether a run is traced is decided after it has ended. A process that has not imported OpenTelemetry has no span.
    """
    if "opentelemetry.trace" not in sys.modules:
        return {}
    from opentelemetry import trace

    context = trace.get_current_span().get_span_context()
    if not context.is_valid:
        return {}
    return {
        "logging.googleapis.com/trace": trace.format_trace_id(context.trace_id),
        "logging.googleapis.com/spanId": trace.format_span_id(context.span_id),
        **({"logging.googleapis.com/trace_sampled": True} if context.trace_flags.sampled else {}),
    }


def _json(line: Mapping[str, object]) -> str:
    try:
        return json.dumps(line, default=str, allow_nan=False)
    except (TypeError, ValueError):  # a key that is no string, a number that is none, a list that contains itself
        return json.dumps({name: str(value) for name, value in line.items()})


class TextFormatter(logging.Formatter):
    """Time, level, logger, message and fields on one line; a traceback follows on separate lines, indented.

    Control characters are escaped: the answer of a service must neither look like another line nor reach the terminal.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as text."""
        fields = "".join(f" {name}={_quoted(str(value))}" for name, value in _fields(record).items())
        line = _escaped(f"{_time(record)} {record.levelname} {record.name}: {record.getMessage()}{fields}")
        traceback = self.formatException(record.exc_info).split("\n") if record.exc_info else []
        return "\n  ".join([line, *map(_escaped, traceback)])


def _escaped(text: str) -> str:
    return _CONTROL.sub(lambda found: repr(found[0])[1:-1], text)


def _quoted(value: str) -> str:
    return value if re.fullmatch(r"[^\s\"=]+", value) else json.dumps(value, ensure_ascii=False)
