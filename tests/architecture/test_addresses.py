"""Nothing in the tree depends on one machine or names the place that packages come from."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.architecture import tree

# Each pattern is written so that it does not match itself.
MACHINE_PATH = re.compile(r"(?<![\w.~-])/(home|root|Users|work|private)/[\w.]|[.]pyen[v]|fil[e]://")
PACKAGE_ADDRESS = re.compile(
    r"pypi[.]org|python[h]osted|(--|_|PIP_)(extra[-_])?inde[x][-_]url|--find[-]links|--trusted[-]host", re.IGNORECASE
)


def addresses(path: Path, text: str) -> list[str]:
    """Absolute paths of somebody's machine and addresses of package indexes."""
    return [
        f"{path}:{number}: {found[0]!r}"
        for number, line in enumerate(text.splitlines(), 1)
        if (found := MACHINE_PATH.search(line) or PACKAGE_ADDRESS.search(line))
    ]


def options_and_addresses_in_a_lock(path: Path, text: str) -> list[str]:
    """A locked file holds pinned versions and hashes only."""
    return [
        f"{path}: {line}" for line in text.splitlines() if not re.match(r"#|    --hash=sha256:|[a-z0-9-]+==", line) or "://" in line
    ]


def test_no_file_names_a_machine_or_a_package_index() -> None:
    tree.expect_none(complaint for path, text in tree.texts() for complaint in addresses(path, text))


def test_locks_hold_versions_and_hashes_only() -> None:
    locks = [(path, text) for path, text in tree.texts() if path.parts[0] == "constraints"]
    assert {path.name for path, _ in locks} >= {"build.txt", "dev.txt", "runtime.txt"}
    tree.expect_none(complaint for path, text in locks for complaint in options_and_addresses_in_a_lock(path, text))


@pytest.mark.parametrize(
    "line",
    [
        "see /" + "home/ada/project",
        "~/.py" + "env/shims/python",
        "'/" + "Users/ada'",
        "python = /" + "root/.local/python",
        "file:" + "///opt/packages",
        "pip install --extra-index" + "-url x",
        "PIP_INDEX" + "_URL=x",
        "--find" + "-links wheels",
        "https://pypi" + ".org/simple",
    ],
)
def test_an_address_is_noticed(line: str) -> None:
    assert len(addresses(Path("a.txt"), f"first line\n{line}\n")) == 1


@pytest.mark.parametrize(
    "line",
    ["https://cloud.google.com/pubsub/docs/ordering", "#!/usr/bin/env bash", "docs/" + "work/home/", "127.0.0.1:8085", "/bin/sh"],
)
def test_an_ordinary_line_is_let_pass(line: str) -> None:
    assert addresses(Path("a.txt"), line) == []


def test_an_option_in_a_lock_is_noticed() -> None:
    path = Path("constraints/dev.txt")
    assert options_and_addresses_in_a_lock(path, "# made by\nrich==15.0.0 \\\n    --hash=sha256:00\n") == []
    assert options_and_addresses_in_a_lock(path, "-i somewhere") == ["constraints/dev.txt: -i somewhere"]
    assert options_and_addresses_in_a_lock(path, "rich>=15") == ["constraints/dev.txt: rich>=15"]
