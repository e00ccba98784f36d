"""Sharding: each probe instance is run by one prober of a group.

Each prober of a group holds a membership lease, and a lease for each probe instance it runs. All members compute the same owner of each
probe instance (`shares`). A prober takes its own instances as soon as they are free, and releases another owner's as soon as the current
run has ended. The lease of a killed prober expires, and the others take over.

A probe instance with a new owner runs on a new topic, in a new epoch, so remains of the old run cannot look like a fault.

While the store is unreachable each prober continues with its instances. For a moment afterwards no prober takes more, so that the others
can renew leases that expired meanwhile. A prober that has not reached the store since its start takes all instances after a while: double
probing only costs messages, while a fault on an instance without probing stays unknown.

A store with an incompatible revision is different: the other probers can use it and run all instances. A prober that finds an incompatible
store keeps the probe instances whose leases it held, and takes no others, however long that lasts.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Collection, Coroutine, Sequence
from hashlib import sha256
from typing import Any, Final

from prober.clock import monotonic_s
from prober.schedule.scheduler import repeat
from prober.sinks.status.database import StatusError, StoreIncompatible
from prober.sinks.status.leases import Leases

TICK_S: Final = 2.0
LEASE_S: Final = 10.0
ALONE_AFTER_S: Final = 30.0
PRESENT: Final = "present/"
INSTANCE: Final = "probe_instance/"

_log = logging.getLogger(__name__)


def shares(instances: Collection[str], members: Collection[str]) -> dict[str, str]:
    """Return the owner of each probe instance, by rendezvous hashing.

    No member gets more than a fair share, rounded up. The result is the same for the same members, in any order; few instances move when a
    member joins or leaves. Raises ValueError with probe instances and without members.
    """
    most = -(-len(instances) // max(1, len(members)))
    load = dict.fromkeys(members, 0)
    found = {}
    for instance in sorted(instances):
        open_to = [member for member, count in load.items() if count < most]
        owner = max(open_to, key=lambda member: sha256(f"{member}\0{instance}".encode()).digest())
        load[owner] += 1
        found[instance] = owner
    return found


class ShardingMember:
    """A prober's membership in the group.

    `take` starts a probe instance; `give` ends it, after the current run; `failed` receives internal errors.
    """

    def __init__(
        self,
        instances: Sequence[str],
        leases: Leases,
        name: str,
        take: Callable[[str], None],
        give: Callable[[str], Coroutine[Any, Any, None]],
        failed: Callable[[Exception], None],
        clock: Callable[[], float] = monotonic_s,
    ) -> None:
        self._instances, self._leases, self._name = tuple(instances), leases, name
        self._take, self._give, self._clock = take, give, clock
        self._failed = failed
        self._began_t = clock()
        self._hesitates_until_t = 0.0
        self._held: set[str] = set()
        self._giving: dict[str, asyncio.Task[None]] = {}
        self._asking, self._has_left = threading.Lock(), False
        self._is_alone = False
        self.error = ""
        """Reason why the last query of the store failed; empty if it succeeded."""
        self.incompatible = ""
        """Reason why this program may not use the store, by the store's last answer; empty if it may."""

    async def keep_on(self) -> None:
        """Take part until it is cancelled."""
        await repeat(TICK_S, self.tick, self._failed)

    async def tick(self) -> None:
        """Query the leases once, and start and end probe instances accordingly."""
        try:
            mine, held = await asyncio.to_thread(self._ask, frozenset(self._held), self._clock() >= self._hesitates_until_t)
        except StatusError as error:
            self._go_on_without_store(error)
            return
        self.error, self.incompatible, self._is_alone = "", "", False
        self._begin(
            (held - self._held - self._giving.keys()).intersection(self._instances)
        )  # the instances may have changed meanwhile
        for instance in self._held - held:
            self._end(instance)  # another prober took it while the store could not be reached
        for instance in (self._held & held) - mine:
            self._end(instance)

    def follow(self, instances: Sequence[str], changed: Collection[str], renew: Callable[[str], Coroutine[Any, Any, None]]) -> None:
        """Replace the probe instances.

        New instances are taken with the next tick, removed ones are released. `renew` restarts a changed instance, after its current run;
        its holder keeps the lease.
        """
        self._instances = tuple(instances)
        for instance in self._held - set(instances):
            self._end(instance)
        for instance in self._held.intersection(changed) - self._giving.keys():
            self._giving[instance] = asyncio.create_task(self._renew(instance, renew), name=f"renew {instance}")

    def _go_on_without_store(self, error: StatusError) -> None:
        """Keep the held probe instances; take others only if the store has never answered.

        Those others are released if the store turns out to be incompatible.
        """
        self._hesitates_until_t = self._clock() + LEASE_S
        if isinstance(error, StoreIncompatible):
            if not self.incompatible:
                _log.warning("this prober takes no more probe instances: %s", error)
            self.incompatible = str(error)
            for instance in self._held if self._is_alone else ():
                self._end(instance)
        elif not (self._held or self.incompatible) and self._clock() - self._began_t >= ALONE_AFTER_S:
            _log.warning("the other probers cannot be found: this one probes everything: %s", error)
            self._is_alone = True
            self._begin(set(self._instances))
        self.error = str(error)

    async def leave(self) -> None:
        """Release all leases, so that the others need not wait. Final; to be called when no run is running any more."""
        for task in self._giving.values():
            task.cancel()
        try:
            await asyncio.to_thread(self._release_all)
        except StatusError as error:
            _log.warning("the other probers are not notified that this one has stopped: %s", error)

    def _ask(self, held: frozenset[str], takes_more: bool) -> tuple[set[str], set[str]]:
        """Return the instances that this prober owns, and those it holds. In a thread."""
        with self._asking:
            if self._has_left:
                return set(), set()
            self._leases.take({PRESENT + self._name})
            whose = shares(self._instances, self._leases.holders(PRESENT) | {self._name})
            mine = {instance for instance, owner in whose.items() if owner == self._name}
            taken = self._leases.take({INSTANCE + instance for instance in (mine | held if takes_more else held)})
            return mine, {name.removeprefix(INSTANCE) for name in taken}

    def _release_all(self) -> None:
        """Release all leases, after a pending query has ended. In a thread."""
        with self._asking:
            self._has_left = True
            self._leases.release({PRESENT + self._name, *(INSTANCE + instance for instance in self._instances)})

    def _begin(self, instances: Collection[str]) -> None:
        for instance in sorted(instances):
            _log.info("%s: taken over", instance)
            self._held.add(instance)
            self._take(instance)

    def _end(self, instance: str) -> None:
        if instance not in self._giving:
            self._giving[instance] = asyncio.create_task(self._hand_over(instance), name=f"hand over {instance}")

    async def _hand_over(self, instance: str) -> None:
        try:
            await self._given_up(instance)
            self._held.discard(instance)
            await asyncio.to_thread(self._leases.release, {INSTANCE + instance})
        except StatusError:
            pass  # its lease expires
        finally:
            del self._giving[instance]

    async def _given_up(self, instance: str) -> None:
        """Give an instance up; report an internal error, which must not keep the others from probing."""
        try:
            await self._give(instance)
            _log.info("%s: handed over", instance)
        except Exception as fault:
            self._failed(fault)

    async def _renew(self, instance: str, renew: Callable[[str], Coroutine[Any, Any, None]]) -> None:
        try:
            await renew(instance)
        except Exception as fault:
            self._failed(fault)
        finally:
            del self._giving[instance]
