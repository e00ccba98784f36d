"""Which subscriptions a rule chooses."""

from __future__ import annotations

import pytest

from prober.monitoring.cloud import Rule

FOUND = {
    "projects/shop/subscriptions/orders-eu": {"team": "orders", "tier": "1"},
    "projects/shop/subscriptions/orders-us": {"team": "orders", "tier": "2"},
    "projects/shop/subscriptions/returns": {"team": "orders"},
    "projects/shop/subscriptions/old-orders-eu": {},
}


@pytest.mark.parametrize(
    ("rule", "names"),
    [
        (Rule("orders-.*"), ["orders-eu", "orders-us"]),
        (Rule("orders"), []),
        (Rule(".*"), ["old-orders-eu", "orders-eu", "orders-us", "returns"]),
        (Rule(labels={"team": "orders"}), ["orders-eu", "orders-us", "returns"]),
        (Rule(labels={"team": "orders", "tier": "2"}), ["orders-us"]),
        (Rule("orders-.*", {"tier": "1"}), ["orders-eu"]),
        (Rule(labels={"team": ""}), []),
    ],
)
def test_the_whole_name_and_every_label_must_match(rule: Rule, names: list[str]) -> None:
    chosen = rule.choose(FOUND, (), 10)
    assert [name.rpartition("/")[2] for name in chosen.names] == names
    assert chosen.left_out == 0


def test_what_is_known_stays_and_what_has_no_room_is_counted() -> None:
    chosen = Rule(".*").choose(FOUND, {"projects/shop/subscriptions/returns"}, 2)
    assert chosen.names == ("projects/shop/subscriptions/returns", "projects/shop/subscriptions/old-orders-eu")
    assert chosen.left_out == 2


@pytest.mark.parametrize("room", [0, -3])
def test_without_room_nothing_is_chosen(room: int) -> None:
    assert Rule(".*").choose(FOUND, (), room) == ((), 4)


def test_a_rule_in_words() -> None:
    assert str(Rule("orders-.*", {"team": "a", "tier": "1"})) == "orders-.* and team=a and tier=1"
