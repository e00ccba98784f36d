"""What the service is made of: every part pinned with hashes and listed in the bill of materials, under licences that we may ship."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.architecture.tree import ROOT

BIN = ROOT / ".venv" / "bin"
_PINNED = re.compile(r"^([a-z0-9._-]+)==(\S+)", re.MULTILINE)
PERMISSIVE = (
    "apache",
    "bsd",
    "isc",
    "mit",
    "mpl",
    "mozilla public license 2.0",
    "python software foundation",
    "psf",
    "zlib",
    "cc0",
)
COPYLEFT_OF_LIBRARIES = {"psycopg", "psycopg-binary"}
"""LGPL: used as they are, as libraries that anybody may replace."""


def pinned(name: str) -> dict[str, str]:
    return dict(_PINNED.findall((ROOT / "constraints" / name).read_text(encoding="utf-8")))


def run(program: str, *arguments: str) -> str:
    return subprocess.run([str(BIN / program), *arguments], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("name", ["runtime.txt", "jobs.txt"])
def test_every_part_is_under_a_licence_that_we_may_ship(name: str) -> None:
    parts = pinned(name)
    listed = json.loads(run("pip-licenses", "--from=mixed", "--format=json", "--packages", *parts))
    names = {re.sub(r"[-_.]+", "-", each["Name"]).lower() for each in listed}
    elsewhere = {part for part in parts if part.startswith(("colorama", "win", "pywin", "tzdata", "uvloop"))}
    assert names >= parts.keys() - elsewhere
    for each in listed:
        licence = each["License"].lower()
        permitted = any(word in licence for word in PERMISSIVE) and "gpl" not in licence
        assert permitted or ("lgpl" in licence and each["Name"].lower() in COPYLEFT_OF_LIBRARIES), each


def test_the_bill_of_materials_has_every_part_with_its_version_and_hashes(tmp_path: Path) -> None:
    written = tmp_path / "sbom.json"
    run("cyclonedx-py", "requirements", str(ROOT / "constraints/runtime.txt"), "--output-file", str(written))
    components = {each["name"]: each for each in json.loads(written.read_text(encoding="utf-8"))["components"]}
    assert {name: each["version"] for name, each in components.items()} == pinned("runtime.txt")
    assert all(any(link.get("hashes") for link in each["externalReferences"]) for each in components.values())
