"""The page docs/detection.md: what it says of few simulations, and that the one that is committed speaks of every fault."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from prober.embedded.catalogue import CATALOGUE
from prober.probes.catalogue import PROBES
from prober.simulation import many
from prober.simulation.detection import Detection
from prober.simulation.many import Order
from prober.simulation.page import SLOW, WHY, main, page
from prober.simulation.plan import TO_BE_FOUND, Temper
from prober.simulation.world import Simulated
from tests.architecture import tree
from tests.unit.simulation.test_detection import note, plan


def test_what_is_missed_and_what_was_never_met_is_said() -> None:
    notes = (note("drop", {"ORDER_GAP": 2.0}), note("drop"), note(clean=True))
    text = page([(3, 8)], 0.05, Detection.of([Simulated(plan("drop"), notes, ())]))
    assert "seeds 3 to 8" in text
    assert "**False alarms: 0 in 1 clean runs**" in text
    assert "- `drop`: 1 of 2 (1 to 99 %) at `ordering`; too few runs" in text
    assert "- No run met " in text
    assert "`hole`, " in text
    assert "| `drop` | `ordering` | 1 of 2 | ORDER_GAP | 1.0 s |" in text
    assert "| arrival order | 2 of 2 | 1 of 1 clean runs |" in text


def test_how_often_it_is_found_where_nothing_else_goes_wrong_is_said() -> None:
    rough = replace(plan("drop"), temper=Temper.BOTH)
    simulated = [Simulated(plan("drop"), (note("drop", {"ORDER_GAP": 2.0}),), ()), Simulated(rough, (note("drop"),), ())]
    text = page([(0, 1)], 0.05, Detection.of(simulated))
    assert "- `drop`: 1 of 2 (1 to 99 %) at `ordering`; too few runs to prove that it is missed; 1 of 1 without other" in text


def test_where_a_probe_misses_it_is_said_why() -> None:
    missed = [note("stall_run", probe="pull") for _ in range(9)] + [note("hole", probe="pull") for _ in range(9)]
    text = page([(0, 0)], 0.05, Detection.of([Simulated(plan("hole"), tuple(missed), ())]))
    assert f"| {SLOW} | `stall_run` at `pull` (0 %) |" in text
    assert "| not examined | `hole` at `pull` (0 %) |" in text
    assert all(fault in CATALOGUE and probe in PROBES for fault, probe in WHY)


def test_nothing_is_missed() -> None:
    notes = [note(name, {CATALOGUE[name].findings[0]: 2.0}) for name in TO_BE_FOUND if CATALOGUE[name].findings]
    text = page([(0, 0)], 0.05, Detection.of([Simulated(plan("drop"), tuple(notes), ())]))
    assert "At its best probe, every fault was found in at least 99% of the observable runs." in text


def test_the_page_is_of_all_results_and_of_what_there_was_when_somebody_interrupts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def simulate(_order: Order, seed: int) -> Simulated:
        if seed == 4:
            raise KeyboardInterrupt
        return Simulated(plan("drop", seed), (note("drop", {"ORDER_GAP": 2.0}),), ())

    monkeypatch.setattr(many, "_simulated", simulate)
    out, kept = tmp_path / "page.md", tmp_path / "kept.json"
    main([str(out), "--results", str(kept), "--jobs", "1", "--seeds", "1..9"])
    assert "3 simulations (seeds 1 to 3) of 0.05 hours each" in out.read_text(encoding="utf-8")
    main([str(out), "--results", str(kept), "--jobs", "1"])
    assert "3 simulations (seeds 1 to 3) of 0.05 hours each" in out.read_text(encoding="utf-8")
    out.unlink()
    with pytest.raises(SystemExit):
        main([str(out), "--results", str(kept), "--hours", "1"])
    assert "has simulations of another program" in capsys.readouterr().err.splitlines()[-1]
    assert not out.exists()


def test_the_committed_page_names_every_fault() -> None:
    text = (tree.ROOT / "docs" / "detection.md").read_text(encoding="utf-8")
    assert [name for name in TO_BE_FOUND if f"`{name}`" not in text] == []
