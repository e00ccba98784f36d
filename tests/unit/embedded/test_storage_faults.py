"""What goes wrong while messages are stored: publish requests, what becomes of them, other calls."""

from __future__ import annotations

import pytest

from prober.embedded import errors, resources
from prober.embedded.behaviour import Behaviour
from prober.embedded.faults import Faults, parse_fault
from prober.embedded.messages import PublishDraft
from tests.unit.embedded.notation import SUBSCRIPTION, TOPIC, faulty, name_of, ordered


def test_a_publish_that_failed_is_stored_later() -> None:
    play, faults = faulty("zombie_publish:count=1")
    with pytest.raises(errors.ServiceError, match="UNAVAILABLE"):
        play("open:A +k:1,2")
    assert play.state.next_wakeup(0.0) == 1.0
    assert play("+k:3 @0.9 @1") == "A<k3 A<k1,k2"
    entries = list(play.state.registry.subscriptions[SUBSCRIPTION].entries())
    assert [entry.message.publish_time for entry in entries] == [0.0, 1.0, 1.0]
    assert sorted(entry.message.sequence for entry in entries) == [entry.message.sequence for entry in entries]
    assert faults.ledger.counts == {"zombie_publish": 1}


def test_calls_that_are_answered_late_or_not_at_all() -> None:
    armed = Faults(map(parse_fault, ["publish_slow:key=k", "admin_slow:count=1", "admin_error:count=1"]))
    behaviour = Behaviour(armed)
    assert behaviour.answer_after("Publish", TOPIC, "k", 0.0) == 2.0
    assert behaviour.answer_after("Publish", TOPIC, "j", 0.0) == 0.0
    assert [behaviour.answer_after("CreateTopic", "CreateTopic", "", 0.0) for _ in range(2)] == [6.0, 0.0]
    assert [str(behaviour.refuse("CreateTopic", 0.0)).partition(":")[0] for _ in range(2)] == ["UNAVAILABLE", "None"]
    assert armed.ledger.counts == {"publish_slow": 1, "admin_slow": 1, "admin_error": 1}
    assert [injection.where for injection in armed.ledger.latest] == [TOPIC, "CreateTopic", "CreateTopic"]


@pytest.mark.parametrize("fault", ["publish_unavailable", "reply_lost", "partial_batch"])
def test_a_publish_that_fails(fault: str) -> None:
    play, faults = faulty(f"{fault}:count=1")
    play("open:A")
    with pytest.raises(errors.ServiceError, match="UNAVAILABLE"):
        play("+k:1,2")
    stored = {"publish_unavailable": "", "reply_lost": "A<k1,k2", "partial_batch": "A<k1"}
    assert play("@1") == stored[fault]
    assert play("+k:3") == "A<k3"
    assert faults.ledger.counts == {fault: 1}


def test_one_message_is_no_partial_batch() -> None:
    play, faults = faulty("partial_batch")
    assert play("open:A +k:1") == "A<k1"
    assert faults.ledger.counts == {}


def test_a_lost_write_is_confirmed() -> None:
    play, faults = faulty("lose_write:count=1")
    (message_id,) = play.state.publish(TOPIC, [PublishDraft(b"1", {}, "k")], 0.0)
    assert faults.ledger.latest[0].message_id == message_id
    assert play("open:A +k:2") == "A<k2"


@pytest.mark.parametrize(("fault", "comes"), [("filter_leaks", "A<k1,k2,k3"), ("filter_drops", "A<k3")])
def test_a_filter_that_leaks_and_one_that_drops(fault: str, comes: str) -> None:
    play, faults = faulty(f"{fault}:count=1", settings=ordered(filter="attributes:even"))
    assert play("open:A +k:1 +k:2?even=1 +k:3?even=1").replace(" A<", ",") == comes
    assert faults.ledger.counts == {fault: 1}


def test_what_waits_for_the_next_request_waits_for_a_while_only() -> None:
    """Then nothing happened, and the fault may strike once more."""
    play, faults = faulty("swap_across_batches:count=1")
    assert play("open:A +k:1 @1.9 @2") == "A<k1"
    assert play.state.next_wakeup(2.0) > 2.0
    assert (faults.ledger.counts, faults.all()[0].injected) == ({}, 0)
    assert play("+k:2 +k:3") == "A<k3,k2"
    assert faults.ledger.counts == {"swap_across_batches": 1}


def test_what_waits_for_the_next_request_wakes_the_service_and_is_lost_with_its_topic() -> None:
    play, _ = faulty("swap_across_batches")
    play("open:A +k:1")
    assert play.state.next_wakeup(0.0) == 2.0
    play.state.registry.delete_topic(TOPIC)
    assert play("@2") == ""


def test_one_of_two_subscriptions_sees_another_order() -> None:
    play, faults = faulty("diverge_subscriptions")
    twin = "projects/p/subscriptions/twin"
    play.state.registry.create_subscription(resources.Subscription(twin, TOPIC, enable_message_ordering=True), 0.0)
    play("+k:1,2 +j:1")
    orders = [[name_of(entry.message) for entry in queue.entries()] for queue in play.state.registry.subscriptions.values()]
    assert sorted(orders) == [["k1", "k2", "j1"], ["k2", "k1", "j1"]]
    assert faults.ledger.counts == {"diverge_subscriptions": 1}


def test_a_duplicate_id() -> None:
    play, faults = faulty("duplicate_id:count=1")
    play("open:A +k:1 +j:1 +k:2,3")
    queue = play.state.registry.subscriptions[SUBSCRIPTION]
    ids = [entry.message.id for entry in queue.key_queues["k"].entries]
    assert ids[0] == ids[1] != ids[2]
    assert faults.ledger.counts == {"duplicate_id": 1}
    assert faults.ledger.latest[0].message_id == ids[0]


def test_a_message_that_is_stored_twice_has_one_id_and_two_publish_times() -> None:
    """At once, or after the next request of its key; never more than twice."""
    play, faults = faulty("duplicate_publish_same_id")
    for step in range(20):
        play(f"@{step} +k:{step}")
    entries = play.state.registry.subscriptions[SUBSCRIPTION].key_queues["k"].entries
    places: dict[str, list[int]] = {}
    for entry in entries:
        places.setdefault(entry.message.id, []).append(entry.position)
    assert {len(found) for found in places.values()} == {1, 2}
    distances = {found[1] - found[0] for found in places.values() if len(found) == 2}
    assert distances == {1, 2}
    assert len({(entry.message.id, entry.message.publish_time) for entry in entries}) == len(entries)
    assert len({entry.message.sequence for entry in entries}) == len(entries)
    assert faults.ledger.counts["duplicate_publish_same_id"] == sum(len(found) - 1 for found in places.values())
    named = {injection.message_id for injection in faults.ledger.latest}
    assert named == {message_id for message_id, found in places.items() if len(found) == 2}


def test_a_publisher_of_a_message_that_is_stored_twice_gets_one_id() -> None:
    play, _ = faulty("duplicate_publish_same_id")
    assert len(play.state.publish(TOPIC, [PublishDraft(b"1", {}, "k"), PublishDraft(b"2", {}, "k")], 0.0)) == 2


def test_a_swap_stays_swapped_after_a_seek() -> None:
    play, _ = faulty("swap_in_batch")
    play("open:A @1 +k:1,2")
    play.state.registry.seek_to_time(SUBSCRIPTION, 0.0, 2.0)
    assert play("@2") == "A<k2,k1"
