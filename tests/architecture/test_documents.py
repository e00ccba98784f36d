"""The documents and the commands agree with the tree."""

from __future__ import annotations

import re
import subprocess

from tests.architecture import tree

DOCUMENTED_COMMANDS = {"make run", "make test"}


def targets(makefile: str) -> set[str]:
    """The targets that a person calls, by name: those that are declared phony."""
    return {name for line in re.findall(r"^\.PHONY:(.*)$", makefile, re.MULTILINE) for name in line.split()}


def undocumented(makefile: str) -> set[str]:
    """Targets without a line of explanation."""
    return targets(makefile) - set(re.findall(r"^([a-z-]+):[^\n]*## \w", makefile, re.MULTILINE))


def unknown_commands(document: str, makefile: str) -> set[str]:
    """Calls of `make` in a document's code that would fail."""
    called = re.findall(r"(?:^\s*\$?\s*|`)make ([a-z][a-z-]*)", document, re.MULTILINE)
    return {f"make {name}" for name in called} - {f"make {name}" for name in targets(makefile)}


def unnamed(document: str, names: set[str]) -> set[str]:
    """Parts of the tree that a document does not mention."""
    return {name for name in names if not re.search(rf"(?<![\w-]){re.escape(name)}(?!\w)", document)}


def folders() -> set[str]:
    """Every package folder, as `history/`."""
    return {f"{path.parent.name}/" for path, _ in tree.sources(*tree.PACKAGES)}


def read(name: str) -> str:
    """The text of a file at the root."""
    return (tree.ROOT / name).read_text(encoding="utf-8")


def test_every_target_is_listed_by_make_help() -> None:
    assert undocumented(read("Makefile")) == set()
    listing = subprocess.run(["make", "help"], cwd=tree.ROOT, capture_output=True, text=True, check=True).stdout
    assert {line.split()[1] for line in listing.splitlines() if line.startswith("make ")} == targets(read("Makefile"))


def test_the_readme_names_the_two_commands_and_none_that_is_missing() -> None:
    assert unnamed(read("README.md"), DOCUMENTED_COMMANDS) == set()
    assert {name.removeprefix("make ") for name in DOCUMENTED_COMMANDS} <= targets(read("Makefile"))
    assert unknown_commands(read("README.md"), read("Makefile")) == set()


def test_the_contributing_page_names_no_command_that_is_missing() -> None:
    assert unknown_commands(read("CONTRIBUTING.md"), read("Makefile")) == set()


def test_the_architecture_page_names_every_room() -> None:
    assert unnamed(read("ARCHITECTURE.md"), folders()) == set()


def test_what_the_ways_of_data_pass_is_there() -> None:
    named = re.findall(r"`(\w+/(?:\w+/)*\w+\.py)`", read("ARCHITECTURE.md"))
    assert len(named) > 8
    assert [name for name in named if not any((folder / name).is_file() for folder in (tree.ROOT, tree.ROOT / "prober"))] == []


def test_an_undocumented_target_is_noticed() -> None:
    assert undocumented(".PHONY: run\nrun: stamp  ## Run it\n\techo") == set()
    assert undocumented(".PHONY: run test\nrun: stamp  ## Run it\ntest: stamp\n") == {"test"}


def test_a_missing_command_is_noticed() -> None:
    makefile = ".PHONY: run\nrun:  ## Run it\n"
    assert unknown_commands("Call `make run`, and make sure that it works:\n\n    $ make run\n", makefile) == set()
    assert unknown_commands("```\nmake walk\n```\nor `make fly`", makefile) == {"make walk", "make fly"}


def test_an_unnamed_part_is_noticed() -> None:
    assert unnamed("`core/` holds `events.py`", {"core/", "events.py"}) == set()
    assert unnamed("`spark-core/` holds `my_events.py`", {"core/", "events.py"}) == {"core/", "events.py"}
