"""The configuration file changes while the service runs: what is under way and was counted stays, what is wrong changes nothing."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path

from api.app import create_app
from api.view import Archive
from prober.config.following import ConfigurationFile
from prober.config.models import Api
from prober.embedded.server import EmbeddedServer
from prober.service import Service
from prober.sinks.live.snapshot import InstanceSnapshot
from prober.sinks.status.listings import RunFilter
from prober.sinks.status.records import RunRecord
from tests.integration.programs import eventually, get, program, series, status
from tests.integration.test_service_inside import until
from tests.unit.api.asking import client_of

QUIET = "schedule: {interval: 10m}"
"""A probe that runs once, at once."""
ONE = f"""
targets:
  - {{name: here, endpoint: embedded, probes: [ordering]}}
probes:
  ordering: {{{QUIET}}}
"""
TWO = f"""
targets:
  - {{name: here, endpoint: embedded, probes: [ordering, redelivery]}}
probes:
  ordering: {{{QUIET}}}
  redelivery: {{{QUIET}}}
"""
PATIENCE_S = 180.0
_COUNTER = re.compile(r"^(\w+(?:_total|_count|_sum|_bucket)(?:\{.*\})?) (\S+)$", re.MULTILINE)


class Running:
    """A service that follows a file, and what a test does with the two."""

    def __init__(self, folder: Path, text: str, environ: Mapping[str, str]) -> None:
        self.file = folder / "prober.yaml"
        self.file.write_text(text, encoding="utf-8")
        stored = {"ORDERING_PROBER_STATUS__URL": f"sqlite:///{folder}/status.db", **environ}
        read = ConfigurationFile.read(str(self.file), stored)
        self.service = Service(read.config, stored, "1.2.3", read)
        self.highest: dict[str, float] = {}

    def write(self, text: str) -> None:
        """Changes the file, and says so."""
        self.file.write_text(text, encoding="utf-8")
        self.service.reload()

    @property
    def probe_instances(self) -> dict[tuple[str, str], InstanceSnapshot]:
        return {
            (shown.probe_instance.target, shown.probe_instance.probe): shown for shown in self.service.snapshot().probe_instances
        }

    @property
    def digest(self) -> str:
        (prober,) = self.service.snapshot().probers
        assert prober.configuration is not None
        return prober.configuration.digest

    async def applied(self, text: str) -> None:
        """Writes a file and waits until it is in force."""
        before = self.digest
        self.write(text)
        await until(lambda: self.digest != before)

    async def scraped(self) -> dict[str, float]:
        """Every counter, none of which is lower than it ever was."""
        _, body = await self.service.metrics("")
        now = {name: float(value) for name, value in _COUNTER.findall(body.decode()) if "pubsub_prober" in name}
        assert {name: (self.highest[name], value) for name, value in now.items() if value < self.highest.get(name, 0.0)} == {}
        self.highest |= now
        return now


def play(folder: Path, text: str, scenario: Callable[[Running], Coroutine[None, None, None]], **environ: str) -> None:
    async def whole() -> None:
        running = Running(folder, text, environ)
        async with running.service:
            await scenario(running)

    asyncio.run(whole())


def test_what_did_not_change_goes_on_and_what_did_begins_anew(tmp_path: Path) -> None:
    async def scenario(running: Running) -> None:
        await until(lambda: running.probe_instances["here", "ordering"].last_run)
        await until(
            lambda: (
                running.probe_instances["here", "redelivery"].running_since
                or running.probe_instances["here", "redelivery"].last_run
            )
        )
        before, counted = running.probe_instances, await running.scraped()
        await running.applied(TWO.replace("ordering: {", "ordering: {messages: 30, "))
        await until(lambda: running.probe_instances["here", "ordering"].history[1:])
        after = running.probe_instances
        assert after["here", "ordering"].history[0] == before["here", "ordering"].history[0]
        assert after["here", "ordering"].probe_instance.topic != before["here", "ordering"].probe_instance.topic
        assert after["here", "ordering"].runs_expected == 2
        kept = ("here", "redelivery")
        assert after[kept].probe_instance == before[kept].probe_instance
        assert after[kept].next_run_at == before[kept].next_run_at
        assert after[kept].running_since in (None, before[kept].running_since)
        assert after[kept].runs_expected == 1
        await until(lambda: running.probe_instances[kept].last_run)
        assert counted.keys() <= (await running.scraped()).keys()

    play(tmp_path, TWO, scenario)


def test_the_run_under_way_ends_and_counts_before_its_instance_is_gone(tmp_path: Path) -> None:
    """Its topic is deleted then, and its series end, as after a restart."""

    async def scenario() -> None:
        async with EmbeddedServer() as server:

            async def inside(running: Running) -> None:
                await until(lambda: running.probe_instances["here", "redelivery"].running_since)
                topic = running.probe_instances["here", "redelivery"].probe_instance.topic
                await until(lambda: topic in server.state.registry.topics)
                await running.applied(TWO.replace("[ordering, redelivery]", "[ordering]"))
                assert ("here", "redelivery") in running.probe_instances  # it goes on
                await until(lambda: ("here", "redelivery") not in running.probe_instances)
                await until(lambda: topic not in server.state.registry.topics)
                await until(lambda: [run.verdict for run in _runs(running) if run.probe == "redelivery"] == ["PASS"])
                (prober,) = running.service.queries.probers()
                assert prober.configuration is not None
                await until_counted(running, "redelivery-wire", there=False)
                assert any("ordering-wire" in name for name in await running.scraped())

            running = Running(tmp_path, TWO, {"PUBSUB_EMULATOR_HOST": server.address})
            async with running.service:
                await inside(running)
            assert not server.state.registry.topics

    asyncio.run(scenario())


async def until_counted(running: Running, words: str, *, there: bool) -> None:
    """Waits until a counter with these words is there, or none is any more."""
    async with asyncio.timeout(PATIENCE_S):
        while any(words in name for name in await running.scraped()) is not there:
            await asyncio.sleep(0.05)
    if not there:  # what ended begins at 0 if it comes back
        running.highest = {name: value for name, value in running.highest.items() if words not in name}


def _runs(running: Running) -> tuple[RunRecord, ...]:
    return running.service.queries.runs(RunFilter(), limit=100).items


def test_targets_come_and_go(tmp_path: Path) -> None:
    one = f"targets:\n  - {{name: here, endpoint: embedded, probes: {{ordering: {{{QUIET}}}}}}}\n"
    other = one + "  - {name: there, endpoint: embedded, environment: staging, probes: [ordering]}\n"

    async def scenario(running: Running) -> None:
        await until(lambda: running.probe_instances["here", "ordering"].last_run)
        first = running.probe_instances["here", "ordering"]
        for _ in range(2):
            await running.applied(other)
            await until(lambda: running.probe_instances["there", "ordering"].last_run)
            await until_counted(running, 'target="there"', there=True)
            await running.applied(one)
            await until(lambda: ("there", "ordering") not in running.probe_instances)
            await until_counted(running, 'target="there"', there=False)
            assert {slo.target for slo in running.service.snapshot().slos} == {"here"}
        assert running.probe_instances["here", "ordering"].last_run == first.last_run
        assert running.probe_instances["here", "ordering"].next_run_at == first.next_run_at

    play(tmp_path, one, scenario)


def test_a_wrong_file_changes_nothing_and_is_reported_until_a_right_one_comes(tmp_path: Path) -> None:
    async def scenario(running: Running) -> None:
        app = create_app(running.service, Archive(running.service.queries, ()), Api())
        await until(lambda: running.probe_instances["here", "ordering"].last_run)
        before = running.probe_instances["here", "ordering"]
        async with client_of(app) as client:

            async def reported() -> dict[str, object]:
                (prober,) = (await client.get("/api/v1/status")).json()["probers"]
                return dict(prober["configuration"])

            running.write("targets: 7\n")
            await until(lambda: running.service.snapshot().troubles)
            async with asyncio.timeout(PATIENCE_S):
                while (refused := await reported())["refused_at"] is None:
                    await asyncio.sleep(0.1)
            assert "targets (line 1)" in str(refused["refusal"])
            assert refused["digest"] == running.digest
            page = (await client.get("/")).text
            assert "REFUSED" in page
            assert "PubsubProberConfigRefused" in page
            await until_reloaded(running, "0.0")
            assert running.probe_instances["here", "ordering"].next_run_at == before.next_run_at

            running.write(ONE.replace("ordering: {", "ordering: {keys: 11, "))
            await until(lambda: running.probe_instances["here", "ordering"].history[1:])
            async with asyncio.timeout(PATIENCE_S):
                while (healed := await reported())["refused_at"] is not None:
                    await asyncio.sleep(0.1)
            assert (healed["refusal"], healed["digest"] != refused["digest"]) == ("", True)
            assert running.service.snapshot().troubles == ()
            await until_reloaded(running, "1.0")

    play(tmp_path, ONE, scenario)


async def until_reloaded(running: Running, value: str) -> None:
    """Waits until the metric says so: a page of metrics is kept for a moment."""
    async with asyncio.timeout(PATIENCE_S):
        while f"\npubsub_prober_config_last_reload_successful {value}\n" not in (await running.service.metrics(""))[1].decode():
            await asyncio.sleep(0.05)


def test_what_needs_a_restart_is_reported_by_name_and_the_rest_is_applied(tmp_path: Path) -> None:
    async def scenario(running: Running) -> None:
        slos = "slos: {fast: {indicator: publish_latency, objective: 99%, threshold: 123ms}}"
        changed = ONE.replace("here", "there") + slos + "\n"
        await running.applied(f"{changed}api: {{port: 9999}}\nhistory: {{retention: 9d}}\n")
        (prober,) = running.service.snapshot().probers
        assert prober.configuration is not None
        assert prober.configuration.restart == ("history.retention", "api.port", "slos.fast.threshold")
        await until(lambda: {target for target, _ in running.probe_instances} == {"there"})

    play(tmp_path, ONE, scenario)


def test_findings_of_before_stay(tmp_path: Path) -> None:
    async def scenario(running: Running) -> None:
        await until(lambda: running.service.queries.open_incidents())
        found = running.service.queries.open_incidents()
        await running.applied(ONE.replace("ordering: {", "ordering: {keys: 11, "))
        await until(lambda: running.probe_instances["here", "ordering"].history[1:])
        assert {one.incident_id for one in found} <= {one.incident_id for one in running.service.queries.open_incidents()}
        assert sum(value for name, value in (await running.scraped()).items() if "findings_total" in name) > 0

    play(tmp_path, ONE, scenario, ORDERING_PROBER_EMBEDDED__FAULTS='["swap_in_batch:p=0.5"]')


def test_the_program_notices_by_itself_as_kubernetes_changes_files_and_by_sighup(tmp_path: Path) -> None:
    for name, text in (("one", ONE), ("two", ONE.replace("here", "there")), ("three", ONE.replace("here", "elsewhere"))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "prober.yaml").write_text(text, encoding="utf-8")
    mounted = tmp_path / "data"
    mounted.symlink_to("one")

    def mount(name: str) -> None:
        (tmp_path / "new").symlink_to(name)
        os.replace(tmp_path / "new", mounted)

    environ = {"ORDERING_PROBER_API__PORT": "0", "ORDERING_PROBER_STATUS__URL": f"sqlite:///{tmp_path}/status.db"}
    with program("run", "--config", str(mounted / "prober.yaml"), environ=environ) as running:
        url = running.said(r"status page: (\S+)/")

        def targets() -> set[str]:
            return {instance["target"] for instance in status(url)["probe_instances"]}

        eventually(lambda: targets() == {"here"})
        mount("two")
        eventually(lambda: targets() == {"there"})
        mount("three")
        running.send(signal.SIGHUP)
        eventually(lambda: targets() == {"elsewhere"})
        assert series(url, "config_last_reload_successful") == [1.0]
        assert "in force since" in get(f"{url}/")
        assert running.stop() == 0


def test_the_api_by_itself_follows_the_objectives_and_tells_of_what_it_refuses(tmp_path: Path) -> None:
    file = tmp_path / "prober.yaml"
    file.write_text(ONE, encoding="utf-8")
    environ = {"ORDERING_PROBER_API__PORT": "0", "ORDERING_PROBER_STATUS__URL": f"sqlite:///{tmp_path}/status.db"}
    with program("api", "--config", str(file), environ=environ) as running:
        url = running.said(r"status page: (\S+)/")
        assert "/fast" not in get(f"{url}/slos")
        file.write_text(ONE + "slos: {fast: {indicator: publish_latency, objective: 99%, threshold: 123ms}}\n", encoding="utf-8")
        eventually(lambda: "/fast" in get(f"{url}/slos"))
        file.write_text("targets: 7\n", encoding="utf-8")
        eventually(lambda: series(url, "config_last_reload_successful") == [0.0])
        eventually(lambda: any("targets (line 1)" in trouble for trouble in status(url)["troubles"]))
        assert "/fast" in get(f"{url}/slos")
        assert running.stop() == 0
