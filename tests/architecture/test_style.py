"""Rules of style that no tool checks, and for each the proof that it can fail."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.architecture import tree

MODULE_LINES_MAX = 400
FUNCTION_LINES_MAX = 60
VAGUE_NAMES = re.compile(r"(.*_)?(utils?|helpers?|managers?|misc|common)")
UNFINISHED = re.compile(r"\b(TO[D]O|FIX[M]E)\b")


def long_module(path: Path, text: str) -> list[str]:
    """A module should fit into a reader's head."""
    lines = len(text.splitlines())
    return [f"{path}: {lines} lines, the limit is {MODULE_LINES_MAX}"] if lines > MODULE_LINES_MAX else []


def long_functions(path: Path, text: str) -> list[str]:
    """A function should fit on a screen, its docstring included."""
    return [
        f"{path}:{node.lineno}: {node.name} has {lines} lines, the limit is {FUNCTION_LINES_MAX}"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (lines := (node.end_lineno or node.lineno) - node.lineno + 1) > FUNCTION_LINES_MAX
    ]


def vague_name(path: Path) -> list[str]:
    """A module is named after the idea it holds."""
    names = (*path.parts[:-1], path.stem)
    return [f"{path}: {name!r} says nothing about what is inside" for name in names if VAGUE_NAMES.fullmatch(name)]


def unfinished(path: Path, text: str) -> list[str]:
    """What is not done is an issue, not a comment."""
    return [
        f"{path}:{number}: {found[0]}" for number, line in enumerate(text.splitlines(), 1) if (found := UNFINISHED.search(line))
    ]


def test_modules_are_short() -> None:
    tree.expect_none(complaint for path, text in tree.sources() for complaint in long_module(path, text))


def test_functions_are_short() -> None:
    tree.expect_none(complaint for path, text in tree.sources() for complaint in long_functions(path, text))


def test_modules_are_named_after_an_idea() -> None:
    tree.expect_none(complaint for path, _ in tree.sources() for complaint in vague_name(path))


def test_nothing_is_left_for_later() -> None:
    tree.expect_none(complaint for path, text in tree.texts() for complaint in unfinished(path, text))


def test_a_long_module_is_noticed() -> None:
    path = Path("a.py")
    assert long_module(path, "x = 1\n" * 400) == []
    assert long_module(path, "x = 1\n" * 401) == ["a.py: 401 lines, the limit is 400"]


def test_a_long_function_is_noticed() -> None:
    path = Path("a.py")
    assert long_functions(path, "def f():\n" + "    x = 1\n" * 59) == []
    assert long_functions(path, "\ndef f():\n" + "    x = 1\n" * 60) == ["a.py:2: f has 61 lines, the limit is 60"]
    assert long_functions(path, "class C:\n  async def g(self):\n" + "    x = 1\n" * 60) == [
        "a.py:2: g has 61 lines, the limit is 60"
    ]


def test_a_vague_name_is_noticed() -> None:
    assert vague_name(Path("prober/core/log.py")) == []
    assert vague_name(Path("prober/utils/log.py")) == ["prober/utils/log.py: 'utils' says nothing about what is inside"]
    assert vague_name(Path("api/run_manager.py")) == ["api/run_manager.py: 'run_manager' says nothing about what is inside"]


def test_an_unfinished_place_is_noticed() -> None:
    assert unfinished(Path("a.md"), "all done") == []
    for word in ("TO" + "DO", "FIX" + "ME"):
        assert unfinished(Path("a.md"), f"one\n# {word}: two") == [f"a.md:2: {word}"]
