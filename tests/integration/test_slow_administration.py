"""A control plane that is slow or down while the data plane works: faults of the service are found, and a right service passes."""

from __future__ import annotations

import pytest

from prober.cli.check_runs import CheckRequest
from prober.core.verdict import Verdict
from prober.probes.catalogue import PROBES, ProbeName
from prober.runs.result import RunResult
from tests.integration.test_check import failures, simulated
from tests.nightly import nightly_but

CREATED_S = 0.1
SLOW, DOWN = f"admin_slow:start={CREATED_S}", f"admin_error:start={CREATED_S}"
NEEDS_ADMINISTRATION = (ProbeName.CONTROL_PLANE, ProbeName.SEEK)
BY_DAY = (ProbeName.REDELIVERY, ProbeName.PUSH, ProbeName.SEEK)
"""A probe that waits for leases, one with an endpoint, and one that calls the control plane in its run."""


def result_of(probe: str, *faults: str) -> RunResult:
    (result,) = simulated(CheckRequest(probes=(ProbeName(probe),)), *faults)
    return result


@pytest.mark.parametrize("probe", nightly_but(BY_DAY, PROBES))
def test_a_right_service_passes_while_its_administration_is_slow(probe: str) -> None:
    result = result_of(probe, SLOW)
    assert (result.verdict, result.reason, result.unreachable) == (Verdict.PASS, "", False)


@pytest.mark.parametrize("probe", [probe for probe in PROBES if probe not in NEEDS_ADMINISTRATION])
def test_and_while_its_administration_is_down(probe: str) -> None:
    result = result_of(probe, DOWN)
    assert (result.verdict, result.reason, result.unreachable) == (Verdict.PASS, "", False)


@pytest.mark.parametrize("administration", nightly_but([DOWN], [SLOW, DOWN]))
@pytest.mark.parametrize("probe", nightly_but(BY_DAY, PROBES))
def test_a_stall_is_found_meanwhile(probe: str, administration: str) -> None:
    result = result_of(probe, administration, "stall_key:p=0.2")
    assert (result.verdict, result.unreachable) == (Verdict.FAIL, False)
    assert "STUCK" in failures([result])


@pytest.mark.parametrize("administration", nightly_but([DOWN], [SLOW, DOWN]))
@pytest.mark.parametrize("probe", nightly_but(BY_DAY, PROBES))
def test_a_loss_is_found_meanwhile(probe: str, administration: str) -> None:
    result = result_of(probe, administration, "drop:p=0.05")
    assert (result.verdict, result.unreachable) == (Verdict.FAIL, False)


@pytest.mark.parametrize(("probe", "call"), [(ProbeName.SEEK, "seeking "), (ProbeName.ORDERING, "creating ")])
def test_a_run_that_needs_administration_names_the_call_that_failed(probe: ProbeName, call: str) -> None:
    result = result_of(probe, DOWN if probe in NEEDS_ADMINISTRATION else "admin_error")
    assert (result.verdict, result.unreachable) == (Verdict.UNKNOWN, False)
    assert result.reason.startswith(call)
    assert result.reason.endswith("; the data plane answers: see control_plane_latency")
