"""The commands of docs/api.md work as they stand there, and what it says of paths and limits is so."""

from __future__ import annotations

import base64
import re
import shlex
from argparse import ArgumentParser
from pathlib import Path
from urllib.parse import urlencode

import pytest
from pydantic import SecretStr

from api.app import COMPRESSED_BYTES_MIN, create_app
from api.middleware import BODY_BYTES_MAX, BODY_WAIT_MAX_S, TARGET_BYTES_MAX
from prober.config.models import Api, Reads
from prober.runs.probe_instance import ProbeInstance
from prober.serving.server import CONNECTIONS_MAX, READ_MIN_BYTES, WAIT_MAX_S
from prober.sinks.status.listings import PAGE_MAX
from tests.unit.api.asking import EUROPE, StubView, ask, view
from tests.unit.api.kept import fill, full_view, real

DOCUMENT = (Path(__file__).parents[3] / "docs" / "api.md").read_text()
COMMANDS = re.findall(r"^curl .*$", DOCUMENT, re.MULTILINE)
ADDRESS = "http://127.0.0.1:8080"


def arguments() -> ArgumentParser:
    """What of curl the document uses."""
    parser = ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("-X", dest="method", default="GET")
    parser.add_argument("-H", dest="headers", action="append", default=[])
    parser.add_argument("-d", dest="body")
    parser.add_argument("-u", dest="user")
    parser.add_argument("-o", dest="output")
    parser.add_argument("-i", action="store_true")
    parser.add_argument("-G", action="store_true")
    parser.add_argument("--data-urlencode", dest="data")
    return parser


@pytest.fixture(scope="module")
def asked() -> StubView:
    """A service with the token, and the finding, that the document speaks of."""
    asked = view(EUROPE, ProbeInstance("europe", "ordering", "library", interval_s=10.0))
    asked.archive = fill("document", real("ordering-1f3a9c02"))
    asked.settings = Api(token=SecretStr("open-sesame"), reads=Reads.OPEN)
    return asked


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_does_what_it_is_shown_for(command: str, asked: StubView) -> None:
    given = arguments().parse_args(shlex.split(command)[1:])
    assert given.url.startswith(f"{ADDRESS}/")
    path = given.url.removeprefix(ADDRESS) + (f"?{urlencode(dict([given.data.split('=', 1)]))}" if given.data else "")
    headers = dict(header.split(": ", 1) for header in given.headers)
    if given.user:
        asked.settings = Api(token=SecretStr("open-sesame"), reads=Reads.TOKEN)
        headers["Authorization"] = f"Basic {base64.b64encode(given.user.encode()).decode()}"
    response = ask(asked, path, given.method, headers, body=None if given.body is None else given.body.encode())
    started = given.method == "POST" and path.endswith("/runs")
    expected = 202 if started else 304 if "If-None-Match" in headers else 200
    assert response.status_code == expected, response.text
    if given.output:
        assert response.content


def test_every_path_is_listed() -> None:
    asked = full_view()
    paths = create_app(asked, asked.archive, asked.settings).openapi()["paths"]
    listed = set(re.findall(r"`(?:POST )?(/[a-z-]+[^`?]*)[`?]", DOCUMENT.partition("## A finding")[0]))
    assert {path.removeprefix("/api/v1") for path in paths if path.startswith("/api/v1")} == listed - {
        "/api/v1",
        "/docs",
        "/openapi.json",
    }


def test_the_limits_are_those_of_the_program() -> None:
    for said in (
        f"longer than {BODY_WAIT_MAX_S:.0f} s, has more than {BODY_BYTES_MAX >> 10} KiB",
        f"path and query have more than {TARGET_BYTES_MAX >> 10} KiB",
        f"`limit` is 1 to {PAGE_MAX}, 50 if",
        f"idle for {WAIT_MAX_S:.0f} s, and one over which the headers of a request take longer than {WAIT_MAX_S:.0f} s",
        f"less than {READ_MIN_BYTES / WAIT_MAX_S / 1024:.0f} KiB/s",
        f"There can be {CONNECTIONS_MAX} connections",
        f"Answers of {COMPRESSED_BYTES_MIN >> 10} KiB or more are compressed",
    ):
        assert said in DOCUMENT
