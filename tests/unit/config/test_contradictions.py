"""What is valid and worth a second look: reported with file, key and line, and refused by nobody."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent

import pytest

from prober.cli import main
from prober.config.contradictions import REGIONS, REGIONS_AS_OF, REGIONS_SOURCE
from prober.config.loading import load_with_warnings
from prober.config.workloads import MESSAGES_PER_S
from tests.commands import ROOT

TARGET = "{{name: eu, endpoint: {endpoint}, project: my-project, environment: production{more}}}"


def warned(folder: Path, text: str) -> list[str]:
    """The warnings about a file, without its name."""
    path = folder / "prober.yaml"
    path.write_text(dedent(text), encoding="utf-8")
    return [line.removeprefix(f"{path}: ") for line in load_with_warnings(path, {})[1]]


def about(folder: Path, endpoint: str, more: str = "", probes: str = "") -> list[str]:
    return warned(folder, f"targets:\n  - {TARGET.format(endpoint=endpoint, more=more)}\n{probes}")


@pytest.mark.parametrize(
    "endpoint", ["europe-wset1", "europe-wset1-pubsub.googleapis.com", "pubsub.europe-wset1.rep.googleapis.com"]
)
def test_an_unknown_region_is_reported_with_the_list_and_its_date(tmp_path: Path, endpoint: str) -> None:
    (warning,) = about(tmp_path, endpoint)
    assert warning == (
        "targets[0].endpoint (line 2): europe-wset1 is not a region of Google Cloud that we know; did you mean europe-west1? "
        f"(our list: {REGIONS_SOURCE}, {REGIONS_AS_OF}; newer ones are missing in it)"
    )


def test_faults_without_an_embedded_target_are_reported(tmp_path: Path) -> None:
    (warning,) = about(tmp_path, "europe-west1", probes="embedded: {faults: [drop]}")
    assert warning.startswith("embedded.faults (line 3): no target is the embedded server, so nothing is injected")
    assert warned(tmp_path, "embedded: {faults: [drop]}") == []


def test_nothing_is_reported_about_what_is_usual(tmp_path: Path) -> None:
    assert warned(tmp_path, "") == []
    assert about(tmp_path, "'localhost:8085'", ", region: elsewhere") == []
    for region in sorted(REGIONS):
        assert about(tmp_path, region) == []


@pytest.mark.parametrize(
    ("endpoint", "more", "probes", "expected"),
    [
        (
            "europe-west1",
            ", region: us-east1",
            "",
            "targets[0].region (line 2): says us-east1, but the endpoint is in europe-west1",
        ),
        (
            "europe-west1",
            "",
            "history: {location: /a, reports: /b, retention: 3d}",
            "history.retention (line 3): 3d is shorter than 8d",
        ),
        ("europe-west1", "", "api: {reads: token}", "api.reads (line 3): asks for the token, and there is none: nobody can read"),
        (
            "europe-west1",
            "",
            "probes: {redelivery: {ack_deadline: 60s}}",
            "targets[0].probes.redelivery.deadlines.drain (line 3): 2m30s is shorter than ack_deadline and the longest deadline together",
        ),
        (
            "europe-west1",
            "",
            "probes: {pull: {deadlines: {stall: 30s}}}",
            "targets[0].probes.pull.deadlines.stall (line 3): 30s is shorter than a pull waits (25 s) and ack_deadline together",
        ),
        (
            "europe-west1",
            "",
            "probes: {ordering: {keys: 2, sizes: [100kB], messages: 20}}",
            "targets[0].probes.ordering (line 3): publishes 25.0 MB a second on each key, and Pub/Sub takes 1 MB a second per key",
        ),
        (
            "europe-west1",
            "",
            "probes: {ordering: {rate: 0, keys: 100, messages: 60, schedule: {interval: 1s}, jitter: 0s}}",
            "targets (line 1): all probes together need 1.5 times what one prober was measured to do",
        ),
    ],
)
def test_what_is_worth_a_second_look(tmp_path: Path, endpoint: str, more: str, probes: str, expected: str) -> None:
    (warning,) = about(tmp_path, endpoint, more, probes)
    assert warning.startswith(expected)
    assert "\n" not in warning


@pytest.mark.parametrize("endpoint", ["global", "pubsub.googleapis.com", "restricted.googleapis.com:443"])
def test_an_endpoint_that_may_reroute_publishes_is_a_warning(tmp_path: Path, endpoint: str) -> None:
    rerouted, unknown = about(tmp_path, endpoint, ", region: us-east2")
    assert rerouted == (
        f"targets[0].endpoint (line 2): {endpoint} may reroute publishes to another region, and order holds within one region: "
        "findings about order stay indeterminate; write a region, such as us-central1"
    )
    assert unknown.startswith("targets[0].region (line 2): us-east2 is not a region of Google Cloud that we know")
    (peer,) = about(tmp_path, "europe-west1", f", peer: '{endpoint}'")
    assert peer.startswith(f"targets[0].peer (line 2): {endpoint} may reroute publishes")


def test_an_endpoint_that_only_observes_may_be_global(tmp_path: Path) -> None:
    observed = ", probes: {observe: {observe: {topic: projects/p/topics/orders}}}"
    assert not any("reroute" in warning for warning in about(tmp_path, "global", observed))


def test_the_command_tells_warnings_and_accepts_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "prober.yaml"
    path.write_text(f"targets: [{TARGET.format(endpoint='europe-wset1', more='')}]")
    assert main(["config", "check", str(path)]) == 0
    output = capsys.readouterr()
    assert output.out == f"{path}: valid, with 1 warning\n"
    assert output.err.startswith(f"warning: {path}: targets[0].endpoint (line 1): europe-wset1 is not a region")


def test_the_measured_capacity_is_the_one_of_the_page_about_deployment() -> None:
    page = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
    measured = re.findall(r"^\| prober (?:at the wire|through Google's library) \| [\d,]+ to ([\d,]+) messages", page, re.MULTILINE)
    for most, used in zip(measured, MESSAGES_PER_S.values(), strict=True):
        assert used <= int(most.replace(",", "")) <= used * 1.1
