"""Probe instances (one probe on one target from one vantage), from the configuration to the parameters of a run.

Another configuration keeps, restarts, removes or adds probe instances (`changes_of`). An instance is kept if its target, apart from other
probes, and its probe, apart from other vantages, are unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Final

from prober.brokers.base import Broker, Vantage
from prober.brokers.endpoint import EMULATOR_VARIABLE, Endpoint
from prober.config.following import in_force, restart_keys
from prober.config.models import Config, ProbeSettings, Slo, TargetSettings
from prober.config.sections import Observe
from prober.config.workloads import ACT_MAX_S, workload_of
from prober.core.rules import Mode, Rules
from prober.probes.catalogue import DECLARED, ProbeName
from prober.probes.context import PULL_TIMEOUT_S
from prober.probes.experiment import Experiment, Workload
from prober.probes.observe import observing, stream_of
from prober.runs.lifetimes import LASTING
from prober.runs.probe_instance import Target
from prober.runs.resources import Provisioner
from prober.runs.runner import Run, for_library
from prober.slo.objectives import Objective

DELIVERY_DELAY_MAX_S: Final = 5.0
CLOSE_DETECTION_MAX_S: Final = 30.0
LOCAL_CLOSE_DETECTION_MAX_S: Final = 3.0
SEEK_SETTLES_S: Final = 60.0
"""Longest time after a seek with deliveries as before, in seconds: about a minute (documentation, "Replay and purge messages")."""
LOCAL_SEEK_SETTLES_S: Final = 2.0
LOCAL_PUBLISH_TIME_ERROR_S: Final = 1.0
"""Bounds of a target that is not Google's, in seconds: it is one region, and does not hang for longer."""
ANSWERED_S: Final = 5.0
"""Longest time from the receipt of a message to its answer, if there is one, in seconds."""
MARGIN_S: Final = 1.0
"""Margin of deadlines on a plain connection beyond a lease and the delivery delay, in seconds.

The servers there are near: a broken stream is noticed at once, and an emulator gets little more time for pending messages. But while
messages of one key are outstanding the service may be late with another key (documentation, "Order messages"), so a delay within a lease
proves nothing. With pull, a lost answer is noticed only when the pull times out, so deadlines are longer by that time, too.

Google's client library may buffer received messages until leases end that it extended itself, so the configured deadlines apply to it.
"""

MESSAGE_RETENTION_S: Final = 7 * 86_400.0
"""Time for which a prober's subscription keeps unacknowledged messages, in seconds.

It has no retry policy, and a dead-letter topic only for the probe of dead-lettering: the rule `retry_backoff_max_s` is 0.
"""


@dataclass(frozen=True, slots=True)
class PlannedInstance:
    """A probe on a target from a vantage, or a part of it if its keys are divided."""

    target: TargetSettings
    probe: ProbeName
    settings: ProbeSettings
    vantage: Vantage
    part: int = 0

    @property
    def name(self) -> str:
        """Name, unique in a configuration."""
        return "/".join(filter(None, (self.target.name, self.probe, self.vantage, self.part_shown)))

    @property
    def part_shown(self) -> str:
        """Its part, from `ProbeSettings.part_names`."""
        return self.settings.part_names[self.part]

    @property
    def keys(self) -> int:
        """Number of its keys."""
        return len(range(self.part, self.settings.keys, self.settings.parts))

    @property
    def experiment(self) -> Experiment:
        """Experiment of the probe; one that observes a stream is created for each run."""
        observed = self.settings.observe
        return DECLARED[self.probe] if observed is None else observing(observed.plan, stream_of(observed.plan))

    @property
    def foreign_topic(self) -> str:
        """Full name of another owner's topic; empty if no stream is observed."""
        return "" if self.settings.observe is None else self.settings.observe.topic_in(self.target.project)

    @property
    def is_pushed(self) -> bool:
        """Whether it receives pushed messages."""
        return self.experiment.uses(Mode.PUSH)

    @property
    def workload(self) -> Workload:
        """Workload of a run."""
        settings = self.settings
        return replace(
            workload_of(self.probe, settings),
            keys=self.keys,
            rate=settings.rate / settings.parts,
            part=self.part,
            free_s=settings.schedule.shortest_gap.total_seconds(),
        )

    def at(self, endpoint: Endpoint) -> Target:
        """Return the target for a run.

        Of two endpoints with unknown regions each has its own region, unless they have the same address.
        """
        deadlines, peer = self.settings.deadlines, endpoint.peer
        ack_deadline_s = self.settings.ack_deadline.total_seconds()
        patient = endpoint.secure or self.vantage is not Vantage.WIRE
        lost_s = PULL_TIMEOUT_S if self.experiment.uses(Mode.PULL) else 0.0
        far_s = inf if patient else ack_deadline_s + DELIVERY_DELAY_MAX_S + MARGIN_S + lost_s
        rules = Rules(
            delivery_delay_max_s=DELIVERY_DELAY_MAX_S,
            close_detection_max_s=CLOSE_DETECTION_MAX_S if endpoint.secure else LOCAL_CLOSE_DETECTION_MAX_S,
            ack_deadline_s=ack_deadline_s,
            delivery_deadline_s=min(far_s, deadlines.delivery.total_seconds()),
            stall_deadline_s=min(far_s, deadlines.stall.total_seconds()),
            unacked_deadline_s=min(far_s, deadlines.unacked.total_seconds()),
            attempts_observed=True,
            message_retention_s=MESSAGE_RETENTION_S,
            one_publish_region=endpoint.is_one_region and (peer is None or peer.is_one_region),
        )
        if self.settings.observe is not None:
            rules = _of_others(rules, self.settings.observe, endpoint)
        # A key may wait for another one that is already acknowledged, until the acknowledgement has provably been applied; and for a
        # response that holds it, until its lease has ended. The lease of a lost response starts before the loss is known.
        waits_s = (rules.ack_settled_s, rules.ack_deadline_s + DELIVERY_DELAY_MAX_S)
        responses = any(plan.mode is not Mode.STREAMING for plan in self.experiment.subscriptions)
        begun_s = ANSWERED_S + lost_s + (sum(waits_s) if responses else max(waits_s))
        longest_s = begun_s + max(rules.delivery_deadline_s, rules.stall_deadline_s, rules.unacked_deadline_s)
        return Target(
            self.target.name,
            self.target.project,
            str(self.vantage),
            rules if self.vantage is Vantage.WIRE else for_library(rules),
            publish_timeout_s=deadlines.publish.total_seconds(),
            act_timeout_s=ACT_MAX_S + (0.0 if self.settings.observe is None else self.settings.observe.duration.total_seconds()),
            drain_s=deadlines.drain.total_seconds(),
            quiet_s=longest_s + MARGIN_S,
            part=self.part_shown,
            publish_region=endpoint.region or ("" if peer is None else endpoint.address),
            peer_region="" if peer is None else peer.region or peer.address,
            seek_settles_s=SEEK_SETTLES_S if endpoint.secure else LOCAL_SEEK_SETTLES_S,
        )

    def run_once(self, endpoint: Endpoint, broker: Broker, owner: str, seed: int) -> Run:
        """Return a run on topics and subscriptions of its own, which begin with the name of the owner."""
        target, experiment = self.at(endpoint), self.experiment
        name, topic = self.resource_name(owner), self.foreign_topic
        provisioner = Provisioner(target, name, experiment.subscriptions, lasting=False, topic=topic)
        return Run(experiment, broker, target, provisioner, self.workload, seed)

    def resource_name(self, instance: str) -> str:
        """Return the start of the names of its topics and subscriptions, for a prober of that name."""
        part = f"-{self.part + 1}" if self.part_shown else ""
        lasting = f"-{LASTING}" if self.experiment.long_lived else ""
        return f"{instance}-{self.target.name}-{self.probe}-{self.vantage}{part}{lasting}"


def _of_others(rules: Rules, observe: Observe, endpoint: Endpoint) -> Rules:
    """Return the bounds for a stream of other publishers without records."""
    if observe.publish_time_error is not None:
        error_s = observe.publish_time_error.total_seconds()
    else:
        error_s = inf if endpoint.secure else LOCAL_PUBLISH_TIME_ERROR_S
    idle_s = observe.idle_timeout.total_seconds()
    return replace(
        rules,
        attempts_observed=False,
        publishes_recorded=False,
        one_publish_region=True,
        publish_time_error_s=error_s,
        idle_after_s=idle_s,
        keys_max=observe.keys_max,
    )


def instances_of(target: TargetSettings) -> Iterable[PlannedInstance]:
    """Return all probe instances of a target, in the order of its configuration."""
    return tuple(
        PlannedInstance(target, name, settings, vantage, part)
        for name, settings in target.probes.items()
        for vantage in settings.vantages
        for part in range(settings.parts)
    )


def is_embedded(target: TargetSettings, environ: Mapping[str, str], override: str = "") -> bool:
    """Return whether a target is the server in this process: configured so, and not overridden by the caller or the environment."""
    return target.is_embedded and not override and not environ.get(EMULATOR_VARIABLE)


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes from a running configuration to another.

    config                     configuration in force after the changes.
    kept, changed, gone, new   probe instances by name. The old version of a changed one ends, and the new one starts.
    restart                    configuration keys that need a restart.
    """

    config: Config
    kept: frozenset[str]
    changed: frozenset[str]
    gone: frozenset[str]
    new: frozenset[str]
    restart: tuple[str, ...]


def changes_of(old: Config, new: Config, is_measured: Callable[[Objective], bool]) -> Changes:
    """Return the changes from one configuration to another. Raises ConfigError if they are impossible.

    `is_measured`: returns whether the counters of the running prober contain the good events of an objective. An objective without them
    waits for a restart.
    """
    slos = {name: _slo(name, slo, old.slos.get(name), is_measured) for name, slo in new.slos.items()}
    waiting = tuple(f"slos.{name}.threshold" for name, slo in new.slos.items() if slos[name] is not slo)
    config = in_force(old, new).model_copy(update={"slos": {name: slo for name, slo in slos.items() if slo is not None}})
    before, after = _instances(old), _instances(config)
    same = {name for name in before.keys() & after.keys() if is_same(before[name], after[name])}
    return Changes(
        config,
        kept=frozenset(same),
        changed=frozenset(before.keys() & after.keys() - same),
        gone=frozenset(before.keys() - after.keys()),
        new=frozenset(after.keys() - before.keys()),
        restart=(*restart_keys(old, new), *waiting),
    )


def is_same(one: PlannedInstance, other: PlannedInstance) -> bool:
    """Return whether the runs of two probe instances are the same."""
    return _essence(one) == _essence(other)


def _slo(name: str, slo: Slo, old: Slo | None, is_measured: Callable[[Objective], bool]) -> Slo | None:
    """Return the objective in force under a name: the new one if it is measured, else the old one, or None."""
    return slo if is_measured(slo.objective_named(name)) else old


def _instances(config: Config) -> Mapping[str, PlannedInstance]:
    found: Iterable[PlannedInstance] = (instance for target in config.targets for instance in instances_of(target))
    return {instance.name: instance for instance in found}


def _essence(instance: PlannedInstance) -> object:
    target, settings = (instance.target.model_copy(update={"probes": {}}), instance.settings.model_copy(update={"vantages": ()}))
    return target, instance.probe, settings, instance.vantage, instance.part
