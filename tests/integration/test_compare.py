"""`ordering-prober compare` over real gRPC: the same twice is never worse, a fault is, and a short look says how long it takes.

`FULL_COMPARISON=1` looks with twenty seeds.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from prober.cli import main
from prober.embedded.faults import parse_fault
from tests.integration.embedded import running

SEEDS = range(20) if os.environ.get("FULL_COMPARISON") else range(1)


@contextmanager
def two_servers(folder: Path, *faults: str) -> Iterator[Path]:
    """A configuration with a right server, `production`, and one with these faults, `canary`."""
    with running() as production, running(map(parse_fault, faults)) as canary:
        file = folder / "prober.yaml"
        servers = {"production": production.address, "canary": canary.address}
        targets = [f"{{name: {name}, endpoint: '{at}', project: project, environment: {name}}}" for name, at in servers.items()]
        file.write_text(f"targets: [{', '.join(targets)}]\n")
        yield file


def compared(file: Path, duration: str, *probes: str, seed: int = 0) -> tuple[int, dict[str, Any]]:
    """The exit code and the document."""
    names = [argument for probe in probes for argument in ("--probe", probe)]
    command = ["compare", "--config", str(file), "--baseline", "production", "--candidate", "canary", "--for", duration]
    with redirect_stdout(StringIO()) as out:
        code = main([*command, *names, "--seed", str(100 * seed), "--format", "json"])
    return code, json.loads(out.getvalue())


def worse(document: dict[str, Any]) -> set[str]:
    return {each["aspect"] for each in document["aspects"] if each["standing"] == "worse"}


@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_twice_is_never_worse(seed: int, tmp_path: Path) -> None:
    with two_servers(tmp_path) as file:
        code, document = compared(file, "10s", "ordering", seed=seed)
    assert code in (0, 3), document
    assert worse(document) == set()


@pytest.mark.nightly  # a minute: redeliveries are rare
@pytest.mark.parametrize("seed", SEEDS)
def test_a_candidate_that_redelivers_single_messages_is_worse(seed: int, tmp_path: Path) -> None:
    with two_servers(tmp_path, "redeliver_single:p=0.2") as file:
        code, document = compared(file, "60s", "redelivery", seed=seed)
    assert code == 1, document
    assert worse(document) == {"redelivery"}


def test_a_candidate_that_delivers_late_is_worse(tmp_path: Path) -> None:
    with two_servers(tmp_path, "slow_delivery:p=1") as file:
        code, document = compared(file, "30s", "ordering")
    assert code == 1, document
    assert {"end_to_end_latency_p99"} <= worse(document) <= {"end_to_end_latency_p50", "end_to_end_latency_p99"}


def test_a_short_look_tells_nothing_but_how_long_it_takes(tmp_path: Path) -> None:
    with two_servers(tmp_path, "swap_in_batch:p=0.5") as file:
        code, document = compared(file, "1s", "ordering")
    assert code == 3
    assert document["standing"] == "unknown"
    assert document["needed_s"] > document["took_s"] > 0.0


@pytest.mark.nightly  # a minute: publishes are tried for long before they fail
def test_a_candidate_that_nobody_reaches_is_worse_in_availability(tmp_path: Path) -> None:
    with two_servers(tmp_path) as file:
        text = file.read_text()
        address = text.rpartition("endpoint: '")[2].partition("'")[0]
        file.write_text(text.replace(address, "127.0.0.1:1"))
        code, document = compared(file, "60s", "ordering")
    assert code == 1, document
    assert "publish_availability" in worse(document)
