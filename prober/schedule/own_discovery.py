"""Finds the user's own subscriptions by the administration API of their target: it lists subscriptions, and nothing else.

What cannot be listed stays as it was last found, is logged once and reported as trouble of the prober; it is no fault of a service.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from math import nan
from typing import Final, NamedTuple

from prober.brokers.base import Admin
from prober.config.models import TargetSettings
from prober.config.sections import SUBSCRIPTIONS_MAX, OwnDiscovery
from prober.errors import BrokerError
from prober.monitoring.discovery import Rule
from prober.probes.resources import OURS
from prober.sinks.metrics.targets import OwnMetrics

AdminOf = Callable[[str], Admin | None]
"""The administration of a target, by its name; None: no connection to it is open."""

_log = logging.getLogger(__name__)


class Watched(NamedTuple):
    """How an own subscription is compared: with which target, and from which age of a message on it is late."""

    target: TargetSettings
    late_after_s: float


@dataclass(slots=True)
class _Found:
    """The result of a rule. `left_out`: None while it is not known. `trouble`: why it has no result; empty: it has one."""

    names: tuple[str, ...] = ()
    left_out: int | None = None
    trouble: str = ""


class OwnDiscoveries:
    """The rules of a configuration, and the subscriptions that each has found. For the event loop."""

    def __init__(self, rules: Collection[tuple[OwnDiscovery, TargetSettings]], admin_of: AdminOf, metrics: OwnMetrics) -> None:
        self._rules: Final = {number: (rule, target, _Found()) for number, (rule, target) in enumerate(rules)}
        self._admin_of, self._metrics = admin_of, metrics

    def __len__(self) -> int:
        return len(self._rules)

    @property
    def troubles(self) -> tuple[str, ...]:
        """Why rules have no result, one line each."""
        return tuple(found.trouble for _, _, found in self._rules.values() if found.trouble)

    def subscriptions(self) -> dict[str, Watched]:
        """Those that were found, by name."""
        return {
            name: Watched(target, rule.late_after.total_seconds())
            for rule, target, found in self._rules.values()
            for name in found.names
        }

    async def look(self, named: Collection[str]) -> None:
        """Looks once for each rule. Subscriptions that are `named`, those of other rules and those of probers are not found again."""
        for number, (rule, target, found) in self._rules.items():
            others = {name for other, (_, _, of) in self._rules.items() if other != number for name in of.names}
            await self._look(number, rule, target, found, {*named, *others})
        self._count()

    async def _look(self, number: int, rule: OwnDiscovery, target: TargetSettings, found: _Found, taken: Collection[str]) -> None:
        key, project, before = f"monitoring.discover[{number}]", f"projects/{rule.project or target.project}", found.trouble
        try:
            listed = await self._listed(target, project)
        except BrokerError as error:
            found.left_out, found.trouble = None, f"own subscriptions: {project} cannot be listed for {key}: {error}"
        else:
            theirs = {name: labels for name, labels in listed.items() if name not in taken and not _is_ours(labels)}
            wanted, left_out_before = Rule(rule.matching, rule.labels), found.left_out
            found.names, found.left_out = wanted.choose(theirs, found.names, min(rule.at_most, SUBSCRIPTIONS_MAX - len(taken)))
            if found.left_out and found.left_out != left_out_before:
                _log.warning("%s: %d more subscriptions match %s and are left out", key, found.left_out, wanted)
            is_none = not found.names and not found.left_out
            found.trouble = (
                f"own subscriptions: none of {len(theirs)} others in {project} matches {wanted} ({key})" if is_none else ""
            )
        if found.trouble and found.trouble != before:
            _log.warning("%s", found.trouble)

    async def _listed(self, target: TargetSettings, project: str) -> Mapping[str, Mapping[str, str]]:
        """All subscriptions of a project with their labels. Raises BrokerError."""
        admin = self._admin_of(target.name)
        if admin is None:
            raise BrokerError(f"nothing is probed on {target.name}")
        return await admin.subscriptions(project)

    def _count(self) -> None:
        """Reports to the metrics, by target; of one with a rule that cannot tell nothing is known."""
        by_target: dict[str, list[_Found]] = {}
        for _, target, found in self._rules.values():
            by_target.setdefault(target.name, []).append(found)
        targets = {target.name: target for _, target, _ in self._rules.values()}
        for name, of_target in by_target.items():
            known = [found.left_out for found in of_target if found.left_out is not None]
            is_known = len(known) == len(of_target)
            watched = sum(len(found.names) for found in of_target)
            self._metrics.discovered(targets[name], watched if is_known else nan, sum(known) if is_known else nan)


def _is_ours(labels: Mapping[str, str]) -> bool:
    return OURS.items() <= labels.items()
