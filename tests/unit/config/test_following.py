"""A configuration file that changes: when it is applied, when it is refused, and what is reported."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest

from prober.config.following import DIGEST_LENGTH, ConfigurationFile, ConfigurationStatus, Following
from prober.config.models import Config
from prober.errors import PermissionRefused

GOOD = "maintenance: []\n"
OTHER = "targets: [{name: other}]\n"


class Trial:
    """A file that is followed, and what came of it."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "prober.yaml"
        self.file.write_text(GOOD, encoding="utf-8")
        self.now = 100.0
        self.applied: list[Config] = []
        self.reported: list[ConfigurationStatus] = []
        self.restart: tuple[str, ...] = ()
        self.problem: Exception | None = None
        read = ConfigurationFile.read(str(self.file), {})
        self.faults: list[Exception] = []
        self.following = Following(read, {}, self.apply, self.reported.append, self.faults.append, now=lambda: self.now)

    async def apply(self, config: Config) -> tuple[str, ...]:
        if self.problem is not None:
            raise self.problem
        self.applied.append(config)
        return self.restart

    def write(self, text: str) -> None:
        self.file.write_text(text, encoding="utf-8")

    async def look(self, times: int = 2) -> None:
        """A moment later, as often as said."""
        for _ in range(times):
            self.now += 1.0
            await self.following.look()

    @property
    def status(self) -> ConfigurationStatus:
        return self.reported[-1]

    @property
    def targets(self) -> list[str]:
        return [config.targets[0].name for config in self.applied]


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    return Trial(tmp_path)


def play(scenario: Coroutine[None, None, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, 20.0))


def test_at_first_what_was_read_is_in_force(trial: Trial) -> None:
    play(trial.look(3))
    assert (trial.applied, len(trial.reported)) == ([], 1)
    assert (trial.status.since, len(trial.status.digest), trial.status.refused_at) == (100.0, DIGEST_LENGTH, None)


def test_a_new_content_is_applied_when_it_is_seen_twice(trial: Trial) -> None:
    """It may be half written: an empty file is a valid configuration of other targets."""

    async def scenario() -> None:
        for text in ("", "targets:\n", OTHER):
            trial.write(text)
            await trial.look(1)
            assert trial.applied == []
        await trial.look(5)
        assert trial.targets == ["other"]
        assert trial.status.since == 104.0

    play(scenario())


def test_another_time_of_the_file_is_no_change(trial: Trial) -> None:
    async def scenario() -> None:
        trial.write(GOOD)
        await trial.look()
        assert trial.applied == []

    play(scenario())


def test_who_asks_need_not_wait_nor_change_anything(trial: Trial) -> None:
    async def scenario() -> None:
        trial.write(OTHER)
        await trial.following.look(at_once=True)
        await trial.following.look(at_once=True)
        assert trial.targets == ["other", "other"]
        assert trial.status.since == 100.0 + 0.0

    play(scenario())


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda trial: trial.write("targets: 7\n"), "targets (line 1)"),
        (lambda trial: trial.write("a: [\n"), "is not YAML"),
        (lambda trial: trial.write("one: 1\ntwo: 2\n"), "2 problems; one (line 1)"),
        (lambda trial: trial.file.unlink(), "cannot be read"),
        (lambda trial: trial.file.write_bytes(b"\xff\xfe"), "is not UTF-8"),
    ],
)
def test_a_wrong_one_is_refused_once_with_the_reason_and_a_right_one_heals_it(
    trial: Trial, change: Callable[[Trial], None], why: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    async def scenario() -> None:
        before = trial.status
        change(trial)
        await trial.look(5)
        assert len(trial.reported) == 2
        assert len(caplog.records) == 1
        assert why in trial.status.refusal
        assert why in trial.status.trouble
        assert "\n" not in trial.status.refusal
        assert (trial.status.digest, trial.status.since, trial.status.refused_at) == (before.digest, before.since, 102.0)
        trial.write(GOOD)  # as it was
        await trial.look()
        assert trial.status == before
        assert len(trial.applied) == 1

    play(scenario())


def test_what_cannot_be_applied_is_refused_and_tried_again_when_somebody_asks(trial: Trial) -> None:
    async def scenario() -> None:
        trial.problem = PermissionRefused("no credentials")
        trial.write(OTHER)
        await trial.look(4)
        assert (trial.status.refusal, trial.status.refused_at) == ("no credentials", 102.0)
        trial.problem = None
        await trial.look(4)
        assert trial.applied == []
        await trial.following.look(at_once=True)
        assert (trial.targets, trial.status.refused_at) == (["other"], None)

    play(scenario())


def test_a_mistake_of_ours_ends_nothing(trial: Trial) -> None:
    async def scenario() -> None:
        trial.problem = ZeroDivisionError("oops")
        trial.write(OTHER)
        await trial.look()
        assert trial.status.refusal == "internal error: ZeroDivisionError('oops')"
        assert trial.faults == [trial.problem]

    play(scenario())


def test_what_waits_for_a_restart_is_reported_by_name(trial: Trial, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        trial.restart = ("api.port", "history.location")
        trial.write(OTHER)
        await trial.look()
        assert trial.status.restart == trial.restart
        assert "restart to apply: api.port, history.location" in caplog.messages

    play(scenario())


def test_a_symbolic_link_is_followed_as_kubernetes_moves_it(tmp_path: Path) -> None:
    for name, text in (("one", GOOD), ("two", OTHER)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "prober.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "prober.yaml").symlink_to("data/prober.yaml")
    (tmp_path / "data").symlink_to("one")
    applied: list[Config] = []

    async def apply(config: Config) -> tuple[str, ...]:
        applied.append(config)
        return ()

    async def scenario() -> None:
        following = Following(ConfigurationFile.read(str(tmp_path / "prober.yaml"), {}), {}, apply, lambda _status: None, print)
        await following.look()
        (tmp_path / "next").symlink_to("two")
        (tmp_path / "next").replace(tmp_path / "data")
        for _ in range(2):
            await following.look()

    play(scenario())
    assert [config.targets[0].name for config in applied] == ["other"]
