"""The closed list of figures: each has a sentence, and a unit at the end of its name."""

from __future__ import annotations

import re

import pytest

from prober.slo.figures import Figure, figures_as_text, name_of, value_as_text


@pytest.mark.parametrize("figure", Figure)
def test_each_is_a_metric_with_a_sentence_and_a_unit(figure: Figure) -> None:
    assert re.fullmatch(r"[a-z][a-z_]*_(seconds|ratio|messages|messages_per_second|bytes_per_second)", figure)
    assert re.fullmatch(r"[A-Z].*\.", figure.help)
    assert name_of(figure)


def test_for_people() -> None:
    assert name_of(Figure.BACKLOG_BEGINS) == "backlog begins"
    assert value_as_text(Figure.BACKLOG_BEGINS, 712_345.6) == "712,346 bytes/s"
    assert value_as_text(Figure.LATENCY_DURING_HOLD, 0.0123456) == "12.3 ms"
    assert value_as_text(Figure.SLOW_OLDEST, 15.561) == "15.6 s"
    assert value_as_text(Figure.UNORDERED_REORDERED, 0.25) == "0.25 (ratio)"
    assert value_as_text(Figure.UNORDERED_EXTENT, 3) == "3 messages"


def test_a_lower_bound_is_called_one() -> None:
    assert figures_as_text({Figure.PUSH_KEPT_UP: 40.0}) == {"push kept up": "at least 40 messages/s"}
    between = {Figure.PUSH_KEPT_UP: 10.0, Figure.PUSH_FELL_BEHIND: 20.0}
    assert figures_as_text(between) == {"push kept up": "10 messages/s", "push fell behind": "20 messages/s"}
