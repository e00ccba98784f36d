"""Everything that a fault is injected into: a target, a proxy before it, probers, their status store, and the faults themselves."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import grpc

from tests.integration.chain import arm, disarm_all
from tests.integration.daemons import free_port
from tests.integration.programs import Program, program
from tests.unit.sinks.status.postgresql import PostgreSQL, binaries
from tests.whole.proxy import Proxy, Refusal, proxy_to

FREQUENT: Final = {"ordering": "10s"}
USUALLY: Final = "30s"
ADDRESS: Final = r"Pub/Sub on (\S+:\d+)"


@dataclass(frozen=True, slots=True)
class Setting:
    """What runs: the probes, from which vantages, by how many probers."""

    probes: tuple[str, ...] = ("ordering", "redelivery", "affinity", "pull")
    vantages: tuple[str, ...] = ("wire",)
    probers: int = 1


class World:
    """The running programs of one scenario. `urls` are the addresses of the probers."""

    def __init__(self, setting: Setting, folder: Path, running: ExitStack) -> None:
        self._running = running
        self.target = running.enter_context(program("embedded", "--port", "0", "--admin-port", "0"))
        self.address = self.target.said(ADDRESS)
        self.faults_url = self.target.said(r"Fault injection on (\S+)")
        self.proxy: Proxy = running.enter_context(proxy_to(self.address))
        self.store = running.enter_context(PostgreSQL(binaries()))
        self._environ = _environ(setting, self.proxy.address, self.store.new_database())
        self._ports = [free_port() for _ in range(setting.probers)]
        self.probers = [self.start_prober(number) for number in range(setting.probers)]
        self.urls = [prober.said(r"status page: (\S+)/") for prober in self.probers]

    def start_target(self) -> None:
        """Start the target again at the same address."""
        self.target = self._running.enter_context(program("embedded", "--port", self.address.rpartition(":")[2]))
        self.target.said(ADDRESS)

    def start_prober(self, number: int) -> Program:
        """Start a prober, at the same address each time."""
        own = {"ORDERING_PROBER_API__PORT": str(self._ports[number]), "ORDERING_PROBER_INSTANCE": f"prober-{number}"}
        return self._running.enter_context(program("run", environ={**self._environ, **own}))


def _environ(setting: Setting, address: str, store: str) -> Mapping[str, str]:
    probes: dict[str, Any] = {name: {"vantages": list(setting.vantages)} for name in setting.probes}
    intervals = {
        f"ORDERING_PROBER_PROBES__{name.upper()}__SCHEDULE": json.dumps({"interval": FREQUENT.get(name, USUALLY)})
        for name in setting.probes
    }
    group = {"ORDERING_PROBER_SHARDING__GROUP": "loud"} if setting.probers > 1 else {}
    return {
        "PUBSUB_EMULATOR_HOST": address,
        "ORDERING_PROBER_STATUS__URL": store,
        "ORDERING_PROBER_TARGETS__0__PROBES": json.dumps(probes),
        **intervals,
        **group,
    }


Inject = Callable[[World], AbstractContextManager[None]]
"""Begin a fault; leaving the `with` statement ends it."""


def fault(specification: str) -> Inject:
    """Inject a fault of the embedded server, such as `drop:p=0.1`."""

    @contextmanager
    def inject(world: World) -> Iterator[None]:
        arm(world.faults_url, specification)
        yield
        disarm_all(world.faults_url)

    return inject


def refused(refuses: Refusal) -> Inject:
    """Refuse calls in the proxy."""

    @contextmanager
    def inject(world: World) -> Iterator[None]:
        before, world.proxy.refuses = world.proxy.refuses, refuses
        yield
        world.proxy.refuses = before

    return inject


def method(name: str, status: grpc.StatusCode) -> Refusal:
    """Refuse every call of a method."""
    return lambda called, _metadata: status if called == name else None


def library_streams(called: str, metadata: Mapping[str, Any]) -> grpc.StatusCode | None:
    """Refuse the streams of Google's client library, which alone sends this header."""
    is_library = called == "StreamingPull" and "x-goog-api-client" in metadata
    return grpc.StatusCode.PERMISSION_DENIED if is_library else None


def some(share: float, status: grpc.StatusCode) -> Refusal:
    """Refuse this share of all calls."""
    dice = random.Random(1)
    return lambda _called, _metadata: status if dice.random() < share else None


@contextmanager
def target_killed(world: World) -> Iterator[None]:
    """Kill the target."""
    world.target.kill()
    yield
    world.start_target()


@contextmanager
def prober_killed(world: World) -> Iterator[None]:
    """Kill the second prober."""
    world.probers[1].kill()
    yield
    world.probers[1] = world.start_prober(1)


@contextmanager
def store_killed(world: World) -> Iterator[None]:
    """Kill the status store."""
    world.store.kill()
    yield
    world.store.start()
