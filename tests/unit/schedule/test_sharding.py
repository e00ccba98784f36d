"""How probers divide the probe instances: whose each is, what happens when one comes, goes, is killed, or cannot ask."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import ColumnElement, Double, literal

from prober.schedule.sharding import ALONE_AFTER_S, INSTANCE, LEASE_S, PRESENT, ShardingMember, shares
from prober.sinks.status.database import Database, StoreIncompatible, StoreUnavailable
from prober.sinks.status.leases import Leases
from prober.sinks.status.store import StatusStore

INSTANCES = tuple(f"t/{probe}/wire/{part}" for probe in ("ordering", "redelivery", "affinity") for part in range(4))
NAMES = st.sets(st.text("abcdef-0123", min_size=1, max_size=6), min_size=1, max_size=8)


class TestShares:
    @given(NAMES, NAMES)
    def test_every_instance_has_one_owner_and_nobody_has_too_much(self, instances: set[str], members: set[str]) -> None:
        whose = shares(instances, members)
        assert whose.keys() == instances
        assert set(whose.values()) <= members
        most = max(list(whose.values()).count(member) for member in members)
        assert most <= -(-len(instances) // len(members))

    @given(NAMES, NAMES)
    def test_the_order_does_not_matter(self, instances: set[str], members: set[str]) -> None:
        assert shares(sorted(instances), sorted(members)) == shares(sorted(instances, reverse=True), sorted(members, reverse=True))

    def test_few_move_when_one_leaves(self) -> None:
        instances = [f"site-{number}" for number in range(60)]
        before, after = shares(instances, {"a", "b", "c", "d"}), shares(instances, {"a", "b", "c"})
        moved = sum(before[instance] != after[instance] for instance in instances if before[instance] != "d")
        assert moved <= len(instances) // 4


@dataclass
class Time:
    """The database's time, which a test moves."""

    at: float = 1_000.0

    def now(self) -> ColumnElement[float]:
        return literal(self.at, Double)


class Cut(Leases):
    """Leases of a store that can be out of reach."""

    out_of_reach = incompatible = False

    def take(self, names: object) -> set[str]:
        if self.incompatible:
            raise StoreIncompatible("too old")
        if self.out_of_reach:
            raise StoreUnavailable("nobody answers")
        return super().take(names)  # type: ignore[arg-type]


@dataclass
class Member:
    """A prober that takes part, and what it works at. A hand-over waits while `busy`."""

    name: str
    database: Database
    time: Time
    working: set[str] = field(default_factory=set)
    renewed: list[str] = field(default_factory=list)
    busy: asyncio.Event = field(default_factory=asyncio.Event)
    faults: list[Exception] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.busy.set()
        self.leases = Cut(self.database, "group", self.name, LEASE_S, self.time.now)
        self.sharding = ShardingMember(
            INSTANCES, self.leases, self.name, self.working.add, self.give, self.faults.append, clock=lambda: self.time.at
        )

    async def give(self, instance: str) -> None:
        await self.busy.wait()
        self.working.remove(instance)

    async def renew(self, instance: str) -> None:
        await self.busy.wait()
        self.renewed.append(instance)


@pytest.fixture
def members(tmp_path: Path) -> Iterator[Callable[[str], Member]]:
    database, time = Database(f"sqlite:///{tmp_path}/status.db"), Time()
    StatusStore(database).prepare()
    yield lambda name: Member(name, database, time)
    database.close()


async def probe_loop(*members: Member, count: int = 3) -> None:
    """Each asks so often, a second apart; never do two of them work at one probe instance."""
    for _ in range(count):
        for member in members:
            await member.sharding.tick()
            while member.sharding._giving and member.busy.is_set():
                await asyncio.sleep(0)
            working = [instance for one in members for instance in one.working]
            assert len(working) == len(set(working))
        members[0].time.at += 1.0


class TestSharing:
    def test_one_alone_does_everything(self, members: Callable[[str], Member]) -> None:
        async def scenario() -> None:
            one = members("a")
            await probe_loop(one, count=1)
            assert one.working == set(INSTANCES)

        asyncio.run(scenario())

    def test_one_that_comes_gets_its_share_and_one_that_leaves_gives_it_back(self, members: Callable[[str], Member]) -> None:
        async def scenario() -> None:
            a, b, c = members("a"), members("b"), members("c")
            await probe_loop(a)
            await probe_loop(a, b, c)
            assert sorted(len(one.working) for one in (a, b, c)) == [4, 4, 4]
            await b.sharding.leave()
            b.working.clear()
            await probe_loop(a, c)
            assert a.working | c.working == set(INSTANCES)

        asyncio.run(scenario())

    def test_one_that_is_killed_is_replaced_when_its_leases_have_ended(self, members: Callable[[str], Member]) -> None:
        async def scenario() -> None:
            a, b = members("a"), members("b")
            await probe_loop(a, b)
            killed = set(b.working)
            await probe_loop(a, count=int(LEASE_S) - 1)
            assert not a.working & killed
            await probe_loop(a)
            assert a.working == set(INSTANCES)

        asyncio.run(scenario())

    def test_an_instance_is_handed_over_when_its_run_has_ended(self, members: Callable[[str], Member]) -> None:
        async def scenario() -> None:
            a, b = members("a"), members("b")
            await probe_loop(a)
            a.busy.clear()
            await probe_loop(a, b, count=30)
            assert (a.working, b.working) == (set(INSTANCES), set())
            a.busy.set()
            await asyncio.sleep(0)
            await probe_loop(a, b)
            assert len(a.working) == len(b.working) == len(INSTANCES) // 2

        asyncio.run(scenario())

    def test_while_the_store_is_out_of_reach_everybody_goes_on(self, members: Callable[[str], Member]) -> None:
        async def scenario() -> None:
            a, b = members("a"), members("b")
            await probe_loop(a, b)
            before = set(a.working), set(b.working)
            a.leases.out_of_reach = b.leases.out_of_reach = True
            await probe_loop(a, b, count=100)
            assert (a.working, b.working) == before
            assert a.sharding.error == "nobody answers"
            a.leases.out_of_reach = b.leases.out_of_reach = False
            await probe_loop(a, b)
            assert (a.working, b.working, a.sharding.error) == (*before, "")

        asyncio.run(scenario())

    def test_one_that_was_cut_off_gives_up_what_others_have_taken(self, members: Callable[[str], Member]) -> None:
        async def scenario() -> None:
            a, b = members("a"), members("b")
            await probe_loop(a, b)
            lost = set(b.working)
            b.leases.out_of_reach = True
            await probe_loop(a, count=2 * int(LEASE_S))
            assert a.working == set(INSTANCES)
            assert b.working == lost
            b.leases.out_of_reach = False
            await b.sharding.tick()
            await asyncio.sleep(0)
            await probe_loop(a, b)
            assert len(a.working) == len(b.working) == len(INSTANCES) // 2

        asyncio.run(scenario())

    def test_one_that_could_never_ask_begins_with_everything_after_a_while(self, members: Callable[[str], Member]) -> None:
        async def scenario() -> None:
            one = members("a")
            one.leases.out_of_reach = True
            await probe_loop(one, count=int(ALONE_AFTER_S))
            assert one.working == set()
            await probe_loop(one, count=1)
            assert one.working == set(INSTANCES)

        asyncio.run(scenario())


class TestIncompatibleStore:
    """Other programs than this one can use the store."""

    def test_a_prober_that_starts_takes_nothing_however_long_it_waits(self, members: Callable[[str], Member]) -> None:
        async def scenario() -> None:
            one = members("a")
            one.leases.incompatible = True
            await probe_loop(one, count=2 * int(ALONE_AFTER_S))
            assert (one.working, one.sharding.incompatible) == (set(), "too old")
            one.leases.incompatible, one.leases.out_of_reach = False, True
            await probe_loop(one, count=2 * int(ALONE_AFTER_S))
            assert (one.working, one.sharding.incompatible) == (set(), "too old")
            one.leases.out_of_reach = False
            await probe_loop(one, count=2 * int(LEASE_S))
            assert (one.working, one.sharding.incompatible) == (set(INSTANCES), "")

        asyncio.run(scenario())

    def test_a_prober_keeps_its_share_and_takes_no_more(self, members: Callable[[str], Member]) -> None:
        async def scenario() -> None:
            a, b = members("a"), members("b")
            await probe_loop(a, b)
            share = set(a.working)
            a.leases.incompatible = True
            await b.sharding.leave()
            await probe_loop(a, count=2 * int(LEASE_S))
            assert (a.working, a.sharding.error) == (share, "too old")
            a.leases.incompatible = False
            await probe_loop(a, count=2 * int(LEASE_S))
            assert a.working == set(INSTANCES)

        asyncio.run(scenario())

    def test_a_prober_that_began_with_everything_gives_it_back(self, members: Callable[[str], Member]) -> None:
        async def scenario() -> None:
            one = members("a")
            one.leases.out_of_reach = True
            await probe_loop(one, count=int(ALONE_AFTER_S) + 1)
            assert one.working == set(INSTANCES)
            one.leases.incompatible = True
            await probe_loop(one)
            assert one.working == set()

        asyncio.run(scenario())


class TestOtherInstances:
    """Probers see another configuration one after the other."""

    NEW = (*INSTANCES[1:], "new")

    def test_what_is_gone_is_given_back_and_what_is_new_is_taken_by_whose_it_is(self, members: Callable[[str], Member]) -> None:
        async def scenario() -> None:
            a, b = members("a"), members("b")
            await probe_loop(a, b)
            a.sharding.follow(self.NEW, (), a.renew)
            await probe_loop(a, b, count=20)
            assert len(a.working | b.working) >= len(self.NEW) - 1  # of the new one it may be the turn of who does not know it yet
            b.sharding.follow(self.NEW, (), b.renew)
            await probe_loop(a, b)
            assert a.working | b.working == set(self.NEW)
            assert a.faults == b.faults == []

        asyncio.run(scenario())

    def test_what_has_become_another_stays_with_who_has_it(self, members: Callable[[str], Member]) -> None:
        async def scenario() -> None:
            a, b = members("a"), members("b")
            await probe_loop(a, b)
            before = set(a.working), set(b.working)
            a.busy.clear()
            for one in (a, b):
                one.sharding.follow(INSTANCES, INSTANCES, one.renew)
            await probe_loop(a, b, count=2 * int(LEASE_S))  # its runs take so long
            a.busy.set()
            await probe_loop(a, b)
            assert (a.working, b.working) == before == (set(a.renewed), set(b.renewed))

        asyncio.run(scenario())

    def test_what_is_gone_is_given_up_also_while_the_store_is_out_of_reach(self, members: Callable[[str], Member]) -> None:
        async def scenario() -> None:
            one = members("a")
            await probe_loop(one)
            one.leases.out_of_reach = True
            one.sharding.follow(INSTANCES[1:], (), one.renew)
            await probe_loop(one)
            assert one.working == set(INSTANCES[1:])

        asyncio.run(scenario())

    def test_an_instance_that_cannot_be_handed_over_is_reported_and_the_others_may_have_it(
        self, members: Callable[[str], Member]
    ) -> None:
        async def scenario() -> None:
            a, b = members("a"), members("b")
            await probe_loop(a)

            async def fail(instance: str) -> None:
                a.working.discard(instance)
                raise ValueError(instance)

            a.sharding._give = fail
            await probe_loop(a, b)
            assert len(a.working) == len(b.working) == len(INSTANCES) // 2
            assert {str(fault) for fault in a.faults} == b.working

        asyncio.run(scenario())

    def test_what_is_gone_while_it_is_asked_for_is_not_taken(self, members: Callable[[str], Member]) -> None:
        async def scenario() -> None:
            one = members("a")
            asked = one.leases.holders

            def holders(names_begin_with: str) -> set[str]:
                loop.call_soon_threadsafe(one.sharding.follow, INSTANCES[1:], (), one.renew)
                return asked(names_begin_with)

            loop = asyncio.get_running_loop()
            one.leases.holders = holders  # type: ignore[method-assign]
            await probe_loop(one, count=1)
            assert one.working == set(INSTANCES[1:])
            assert one.faults == []

        asyncio.run(scenario())


class TestLeases:
    def test_a_lease_has_one_holder_at_a_time(self, members: Callable[[str], Member]) -> None:
        a, b = members("a"), members("b")
        assert a.leases.take({"x", "y"}) == {"x", "y"}
        assert b.leases.take({"y", "z"}) == {"z"}
        b.leases.release({"x", "z"})
        assert a.leases.take({"x", "z"}) == {"x", "z"}

    def test_only_present_holders_are_listed(self, members: Callable[[str], Member]) -> None:
        a, b = members("a"), members("b")
        a.leases.take({f"{PRESENT}a"})
        a.time.at += LEASE_S + 1.0
        b.time.at = a.time.at
        b.leases.take({f"{PRESENT}b", f"{INSTANCE}s"})
        assert b.leases.holders(PRESENT) == {"b"}

    def test_groups_know_nothing_of_each_other(self, members: Callable[[str], Member]) -> None:
        a = members("a")
        other = Leases(a.database, "other", "b", LEASE_S, a.time.now)
        assert a.leases.take({"x"}) == other.take({"x"}) == {"x"}
        assert a.leases.holders("x") == {"a"}
