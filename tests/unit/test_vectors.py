"""Every recorded trace is verified as its header expects.

Where a header says `"expect_only": "definite"`, `expect` lists violations and liveness findings only: a trace that lists none must
have none, another must have at least those. Indeterminate findings are free there.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from prober.core.findings import Status
from prober.core.verdict import Verdict
from prober.traces.trace import read_trace
from prober.traces.verification import verify_trace

VECTORS = sorted((Path(__file__).parents[1] / "vectors").glob("*.jsonl"))


@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.stem)
def test_a_trace_is_verified_as_expected(path: Path) -> None:
    with read_trace(path) as trace:
        verification = verify_trace(path.name, trace.header, trace)
    assert trace.header.expect is not None
    expected = {(one.kind, one.status) for one in trace.header.expect}
    found = {sort for sort in verification.counts if sort[1] is not Status.INFO}
    if trace.header.extra.get("expect_only") == "definite":
        definite = {sort for sort in found if sort[1] is not Status.INDETERMINATE}
        assert expected <= definite if expected else not definite, sorted(definite)
    else:
        assert found == expected
    if any(status in {"violation", "liveness"} for _, status in expected):
        assert verification.verdict is Verdict.FAIL
    else:
        assert verification.verdict is not Verdict.FAIL


def test_there_are_traces() -> None:
    assert len(VECTORS) >= 102
