"""Where messages are pushed unless somebody says otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from prober.probes.catalogue import ProbeName
from tests.unit.config.writing import loaded


@pytest.mark.parametrize(
    ("endpoint", "push", "runs"),
    [
        ("europe-west1", "", False),
        ("127.0.0.1:8085", "", True),
        ("'[::1]:8085'", "", True),
        ("emulator.test:8085", "", False),
        ("emulator.test:8085", "{address: 'http://push.test', port: 81}", True),
        ("global", "{address: 'https://push.test', port: 81, service_account: push@p.iam.gserviceaccount.com}", True),
    ],
)
def test_by_default_messages_are_pushed_where_that_is_possible(tmp_path: Path, endpoint: str, push: str, runs: bool) -> None:
    target = f"{{name: one, project: p1, environment: test, endpoint: {endpoint}}}"
    config = loaded(tmp_path, f"targets: [{target}]\npush: {push}\n")
    assert (ProbeName.PUSH in config.targets[0].probes) is runs
