"""Every violation has its proof: the service under three faults at once, and each of its findings verified and read again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.programs import eventually, service
from tests.integration.proofs import FAILING, SKIPS, listed, prove, settings

ORDER = ("ORDER_GAP", "ORDER_INVERSION")
SOON_S = 3.0
"""The deadline for what is pending, in this test: longer than publishing takes on a busy machine."""


@pytest.mark.nightly  # until each of three faults was found; one proof from end to end is in `test_service`
def test_under_three_faults_every_finding_has_a_proof_that_shows_its_cause(tmp_path: Path) -> None:
    def has_all(url: str) -> bool:
        kinds = {one["kind"] for status in FAILING for one in listed(url, status)}
        return all(kinds & set(some) for some in (ORDER, SKIPS, ("STUCK",)))

    with service(**settings(SOON_S)) as (_, url):
        eventually(lambda: has_all(url), calm_s=1.0)
        outcome = prove(url, 25, tmp_path)
    assert outcome.looked_at.total() >= 3
    assert outcome.wrong() == {}
