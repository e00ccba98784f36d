"""What of another configuration a running program can take over, and what it needs a restart for.

Sections in `FOLLOWED` are taken over while it runs. The others are read once, at the start: where the service listens, where it stores,
what it is called. Of these the old values stay in force, and what differs is told by name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pydantic import BaseModel

from prober.config.models import Config
from prober.config.problems import report
from prober.config.workloads import capacity_problems
from prober.errors import ConfigError

FOLLOWED: Final = frozenset({"targets", "probes", "slos", "maintenance", "budget", "comparisons"})


def restart_keys(old: Config, new: Config) -> tuple[str, ...]:
    """The keys that differ and are read at the start only, as people write them: `api.port`."""
    return tuple(_differing(old, new, (), FOLLOWED))


def in_force(old: Config, new: Config) -> Config:
    """The new configuration with the old values of what needs a restart.

    Raises ConfigError if that is more than one prober can do, which only the values that wait for the restart would allow.
    """
    mixed = new.model_copy(update={name: getattr(old, name) for name in Config.model_fields if name not in FOLLOWED})
    problems = list(capacity_problems(mixed.targets, shared=mixed.sharding.group is not None))
    if problems:
        raise ConfigError(report(problems, f"without a restart for {', '.join(restart_keys(old, new))}", {}))
    return mixed


def _differing(old: BaseModel, new: BaseModel, at: tuple[str, ...], left_out: frozenset[str] = frozenset()) -> Iterator[str]:
    for name in type(old).model_fields:
        before, after = getattr(old, name), getattr(new, name)
        if name in left_out or before == after:
            continue
        if isinstance(before, BaseModel) and isinstance(after, BaseModel):
            yield from _differing(before, after, (*at, name))
        else:
            yield ".".join((*at, name))
