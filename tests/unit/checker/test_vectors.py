"""Every recorded trace is judged as its header expects, as in `tests/unit/test_vectors.py`; none is left out here."""

from __future__ import annotations

from pathlib import Path

import pytest

from prober.checker.verifier import Verifier
from prober.core.findings import Status
from prober.traces.trace import read_trace

VECTORS = sorted((Path(__file__).parents[2] / "vectors").glob("*.jsonl"))


@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.stem)
def test_a_trace_is_judged_as_expected(path: Path) -> None:
    with read_trace(path) as trace:
        verifier = Verifier(trace.header.rules, subscriptions=(trace.header.subscription,))
        findings = [finding for event in trace for finding in verifier.observe(event)]
        findings.extend(verifier.finish())
        header = trace.header
    expected = {(one.kind, one.status) for one in header.expect or ()}
    found = {(one.kind, one.status) for one in findings if one.status is not Status.INFO}
    if header.extra.get("expect_only") == "definite":
        definite = {sort for sort in found if sort[1] is not Status.INDETERMINATE}
        assert expected <= definite if expected else not definite, sorted(definite)
    else:
        assert found == expected


def test_there_are_traces() -> None:
    assert len(VECTORS) >= 102
