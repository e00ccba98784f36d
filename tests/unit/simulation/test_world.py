"""Whole simulations: the same again for the same seed, what is wrong is found, and what is allowed is not."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from prober.core.verdict import Verdict
from prober.embedded.faults import Fault
from prober.probes.catalogue import PROBES
from prober.simulation.detection import observable_in
from prober.simulation.network_conditions import CALM, NetworkConditions
from prober.simulation.plan import Disturbance, Plan, Temper, Trouble, planned
from prober.simulation.seeds import HOURS_DEFAULT
from prober.simulation.world import Simulated, defaults, simulate
from tests.nightly import nightly_but

DEFAULTS = defaults().targets[0].probes
HOURS = 1 / 60
HOURS_OF_A_STALL = 1 / 20


def plan(
    *probes: str,
    faults: tuple[Fault, ...] = (),
    disturbances: tuple[Disturbance, ...] = (),
    conditions: NetworkConditions = CALM,
    hours: float = HOURS,
) -> Plan:
    """A minute or so of these probes."""
    settings = {name: DEFAULTS[name] for name in DEFAULTS if name in probes}
    fault = faults[0].name if faults else ""
    return Plan(1, hours, Temper.CALM, settings, conditions, fault, faults, disturbances)


def files(folder: Path) -> dict[str, str]:
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest() for path in found}


@pytest.mark.parametrize("probe", sorted(PROBES))
def test_every_probe_passes_in_calm_weather(probe: str) -> None:
    simulated = simulate(plan(probe))
    assert simulated.faults == ()
    first = simulated.notes[0]
    assert (first.verdict, first.reason) == (Verdict.PASS, "")
    assert first.verified
    assert first.clean


def test_what_is_wrong_is_found() -> None:
    simulated = simulate(plan("limits", faults=(Fault("hole", 0.2, seed=3),)))
    (note,) = simulated.notes
    assert note.injected["hole"] > 0
    assert note.caught("hole")
    assert not note.is_false_alarm


SILENT = (*((probe, 0.0) for probe in sorted(PROBES)), ("seek", 0.5), ("exactly_once", 0.5))
SILENT_BY_DAY = (("ordering", 0.0), ("pull", 0.0), ("push", 0.0), ("seek", 0.5), ("exactly_once", 0.5))


@pytest.mark.parametrize(("probe", "start"), nightly_but(SILENT_BY_DAY, SILENT))
def test_a_service_that_falls_silent_is_found(probe: str, start: float) -> None:
    note = simulate(plan(probe, faults=(Fault("stall_all", start=start),), hours=HOURS_OF_A_STALL)).notes[0]
    if probe == "push":
        assert note.verdict is Verdict.UNKNOWN
        assert "no message of the run was pushed" in note.reason
    else:
        assert (note.verdict, note.caught("stall_all")) == (Verdict.FAIL, True), note.reason


@pytest.mark.parametrize("seed", [5, 17, 19])
def test_answers_that_are_lost_are_no_silence(seed: int) -> None:
    fault = Fault("lost_pull_answer", count=3, seed=seed)
    note = simulate(replace(plan("pull", faults=(fault,), hours=HOURS_OF_A_STALL), seed=seed)).notes[0]
    assert note.injected["lost_pull_answer"] == 3
    assert (note.verdict, note.reason) == (Verdict.PASS, "")


def test_a_machine_that_stood_still_knows_nothing() -> None:
    simulated = simulate(plan("redelivery", disturbances=(Disturbance(2.0, Trouble.PAUSE, 8.0),)))
    assert simulated.faults == ()
    first = simulated.notes[0]
    assert (first.verdict, first.verified, first.found) == (Verdict.UNKNOWN, False, {})
    assert "paused" in first.reason


@pytest.mark.parametrize(
    ("probe", "trouble", "amount"),
    [
        ("redelivery", Trouble.CUT, 20.0),
        ("push", Trouble.CUT, 40.0),  # nobody can tell requests that cannot get here from requests that are not sent
        ("redelivery", Trouble.CLOCK, 7200.0),
        ("redelivery", Trouble.BUSY, 0.2),
    ],
)
def test_what_is_none_of_the_services_doing_is_not_held_against_it(probe: str, trouble: Trouble, amount: float) -> None:
    simulated = simulate(plan(probe, disturbances=(Disturbance(1.0, trouble, amount),)))
    assert simulated.faults == ()
    assert not any(note.found for note in simulated.notes)


@pytest.mark.parametrize("trouble", [Trouble.RESTART, Trouble.KILL])
def test_a_prober_begins_again(trouble: Trouble) -> None:
    simulated = simulate(plan("exactly_once", disturbances=(Disturbance(1.0, trouble, 0.1),)))
    assert simulated.faults == ()
    assert len(simulated.notes) == 2
    assert not simulated.notes[0].verified
    assert not any(note.found for note in simulated.notes)


@pytest.mark.parametrize("seed", range(4))
def test_no_false_alarm(seed: int) -> None:
    simulated = simulate(planned(seed, 0.03, DEFAULTS))
    assert simulated.faults == ()
    assert [note.proofs for note in simulated.notes if note.is_false_alarm] == []


SEEN = (
    ("resume_past_unacked", 1),
    ("resume_past_unacked", 4),
    ("lone_duplicate", 1),
    ("lone_duplicate", 7),
    ("stall_key", 5),
    ("stall_all", 3),
    ("skip_waiting", 0),
)
"""Each was found too seldom once: by what was said on a stream that was over, under another name, not waited for, or excused by pulls that
were given up again and again."""
UNSEEN = (("forget_holds", 10), ("split_holder", 11), ("never_redeliver", 9))
"""Each was injected in a run where nothing on record distinguishes it from what is allowed."""


@pytest.mark.parametrize(("fault", "seed"), nightly_but((SEEN[1], SEEN[3], UNSEEN[0]), (*SEEN, *UNSEEN)))
def test_what_could_be_seen_is_found(fault: str, seed: int) -> None:
    simulated = simulate(planned(seed, HOURS_DEFAULT, DEFAULTS, (fault,)))
    injected = [note for note in simulated.notes if fault in observable_in(note)]
    assert all(note.caught(fault) for note in injected)
    assert injected or (fault, seed) in UNSEEN
    assert (fault, seed) in SEEN or any(note.unseen[fault] for note in simulated.notes)


def shown(simulated: Simulated) -> str:
    return repr((simulated.notes, simulated.faults))


def test_the_same_seed_gives_the_same_history_here_and_in_another_process(tmp_path: Path) -> None:
    seed = 2
    command = [sys.executable, "-c", "from prober.cli import main; import sys; sys.exit(main(sys.argv[1:]))"]
    command += ["simulate", "--seeds", f"{seed}..{seed}", "--hours", "0.03", "--history", str(tmp_path / "there")]
    environ = os.environ | {"PYTHONHASHSEED": "7", "PYTHONPATH": str(Path(__file__).parents[3])}
    subprocess.run(command, check=True, capture_output=True, env=environ)
    once, again = (simulate(planned(seed, 0.03, DEFAULTS), str(tmp_path / name)) for name in ("once", "again"))
    assert shown(once) == shown(again)
    assert files(tmp_path / "once") == files(tmp_path / "again") == files(tmp_path / "there")
    assert any(name.startswith("events/") for name in files(tmp_path / "once"))
