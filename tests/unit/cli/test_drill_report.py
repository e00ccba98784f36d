"""How drills are reported: a table for people, a document for machines, an exit code for scripts."""

from __future__ import annotations

import asyncio
import json

import pytest

from prober.cli import main
from prober.cli.drill import conclusion, drill_as_text, drills_as_json, heading, run_drills
from prober.cli.process import code_of, overall_verdict
from prober.config.sections import Drills
from prober.core.verdict import Verdict
from prober.drills.chain import Step, StepName, concluded
from prober.drills.drill import DrillResult
from prober.drills.plans import PLANS
from prober.errors import ConfigError
from tests.commands import Output

NAMES = list(StepName)
LEFT_OUT = Step(StepName.RECEIVER, Verdict.UNKNOWN, note="not followed: no port", followed=False)
CAME = (
    *(Step(name, Verdict.PASS, took_s) for name, took_s in zip(NAMES[:4], (0.04, 0.25, 12.34, 13.0), strict=True)),
    LEFT_OUT,
)
LATE = (
    *CAME[:2],
    Step(StepName.RULE, Verdict.FAIL, note="did not come within 60 s"),
    Step(NAMES[3], Verdict.UNKNOWN, note="mute"),
    LEFT_OUT,
)
QUIET = (*(Step(name, Verdict.PASS) for name in NAMES[:4]), LEFT_OUT)
PLANS_SHOWN = (PLANS["drop"], PLANS["control"])


def result(name: str, steps: tuple[Step, ...]) -> DrillResult:
    verdict, reason = concluded(steps)
    found = ("ORDER_GAP",) if steps is not QUIET else ()
    return DrillResult(name, PLANS[name].sort, verdict, reason, steps, found, 1, 14.5, 3)


def test_the_table_shows_seconds_what_stayed_away_and_what_failed() -> None:
    shown = [heading(PLANS_SHOWN)]
    shown += [drill_as_text(result(*one), PLANS_SHOWN) for one in (("drop", CAME), ("drop", LATE), ("control", QUIET))]
    assert "\n".join(shown).splitlines() == [
        "drill    verdict finding counter    rule alertmanager receiver",
        "drop     PASS      0.0 s   0.2 s  12.3 s       13.0 s        -",
        "    found: ORDER_GAP",
        "drop     FAIL      0.0 s   0.2 s    FAIL      UNKNOWN        -",
        "    found: ORDER_GAP",
        "    rule: did not come within 60 s",
        "    alertmanager: mute",
        "control  PASS      quiet   quiet   quiet        quiet        -",
    ]


@pytest.mark.parametrize(
    ("steps", "code", "words"),
    [
        ((QUIET, CAME), 0, "PASS; not followed: receiver"),
        ((QUIET, LATE), 1, "FAIL; not followed: receiver"),
        (
            (QUIET, (*CAME[:3], Step(NAMES[3], Verdict.UNKNOWN, note="mute"), Step(NAMES[4], Verdict.PASS))),
            3,
            "UNKNOWN; not followed: receiver",
        ),
        ((tuple(Step(name, Verdict.PASS) for name in NAMES),), 0, "PASS"),
    ],
)
def test_the_worst_drill_decides_and_what_nobody_looked_at_is_said(
    steps: tuple[tuple[Step, ...], ...], code: int, words: str
) -> None:
    results = [result("drop", one) for one in steps]
    assert code_of(overall_verdict(results)) == code
    assert conclusion(results) == words


def test_the_document_has_everything() -> None:
    document = json.loads(drills_as_json([result("drop", LATE)]))
    assert document["verdict"] == "FAIL"
    (drilled,) = document["drills"]
    assert {name: drilled[name] for name in ("drill", "sort", "verdict", "reason", "found", "injected", "duration_s", "seed")} == {
        "drill": "drop",
        "sort": "integrity",
        "verdict": "FAIL",
        "reason": "rule: did not come within 60 s",
        "found": ["ORDER_GAP"],
        "injected": 1,
        "duration_s": 14.5,
        "seed": 3,
    }
    assert drilled["steps"][0] == {"step": "finding", "verdict": "PASS", "seconds": 0.04, "followed": True, "note": ""}
    assert drilled["steps"][4] == {
        "step": "receiver",
        "verdict": "UNKNOWN",
        "seconds": None,
        "followed": False,
        "note": "not followed: no port",
    }


def test_prometheus_cannot_scrape_who_does_not_listen() -> None:
    settings = Drills(prometheus="http://127.0.0.1:1")
    with pytest.raises(ConfigError, match=r"with --port or drills\.port"):
        asyncio.run(run_drills(PLANS_SHOWN, settings, "1", 0, lambda _: None, lambda _: None))


def test_a_wrong_address_of_the_command_line_is_one_line(capsys: Output) -> None:
    assert main(["drill", "--prometheus", "host:1"]) == 2
    assert capsys.readouterr().err.startswith("ordering-prober: prometheus: must be a URL")
