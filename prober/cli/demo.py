"""The command `ordering-prober demo`: the service on an embedded server, with one fault after the other and a caption for each."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import tempfile
import textwrap
import webbrowser
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import typer

from prober.cli.options import port_option
from prober.cli.process import own_version
from prober.cli.status import Service
from prober.clock import monotonic_s, wall_s
from prober.core.verdict import Verdict
from prober.embedded.faults import parse_fault
from prober.errors import BrokerUnavailable

if TYPE_CHECKING:
    from prober.embedded.server import EmbeddedServer

_T = TypeVar("_T")

INDENT: Final = " " * 6
WIDTH: Final = 100
POLL_S: Final = 0.5
SHOWN_S: Final = 12.0
"""Time from a finding to the next scene, to open its page."""
PATIENCE_S: Final = 90.0
"""Time limit for the finding of a scene."""
INTERVALS: Final[Mapping[str, str]] = {"ordering": "5s", "redelivery": "15s", "affinity": "15s", "publish": "15s", "pull": "15s"}
"""The probes of the demo and their intervals: seconds instead of minutes."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A fault, the probe that finds it, and the findings that end the scene.

    happens  the wrong behaviour of the embedded server.
    look     the part of the page that shows it.
    """

    title: str
    fault: str
    probe: str
    kinds: tuple[str, ...]
    happens: str
    look: str


SCENES: Final = (
    Scene(
        "Messages in the wrong order",
        "swap_in_batch:p=0.2,key=ordering-[024]",
        "ordering",
        ("ORDER_INVERSION", "ORDER_GAP"),
        "Pub/Sub stores two neighbouring messages of a key in the wrong order.",
        "The first line of the page names the broken guarantee and its probe; the finding has the messages as a diagram.",
    ),
    Scene(
        "A redelivery that skips messages",
        "redeliver_unacked_only:key=redelivery-*",
        "redelivery",
        ("REDELIVERY_SKIP",),
        "Pub/Sub redelivers a nacked message, but not the acknowledged messages behind it.",
        "The diagram shows the redelivered message and names the messages that were left out.",
    ),
    Scene(
        "One key at two subscribers",
        "split_holder:key=affinity-*",
        "affinity",
        ("AFFINITY_SPLIT",),
        "Pub/Sub sends messages of a key to a second subscriber while the first has not acknowledged its own.",
        "The diagram has a lane for each subscriber; both hold messages of the key at the same time.",
    ),
)


def demo(
    port: Annotated[int, port_option("The port of the status page; 0 takes a free one.")] = 8080,
    browser: Annotated[bool, typer.Option(help="Open the status page in the browser.")] = True,
    stay: Annotated[bool, typer.Option(help="Keep the service running after the last scene, until Ctrl-C.")] = True,
) -> None:
    """Show the service at work: an embedded Pub/Sub server breaks one guarantee after the other, in two minutes.

    Everything runs on this machine and is deleted at the end. Exit code 0: all scenes were shown. 2: a port is taken. 3: the prober missed
    a fault.
    """
    logging.getLogger("prober").setLevel(logging.ERROR)  # the captions report the findings
    with tempfile.TemporaryDirectory() as folder:
        missed = asyncio.run(_demo(Path(folder), port, browser, stay))
    raise typer.Exit(3 if missed else 0)


async def _demo(folder: Path, port: int, browser: bool, stay: bool) -> int:
    """Run the demo; return the number of scenes without a finding. Raises ConfigError for a port that is in use."""
    from prober.cli.run import serve
    from prober.config.following import ConfigurationFile
    from prober.embedded.server import EmbeddedServer

    async with EmbeddedServer() as server:
        environ = settings(folder, server.address, port)
        url: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(serve(ConfigurationFile.read(None, environ), environ, own_version(), url.set_result))
        playing = asyncio.create_task(_play(url, server, browser))
        serving.add_done_callback(lambda _: playing.cancel())
        try:
            missed = await playing
            if stay:
                print("\nThe service keeps running, now without a fault. Ctrl-C stops it.", flush=True)
                await serving
        except (asyncio.CancelledError, BrokerUnavailable):  # the service stops, or cannot start
            missed = 0
            await serving
        finally:
            serving.cancel()
            with suppress(asyncio.CancelledError):
                await serving
        return missed


def settings(folder: Path, address: str, port: int) -> dict[str, str]:
    """Return the environment of the demo's service: the user's variables without those of the prober."""
    probes = {probe: {"schedule": {"interval": every}} for probe, every in INTERVALS.items()}
    foreign = {name: value for name, value in os.environ.items() if not name.startswith(("ORDERING_PROBER_", "PUBSUB_"))}
    return foreign | {
        "ORDERING_PROBER_TARGETS__0__NAME": "demo",
        "ORDERING_PROBER_TARGETS__0__ENDPOINT": address,
        "ORDERING_PROBER_TARGETS__0__PROJECT": "demo",
        "ORDERING_PROBER_TARGETS__0__ENVIRONMENT": "demo",
        "ORDERING_PROBER_API__PORT": str(port),
        "ORDERING_PROBER_STATUS__URL": f"sqlite:///{folder / 'demo.db'}",
        "ORDERING_PROBER_TARGETS__0__PROBES": json.dumps(probes),
    }


async def _play(url: Awaitable[str], server: EmbeddedServer, browser: bool) -> int:
    """Play all scenes; return the number of those without a finding."""
    began = monotonic_s()
    page = Service((await url).rstrip("/"))
    print(f"Status page: {page.url}", flush=True)
    if browser:
        webbrowser.open(page.url)
    missed = 0
    _caption(began, "A healthy service")
    _say("Every probe publishes messages with ordering keys and verifies what arrives.")
    healthy = await _until(lambda: _healthy(page))
    _say("All guarantees are kept: the probes report PASS." if healthy else "Not every probe has a verdict yet.")
    for scene in SCENES:
        _caption(began, scene.title)
        missed += not await _show(scene, server, page)
    _caption(began, "Recovery")
    _say(
        "The embedded server keeps its guarantees again. New runs pass; an incident closes when nothing was found for the time that its "
        "page names:"
    )
    _say(f"{page.url}/incidents")
    return missed


async def _show(scene: Scene, server: EmbeddedServer, page: Service) -> bool:
    """Inject the fault of a scene until its finding appears; return False if it was not found in time."""
    _say(scene.happens)
    _say(f"Fault: {scene.fault}")
    since = f"{datetime.fromtimestamp(wall_s(), UTC):%Y-%m-%dT%H:%M:%SZ}"
    armed = server.arm(parse_fault(scene.fault))
    try:
        found = await _until(lambda: _finding(page, scene))
    finally:
        server.disarm(armed.number)
    if found is None:
        runs = (await asyncio.to_thread(page.answer, f"/api/v1/runs?probe={scene.probe}&since={since}"))["items"]
        _say(f"Not found within {PATIENCE_S:.0f} s: {why_missed([run['verdict'] for run in runs])}.")
        return False
    _say(f"{found['kind']}: {found['explanation']}")
    _say(scene.look)
    _say(f"{page.url}/findings/{found['finding_id']}")
    await asyncio.sleep(SHOWN_S)
    return True


def why_missed(verdicts: Sequence[str]) -> str:
    """Return why a scene had no finding, by the verdicts of the runs that ended meanwhile."""
    if not verdicts:
        return "the machine was too busy: no run has ended since then"
    undecided = verdicts.count(Verdict.UNKNOWN)
    if undecided:
        return f"the machine was too busy: {undecided} of the {len(verdicts)} runs since then ended UNKNOWN"
    return f"none of the {len(verdicts)} runs since then reported a violation"


async def _until(look: Callable[[], Awaitable[_T | None]]) -> _T | None:
    """Return the first answer that is not None; None after `PATIENCE_S`."""
    deadline = monotonic_s() + PATIENCE_S
    while monotonic_s() < deadline:
        if (answer := await look()) is not None:
            return answer
        await asyncio.sleep(POLL_S)
    return None


async def _healthy(page: Service) -> bool | None:
    """Return True as soon as each probe has passed; None before."""
    instances = (await asyncio.to_thread(page.answer, "/api/v1/status"))["probe_instances"]
    passed = {one["probe"] for one in instances if one["verdict"] == "PASS"}
    return True if passed >= INTERVALS.keys() else None


async def _finding(page: Service, scene: Scene) -> dict[str, Any] | None:
    """Return the newest violation of a scene; None: there is none yet."""
    items = (await asyncio.to_thread(page.answer, f"/api/v1/findings?probe={scene.probe}&status=violation&limit=20"))["items"]
    return next((one for one in items if one["kind"] in scene.kinds), None)


def _caption(began: float, title: str) -> None:
    minutes, seconds = divmod(int(monotonic_s() - began), 60)
    print(f"\n{minutes}:{seconds:02}  {title}", flush=True)


def _say(text: str) -> None:
    print(
        textwrap.fill(text, WIDTH, initial_indent=INDENT, subsequent_indent=INDENT, break_long_words=False, break_on_hyphens=False),
        flush=True,
    )
