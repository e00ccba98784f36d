"""Exactly-once delivery, dead letters, and what is said about acknowledgement ids."""

from __future__ import annotations

import pytest

from prober.embedded import errors, resources
from prober.embedded.state import StreamAnswers
from tests.unit.embedded.notation import SUBSCRIPTION, TOPIC, Play, faulty, ordered

DEAD = "projects/p/topics/dead"


def exactly_once() -> Play:
    return Play(ordered(enable_exactly_once_delivery=True))


def reasons(play: Play, script: str) -> dict[str, str]:
    with pytest.raises(errors.ServiceError) as caught:
        play(script)
    return {play.names.get(ack_id, ack_id): reason for ack_id, reason in caught.value.reasons.items()}


def test_acknowledging_twice_is_no_error() -> None:
    assert exactly_once()("open:A +k:1 ack:k1 ack:k1") == "A<k1"
    assert Play()("open:A +k:1 ack:k1 ack:k1") == "A<k1"


def test_exactly_once_refuses_an_id_whose_time_is_over() -> None:
    play = exactly_once()
    play("open:A +k:1 @10")
    (old, new) = play.names
    assert reasons(play, f"ack:{old}") == {"k1": errors.INVALID_ACK_ID}
    assert reasons(play, f"mod:{old}=10") == {"k1": errors.INVALID_ACK_ID}
    assert reasons(play, f"nack:{old}") == {"k1": errors.INVALID_ACK_ID}
    assert play(f"ack:{new}") == ""


def test_exactly_once_wants_acknowledgements_in_order() -> None:
    play = exactly_once()
    play("open:A +k:1,2,3")
    assert reasons(play, "ack:k2") == {"k2": errors.UNORDERED_ACK_ID}
    assert play("ack:k2,k1 ack:k3 @100") == ""


def test_exactly_once_keeps_deadlines_when_a_stream_is_lost() -> None:
    play = exactly_once()
    assert play("open:A +k:1,2 close:A open:B @9") == "A<k1,k2"
    assert play("ack:k1 @10") == "B<k2"


def test_exactly_once_lets_a_client_carry_on_after_it_lost_its_stream() -> None:
    play = exactly_once()
    assert play("open:A +k:1,2 close:A open:B open:A2=A +k:3") == "A<k1,k2 A2<k3"


@pytest.mark.parametrize(
    ("script", "out"),
    [
        ("open:A +k:1,2 close:A ack:k1,k2 open:B +k:3", "A<k1,k2 B<k3"),
        ("open:A +k:1,2 close:A ack:k2 ack:k1 open:B +k:3", "A<k1,k2 B<k3"),
        ("open:A +k:1,2,3 close:A ack:k1 open:B", "A<k1,k2,k3 B<k2,k3"),
        # what is sent again brings what follows with it
        ("open:A +k:1,2 close:A ack:k2 open:B", "A<k1,k2 B<k1,k2"),
        ("open:A +k:1,2,3 ack:k2 close:A ack:k1,k3 open:B +k:4", "A<k1,k2,k3 B<k4"),
        ("open:A +k:1,2,3 ack:k2 close:A ack:k1 open:B", "A<k1,k2,k3 B<k3"),
        ("open:A +:1 close:A ack:1 open:B", "A<1"),
    ],
)
def test_an_acknowledgement_that_comes_after_its_stream_closed_counts_until_something_is_sent(script: str, out: str) -> None:
    assert Play()(script) == out


def test_after_a_redelivery_an_old_acknowledgement_has_no_effect() -> None:
    play = Play()
    assert play("open:A +k:1,2 open:B") == "A<k1,k2"
    old = [play.ack_ids[name] for name in ("k1", "k2")]
    assert play("close:A") == "B<k1,k2"
    play.state.acknowledge(SUBSCRIPTION, old, 0.0)
    assert play("close:B open:A") == "A<k1,k2"


def test_an_acknowledgement_id_of_another_subscription_is_refused() -> None:
    play = Play()
    play("open:A +k:1")
    other = "projects/p/subscriptions/other"
    play.state.registry.create_subscription(resources.Subscription(other, TOPIC), 0.0)
    with pytest.raises(errors.ServiceError, match="INVALID_ARGUMENT"):
        play.state.acknowledge(other, [play.ack_ids["k1"]], 0.0)


def test_a_stream_is_notified_of_what_became_of_its_answers() -> None:
    play = exactly_once()
    play("open:A +k:1,2,3")
    one, two, three = (play.ack_ids[name] for name in ("k1", "k2", "k3"))
    over = f"{one.rpartition('-')[0]}-0"
    play.state.answer_stream("A", StreamAnswers([one, three], [two, over], [20, 20]), 0.0)
    play("@1")
    (confirm,) = play.confirms
    assert confirm.acked == (one,)
    assert confirm.failed == {three: errors.UNORDERED_ACK_ID}
    assert confirm.modified == (two,)
    assert confirm.modify_failed == {over: errors.INVALID_ACK_ID}


@pytest.mark.parametrize("other", ["nonsense", "ack-0-1"])
def test_exactly_once_refuses_what_cannot_be_an_id_and_takes_the_rest(other: str) -> None:
    play = exactly_once()
    play("open:A +k:1,2")
    one, two = (play.ack_ids[name] for name in ("k1", "k2"))
    play.state.answer_stream("A", StreamAnswers([other, one], [other, two], [20, 20]), 0.0)
    play("@1")
    (confirm,) = play.confirms
    assert (confirm.acked, confirm.failed) == ((one,), {other: errors.INVALID_ACK_ID})
    assert (confirm.modified, confirm.modify_failed) == ((two,), {other: errors.INVALID_ACK_ID})
    assert reasons(play, f"ack:k2,{other}") == {other: errors.INVALID_ACK_ID}
    assert play("@100") == ""


def test_without_exactly_once_nothing_is_confirmed() -> None:
    play = Play()
    assert play("open:A +k:1 sack:A/k1 @10") == "A<k1"
    assert play.confirms == []


@pytest.mark.parametrize("verb", ["ack", "nack"])
def test_what_cannot_be_an_id_is_refused(verb: str) -> None:
    play = Play()
    play("open:A +k:1")
    with pytest.raises(errors.ServiceError, match=r"You have passed an invalid ack ID to the service \(ack_id=nonsense\)\."):
        play(f"{verb}:k1,nonsense")
    assert play("ack:k1 @10") == ""


@pytest.mark.parametrize("seconds", [-1, 601])
def test_deadlines_have_bounds(seconds: int) -> None:
    play = Play()
    play("open:A +k:1")
    with pytest.raises(errors.ServiceError, match=f"Invalid ack deadline given .ack_deadline={seconds}"):
        play(f"mod:k1={seconds}")


def dead_letters() -> Play:
    play = Play()
    play.state.registry.create_topic(resources.Topic(DEAD))
    policy = resources.DeadLetterPolicy(DEAD, 5)
    play.state.registry.update_subscription(ordered(dead_letter_policy=policy), ["dead_letter_policy"], 0.0)
    return play


def test_a_message_that_nobody_can_process_is_dead_lettered_and_its_key_moves_on() -> None:
    play = dead_letters()
    assert play("open:A +k:1,2 " + "nack:k1 " * 4) == "A<k1,k2 " + "A<k1,k2 " * 3 + "A<k1,k2"
    assert play.attempts == {"k1": 5, "k2": 1}
    assert play("nack:k1") == "dead k1"
    assert play("ack:k2 +k:3 @9 ack:k3 @100") == "A<k3"


def test_what_is_held_after_a_dead_letter_still_has_its_deadline() -> None:
    play = dead_letters()
    play("open:A +k:1,2 " + "nack:k1 " * 5)
    assert play("@10") == "A<k2"


def test_a_dead_letter_says_where_it_comes_from() -> None:
    play = dead_letters()
    name = "projects/p/subscriptions/morgue"
    play.state.registry.create_subscription(resources.Subscription(name, DEAD), 0.0)
    play("@1.5 +k:1?color=red open:A @2 " + "nack:k1 " * 5)
    (entry,) = play.state.registry.subscriptions[name].entries()
    assert entry.message.ordering_key == "k"
    assert entry.message.data == b"1"
    assert entry.message.attributes == {
        "color": "red",
        "CloudPubSubDeadLetterSourceDeliveryCount": "5",
        "CloudPubSubDeadLetterSourceSubscription": "sub",
        "CloudPubSubDeadLetterSourceSubscriptionProject": "p",
        "CloudPubSubDeadLetterSourceTopicPublishTime": "1970-01-01T00:00:01.500Z",
    }


def test_a_dead_letter_that_is_late_is_overtaken() -> None:
    play, faults = faulty("dead_letter_late")
    letters = "projects/p/subscriptions/letters"
    play.state.registry.create_topic(resources.Topic(DEAD))
    play.state.registry.create_subscription(resources.Subscription(letters, DEAD, enable_message_ordering=True), 0.0)
    policy = resources.DeadLetterPolicy(DEAD, 5)
    play.state.registry.update_subscription(ordered(dead_letter_policy=policy), ["dead_letter_policy"], 0.0)
    assert play("open:A +k:1,2 " + "nack:k1 " * 5 + "nack:k2 " * 5).endswith("dead k1 A<k2 A<k2 A<k2 A<k2 dead k2")
    queue = play.state.registry.subscriptions[letters]
    assert [entry.message.data for entry in queue.entries()] == [b"2"]
    play("@1")
    assert [entry.message.data for entry in queue.entries()] == [b"2", b"1"]
    assert faults.ledger.counts == {"dead_letter_late": 1}


def test_without_its_topic_a_dead_letter_is_delivered_again() -> None:
    play = dead_letters()
    play.state.registry.delete_topic(DEAD)
    assert play("open:A +k:1 " + "nack:k1 " * 6).count("A<k1") == 7


def test_without_a_policy_there_is_no_delivery_attempt() -> None:
    play = Play()
    play("open:A +k:1 nack:k1")
    assert play.attempts == {"k1": 0}
