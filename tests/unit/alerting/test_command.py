"""`ordering-prober alerts`: writes the rule files of a configuration, and says when they are not up to date."""

from __future__ import annotations

from pathlib import Path

import pytest

from prober.alerting.files import rule_files
from prober.cli import main
from prober.config.loading import load

NAMES = ["objectives.rules.yaml", "prober.rules.yaml", "service.rules.yaml"]


def test_it_writes_what_it_then_finds_up_to_date(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "new"
    assert main(["alerts", "--directory", str(folder)]) == 0
    assert sorted(path.name for path in folder.iterdir()) == NAMES
    assert {path.name: path.read_text() for path in folder.iterdir()} == rule_files(load(None, {}).objectives)
    assert main(["alerts", "--directory", str(folder), "--check"]) == 0
    assert "up to date" in capsys.readouterr().out


def test_a_file_that_is_not_up_to_date_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["alerts", "--directory", str(tmp_path)]) == 0
    stale = tmp_path / NAMES[0]
    stale.write_text(stale.read_text().replace("14.4", "14"))
    before = stale.read_text()
    assert main(["alerts", "--directory", str(tmp_path), "--check"]) == 2
    assert capsys.readouterr().err.strip() == (f"ordering-prober: {stale}: is out of date; write it again without --check")
    assert stale.read_text() == before


def test_a_file_that_is_missing_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["alerts", "--directory", str(tmp_path), "--check"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "cannot be read" in line


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert main(["alerts", "--directory", str(tmp_path / "file" / "rules")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "cannot be written" in line


def test_the_configuration_decides_about_objectives_and_the_options_about_addresses(tmp_path: Path) -> None:
    config = tmp_path / "prober.yaml"
    config.write_text("slos:\n  order: {indicator: order, objective: 99.9%, window: 28d}\n")
    options = ["--runbooks", "https://r.example.com/", "--dashboards", "https://g.example.com", "--pages", "https://p.example.com"]
    command = ["alerts", "--config", str(config), "--directory", str(tmp_path), *options, "--scrape-job", "okp", "--news", "2m"]
    assert main(command) == 0
    text = "".join((tmp_path / name).read_text() for name in NAMES)
    assert "> 13.44" in text
    assert "https://r.example.com/PubsubOrderViolated.md" in text
    assert "https://g.example.com/d/okp-ordering" in text
    assert "https://p.example.com/findings?" in text
    assert 'up{job="okp"}' in text
    assert "pubsub_prober_findings:new2m" in text


def test_the_rules_name_the_objectives_that_they_were_made_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "prober.yaml"
    config.write_text("slos:\n  affinity: false\n  order: {objective: 99.9%, window: 28d}\n")
    monkeypatch.setenv("ORDERING_PROBER_SLOS__ORDER__WINDOW", "7d")
    assert main(["alerts", "--config", str(config), "--directory", str(tmp_path)]) == 0
    said = {name: (tmp_path / name).read_text().splitlines()[1] for name in NAMES}
    assert said.pop("objectives.rules.yaml") == '# slos: {"affinity": false, "order": {"objective": "99.9%", "window": "7d"}}'
    assert set(said.values()) == {"groups:"}


def test_no_other_file_depends_on_objectives(tmp_path: Path) -> None:
    config = tmp_path / "prober.yaml"
    config.write_text("slos:\n  order: {objective: 99%, window: 7d}\n  oldest_unacked_message_age: {threshold: 30s}\n")
    for folder, options in (("default", []), ("own", ["--config", str(config)])):
        assert main(["alerts", "--directory", str(tmp_path / folder), *options]) == 0
    different = {name for name in NAMES if (tmp_path / "default" / name).read_text() != (tmp_path / "own" / name).read_text()}
    assert different == {"objectives.rules.yaml"}


@pytest.mark.parametrize("arguments", [["--news", "soon"], ["--config", "missing.yaml"]])
def test_wrong_usage_is_one_line(arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["alerts", "--directory", str(tmp_path), *arguments]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
