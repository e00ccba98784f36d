"""What another configuration means for what is probed: which sites stay as they are, which begin anew, which are gone, which are new.

A site stays as it is when nothing changed that its runs depend on: its target but for what else is probed there, and its probe but for
from where else it looks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from prober.config.changes import in_force, restart_keys
from prober.config.models import Config, Slo
from prober.schedule.instances import PlannedSite, sites_of
from prober.slo.objectives import Objective


@dataclass(frozen=True, slots=True)
class Changes:
    """How a running prober comes to another configuration.

    config                     what is in force from then on.
    kept, changed, gone, new   the sites, by name. Of those that changed the old one ends and the new one begins.
    restart                    the keys that wait for a restart.
    """

    config: Config
    kept: frozenset[str]
    changed: frozenset[str]
    gone: frozenset[str]
    new: frozenset[str]
    restart: tuple[str, ...]


def changes_of(old: Config, new: Config, is_measured: Callable[[Objective], bool]) -> Changes:
    """What it takes to come from one configuration to another. Raises ConfigError if that cannot be done.

    `is_measured`: whether what is counted says how many were good for an objective. One of which it does not say waits for a restart.
    """
    slos = {name: _slo(name, slo, old.slos.get(name), is_measured) for name, slo in new.slos.items()}
    waiting = tuple(f"slos.{name}.threshold" for name, slo in new.slos.items() if slos[name] is not slo)
    config = in_force(old, new).model_copy(update={"slos": {name: slo for name, slo in slos.items() if slo is not None}})
    before, after = _sites(old), _sites(config)
    same = {name for name in before.keys() & after.keys() if is_same(before[name], after[name])}
    return Changes(
        config,
        kept=frozenset(same),
        changed=frozenset(before.keys() & after.keys() - same),
        gone=frozenset(before.keys() - after.keys()),
        new=frozenset(after.keys() - before.keys()),
        restart=(*restart_keys(old, new), *waiting),
    )


def is_same(one: PlannedSite, other: PlannedSite) -> bool:
    """Whether a run at one site is what it is at the other."""
    return _essence(one) == _essence(other)


def _slo(name: str, slo: Slo, old: Slo | None, is_measured: Callable[[Objective], bool]) -> Slo | None:
    """What holds under a name: the new promise if it is measured, else the old one, if there was one."""
    return slo if is_measured(slo.objective_named(name)) else old


def _sites(config: Config) -> Mapping[str, PlannedSite]:
    found: Iterable[PlannedSite] = (site for target in config.targets for site in sites_of(target))
    return {site.name: site for site in found}


def _essence(site: PlannedSite) -> object:
    target, settings = site.target.model_copy(update={"probes": {}}), site.settings.model_copy(update={"vantages": ()})
    return target, site.probe, settings, site.vantage, site.part
