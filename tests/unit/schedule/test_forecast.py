"""What probing costs a month, and the cap on it; how rare a fault may be that a whole schedule finds."""

from __future__ import annotations

from pathlib import Path

import pytest

from prober.brokers.base import Vantage
from prober.cli import main
from prober.config.loading import load
from prober.errors import ConfigError
from prober.probes.catalogue import ProbeName
from prober.probes.power import one_in
from prober.schedule.forecast import (
    NOTHING,
    OPPORTUNITIES_OF,
    PERIODS_S,
    billed_instances,
    check_budget,
    detectable,
    detectable_on,
    hourly_opportunities,
    monthly_cost,
    price_of,
)
from prober.schedule.instances import instances_of
from prober.slo.indicators import Indicator
from tests.commands import Output

EUROPE = "{name: europe, endpoint: europe-west1, project: p-1, environment: production}"
EMULATOR = "{name: emulator, endpoint: 'localhost:8085', project: p-1, environment: test}"
CONFIG = load(None, {})
DOCS = Path(__file__).parents[3] / "docs"
(TARGET,) = CONFIG.targets


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
    assert price_of(instances_of(config.targets[0])).most < config.budget.usd_per_month / 4


def test_what_google_does_not_bill_costs_nothing(tmp_path: Path) -> None:
    config = load(written(tmp_path, EMULATOR, 0), {})
    check_budget(config, {})
    assert price_of(billed_instances(config, {})) == NOTHING
    real = load(written(tmp_path, EUROPE, 0), {})
    check_budget(real, {"PUBSUB_EMULATOR_HOST": "localhost:8085"})
    with pytest.raises(ConfigError):
        check_budget(real, {})


def test_the_points_of_a_cron_schedule_count_as_close_as_they_come(tmp_path: Path) -> None:
    def runs(schedule: str) -> float:
        config = load(written(tmp_path, EUROPE, 250, f"{{pull: {{schedule: {schedule}}}}}"), {})
        (instance,) = (instance for instance in instances_of(config.targets[0]) if instance.probe == "pull")
        return monthly_cost(instance).runs

    assert runs("{cron: '0,5 * * * *'}") == runs("{interval: 5m}")


def test_the_probes_are_listed_with_their_price(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["probes"]) == 0
    listed = capsys.readouterr().out
    assert (
        "a run publishes 144 messages and receives 627; a month on one target has 33,307,200 messages of at least 12.5 GiB"
        in listed
    )
    assert "budget.usd_per_month allows $250" in listed.splitlines()[-1]


def test_more_time_finds_what_is_rarer() -> None:
    hour, day, month = detectable(1000.0)
    missed = (1.0 - hour.share) ** 1000, (1.0 - day.share) ** 24_000, (1.0 - month.share) ** 720_000
    assert missed == pytest.approx((0.05, 0.05, 0.05))
    assert [found.within_s for found in (hour, day, month)] == list(PERIODS_S)
    assert detectable(0.0) == ()


def test_a_share_is_said_to_two_digits() -> None:
    assert (one_in(3.0 / 450_000), one_in(1.0), one_in(0.049)) == ("1 in 150,000", "1 in 1", "1 in 20")


def test_all_probes_of_a_target_add_up() -> None:
    alone = TARGET.model_copy(update={"probes": {name: TARGET.probes[name] for name in list(TARGET.probes)[:1]}})
    assert 0 < hourly_opportunities(alone)["opportunities_order"] < hourly_opportunities(TARGET)["opportunities_order"]
    assert {target for target, _ in detectable_on(CONFIG)} == {TARGET.name}
    assert {about for _, about in detectable_on(CONFIG)} == set(OPPORTUNITIES_OF)


def test_without_a_probe_for_it_nothing_is_said() -> None:
    alone = TARGET.model_copy(update={"probes": {name: one for name, one in TARGET.probes.items() if name == "limits"}})
    assert (TARGET.name, Indicator.AFFINITY) not in detectable_on(CONFIG.model_copy(update={"targets": (alone,)}))


def test_what_comes_through_a_client_library_gives_no_certain_opportunities() -> None:
    ordering = TARGET.probes[ProbeName.ORDERING]
    library = {ProbeName.ORDERING: ordering.model_copy(update={"vantages": (Vantage.LIBRARY,)})}
    assert hourly_opportunities(TARGET.model_copy(update={"probes": library})) == {}


def test_the_command_says_it_of_each_objective(capsys: Output) -> None:
    assert main(["probes"]) == 0
    said = capsys.readouterr().out
    assert (
        "redelivery on embedded: the schedule finds with 95% what goes wrong in 1 in 1,200 within an hour, 1 in 29,000 within a day"
        in said
    )


def is_said(number: str, planned: float) -> bool:
    said = int(number.removeprefix("about ").replace(",", ""))
    return said == (pytest.approx(planned, rel=0.15) if "about" in number else planned)


def test_the_page_of_the_service_has_the_opportunities_that_are_planned() -> None:
    """Each row gives those of one probe, a run and an hour; "about" where a run decides by time how many there are."""
    planned = [
        (counter, opportunities, round(opportunities * 3600 / instance.settings.schedule.longest_gap.total_seconds()))
        for instance in instances_of(TARGET)
        if instance.vantage is Vantage.WIRE
        for counter, opportunities in instance.experiment.opportunities(instance.workload).items()
    ]
    rows = [
        line for line in (DOCS / "service.md").read_text(encoding="utf-8").splitlines() if line.startswith("| ") and "| `" in line
    ]
    reported = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    opportunities = [row for row in reported if row[1].startswith(("`opportunities_", "`publishes_confirmed")) and len(row) == 5]
    assert len(opportunities) >= 11
    for _, counter, a_run, an_hour, _ in opportunities:
        name = counter.split("`")[1]
        same = [(run, hour) for kind, run, hour in planned if kind == name]
        assert any(is_said(a_run, run) and is_said(an_hour, hour) for run, hour in same), (
            f"{name}: {a_run}, {an_hour}; planned are {same}"
        )
