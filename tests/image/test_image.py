"""The built images, run: read-only, as their user, with what the chart gives them. Skipped where no image was built."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helm.chart import environment
from tests.helm.standing_in import configure, helm_test, prepared, probed
from tests.helm.test_for_real import CALM
from tests.image.container import Image, image, run, running, writable

SERVICE = "localhost/ordering-keys-prober:0.1.0"
JOBS = "localhost/ordering-keys-prober:0.1.0-jobs"


@pytest.fixture(scope="module")
def service() -> Iterator[Image]:
    """The image of the prober and the API."""
    with image(SERVICE) as built:
        yield built


@pytest.fixture(scope="module")
def jobs() -> Iterator[Image]:
    """The image of the nightly jobs."""
    with image(JOBS) as built:
        yield built


def volumes(of: Image, folder: Path) -> dict[str, Path]:
    """What an image needs to write to."""
    return {"/tmp": writable(folder / "tmp", of), "/var/lib/ordering-prober": writable(folder / "data", of)}


def test_nothing_else_is_writable_and_nothing_more_is_allowed(service: Image, tmp_path: Path) -> None:
    touch = "touch /tmp/a /var/lib/ordering-prober/a; touch /a /etc/a /opt/ordering-prober/a"
    tell = "id -u; grep -E 'CapEff|CapBnd|NoNewPrivs' /proc/self/status"
    done = run(service, volumes(service, tmp_path), "sh", "-c", f"{touch}; {tell}")
    assert done.stderr.count("Read-only file system") == 3
    assert done.stdout.split() == ["10001", "CapEff:", "0" * 16, "CapBnd:", "0" * 16, "NoNewPrivs:", "1"]


BOTH = pytest.mark.parametrize("name", ["service", "jobs"])
FORBIDDEN = re.compile(
    r"(^|/)((apt|apt-get|dpkg|perl|pip|su|mount|passwd|gcc|make|curl|wget|git)$|perl5|pip3|pip-[\d]|setuptools|ensurepip|idlelib)"
)


@BOTH
def test_no_installer_compiler_or_perl_is_among_the_files(name: str, request: pytest.FixtureRequest) -> None:
    root = request.getfixturevalue(name).root
    places = [root / "opt", root / "usr" / "bin", root / "usr" / "sbin", root / "usr" / "lib", root / "usr" / "local"]
    found = [str(path.relative_to(root)) for place in places for path in place.rglob("*")]
    assert len(found) > 1000
    assert [path for path in found if FORBIDDEN.search(path) and "/site-packages/" not in path] == []
    assert not list(root.glob("opt/ordering-prober/lib/python*/site-packages/pip*"))


@BOTH
def test_no_file_changes_its_user_and_scanners_find_the_packages(name: str, request: pytest.FixtureRequest) -> None:
    root = request.getfixturevalue(name).root
    assert [path for path in (root / "usr").rglob("*") if not path.is_symlink() and path.stat().st_mode & 0o6000] == []
    listed = re.findall(r"(?m)^Package: (.*)$", (root / "var/lib/dpkg/status").read_text(encoding="utf-8"))
    assert {"libc6", "base-files"} <= set(listed)
    assert not {"apt", "dpkg-dev", "perl-base", "util-linux", "tar", "passwd"} & set(listed)


def test_the_prober_runs_with_what_the_chart_gives_it(service: Image, tmp_path: Path) -> None:
    container, place, text = prepared(CALM, "prober", tmp_path)
    configure(place, text)
    mounts = {mount["mountPath"]: place.volume(mount["mountPath"]) for mount in container["volumeMounts"]}
    for path in ("/tmp", "/var/lib/ordering-prober"):
        writable(mounts[path], service)
    log = tmp_path / "log"
    command = [*service.entrypoint, *container["args"]]
    with running(service, mounts, command, environment(container, {}), log) as ended:
        probed(container, place)
        asked = helm_test(CALM, place, {})
        assert asked.returncode == 0, asked.stderr
        health = service.about.get("Healthcheck")
        if health is not None:  # images in OCI's own format have none
            assert run(service, mounts, *health["Test"][1:], ORDERING_PROBER_API__PORT=str(place.port)).returncode == 0
    assert ended.code == 0, log.read_text()


@pytest.mark.nightly  # minutes of Spark in a container; `tests/spark` runs the same jobs by day
def test_the_jobs_verify_a_history(jobs: Image, tmp_path: Path) -> None:
    mounted = volumes(jobs, tmp_path)
    place = "/var/lib/ordering-prober"
    simulated = f"ordering-prober simulate --fault duplicate_id --seeds 4 --hours 0.03 --history {place}/history"
    assert run(jobs, mounted, *simulated.split()).returncode == 0
    asked = f"nightly --history {place}/history --reports {place}/reports --date 2025-12-20"
    done = run(jobs, mounted, *jobs.entrypoint, *asked.split())
    assert done.returncode == 1, done.stderr  # the ids of messages are wrong there
    assert len(done.stdout.splitlines()) == 1
    assert list((tmp_path / "data" / "reports").rglob("*.parquet"))
