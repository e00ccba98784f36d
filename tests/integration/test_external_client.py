"""Probes through a program in another language: the protocol with a small one, and with Node where its packages are.

`ORDERING_PROBER_NODE_MODULES` names a `node_modules` folder into which `npm install` put what `examples/clients/node/package.json` says.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
from pathlib import Path

import pytest

from prober.brokers.base import Vantage
from prober.cli.check_runs import CheckRequest, run_checks
from prober.config.loading import load
from prober.core.findings import Status
from prober.core.verdict import Verdict
from prober.runs.result import RunResult
from tests.contract.context import EXTERNAL_CLIENT

NODE_CLIENT = Path("examples/clients/node/client.js")


def check(probe: str, *client: str, faults: tuple[str, ...] = (), seed: int = 0) -> RunResult:
    """One run on the embedded server with these faults."""
    environ = {"ORDERING_PROBER_EMBEDDED__FAULTS": json.dumps(faults)}
    request = CheckRequest((probe,), vantage=Vantage.EXTERNAL, client=client or EXTERNAL_CLIENT, seed=seed)
    (result,) = asyncio.run(run_checks(load(None, environ), request, environ, lambda _: None))
    return result


def violations(result: RunResult) -> set[str]:
    return {made.finding.kind for made in result.findings if made.finding.status is Status.VIOLATION}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """The command of the client for Node."""
    modules = os.environ.get("ORDERING_PROBER_NODE_MODULES", "")
    if shutil.which("node") is None or not (Path(modules) / "@google-cloud" / "pubsub").is_dir() or not modules:
        pytest.skip("needs Node, and ORDERING_PROBER_NODE_MODULES with @google-cloud/pubsub")
    folder = tmp_path_factory.mktemp("node")
    shutil.copy(NODE_CLIENT, folder)
    (folder / "node_modules").symlink_to(Path(modules).resolve())
    return ("node", str(folder / NODE_CLIENT.name))


def test_a_right_service_passes() -> None:
    result = check("ordering")
    assert result.verdict is Verdict.PASS, result.reason
    assert result.vantage == "external"


def test_a_fault_of_the_service_is_found() -> None:
    assert "ORDER_INVERSION" in violations(check("ordering", faults=("swap_across_batches:p=0.2",)))


def test_a_client_that_swaps_messages_is_found() -> None:
    """On a right service: what a customer sees is not what the service did."""
    assert "ORDER_INVERSION" in violations(check("ordering", *EXTERNAL_CLIENT, "--fault", "swaps"))


@pytest.mark.parametrize(
    ("fault", "reason"), [("dies", "ended with exit code 1: .*the client gave up"), ("babbles", "broke the protocol in line")]
)
def test_a_client_that_fails_proves_nothing(fault: str, reason: str) -> None:
    """Also with a service that is wrong."""
    result = check("ordering", *EXTERNAL_CLIENT, "--fault", fault, faults=("swap_in_batch:p=0.2",))
    assert result.verdict is Verdict.UNKNOWN
    assert re.search(reason, result.reason)
    assert not result.findings


def test_a_client_that_cannot_be_started_proves_nothing() -> None:
    result = check("ordering", "/nowhere/client")
    assert result.verdict is Verdict.UNKNOWN
    assert "cannot be started: No such file or directory" in result.reason


@pytest.mark.parametrize("probe", ["ordering", "redelivery"])
def test_node_passes_on_a_right_service(node: tuple[str, ...], probe: str) -> None:
    result = check(probe, *node)
    assert result.verdict is Verdict.PASS, result.reason


def test_a_fault_of_the_service_is_found_through_node(node: tuple[str, ...]) -> None:
    assert "ORDER_INVERSION" in violations(check("ordering", *node, faults=("swap_in_batch:p=0.2",)))


def test_node_drops_messages_whose_receipt_shares_a_request_with_stale_ids(node: tuple[str, ...]) -> None:
    """Version 5.3.1 on a right service; which extension shares a request is random, so several runs are made."""
    assert any(check("exactly_once", *node, seed=seed).verdict is Verdict.FAIL for seed in range(5))
