"""The logs of a service go where platforms and people read them."""

from __future__ import annotations

import json
import logging

import pytest

from prober.cli.process import start_logs
from prober.config.sections import LogFormat, Telemetry
from tests.unit.test_logs import process_as_before  # noqa: F401  # a fixture


@pytest.mark.parametrize("log_format", LogFormat)
def test_logs_and_the_announcement_have_their_streams(log_format: LogFormat, capsys: pytest.CaptureFixture[str]) -> None:
    announce = start_logs(Telemetry(log_format=log_format))
    logging.getLogger("prober").info("begun")
    announce("http://localhost/")
    out, err = capsys.readouterr()
    if log_format is LogFormat.JSON:
        lines = [json.loads(line) for line in out.splitlines()]
        assert [(line["severity"], line["message"]) for line in lines] == [
            ("INFO", "begun"),
            ("INFO", "status page: http://localhost/"),
        ]
        assert err == ""
    else:
        assert out == "status page: http://localhost/\n"
        assert err.endswith(" INFO prober: begun\n")
