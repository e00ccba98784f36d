"""What is logged comes out as one line of text or JSON, from everybody, with its fields and without secrets."""

from __future__ import annotations

import asyncio
import json
import logging
import logging.config
import warnings
from collections.abc import Iterator
from datetime import datetime
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, use_span
from pydantic import SecretStr
from uvicorn.config import LOGGING_CONFIG

from prober.config.sections import LogFormat, LogLevel
from prober.logs import lines_of_run, set_up, trace_id_of

LOGGERS = ("", "api", "prober", "py.warnings", "uvicorn", "uvicorn.access", "uvicorn.error")


@pytest.fixture(autouse=True)
def process_as_before() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in LOGGERS]
    before = [(logger.handlers[:], logger.level, logger.propagate) for logger in loggers]
    yield
    logging.captureWarnings(False)
    for logger, (handlers, level, propagate) in zip(loggers, before, strict=True):
        logger.handlers[:], logger.propagate = handlers, propagate
        logger.setLevel(level)


def started(log_format: LogFormat, log_level: LogLevel = LogLevel.INFO) -> StringIO:
    stream = StringIO()
    set_up(stream, log_level, as_json=log_format is LogFormat.JSON)
    return stream


def objects(stream: StringIO) -> list[dict[str, Any]]:
    return [json.loads(line, parse_constant=pytest.fail) for line in stream.getvalue().splitlines()]


def test_a_line_of_json_has_time_level_logger_message_and_fields() -> None:
    stream = started(LogFormat.JSON)
    logging.getLogger("prober.service").info("run %s ended", "r1", extra={"verdict": "PASS", "duration_s": 1.5, "counts": {"a": 1}})
    (line,) = objects(stream)
    assert list(line)[:4] == ["time", "severity", "logger", "message"]
    assert datetime.fromisoformat(line["time"]).utcoffset() is not None
    assert line.pop("time").endswith("Z")
    assert line == {
        "severity": "INFO",
        "logger": "prober.service",
        "message": "run r1 ended",
        "verdict": "PASS",
        "duration_s": 1.5,
        "counts": {"a": 1},
    }


def test_a_line_of_json_names_the_active_span_as_cloud_logging_does() -> None:
    stream = started(LogFormat.JSON)
    context = SpanContext(0xAB, 0xCD, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))
    with use_span(NonRecordingSpan(context)):
        logging.getLogger("prober").info("inside")
    logging.getLogger("prober").info("outside")
    inside, outside = objects(stream)
    assert {name: value for name, value in inside.items() if "/" in name} == {
        "logging.googleapis.com/trace": f"{'0' * 30}ab",
        "logging.googleapis.com/spanId": f"{'0' * 14}cd",
        "logging.googleapis.com/trace_sampled": True,
    }
    assert not [name for name in outside if "/" in name]


def test_lines_of_a_run_name_its_trace_also_in_tasks_that_it_starts() -> None:
    stream = started(LogFormat.JSON)

    async def say() -> None:
        logging.getLogger("prober").info("inside")

    async def run() -> None:
        with lines_of_run("ordering-1"):
            await asyncio.create_task(say())
        await say()

    asyncio.run(run())
    inside, outside = objects(stream)
    assert inside["logging.googleapis.com/trace"] == trace_id_of("ordering-1")
    assert "logging.googleapis.com/trace_sampled" not in inside
    assert not [name for name in outside if "/" in name]


def test_a_line_of_text_has_the_same() -> None:
    stream = started(LogFormat.TEXT)
    record = logging.makeLogRecord(
        {"name": "prober.service", "levelno": logging.INFO, "levelname": "INFO", "msg": "run ended", "created": 1797768000.1234}
    )
    record.verdict, record.reason, record.empty = "PASS", "a b", ""
    logging.getLogger("prober.service").handle(record)
    assert stream.getvalue() == '2026-12-20T12:00:00.123Z INFO prober.service: run ended verdict=PASS reason="a b" empty=""\n'


@pytest.mark.parametrize("log_format", LogFormat)
def test_a_secret_never_shows(log_format: LogFormat) -> None:
    stream = started(log_format)
    token = SecretStr("hunter2")
    logging.getLogger("prober").warning(
        "token %s", token, extra={"token": token, "inside": {"list": [token]}, "api": Sections(token)}
    )
    assert "*****" in stream.getvalue()
    assert "hunter2" not in stream.getvalue()


class Sections:
    """A value that JSON has no form for."""

    def __init__(self, token: SecretStr) -> None:
        self.token = token

    def __str__(self) -> str:
        return f"token={self.token!r}"


def raise_and_log() -> None:
    try:
        raise ZeroDivisionError("one\ntwo")
    except ZeroDivisionError:
        logging.getLogger("prober").exception("it failed")


def test_an_exception_is_one_field() -> None:
    stream = started(LogFormat.JSON)
    raise_and_log()
    (line,) = objects(stream)
    assert line["severity"] == "ERROR"
    assert line["exception"].startswith("Traceback (most recent call last):\n")
    assert line["exception"].endswith("ZeroDivisionError: one\ntwo")


def test_in_text_the_traceback_follows() -> None:
    stream = started(LogFormat.TEXT)
    raise_and_log()
    lines = stream.getvalue().splitlines()
    assert lines[0].endswith("ERROR prober: it failed")
    assert lines[1] == "  Traceback (most recent call last):"
    assert lines[-2:] == ["  ZeroDivisionError: one", "  two"]


@pytest.mark.parametrize("forged", ["a\n2026 ERROR forged", "a\r\x1b[31mred", "a\u2028b", "a\x85b", "a\ud800b"])
@pytest.mark.parametrize("log_format", LogFormat)
def test_what_others_say_stays_on_its_line(log_format: LogFormat, forged: str) -> None:
    stream = started(log_format)
    logging.getLogger("prober").info("it said %s", forged, extra={"answer": forged})
    written = stream.getvalue()
    assert len(written.splitlines()) == 1
    assert written.removesuffix("\n").isprintable()
    if log_format is LogFormat.JSON:
        assert json.loads(written)["answer"] == forged


@pytest.mark.parametrize("value", [float("inf"), float("nan"), {(1, 2): 3}, [float("-inf")]])
def test_what_json_does_not_have_is_text(value: object) -> None:
    stream = started(LogFormat.JSON)
    logging.getLogger("prober").info("odd", extra={"value": value})
    (line,) = objects(stream)
    assert line["value"] == str(value)


def test_what_json_has_stays_what_it_is_beside_other_values() -> None:
    stream = started(LogFormat.JSON)
    logging.getLogger("prober").info("kept", extra={"count": 1, "path": Path("a"), "when": {"at": datetime(2026, 12, 20)}})
    (line,) = objects(stream)
    assert (line["count"], line["path"], line["when"]) == (1, "a", {"at": "2026-12-20 00:00:00"})


def test_a_field_cannot_hide_the_line() -> None:
    stream = started(LogFormat.JSON)
    logging.getLogger("prober").info("said", extra={"severity": "ERROR", "logger": "x", "time": "y", "exception": "z"})
    (line,) = objects(stream)
    assert (line["severity"], line["logger"]) == ("INFO", "prober")
    assert line["time"] != "y"


def test_the_level_is_ours_and_libraries_only_warn() -> None:
    stream = started(LogFormat.JSON, LogLevel.DEBUG)
    for name in ("prober.x", "api.x", "uvicorn.access", "urllib3.x", "google.auth"):
        logging.getLogger(name).debug("debug")
        logging.getLogger(name).warning("warning")
    said = [(line["logger"], line["severity"]) for line in objects(stream)]
    assert said == [
        *((name, level) for name in ("prober.x", "api.x", "uvicorn.access") for level in ("DEBUG", "WARNING")),
        ("urllib3.x", "WARNING"),
        ("google.auth", "WARNING"),
    ]


def test_a_higher_level_holds_for_all() -> None:
    logging.config.dictConfig(LOGGING_CONFIG)
    stream = started(LogFormat.JSON, LogLevel.ERROR)
    for name in ("prober", "uvicorn.access", "urllib3", "google"):
        logging.getLogger(name).warning("warning")
        logging.getLogger(name).error("error")
    assert [line["severity"] for line in objects(stream)] == ["ERROR"] * 4


def test_uvicorn_goes_the_same_way() -> None:
    logging.config.dictConfig(LOGGING_CONFIG)
    stream = started(LogFormat.JSON)
    uvicorn.Config(app="nowhere:app", log_config=None)
    logging.getLogger("uvicorn.error").info("Started", extra={"color_message": "\x1b[1mStarted"})
    logging.getLogger("uvicorn.access").info('%s - "%s %s" %d', "127.0.0.1", "GET", "/", 200)
    assert [(line["logger"], line["message"]) for line in objects(stream)] == [
        ("uvicorn.error", "Started"),
        ("uvicorn.access", '127.0.0.1 - "GET /" 200'),
    ]
    assert "color_message" not in stream.getvalue()


def test_setting_up_again_replaces() -> None:
    first = started(LogFormat.TEXT)
    second = started(LogFormat.JSON)
    logging.getLogger("prober").info("once")
    assert first.getvalue() == ""
    assert len(objects(second)) == 1


@pytest.mark.filterwarnings("always")
def test_warnings_of_python_are_lines() -> None:
    stream = started(LogFormat.JSON)
    warnings.warn("old", DeprecationWarning, stacklevel=1)
    (line,) = objects(stream)
    assert line["logger"] == "py.warnings"
    assert "DeprecationWarning: old" in line["message"]
