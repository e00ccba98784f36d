"""What `ordering-prober compare` refuses before it probes anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from prober.cli import main

TARGETS = """
targets:
  - {name: production, endpoint: embedded, probes: {ordering: {}, pull: {}}}
  - {name: canary, endpoint: embedded, probes: {ordering: {}, pull: {messages: 7}}}
  - {name: other, endpoint: embedded, probes: {publish: {}}}
slos: {order: false, redelivery: false, affinity: false, completeness: false, publish_availability: false}
"""


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--candidate", "canery"], "no target is called canery; did you mean canary?"),
        (["--candidate", "production"], "production cannot be compared with itself: name another target as --candidate"),
        (["--candidate", "other"], "production and other have no probe in common that both run alike: there is nothing to compare"),
        (["--candidate", "canary", "--probe", "seek"], "no probe is called seek; there are ordering, pull"),
        (
            ["--candidate", "canary", "--probe", "pull"],
            "production and canary have no probe in common that both run alike: there is nothing to compare",
        ),
        (["--candidate", "canary", "--for", "half"], "'half' is not a duration"),
        (["--candidate", "canary", "--stored"], "there is no status store at"),
    ],
)
def test_a_mistake_is_one_line_that_says_what_is_wrong(
    arguments: list[str], complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "prober.yaml"
    file.write_text(f"{TARGETS}\nstatus: {{url: 'sqlite:///{tmp_path}/none.db'}}\n")
    assert main(["compare", "--config", str(file), "--baseline", "production", *arguments]) == 2
    reported = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("warning:")]
    assert len(reported) == 1
    assert complaint in reported[0]
    assert not (tmp_path / "none.db").exists()
