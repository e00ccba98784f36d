"""What probing costs a month, and the cap on it."""

from __future__ import annotations

from pathlib import Path

import pytest

from prober.cli import main
from prober.config.loading import load
from prober.errors import ConfigError
from prober.schedule.budget import NOTHING, billed_sites, check_budget, monthly_cost, price_of
from prober.schedule.instances import sites_of

EUROPE = "{name: europe, endpoint: europe-west1, project: p-1, environment: production}"
EMULATOR = "{name: emulator, endpoint: 'localhost:8085', project: p-1, environment: test}"


def written(folder: Path, targets: str, usd_per_month: float, probes: str = "{}") -> str:
    path = folder / "prober.yaml"
    path.write_text(f"targets: [{targets}]\nprobes: {probes}\nbudget: {{usd_per_month: {usd_per_month}}}\n")
    return str(path)


def test_a_configuration_that_may_cost_more_is_refused_with_what_costs_most(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, EUROPE, 1)
    for command in (["config", "check", file], ["run", "--config", file]):
        assert main(command) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("ordering-prober: all probes together may cost $")
        assert (
            "budget.usd_per_month allows $1.00: allow more, or probe less often or with fewer messages. europe/ordering/wire"
            in line
        )


def test_the_default_probes_are_well_within_the_default_budget() -> None:
    config = load(None, {})
    assert price_of(sites_of(config.targets[0])).most < config.budget.usd_per_month / 4


def test_what_google_does_not_bill_costs_nothing(tmp_path: Path) -> None:
    config = load(written(tmp_path, EMULATOR, 0), {})
    check_budget(config, {})
    assert price_of(billed_sites(config, {})) == NOTHING
    real = load(written(tmp_path, EUROPE, 0), {})
    check_budget(real, {"PUBSUB_EMULATOR_HOST": "localhost:8085"})
    with pytest.raises(ConfigError):
        check_budget(real, {})


def test_the_points_of_a_cron_schedule_count_as_close_as_they_come(tmp_path: Path) -> None:
    def runs(schedule: str) -> float:
        config = load(written(tmp_path, EUROPE, 250, f"{{pull: {{schedule: {schedule}}}}}"), {})
        (site,) = (site for site in sites_of(config.targets[0]) if site.probe == "pull")
        return monthly_cost(site).runs

    assert runs("{cron: '0,5 * * * *'}") == runs("{interval: 5m}")


def test_the_probes_are_listed_with_their_price(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["probes"]) == 0
    listed = capsys.readouterr().out
    assert (
        "a run publishes 144 messages and receives 459; a month on one target has 26,049,600 messages of at least 9.6 GiB" in listed
    )
    assert "budget.usd_per_month allows $250" in listed.splitlines()[-1]
