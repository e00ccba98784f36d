"""What the commands `ordering-prober embedded` and `ordering-prober faults` do, apart from reading their arguments."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterable
from typing import Final

from prober.embedded.fault_catalogue import CATALOGUE, Description
from prober.embedded.faults import Fault, parse_fault
from prober.embedded.server import EmbeddedServer

_STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


def read_faults(texts: Iterable[str]) -> tuple[Fault, ...]:
    """The faults as given on the command line; raises `faults.FaultError` with a sentence for the user."""
    return tuple(parse_fault(text) for text in texts)


async def serve(port: int, faults: Iterable[Fault] = (), admin_port: int | None = None, say: Callable[[str], None] = print) -> None:
    """Run the embedded server until SIGINT or SIGTERM. Raises OSError if a port is taken.

    `say` gets one line for each address, once the server answers.
    """
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in _STOP_SIGNALS:
        loop.add_signal_handler(number, stop.set)
    try:
        async with EmbeddedServer(port, faults, admin_port) as server:
            say(f"Pub/Sub on {server.address}: export PUBSUB_EMULATOR_HOST={server.address}")
            if server.admin_address:
                say(f"drills on http://{server.admin_address}/faults")
            await stop.wait()
    finally:
        for number in _STOP_SIGNALS:
            loop.remove_signal_handler(number)


def describe_faults() -> str:
    """Every fault with its sentence, and what must be found."""
    return "\n".join(line for description in CATALOGUE.values() for line in _described(description)) + "\n"


def _described(description: Description) -> list[str]:
    lines = [description.name, f"    {description.sentence}"]
    if description.findings:
        lines.append(f"    found as: {', '.join(description.findings)} (at least one)")
    elif description.benign:
        lines.append("    benign: it breaks no promise and must not be found")
    else:
        lines.append("    breaks no promise of order, costs availability or time")
    if description.shows:
        lines.append(f"    shows in: {description.shows}")
    lines.append(f"    a run ends as: {' or '.join(description.verdicts)}")
    return lines
