"""What tells one program from another by which simulations may have come out otherwise: its source, as far as they run it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final

import prober

FIRST: Final = "prober.simulation.world"
"""Module of the simulation. The program consists of this module and its imports, recursively."""
DIGITS: Final = 16


@cache
def program() -> str:
    """Return a digest of the program; comments, docstrings and the layout of the source do not count."""
    digest = sha256()
    for name, tree in sorted(_modules().items()):
        digest.update(f"{name} {ast.dump(tree)}".encode())
    return digest.hexdigest()[:DIGITS]


def _modules() -> dict[str, ast.Module]:
    """Return the modules of the program by their names."""
    found: dict[str, ast.Module] = {}
    waiting = [FIRST]
    while waiting:
        name = waiting.pop()
        path = _file(name)
        if name not in found and path is not None:
            found[name] = _without_docstrings(ast.parse(path.read_bytes()))
            waiting += _imported(found[name])
    return found


def _file(module: str) -> Path | None:
    """Return the path of a module of the project; None for other modules, and for names that are not modules."""
    first, *names = module.split(".")
    path = Path(prober.__file__).parent.joinpath(*names)
    files = (path / "__init__.py", path.with_suffix(".py"))
    return next((file for file in files if first == prober.__name__ and file.is_file()), None)


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [one for one in node.body if not _is_text(one)]
    return tree


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
