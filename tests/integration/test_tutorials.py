"""The commands of the tutorials have the results that the tutorials state, with other ports."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.commands import PROGRAM, ROOT
from tests.integration.programs import eventually, get, server, service


def commands(tutorial: str) -> list[str]:
    """The blocks of a tutorial for a shell, in their order."""
    page = (ROOT / "docs" / "tutorials" / f"{tutorial}.md").read_text(encoding="utf-8")
    return re.findall(r"^```sh\n(.*?)^```", page, re.DOTALL | re.MULTILINE)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A folder with the programs of `.venv/bin` that the tutorials call."""
    programs = {"ordering-prober": f"{PROGRAM[0]} -c '{PROGRAM[2]}'", "python": sys.executable}
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    for name, call in programs.items():
        script = tmp_path / ".venv" / "bin" / name
        script.write_text(f'#!/bin/sh\nexec {call} "$@"\n', encoding="utf-8")
        script.chmod(0o755)
    return tmp_path


def environ(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), **more}


def shell(line: str, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["sh", "-c", line], cwd=folder, env=environ(**more), capture_output=True, text=True, check=False)


def test_a_first_finding(clone: Path) -> None:
    start, status, verify, restart = commands("first-finding")
    faults = re.fullmatch(r"ORDERING_PROBER_EMBEDDED__FAULTS='(.*)' make run\n", start)
    assert faults is not None
    assert restart == "make run\n"
    with service(ORDERING_PROBER_EMBEDDED__FAULTS=faults[1]) as (_, url):
        listed = f"{url}/api/v1/findings?status=violation"
        eventually(lambda: bool(json.loads(get(listed))["items"]))
        finding = json.loads(get(listed))["items"][0]
        done = shell(status, clone, ORDERING_PROBER_API__PORT=str(urlsplit(url).port))
        assert (done.returncode, done.stdout.partition(" ")[0]) == (1, "FAIL"), done
        done = shell(verify.replace("http://127.0.0.1:8080", url).replace("ID", finding["finding_id"]), clone)
    assert done.returncode == 1, done
    assert f"{finding['kind']} (violation)" in done.stdout
    assert "<-- wrong" in done.stdout


def test_your_own_stream(clone: Path) -> None:
    start, publish, observe = commands("own-stream")
    assert start == ".venv/bin/ordering-prober embedded\n"
    with server() as (_, address):
        publish, observe = (each.replace("127.0.0.1:8085", address) for each in (publish, observe))
        with subprocess.Popen(
            ["sh", "-c", publish.replace(".venv/bin/python", "exec .venv/bin/python")],
            cwd=clone, env=environ(), stdout=subprocess.PIPE, text=True,
        ) as publisher:  # fmt: skip
            assert publisher.stdout is not None
            assert publisher.stdout.readline() == "publishing\n"
            done = shell(observe, clone)
            publisher.kill()
    assert done.returncode == 1, done
    assert "PUBLISHED_OUT_OF_ORDER (the publishers), key acct-7" in done.stdout
