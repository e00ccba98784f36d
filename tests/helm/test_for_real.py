"""The rendered containers, without Kubernetes: their arguments, environment and mounts, started here, asked by their probes and by
what `helm test` asks.

Where a volume would be mounted is a folder of the test, and the port is a free one; nothing else is different.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.helm.chart import Values, environment, merged
from tests.helm.standing_in import Place, configure, container_named, free_port, helm_test, prepared, probed
from tests.integration.programs import Program, eventually, get, program

CALM: Values = {"config": {"probes": {"ordering": {"keys": 2}}}}
WITH_API: Values = merged(
    CALM,
    {
        "config": {"api": {"reads": "token"}},
        "status": {"existingSecret": {"name": "store"}},
        "api": {"enabled": True, "existingSecret": {"name": "api"}},
        "history": {"volume": {"size": "1Gi"}},
    },
)


@contextmanager
def started(values: Values, name: str, folder: Path, secrets: Mapping[str, str]) -> Iterator[tuple[Program, Place]]:
    """A container of the rendering, with its mounts moved to the folder."""
    container, place, text = prepared(values, name, folder)
    configure(place, place.moved(text, container))
    arguments = [place.moved(argument, container) for argument in container["args"]]
    with program(*arguments, environ=environment(container, secrets)) as running:
        yield running, place


def test_the_prober_of_the_default_values_probes_and_answers(tmp_path: Path) -> None:
    with started(CALM, "prober", tmp_path, {}) as (running, place):
        probed(container_named(CALM, "prober"), place)
        eventually(lambda: '"instance":"okp-0"' in get(f"{place.url}/api/v1/status").replace(" ", ""))
        asked = helm_test(CALM, place, {})
        assert asked.returncode == 0, asked.stderr
        assert "/api/v1/status: " in asked.stdout
        assert (place.volume("/var/lib/ordering-prober") / "status.db").exists()
        assert running.stop() == 0


def test_the_prober_and_its_api_in_another_pod(tmp_path: Path) -> None:
    secrets = {"store/url": f"sqlite:///{tmp_path}/shared.db", "api/token": "planted"}
    with started(WITH_API, "prober", tmp_path / "prober", secrets) as (prober, own):
        probed(container_named(WITH_API, "prober"), own)
        with started(WITH_API, "api", tmp_path / "api", secrets) as (api, place):
            probed(container_named(WITH_API, "api"), place)
            asked = helm_test(WITH_API, place, secrets)
            assert asked.returncode == 0, asked.stderr
            assert api.stop() == 0
        assert prober.stop() == 0
        assert not any("planted" in line for line in [*prober.lines, *api.lines])
    assert list(own.volume("/history").rglob("*.parquet"))


def test_helm_test_fails_where_nobody_answers(tmp_path: Path) -> None:
    asked = helm_test(CALM, Place(tmp_path, free_port()), {})
    assert asked.returncode == 1


def test_helm_test_fails_with_another_token_than_the_one_that_is_asked_for(tmp_path: Path) -> None:
    secrets = {"store/url": f"sqlite:///{tmp_path}/shared.db", "api/token": "planted"}
    with started(WITH_API, "api", tmp_path, secrets) as (_, place):
        probed(container_named(WITH_API, "api"), place)
        asked = helm_test(WITH_API, place, {"api/token": "another"})
        assert asked.returncode == 1
        assert "401" in asked.stderr


def test_folders_are_moved_once(tmp_path: Path) -> None:
    moved = Place(tmp_path, 1).moved("run /tmp/a /etc/ordering-prober/b /usr/c", container_named(CALM, "prober"))
    assert moved == f"run {tmp_path}/tmp/a {tmp_path}/etc/ordering-prober/b /usr/c"
