"""The page about trace files tells the truth: its example is verified as it says, and it names every event and every rule."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from prober.cli import main
from prober.core.events import EVENT_TYPES
from prober.traces.header import RULE_READERS, TraceHeader, rules_as_json

PAGE = (Path(__file__).parents[3] / "docs" / "trace-files.md").read_text(encoding="utf-8")
FILES = re.findall(r'^```jsonl title="(\S+)"\n(.*?)^```$', PAGE, re.MULTILINE | re.DOTALL)
CONSOLES = re.findall(r"^```console\n\$ ordering-prober (.*?)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("command", "expected"), CONSOLES)
def test_an_example_prints_what_the_page_shows(
    command: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, content in FILES:
        (tmp_path / name).write_text(content, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(shlex.split(command)) == (0 if ": PASS (" in expected else 1)
    assert capsys.readouterr().out == expected


def test_there_are_examples() -> None:
    assert len(FILES) == 1
    assert len(CONSOLES) == 1


def test_every_event_is_named() -> None:
    rows = " ".join(re.findall(r"^\| (`[^|]*) \|", PAGE, re.MULTILINE))
    assert set(EVENT_TYPES) <= set(re.findall(r"`(\w+)`", rows))


def test_every_rule_is_named_with_its_default() -> None:
    stated = dict(re.findall(r"^\| `(\w+)` \| ([\w.]+) \|", PAGE, re.MULTILINE))
    defaults = rules_as_json(TraceHeader("s", "k").rules)
    assert {name: json.loads(stated[name]) for name in RULE_READERS} == defaults
