"""What `probes` says of a stream that others publish."""

from __future__ import annotations

from pathlib import Path

import pytest

from prober.cli.commands import probes


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
    told = capsys.readouterr().out
    assert "what it costs depends on your traffic" in told
    assert "what is observed comes on top" in told
