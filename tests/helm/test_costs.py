"""The page of costs is up to date, its arithmetic holds, and its two measurements are those of the program as it is."""

from __future__ import annotations

from collections import Counter

import pytest

from prober.probes.cost import REQUEST_BYTES_MIN, USD_PER_TIB
from prober.schedule.forecast import monthly_cost
from tests.commands import ROOT
from tests.helm import costs, history_size
from tests.helm.costs import ENVIRONMENTS, Environment, quantity
from tests.helm.scrapes import scraped

SERIES_OFF, BYTES_OFF = 0.1, 0.3
EVENTS_OFF = 0.25
"""A pull has two events of its own, which other probes do not have."""
MEASURED_S = 40.0


def test_every_values_file_has_its_sum() -> None:
    assert {path.stem.removeprefix("values-") for path in (ROOT / "helm/ordering-keys-prober").glob("values-*.yaml")} == set(
        ENVIRONMENTS
    )


def test_production_by_hand() -> None:
    """Three targets; a month has 259,200 runs of `ordering` from two vantages, 43,200 of `redelivery` and `affinity`."""
    one = Environment("production")
    months = Counter[str]()
    for instance in one.probe_instances:
        months[instance.probe] += round(monthly_cost(instance).messages)
    assert months["ordering"] == 3 * 2 * 259_200 * (1020 + 1020)
    assert months["redelivery"] == 3 * 43_200 * (144 + 627)
    assert months["affinity"] == 3 * 43_200 * (1600 + 1728)
    assert one.messages == months.total()
    assert one.pubsub_usd.most < one.messages * REQUEST_BYTES_MIN / 2**40 * USD_PER_TIB
    assert one.pods == {"prober": 3, "api": 2}
    pods_usd = 730 * (3 * (0.5 * 0.0445 + 0.5 * 0.0049225) + 2 * (0.25 * 0.0445 + 0.25 * 0.0049225))
    assert pods_usd < one.compute_usd < pods_usd + 3  # the jobs
    assert one.total_usd.least == pytest.approx(
        one.pubsub_usd.least + one.metrics_usd + one.compute_usd + one.storage_usd + one.database_usd
    )


@pytest.mark.parametrize("name", ["production", "canary", "staging", "outside-google"])
def test_a_history_keeps_what_it_says(name: str) -> None:
    """Deleted is what is too old, and not before what is too much."""
    one = Environment(name)
    per_event = costs.BYTES_PER_EVENT + costs.MORE_BYTES_WITH_RANDOM_IDS
    kept = one.config.history.size_max / (one.events_per_day * per_event)
    assert kept >= one.config.history.retention.total_seconds() / costs.DAY_S


def test_what_is_not_there_costs_nothing() -> None:
    test = Environment("test")
    assert (test.database_usd, test.storage_usd, test.recorded) == (0, 0, 0)
    assert Environment("staging").recorded == 0
    assert Environment("canary").recorded > 0


@pytest.mark.parametrize(("text", "number"), [("500m", 0.5), ("1", 1), (2, 2), ("512Mi", 2**29), ("4Gi", 2**32)])
def test_quantities(text: str | int, number: float) -> None:
    assert quantity(text) == number


@pytest.mark.nightly  # until every probe has run
def test_a_prober_exports_as_many_series_as_the_page_counts() -> None:
    counted = scraped("production", targets=1)
    assert counted["prober"] == pytest.approx(
        costs.series_of(1, counted["probe_instances"], counted["subscriptions"]), rel=SERIES_OFF
    ), "python -m tests.helm.scrapes"
    assert counted["api"] == pytest.approx(costs.SERIES_OF_API, rel=SERIES_OFF)


@pytest.mark.nightly  # it measures for a minute
def test_an_event_takes_as_much_of_the_history_as_the_page_says() -> None:
    size = history_size.measure(MEASURED_S)
    assert size.bytes_per_event == pytest.approx(costs.BYTES_PER_EVENT, rel=BYTES_OFF)
    for instance in Environment("staging").probe_instances:
        if instance.probe in size.runs:
            traffic = monthly_cost(instance).traffic
            # Without a key: published, and received twice. With one: received on the twin subscription.
            in_no_history = 4 * traffic.unrecorded
            messages = traffic.published + traffic.delivered - in_no_history
            assert size.events_per_run(instance.probe) == pytest.approx(messages * costs.EVENTS_PER_MESSAGE, rel=EVENTS_OFF), (
                instance.probe
            )
