"""What is counted of a foreign stream is right as far as it says so, and bounded."""

from __future__ import annotations

from prober.probes.observe import Ages, ObservedStream


def test_quantiles_of_ages_are_ages_of_messages() -> None:
    ages = Ages()
    assert (ages.quantile_s(0.5), ages.max_s) == (None, 0.0)
    for age_s in (0.05, 0.07, 0.3, 4.0):
        ages.came(age_s)
    assert [ages.quantile_s(share) for share in (0.5, 0.75, 0.99)] == [0.07, 0.3, 4.0]
    assert (ages.count, ages.max_s) == (4, 4.0)


def test_how_messages_came_is_measured_from_the_first_that_came() -> None:
    stream = ObservedStream(wait_timeout_s=10, idle_timeout_s=100)
    for t, number in enumerate((7, 8, 10, 9, 9, 6)):
        stream.numbered("g", number, float(t))
    (one,) = stream.order().streams
    arrivals = one.arrivals
    assert (arrivals.in_order, arrivals.early, arrivals.duplicates, arrivals.before_start) == (3, 1, 1, 1)


def test_with_a_first_number_what_is_missing_before_the_first_that_came_is_waited_for() -> None:
    stream = ObservedStream(wait_timeout_s=10, idle_timeout_s=100, initial=0)
    stream.numbered("g", 1, 1.0)
    stream.numbered("g", 0, 2.0)
    stream.numbered("h", 3, 3.0)
    stream.numbered("h", 4, 30.0)
    by_name = {stream.name.key: stream.arrivals for stream in stream.order().streams}
    assert (by_name["g"].in_order, by_name["g"].early, by_name["h"].gave_up) == (1, 1, 3)
