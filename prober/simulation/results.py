"""Totals of simulations in a file, so that ten thousand hours can be accumulated over many starts.

The JSON document contains the kind of simulations, the digest of the program, the seeds, and the totals. It is rewritten regularly and at
the end; unwritten simulations are repeated at the next start.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

import prober
from prober.errors import ConfigError
from prober.simulation.detection import Detection
from prober.simulation.world import Simulated

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


FORMAT: Final = "ordering-prober-simulations"
WRITTEN_EVERY: Final = 100
"""Number of simulations between two writes; at most a few minutes are lost."""


@dataclass(frozen=True, slots=True)
class Simulations:
    """Kind of the simulations in a file: their length, and their faults (empty: all)."""

    hours: float
    faults: tuple[str, ...] = ()
    program: str = field(default_factory=program)
    format: str = FORMAT


@dataclass(slots=True)
class _Document:
    simulations: Simulations
    seeds: list[tuple[int, int]]
    detection: Detection


_DOCUMENT: Final = TypeAdapter(_Document)


class Results:
    """Results in a file for simulations of `hours` with only these faults; `detection`: their totals.

    Raises ConfigError if the file contains other simulations, or cannot be read or written.
    """

    def __init__(self, path: Path, hours: float, faults: tuple[str, ...] = ()) -> None:
        self._path = path
        wanted = Simulations(hours, faults)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            kept = _DOCUMENT.validate_json(path.read_bytes()) if path.exists() else _Document(wanted, [], Detection())
        except OSError as error:
            raise ConfigError(f"the results cannot be kept in {path}: {error}") from error
        except ValidationError as error:
            what = error.errors()[0]
            raise ConfigError(f"{path} has no results of simulations: {what['msg']}, at {what['loc']}") from error
        if kept.simulations != wanted:
            raise ConfigError(f"{path} has simulations of another program, length or faults: name a new file, or remove it")
        self._simulations, self.detection = wanted, kept.detection
        self._seeds = {seed for first, last in kept.seeds for seed in range(first, last + 1)}
        self._not_written = 0

    def without(self, seeds: Iterable[int]) -> Sequence[int]:
        """Return those of the seeds that are not simulated yet."""
        return [seed for seed in seeds if seed not in self._seeds]

    @property
    def seeds(self) -> Sequence[tuple[int, int]]:
        """Seeds with results: the first and the last of each unbroken range."""
        rows: list[tuple[int, int]] = []
        for seed in sorted(self._seeds):
            if rows and rows[-1][1] == seed - 1:
                rows[-1] = (rows[-1][0], seed)
            else:
                rows.append((seed, seed))
        return rows

    def add(self, simulated: Simulated) -> None:
        """Add a simulation. It is lost if the program ends before the next `write`, which follows every `WRITTEN_EVERY`."""
        self.detection.add(simulated)
        self._seeds.add(simulated.plan.seed)
        self._not_written += 1
        if self._not_written >= WRITTEN_EVERY:
            self.write()

    def write(self) -> None:
        """Write the file atomically. Raises ConfigError if that fails."""
        document = _Document(self._simulations, list(self.seeds), self.detection)
        beside = self._path.with_name(f"{self._path.name}.new")
        try:
            beside.write_bytes(_DOCUMENT.dump_json(document, indent=1) + b"\n")
            beside.replace(self._path)
        except OSError as error:
            raise ConfigError(f"the results cannot be kept in {self._path}: {error}") from error
        self._not_written = 0
