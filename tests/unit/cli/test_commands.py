"""What `probes` prints about a stream that others publish, and `config show` about an emulator."""

from __future__ import annotations

from pathlib import Path

import pytest

from prober.cli import main
from prober.cli.commands import probes
from tests.commands import Output


def test_what_an_observed_stream_costs_nobody_can_say(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "prober.yaml"
    config.write_text("""
targets:
  - name: shop
    endpoint: europe-west1
    project: shop-1
    environment: production
    probes: {observe: {observe: {topic: orders, duration: 10s}}}
""")
    probes(str(config))
    reported = capsys.readouterr().out
    assert "what it costs depends on your traffic" in reported
    assert "what is observed comes on top" in reported


def test_the_configuration_is_shown_with_the_emulator_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.setenv("PUBSUB_EMULATOR_HOST", "127.0.0.1:8085")
    assert main(["config", "show"]) == 0
    shown = capsys.readouterr()
    assert "name: emulator\n  endpoint: 127.0.0.1:8085" in shown.out
    assert not shown.err
    (tmp_path / "prober.yaml").write_text("targets: [{name: shop}]")
    assert main(["config", "show", str(tmp_path / "prober.yaml")]) == 0
    assert capsys.readouterr().err == "warning: PUBSUB_EMULATOR_HOST=127.0.0.1:8085 replaces the endpoint of every target\n"


def test_of_two_configurations_the_last_one_counts(tmp_path: Path, capsys: Output) -> None:
    """docs/deploy.md relies on it: the arguments of a pod end with those of the user."""
    for name in ("chart", "own"):
        (tmp_path / name).write_text(f"targets: [{{name: {name}, endpoint: embedded, probes: [limits]}}]")
    assert main(["probes", "--config", str(tmp_path / "chart"), "--config", str(tmp_path / "own")]) == 0
    shown = capsys.readouterr().out
    assert "own" in shown
    assert "chart" not in shown
