"""The command that proves the absence of false alarms, and the switches that tell where one comes from."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from prober.core.findings import Finding
from prober.core.rules import Mode
from tests.nightly import AT_NIGHT
from tests.simulation import legal
from tests.simulation.features import FEATURES, NEEDS, only, without
from tests.simulation.legal import Choice, Counts, findings_of, main
from tests.simulation.service import SUBSCRIPTION, Run, simulate_run
from tests.simulation.swarm import swarm

SEEDS = range(150 if AT_NIGHT else 40)

# What only the amendments allow: none of it happens in a run without features.
NEW = (
    "65 epochs",
    "acknowledged, sent again, lost, not sent again",
    "back-off",
    "dead-lettered before its receipt",
    "failover",
    "flow control used up",
    "handed over",
    "held for long",
    "left out with a dead-letter policy",
    "lost track of what is held",
    "nobody pulls",
    "nobody subscribes",
    "race of two streams",
    "retention",
    "stored twice under one id",
    "waits for another key",
)


def seen(mode: Mode, *features: str) -> Counter[str]:
    total: Counter[str] = Counter()
    for seed in SEEDS:
        total += simulate_run(seed, mode, options=only(swarm(seed, mode), features)).seen
    return total


@pytest.mark.parametrize("mode", Mode)
def test_without_features_nothing_new_happens(mode: Mode) -> None:
    happened = seen(mode)
    assert [situation for situation in NEW if happened[situation]] == []


def test_a_feature_alone_happens_alone() -> None:
    happened = seen(Mode.STREAMING, "race")
    assert [situation for situation in NEW if happened[situation]] == ["race of two streams"]


@pytest.mark.parametrize("mode", Mode)
def test_all_but_all_features_is_none(mode: Mode) -> None:
    options = [swarm(seed, mode) for seed in range(30)]
    assert [only(each, ()) for each in options] == [without(each, FEATURES) for each in options]
    assert [only(each, FEATURES) for each in options] == options


def test_what_a_feature_needs_are_features() -> None:
    assert set(NEEDS) | {each for needed in NEEDS.values() for each in needed} <= set(FEATURES)


def test_the_command_counts_what_happened(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--histories", "6", "--only", "seek"])
    out = capsys.readouterr().out
    assert "together 6" in out
    assert "0 histories with a definite finding" in out


def test_processes_do_not_matter(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--histories", "6", "--processes", "2"])
    two = capsys.readouterr().out
    main(["--histories", "6"])
    assert two == capsys.readouterr().out


@pytest.fixture
def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Verifies by a bound that is tighter than the true one, so that there is something to be found."""

    def verified(run: Run) -> list[Finding]:
        strict = {
            name: replace(rules, delivery_deadline_s=0.5, stall_deadline_s=0.5) for name, rules in run.rules_by_subscription.items()
        }
        return findings_of(replace(run, rules=strict[SUBSCRIPTION], rules_by_subscription=strict))

    monkeypatch.setattr(legal, "findings_of", verified)


@pytest.mark.usefixtures("strict")
def test_an_accusation_fails_the_command_and_names_its_seed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--histories", "9", "--only", "seek", "--shown", "1000"]) == 1
    replays = [
        line for line in capsys.readouterr().out.splitlines() if "python -m tests.simulation.legal --only seek --mode" in line
    ]
    assert replays
    arguments = replays[0].split("tests.simulation.legal ")[1].split("    ")[0].split()
    assert main(arguments) == 1
    assert "Finding(" in capsys.readouterr().out


def test_a_legal_history_is_printed_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--mode", "push", "--seed", "1", "--only", "seek"]) == 0
    assert "ended@" in capsys.readouterr().out


def test_a_situation_that_never_occurred_is_reported() -> None:
    assert f"{Mode.PUSH}: seek" in legal.missing({Mode.PUSH: Counts()})


def test_a_choice_tells_its_arguments() -> None:
    assert Choice(without=("seek",), only=("race", "hold")).words == " --only race --only hold --without seek"


ONCE_ACCUSED = {
    Mode.STREAMING: (
        (2316, "a hole in the record hides how much may be outstanding on a stream"),
        (4000139, "a record was acknowledged, and forgotten while a redelivery of it was on hold"),
        (20003, "what was raced has left the window"),
        (20820, "a shadow of a region that is not known"),
        (60720, "a copy on another stream was sent before the one that came behind what overtook it"),
        (60774, "one of two records under an id has left the window"),
        (60877, "streams that were not seen to open"),
        (61482, "a run that began where streams raced"),
        (61584, "acknowledged before the record"),
        (63450, "dead-lettered while it waited for what it may have overtaken"),
        (64911, "a run of a region that is not known"),
        (67937, "two copies on two streams"),
        (90125, "a copy that would be a skip itself, if it were certain that what raced stands between"),
        (90339, "a copy of what stands at least before the last of two that raced"),
        (92358, "put back behind what was put back"),
        (200093, "several copies that explain a skip, the last of them first"),
        (200639, "a later record of what seemed to have come"),
        (101785, "a stream takes over what uses up its flow control"),
        (2003198, "streams from before a hole in the record ended in it"),
        (2009473, "a redelivery of a record that has left the window"),
    ),
    Mode.PULL: (
        (2308, "two subscriptions, two clocks"),
        (2851, "a subscription made between two copies of a message"),
        (5846, "two subscriptions, several epochs, two clocks"),
        (6380, "two subscriptions, one with a short memory"),
        (60881, "two subscriptions, and a record that begins in the middle"),
        (62826, "a later attempt, by another clock"),
        (64866, "a region of before the record"),
        (67346, "a region of which nothing was received"),
        (71345, "a region that has left the window"),
        (80015, "a key that begins again below what is pending"),
        (91377, "a message of another region has left the window"),
        (94863, "two subscriptions, of which one received nothing of a region"),
        (82805, "what is missing waits for what it may have overtaken"),
        (3008514, "the lease of a message that was delivered before the record is extended"),
        (3008603, "a copy of what is missing came, whose record may be a forgotten one"),
    ),
    Mode.PUSH: (
        (7547, "put back when its stream was over"),
        (10984, "an attempt of before the record"),
        (20972, "a message of before the record"),
        (62622, "a second copy, by another clock"),
        (69220, "an epoch whose first numbers come back into the record"),
        (74070, "a refusal of an old request, by another clock"),
        (80433, "the first of an epoch, with a baseline that has to be adopted"),
        (111893, "two subscriptions, of which one could not place what it received"),
        (2004085, "a late confirmation is compared before a message that another clock puts behind has come"),
        (2007249, "a message before an earlier one, in a grace period"),
    ),
}


@pytest.mark.parametrize(
    ("mode", "seed"),
    [pytest.param(mode, seed, id=f"{mode}: {why}") for mode, seeds in ONCE_ACCUSED.items() for seed, why in seeds],
)
def test_what_was_accused_once_is_not(mode: Mode, seed: int) -> None:
    assert legal.definite(findings_of(Choice().run(seed, mode))) == []
