"""What the service is made of: every part pinned with hashes and listed in the bill of materials, under licences that we may ship."""

from __future__ import annotations

import json
import re
import subprocess
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.architecture import tree
from tests.architecture.tree import ROOT

BIN = ROOT / ".venv" / "bin"
_PINNED = re.compile(r"^([a-z0-9._-]+)==(\S+)", re.MULTILINE)
_PIN = re.compile(r"^[a-z0-9._-]+==[^\\\n]*", re.MULTILINE)
PROJECT = "ordering-keys-prober"
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


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("build.txt", ()),
        ("runtime.txt", tuple((PROJECT, extra) for extra in ("", "exports", "monitoring", "nats"))),
        ("jobs.txt", tuple((PROJECT, extra) for extra in ("", "exports", "monitoring", "nats", "jobs"))),
        ("dev.txt", ((PROJECT, ""), ("mypy", ""))),
    ],
)
def test_a_lock_lacks_nothing_since_nothing_is_resolved_when_it_is_installed(
    name: str, wanted: tuple[tuple[str, str], ...]
) -> None:
    parts = pinned_here(name)
    asked = {*wanted, *((part, "") for part in parts)}
    looked_at: set[tuple[str, str]] = set()
    while asked:
        part, extra = asked.pop()
        looked_at.add((part, extra))
        for needed in needs(part, extra):
            other = canonicalize_name(needed.name)
            assert other in parts, f"{part} needs {needed}, which {name} lacks"
            assert needed.specifier.contains(parts[other]), f"{part} needs {needed}, {name} has {parts[other]}"
            asked |= {(other, more) for more in needed.extras} - looked_at


def pinned_here(name: str) -> dict[str, str]:
    """The versions in a lock of what is installed on this machine."""
    pins = map(Requirement, _PIN.findall((ROOT / "constraints" / name).read_text(encoding="utf-8")))
    return {canonicalize_name(pin.name): str(pin.specifier)[2:] for pin in pins if pin.marker is None or pin.marker.evaluate()}


def needs(part: str, extra: str) -> list[Requirement]:
    """What an installed package needs here, with one of its extras; the project is installed so that it can be edited, nowhere else."""
    said = [each for each in map(Requirement, metadata.requires(part) or []) if (part, each.name) != (PROJECT, "editables")]
    return [each for each in said if each.marker is None or each.marker.evaluate({"extra": extra})]


def test_whatever_installs_a_lock_resolves_nothing() -> None:
    installs = [
        (path, line)
        for path, text in tree.texts()
        for line in text.splitlines()
        if path.parts[0] != "tests" and "pip" in line and "install --require-hashes" in line
    ]
    assert {path.name for path, _ in installs} == {"Makefile", "Dockerfile", "jobs.md"}
    assert all("--no-deps" in line for _, line in installs)


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
