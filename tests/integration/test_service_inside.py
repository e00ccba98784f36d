"""The service in this process, where what it does to a target can be looked at: several targets, maintenance, two of them at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from api.app import create_app
from api.view import Archive
from prober.config.loading import load
from prober.config.models import Api
from prober.core.verdict import Verdict
from prober.embedded.server import EmbeddedServer
from prober.runs.probe_instance import ProbeInstance, subscriptions_of
from prober.service import Service
from tests.unit.api.asking import client_of

PATIENCE_S = 180.0


def service(environ: Mapping[str, str], text: str, tmp_path: object) -> Service:
    file = f"{tmp_path}/prober.yaml"
    with open(file, "w", encoding="utf-8") as stream:
        stream.write(text)
    stored = {"ORDERING_PROBER_STATUS__URL": f"sqlite:///{tmp_path}/status.db", **environ}
    return Service(load(file, stored), environ, "1.2.3")


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.05)


async def until_scraped(service: Service, text: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not await scraped(service, text):
            await asyncio.sleep(0.05)


def verdicts(service: Service) -> dict[tuple[str, str], Verdict | None]:
    return {
        (shown.probe_instance.target, shown.probe_instance.probe): shown.verdict for shown in service.snapshot().probe_instances
    }


async def scraped(service: Service, text: str) -> float:
    _, body = await service.metrics("")
    lines = body.decode().splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line[0] != "#" and all(word in line for word in text.split()))


def test_a_target_that_nobody_answers_at_does_not_disturb_the_other(tmp_path: object) -> None:
    text = """
targets:
  - {name: here, endpoint: embedded, probes: [ordering]}
  - {name: nowhere, endpoint: "127.0.0.1:1", project: my-project, environment: staging, probes: [ordering]}
"""

    async def scenario() -> None:
        async with service({}, text, tmp_path) as running:
            await until(lambda: None not in verdicts(running).values())
            assert verdicts(running) == {("here", "ordering"): Verdict.PASS, ("nowhere", "ordering"): Verdict.UNKNOWN}
            assert running.snapshot().verdict is Verdict.UNKNOWN
            assert await scraped(running, "internal_errors_total") == 0

    asyncio.run(scenario())


def test_under_maintenance_nothing_is_probed(tmp_path: object) -> None:
    text = """
targets:
  - {name: here, endpoint: embedded, probes: [ordering]}
  - {name: there, endpoint: embedded, probes: [ordering]}
maintenance:
  - {from: 2020-01-01T00:00:00Z, to: 2090-01-01T00:00:00Z, target: there, reason: moving house}
"""

    async def scenario() -> None:
        async with service({}, text, tmp_path) as running:
            await until(lambda: verdicts(running)["here", "ordering"])
            await until_scraped(running, 'scheduler_skips_total target="there" reason="maintenance"')
            assert verdicts(running)["there", "ordering"] is None
            assert [shown.maintenance for shown in running.snapshot().probe_instances] == [None, "moving house"]
            assert running.snapshot().verdict is Verdict.PASS

    asyncio.run(scenario())


def test_a_history_that_cannot_be_written_is_shown_and_probing_goes_on(tmp_path: object) -> None:
    blocked = f"{tmp_path}/history"
    with open(blocked, "w", encoding="utf-8") as stream:
        stream.write("a file where a folder should be")
    text = f"""
targets:
  - {{name: here, endpoint: embedded, probes: [ordering]}}
history: {{location: "{blocked}"}}
"""

    async def scenario() -> None:
        async with service({}, text, tmp_path) as running:
            await until(lambda: verdicts(running)["here", "ordering"] is Verdict.PASS)
            await until_scraped(running, "history_failures_total")
            await until(lambda: any("the history cannot be written" in trouble for trouble in running.snapshot().troubles))
            assert running.snapshot().verdict is Verdict.PASS

    asyncio.run(scenario())


def sorted_instances(service: Service) -> list[ProbeInstance]:
    return sorted((shown.probe_instance for shown in service.snapshot().probe_instances), key=lambda instance: instance.key)


def test_every_subscription_that_is_probed_is_listed(tmp_path: object) -> None:
    async def scenario() -> None:
        async with service({}, "{}", tmp_path) as running:
            app = create_app(running, Archive(running.queries, ()), Api())
            await until(
                lambda: [reported.probe_instance for reported in running.queries.probe_instances()] == sorted_instances(running)
            )
            async with client_of(app) as client:
                items = (await client.get("/api/v1/subscriptions")).json()["items"]
            instances = [shown.probe_instance for shown in running.snapshot().probe_instances]
            every = {instance.probe: subscriptions_of(instance.probe, instance.subscription) for instance in instances}
            assert [item["subscription"] for item in items] == sorted(name for names in every.values() for name in names)
            for item in items:
                assert [instance["probe"] for instance in item["probe_instances"]] == [
                    probe for probe, names in every.items() if item["subscription"] in names
                ]
            assert {item["topic"].partition("/topics/")[2] for item in items} == {
                instance.topic.rpartition("/")[2] for instance in instances
            }

    asyncio.run(scenario())


SOME = "targets: [{name: embedded, probes: [ordering, redelivery, affinity]}]"


def test_two_of_one_name_do_not_disturb_each_other_and_leave_nothing_behind(tmp_path: object) -> None:
    async def scenario() -> None:
        async with EmbeddedServer() as server:
            environ = {"PUBSUB_EMULATOR_HOST": server.address, "ORDERING_PROBER_INSTANCE": "twin"}
            async with service(environ, SOME, tmp_path) as one, service(environ, SOME, tmp_path) as other:
                for running in (one, other):
                    await until(lambda running=running: set(verdicts(running).values()) == {Verdict.PASS})  # type: ignore[misc]
                topics, others = (
                    {shown.probe_instance.topic for shown in each.snapshot().probe_instances} for each in (one, other)
                )
                assert len(topics) == len(others) == 3
                assert not topics & others
                assert server.state.registry.topics
            assert not server.state.registry.topics
            assert not server.state.registry.subscriptions

    asyncio.run(scenario())
