"""What came of simulations, kept in a file, so that ten thousand hours can be gathered over many starts.

JSON lines: the first says which simulations they are and of which program, each other one is a seed. A line is written when its simulation
is over; one that was cut off in the middle counts as not written.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Container, Iterator
from dataclasses import fields
from functools import cache
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any, Final

import prober
from prober.config.models import ProbeName
from prober.core.verdict import Verdict
from prober.errors import ConfigError
from prober.simulation.observation import RunNote
from prober.simulation.plan import planned
from prober.simulation.world import Simulated, defaults

FORMAT: Final = "ordering-prober-simulations"
PROGRAM_DIGITS: Final = 16


@cache
def program() -> str:
    """What tells this program from others, by which it might have been simulated otherwise: a digest of its source."""
    root, digest = Path(prober.__file__).parent, sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:PROGRAM_DIGITS]


class Results:
    """The simulations of so many hours with only these faults (all that there are if none is named) that a file has.

    seeds   those that there are.

    Raises ConfigError if the file has others, or cannot be read or written.
    """

    def __init__(self, path: Path, hours: float, faults: tuple[str, ...] = ()) -> None:
        self._path, self._hours, self._faults = path, hours, faults
        self._probes = defaults().targets[0].probes
        header = f"{json.dumps({'format': FORMAT, 'program': program(), 'hours': hours, 'faults': list(faults)})}\n"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists() or not path.stat().st_size:
                path.write_text(header, encoding="utf-8")
            self._cut_off_what_was_not_written(header.encode())
            self.seeds = {line["seed"] for line in self._lines()}
        except OSError as error:
            raise ConfigError(f"the results cannot be kept in {path}: {error}") from error
        except (ValueError, TypeError, KeyError) as error:
            raise ConfigError(f"{path} has no results of simulations: {error!r}") from error

    def _cut_off_what_was_not_written(self, header: bytes) -> None:
        with self._path.open("rb+") as file:
            if file.readline() != header:
                raise ConfigError(
                    f"{self._path} has simulations of another program, length or faults: name a new file, or remove it"
                )
            whole = file.tell()
            for line in file:
                whole += len(line) if line.endswith(b"\n") else 0
            file.truncate(whole)

    def _lines(self) -> Iterator[Any]:
        with self._path.open(encoding="utf-8") as file:
            yield from map(json.loads, islice(file, 1, None))

    def of(self, seeds: Container[int]) -> Iterator[Simulated]:
        """What came of these, as far as it is there, in the order in which it was written."""
        for line in self._lines():
            if line["seed"] in seeds:
                plan = planned(line["seed"], self._hours, self._probes, self._faults)
                yield Simulated(plan, tuple(map(_note, line["notes"])), tuple(line["faults"]))

    def add(self, simulated: Simulated) -> None:
        """Keeps another one."""
        line = {"seed": simulated.plan.seed, "faults": simulated.faults, "notes": list(map(_kept, simulated.notes))}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps(line)}\n")
        self.seeds.add(simulated.plan.seed)


def _kept(note: RunNote) -> dict[str, Any]:
    """A run without what is empty."""
    values = ((field.name, getattr(note, field.name)) for field in fields(note))
    return {name: value for name, value in values if value or name == "clean"}


def _note(kept: dict[str, Any]) -> RunNote:
    struck, unseen = Counter(kept.get("struck", {})), Counter(kept.get("unseen", {}))
    again = {"probe": ProbeName(kept["probe"]), "verdict": Verdict(kept["verdict"]), "struck": struck, "unseen": unseen}
    return RunNote(**{"began_t": 0.0, **kept, **again})
