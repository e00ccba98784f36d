"""`ordering-prober demo`: each scene shows its fault and its finding, and nothing of it remains."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path

import pytest

from prober.cli.demo import INTERVALS, SCENES, Scene, settings, why_missed
from prober.config.loading import load
from prober.embedded.catalogue import CATALOGUE
from prober.embedded.faults import parse_fault
from tests.integration.programs import program

DEMO = ("demo", "--no-browser", "--port", "0")


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.probe)
def test_scenes_expect_what_the_catalogue_announces(scene: Scene) -> None:
    assert set(scene.kinds) <= set(CATALOGUE[parse_fault(scene.fault).name].findings)
    assert scene.probe in INTERVALS


def test_the_settings_of_the_user_do_not_apply(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORDERING_PROBER_API__PORT", "9999")
    monkeypatch.setenv("PUBSUB_EMULATOR_HOST", "127.0.0.1:1")
    config = load(None, settings(tmp_path, "127.0.0.1:8085", 0))
    (target,) = config.targets
    assert (target.endpoint, config.api.port) == ("127.0.0.1:8085", 0)
    assert {str(probe) for probe in target.probes} == set(INTERVALS)


def test_a_scene_without_a_finding_has_a_reason() -> None:
    assert why_missed(["PASS", "UNKNOWN", "UNKNOWN"]) == "the machine was too busy: 2 of the 3 runs since then ended UNKNOWN"
    assert why_missed([]) == "the machine was too busy: no run has ended since then"
    assert why_missed(["PASS"]) == "none of the 1 runs since then reported a violation"


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, program(*DEMO[:-1], str(taken.getsockname()[1])) as demo:
        assert demo.process.wait(60) == 2
        demo.said("(api.port)")


def test_ctrl_c_ends_it_and_nothing_remains(tmp_path: Path) -> None:
    with program(*DEMO, environ={"TMPDIR": str(tmp_path)}) as demo:
        demo.said("(Status page: .*)")
        assert os.listdir(tmp_path)
        demo.send(signal.SIGINT)
        assert demo.process.wait(60) == 0
        assert not os.listdir(tmp_path)


@pytest.mark.nightly
def test_every_scene() -> None:
    with program(*DEMO, "--no-stay") as demo:
        demo.said(r"(\d:\d\d  Recovery)")
        assert demo.process.wait(60) == 0
        text = "\n".join(demo.lines)
    for scene in SCENES:
        assert scene.title in text
        assert any(f"{kind}: " in text for kind in scene.kinds)
