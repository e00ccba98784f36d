"""Each fault does what its description says, no more, and only what the ledger says."""

from __future__ import annotations

import math

import pytest

from prober.embedded import errors, resources
from prober.embedded.messages import HalfOpen, LostDeliveries, PublishDraft, Send
from tests.unit.embedded.notation import SUBSCRIPTION, TOPIC, Play, faulty, name_of, ordered, pushed


@pytest.mark.parametrize(
    ("fault", "script", "out"),
    [
        ("drop:count=1", "open:A +k:1,2,3", "A<k2,k3"),
        ("drop:count=1,key=j", "open:A +k:1 +j:1,2", "A<k1 A<j2"),
        ("drop:count=1", "open:A +k:1 +k:2 nack:k2", "A<k2 A<k2"),
        ("lose_write:count=1", "open:A +k:1,2,3", "A<k2,k3"),
        ("swap_in_batch", "open:A +k:1,2 +k:3", "A<k2,k1 A<k3"),
        ("swap_in_batch:count=1", "open:A +k:1,2 nack:k2 +k:3,4", "A<k2,k1 A<k2,k1 A<k3,k4"),
        ("swap_across_batches", "open:A +k:1,2 +k:3,4", "A<k1 A<k3,k2,k4"),
        ("swap_across_batches:key=k", "open:A +k:1 +j:1 +j:2 +k:2 nack:k2", "A<j1 A<j2 A<k2,k1 A<k2,k1"),
        ("hole", "open:A +k:1,2,3,4 +k:5", "A<k2,k4 A<k5"),
        ("hole:count=1,start=1", "open:A +k:1 @1 +k:2,3 nack:k3 nack:k1", "A<k1 A<k3 A<k3 A<k1,k2,k3"),
        ("hole:count=1", "+k:1,2,3 pull:p", "p<k2,k3"),
        ("hole", "open:A +k:1 +k:2 nack:k1", "A<k1 A<k2 A<k1,k2"),
        ("skip_waiting", "open:A +k:1,2 @6 +k:3,4", "A<k1,k2 A<k3,k4"),
        ("skip_waiting", "+k:1,2 @4 +k:3 @6 open:A +k:4", "A<k2,k3 A<k4"),
        ("late_fill", "open:A +k:1,2,3 +k:4 nack:k1", "A<k2,k3,k1 A<k4 A<k1,k2,k3,k4"),
        ("late_fill:count=1", "+k:1,2,3 pull:p", "p<k2,k3,k1"),
        ("phantom:count=1", "open:A +k:1 +k:2", "A<k1,k1000001 A<k2"),
        ("phantom", "open:A +k:a", "A<ka"),
        ("wrong_key:count=1", "open:A +k:1 +j:2 +k:3 ack:k1 @10", "A<k1 A<k2 A<k3 A<k2,k3"),
        ("wrong_key:key=k", "open:A +k:1 +j:1 +k:2", "A<k1 A<j1 A<k2"),
        ("corrupt_payload:count=1", "open:A +k:2 @10 +k:4", "A<k3 A<k3 A<k4"),
        ("diverge_subscriptions", "open:A +k:1,2", "A<k1,k2"),
        ("redeliver_single", "open:A +k:1,2,3 nack:k2 +k:4", "A<k1,k2,k3 A<k2 A<k4"),
        ("redeliver_single", "open:A +k:1,2,3 nack:k3", "A<k1,k2,k3 A<k3"),
        ("redeliver_single", "+k:1,2,3 pull:p ack:k1,k3 nack:k2 pull:q", "p<k1,k2,k3 q<k2"),
        ("redeliver_unacked_only", "open:A +k:1,2,3,4 ack:k1,k3 nack:k2 +k:5", "A<k1,k2,k3,k4 A<k2,k4 A<k5"),
        ("redeliver_unacked_only", "open:A +k:1,2,3,4 ack:k1 nack:k2", "A<k1,k2,k3,k4 A<k2,k3,k4"),
        ("redeliver_unacked_only", "+k:1,2,3 pull:p ack:k3 nack:k1 ack:k2 pull:q ack:k1 +k:4 pull:r", "p<k1,k2,k3 q<k1 r<k4"),
        (
            "reorder_run:count=1",
            "open:A +k:1,2,3,4 ack:k3 nack:k1 +k:5 nack:k1",
            "A<k1,k2,k3,k4 A<k1,k2,k4,k3 A<k5 A<k1,k2,k3,k4,k5",
        ),
        ("reorder_run", "open:A +k:1,2 nack:k1", "A<k1,k2 A<k1,k2"),
        ("reorder_run", "+k:1,2,3 pull:p ack:k2 nack:k1 pull:q", "p<k1,k2,k3 q<k1,k3,k2"),
        ("lone_duplicate", "open:A +k:1 +k:2 +k:3", "A<k1 A<k2 A<k1,k3"),
        ("lone_duplicate", "open:A +k:1,2 nack:k1", "A<k1,k2 A<k1,k2"),
        ("lone_duplicate", "open:A +k:1,2 ack:k1 +k:3 ack:k2,k3 @20", "A<k1,k2 A<k3"),
        ("lone_duplicate:count=1", "+k:1,2,3,4 pull:p ack:k1,k2,k3,k4 @10 pull:q @30", "p<k1,k2,k1,k3,k4 q<"),
        ("resume_past_unacked", "open:A +k:1,2,3 ack:k2 +j:1 ack:j1 close:A open:B +k:4 @10", "A<k1,k2,k3 A<j1 B<k4 B<k4"),
        ("resume_past_unacked", "open:A +k:1 ack:k1 close:A open:B +k:2", "A<k1 B<k2"),
        ("resume_past_unacked", "open:A +:1 close:A open:B", "A<1 B<1"),
        ("forget_holds:count=1", "open:A +k:1,2 open:B ack:k1 +k:3 +k:4", "A<k1,k2 B<k2,k3 B<k4"),
        ("forget_holds:count=1", "open:A +k:1 +k:2", "A<k1 A<k1,k2"),
        ("forget_holds", "open:A +k:1 ack:k1 open:B +k:2", "A<k1 A<k2"),
        ("forget_holds:count=1", "+k:1,2 pull:p +k:3 pull:q", "p<k1,k2 q<k1,k2,k3"),
        ("lease_short:count=1", "open:A +k:1,2 ack:k1 open:B @1 @11", "A<k1,k2 B<k2 A<k2"),
        ("lease_short", "open:A +k:1 ack:k1 +j:1 nack:j1 ack:j1 @1", "A<k1 A<j1 A<j1"),
        ("lease_short:count=1", "+k:1 pull:p mod:k1=60 @1 pull:q", "p<k1 q<k1"),
        ("half_open_stream:count=1", "open:A open:B +k:1,2 +j:1 @2.9 @3 +k:3", "B<k1,k2 B<j1 A!UNAVAILABLE B<k3"),
        ("half_open_stream:count=1", "open:A +k:1 @2 close:A open:A2 @3", "A2<k1 A!UNAVAILABLE"),
        ("redeliver_after_confirmed_ack", "open:A +k:1 ack:k1 @6", "A<k1"),
        ("overlap_pull:count=1", "+k:1 pull:p pull:q +k:2 pull:r +k:3", "p<k1 q<k2"),
        ("overlap_pull:count=1", "+k:1 pull:p +k:2 pull:q @10", "p<k1 q<k2"),
        ("overlap_pull", "+k:1 pull:p ack:k1 +k:2 pull:q", "p<k1 q<k2"),
        ("overlap_pull", "open:A +k:1 pull:p +k:2", "A<k1 A<k2"),
        ("head_of_line", "open:A +j:1 @1 +k:1 +k:2 +j:2 @2.9 @3 +k:3 ack:j1,j2 +k:4", "A<j1 A<j2 A<k1,k2"),
        ("few_keys_at_once", "open:A +j:1 +k:1 +k:2 @1.9 ack:j1 @2 ack:k1,k2 +j:2", "A<j1 A<k1,k2 A<j2"),
        ("head_of_line", "open:A +j:1 @0.9 +k:1 ack:j1 @2 +k:2", "A<j1 A<k1 A<k2"),
        ("stall_run", "open:A +k:1,2,3 nack:k2 +k:4 +j:1 @100 ack:k2 @200", "A<k1,k2,k3 A<k2 A<j1 A<j1 A<j1"),
        ("stall_run:for=5", "open:A +k:1,2,3 ack:k1 nack:k2 +k:4 @4 @5", "A<k1,k2,k3 A<k2 A<k3,k4"),
        ("never_redeliver", "open:A +k:1,2 nack:k1 +k:3 ack:k2,k3 @100", "A<k1,k2 A<k3"),
        ("never_redeliver", "open:A +k:1,2 @10 +k:3", "A<k1,k2 A<k3"),
        ("split_holder:count=1", "open:A +k:1 open:B +k:2 +k:3", "A<k1 B<k2 B<k3"),
        ("split_holder", "open:A +k:1 +k:2", "A<k1 A<k2"),
        ("split_holder", "open:A +k:1 ack:k1 open:B +k:2", "A<k1 A<k2"),
        ("stream_break:count=1", "open:A open:B +k:1,2", "A!UNAVAILABLE B<k1,k2"),
        ("stream_break:count=1,key=j", "open:A +k:1,2 +j:1 open:B", "A<k1,k2 A!UNAVAILABLE B<k1,k2,j1"),
        ("stall_key:key=k", "open:A +k:1 +j:1 @100 ack:j1 +k:2", "A<j1 A<j1"),
        ("stall_key:key=k,start=1,for=3", "open:A +k:1 @2 +k:2 @3.9 @4", "A<k1 A<k2"),
        ("stall_all:start=1,for=5", "open:A +k:1 @2 +k:2 +j:1 @5.9 @6", "A<k1 A<j1,k2"),
        ("slow_delivery", "open:A +k:1 @1.9 +k:2 +j:1 @2 @3.9", "A<k1,k2 A<j1"),
        ("slow_creation", "open:A +k:1 @1 +k:2 +j:1 @14.9 @15 +k:3", "A<k1,k2,j1 A<k3"),
        ("slow_creation:start=1", "open:A +k:1 @2 +k:2", "A<k1 A<k2"),
        ("slow_delivery", "open:A +k:1 @2 nack:k1", "A<k1 A<k1"),
        ("jitter", "open:A +k:1,2 @0.5 +k:3 @1", "A<k1,k2 A<k3"),
        ("ack_lost:count=1", "open:A +k:1 ack:k1 @10", "A<k1 A<k1"),
        ("duplicate_publish_same_id:count=1", "open:A +k:1,2 +k:3", "A<k1,k2,k1,k2 A<k3"),
        ("duplicate_publish_same_id:count=1,key=j", "open:A +k:1 +j:1", "A<k1 A<j1,j1"),
        ("early_redelivery:count=1", "open:A +k:1,2 open:B ack:k1 +k:3 +k:4", "A<k1,k2 B<k2,k3 B<k4"),
        ("early_redelivery:count=1", "open:A +k:1,2,3 open:B ack:k2 +k:4 ack:k1", "A<k1,k2,k3 B<k1,k2,k3,k4"),
        ("early_redelivery", "open:A +k:1 +k:2", "A<k1 A<k2"),
        ("early_redelivery", "open:A +k:1 ack:k1 open:B +k:2", "A<k1 A<k2"),
        ("early_redelivery", "+k:1 pull:p +k:2 pull:q ack:k1", "p<k1 q<k2"),
        ("lost_pull_answer:count=1", "+k:1,2 pull:p pull:q @9.9 @10", "q<k1,k2"),
        ("lost_pull_answer:count=1,seed=1", "+k:1,2 pull:p pull:q @9.9 @10", "p!UNAVAILABLE q<k1,k2"),
        ("lost_pull_answer", "open:A +k:1", "A<k1"),
        ("lost_tail", "open:A +k:1,2,3 ack:k1,k3 nack:k2 ack:k2 @0.3 open:B +k:4", "A<k1,k2,k3 A<k2 A!UNAVAILABLE B<k4"),
        ("lost_tail", "open:A +k:1,2,3 ack:k1,k3 nack:k2 @0.3 open:B", "A<k1,k2,k3 A<k2 A!UNAVAILABLE B<k2"),
        ("lost_tail", "open:A +k:1,2,3 ack:k2,k3 nack:k1 +j:1 @0.2 ack:k1 open:B", "A<k1,k2,k3 A<k1 B<j1"),
        ("lost_tail", "open:A +k:1,2,3 ack:k1 nack:k2", "A<k1,k2,k3 A<k2,k3"),
        ("lost_tail", "open:A +k:1,2,3 ack:k2 nack:k1", "A<k1,k2,k3 A<k1,k2,k3"),
        ("lost_tail", "+k:1,2 pull:p ack:k2 nack:k1 pull:q", "p<k1,k2 q<k1,k2"),
        ("slow_ack_extension", "+k:1,2 pull:p ack:k1,k2 +k:3 pull:q @0 @2", "p<k1,k2 q<k3"),
        ("slow_ack_extension", "open:A +k:1 @9.95 ack:k1 @12", "A<k1 A<k1"),
        ("slow_ack_extension", "open:A +k:1 @5 mod:k1=10 @7 @15 @17", "A<k1 A<k1"),
        ("slow_ack_extension", "open:A +k:1 mod:k1=5 @5 nack:k1", "A<k1 A<k1 A<k1"),
    ],
)
def test_what_a_fault_does(fault: str, script: str, out: str) -> None:
    play, faults = faulty(fault)
    assert play(script) == out
    injected = faults.ledger.counts[fault.partition(":")[0]]
    honest = Play()
    honest(script)
    assert (play.transcript == honest.transcript) == (injected == 0), f"the ledger says {injected}"


@pytest.mark.parametrize(
    ("fault", "script", "out"),
    [
        ("overlap_push:count=1", "+k:1,2,3 ok:k2 ok:k1", "POST k1 POST k2 POST k3"),
        ("overlap_push:count=1,key=j", "+k:1,2", "POST k1"),
        ("push_past_failure:count=1", "+k:1,2,3 bad:k1 @0.1 ok:k2 ok:k1", "POST k1 POST k2 POST k1 POST k3"),
        ("push_past_failure", "+k:1 bad:k1 @0.1 +k:2", "POST k1 POST k1"),
        ("push_past_failure", "+k:1,2 @10 @10.2", "POST k1 cancel k1 POST k1"),
        ("forget_holds:count=1", "+k:1 +k:2", "POST k1 cancel k1 POST k1"),
        ("throttle_push:count=1", "+k:1,2,3 +j:1 ok:k1 ok:j1 +j:2 @0.09", "POST k1 POST j1 POST j2"),
        ("throttle_push:count=1", "+k:1,2,3 ok:k1 @0.1 ok:k2", "POST k1 POST k2 POST k3"),
        ("throttle_push:count=1", "+k:1 ok:k1 @0.05 +k:2 @0.09", "POST k1"),
    ],
)
def test_what_a_fault_does_to_pushes(fault: str, script: str, out: str) -> None:
    play, faults = faulty(fault, settings=pushed())
    assert play(script) == out
    assert sum(faults.ledger.counts.values()) == ("count=1" in fault and "key=j" not in fault)


def test_after_a_dead_letter_no_key_of_the_subscription_moves_on() -> None:
    dead = "projects/p/topics/dead"
    play, faults = faulty("dead_letter_stalls_keys:for=60")
    play.state.registry.create_topic(resources.Topic(dead))
    policy = ordered(dead_letter_policy=resources.DeadLetterPolicy(dead, 5))
    play.state.registry.update_subscription(policy, ["dead_letter_policy"], 0.0)
    assert play("open:A +j:1 ack:j1 +k:1 " + "nack:k1 " * 5) == "A<j1" + " A<k1" * 5 + " dead k1"
    assert play("+k:2 +j:2 @59 @60") == "A<k2,j2"
    assert faults.ledger.counts == {"dead_letter_stalls_keys": 1}


def test_the_ledger_names_the_message_that_comes_alone() -> None:
    play, faults = faulty("lone_duplicate:count=1,start=1")
    play("open:A +k:1,2,3,4")
    queue = play.state.registry.subscriptions[SUBSCRIPTION]
    names = {entry.message.id: name_of(entry.message) for entry in queue.entries()}
    out = play("@1 +k:5")
    assert out == f"A<{names[faults.ledger.latest[0].message_id]},k5"


def test_what_is_to_be_filled_in_is_not_lost_when_what_follows_is_redelivered() -> None:
    play, _ = faulty("late_fill:count=1")
    assert play("open:A/1 +k:1,2,3 ack:k2 nack:k3 ack:k1") == "A<k2 A<k3 A<k1 A<k3"


@pytest.mark.parametrize("fault", ["early_redelivery", "slow_ack_extension", "lost_tail"])
def test_what_exactly_once_delivery_rules_out_does_not_happen_there(fault: str) -> None:
    script = "open:A +k:1,2,3 open:B ack:k1 +k:4 @9 mod:k2=10 ack:k2 nack:k3 @12"
    play, faults = faulty(fault, settings=ordered(enable_exactly_once_delivery=True))
    honest = Play(ordered(enable_exactly_once_delivery=True))
    assert play(script) == honest(script)
    assert faults.ledger.counts == {}


@pytest.mark.parametrize(
    ("fault", "script", "out"),
    [
        ("redeliver_after_confirmed_ack:count=1", "open:A +k:1,2,3 ack:k1,k2 @5.9 @6 ack:k1,k2,k3 @20", "A<k1,k2,k3 A<k1,k2,k3"),
        ("redeliver_after_confirmed_ack:key=j", "open:A +k:1 ack:k1 @6 +k:2", "A<k1 A<k2"),
        ("forget_holds:count=1", "open:A +k:1 open:B +k:2", "A<k1 B<k1,k2"),
        ("lease_short:count=1", "open:A open:B +k:1 @1", "A<k1 B<k1"),
    ],
)
def test_what_breaks_exactly_once_delivery(fault: str, script: str, out: str) -> None:
    play, faults = faulty(fault, settings=ordered(enable_exactly_once_delivery=True))
    assert play(script) == out
    assert sum(faults.ledger.counts.values()) == ("key=j" not in fault)


def test_an_acknowledgement_that_might_have_been_forgotten_leaves_nothing_behind() -> None:
    play, _ = faulty("redeliver_after_confirmed_ack:p=0", settings=ordered(enable_exactly_once_delivery=True))
    play("open:A +k:1,2 ack:k1,k2")
    queue = play.state.registry.subscriptions[SUBSCRIPTION]
    assert len(queue.key_queues["k"].entries) == 2
    play("@6")
    assert queue.key_queues["k"].entries == []
    play("+k:3 ack:k3")
    play.state.registry.seek_to_time(SUBSCRIPTION, 0.0, 7.0)
    assert play("@20") == ""


def test_a_stream_that_is_half_open_is_reported_for_those_who_watch_and_its_answers_are_lost() -> None:
    play, _ = faulty("half_open_stream:count=1,start=1")
    play("open:A +k:1")
    play.now = 1.0
    play.state.publish(TOPIC, [PublishDraft(b"2", {}, "k")], 1.0)
    assert play.state.advance(1.0) == [HalfOpen("A")]
    assert play("sack:A/k1 open:B") == "B<k1,k2"


def test_a_subscriber_whose_messages_went_elsewhere_can_no_longer_answer_them() -> None:
    play, _ = faulty("early_redelivery:count=1")
    assert play("open:A +k:1") == "A<k1"
    stale = play.ack_ids["k1"]
    assert play("open:B +k:2") == "B<k1,k2"
    play.state.acknowledge(SUBSCRIPTION, [stale], 0.0)
    assert play("@10") == "A<k1,k2"


def test_an_answer_that_was_lost_stays_outstanding_until_its_deadline() -> None:
    play, _ = faulty("lost_pull_answer:count=1,seed=1")
    play("+k:1 pull:p")
    assert len(play.state.registry.subscriptions[SUBSCRIPTION].leases) == 1
    assert play("+k:2 pull:q @9.9") == ""
    assert play("@10") == "q<k1,k2"


def test_what_is_lost_on_a_stream_that_breaks_is_reported_for_those_who_watch() -> None:
    play, _ = faulty("lost_tail")
    play("open:A +k:1,2,3,4 ack:k1,k3,k4")
    play.state.modify_ack_deadline(SUBSCRIPTION, [play.ack_ids["k2"]], 0, 0.0)
    sent, lost = play.state.advance(0.0)
    assert isinstance(sent, Send)
    assert [name_of(delivery.message) for delivery in sent.deliveries] == ["k2"]
    assert isinstance(lost, LostDeliveries)
    assert (lost.holder, [name_of(message) for message in lost.messages]) == ("A", ["k3", "k4"])
    play.ack_ids["k2"] = sent.deliveries[0].ack_id
    play("ack:k2 @1")
    assert list(play.state.registry.subscriptions[SUBSCRIPTION].entries()) == []


def test_a_stream_that_its_client_closes_first_does_not_break_again() -> None:
    play, _ = faulty("lost_tail:count=1")
    assert play("open:A +k:1,2 ack:k2 nack:k1 close:A @1 open:A +k:3") == "A<k1,k2 A<k1 A<k1,k2 A<k3"


def test_a_lost_ack_fails_for_the_time_being_with_exactly_once() -> None:
    play, _ = faulty("ack_lost:count=1", settings=ordered(enable_exactly_once_delivery=True))
    play("open:A +k:1")
    with pytest.raises(errors.ServiceError, match="UNAVAILABLE") as caught:
        play("ack:k1")
    assert set(caught.value.reasons.values()) == {errors.TEMPORARY_FAILURE}
    assert play("ack:k1 @20") == ""


def test_push_goes_past_a_message_that_never_is_redelivered() -> None:
    play, _ = faulty("never_redeliver", settings=pushed())
    assert play("+k:1,2 bad:k1 @0.1") == "POST k1 POST k2"


def test_what_is_silenced_is_heard_when_the_fault_is_taken_back() -> None:
    play, faults = faulty("stall_key:key=k")
    assert play("open:A +k:1") == ""
    faults.disarm(1)
    play.state.reconsider(1.0)
    assert play("@1") == "A<k1"
    play, faults = faulty("stall_all")
    assert play("open:A +k:1") == ""
    assert play.state.next_wakeup(0.0) == math.inf
    faults.disarm(1)
    play.state.reconsider(1.0)
    assert play("@1") == "A<k1"
    play, faults = faulty("stall_run")
    assert play("open:A +k:1,2,3 nack:k1") == "A<k1,k2,k3 A<k1"
    faults.disarm(1)
    play.state.reconsider(1.0)
    assert play("@1") == "A<k2,k3"


@pytest.mark.parametrize(
    ("exactly_once", "out", "injected"),
    [(True, "A<k1 B<j1 B<j1", {"break_stalls_keys": 1}), (False, "A<k1 B<k1 B<j1 B<k2 B<k1,k2,j1", {})],
)
def test_a_broken_stream_silences_its_keys_with_exactly_once_delivery(
    *, exactly_once: bool, out: str, injected: dict[str, int]
) -> None:
    play, faults = faulty("break_stalls_keys:key=k", settings=ordered(enable_exactly_once_delivery=exactly_once))
    assert play("open:A +k:1 close:A open:B @1 +j:1 @1.5 +k:2 @30") == out
    assert faults.ledger.counts == injected


def test_a_backoff_that_is_ignored() -> None:
    play, faults = faulty("backoff_ignored:count=1", settings=ordered(retry_policy=resources.RetryPolicy(1.0, 4.0)))
    assert play("open:A +k:1 nack:k1") == "A<k1 A<k1"
    assert play("nack:k1 @1.9") == ""
    assert play("@2") == "A<k1"
    assert faults.ledger.counts == {"backoff_ignored": 1}


def test_a_stuck_subscription_delays_its_sibling() -> None:
    play, faults = faulty("sibling_delays:key=k")
    play.state.registry.create_subscription(resources.Subscription("projects/p/subscriptions/stuck", TOPIC), 0.0)
    play.state.pull("s", "projects/p/subscriptions/stuck", 1, 0.0)
    assert play("open:A +k:1 @0.9 +k:2 ack:k2") == "A<k1 s<k1 A<k2"
    assert play("@1 +j:1 +k:3 @2.9") == "A<j1"
    assert play("@3") == "A<k3"
    assert faults.ledger.counts == {"sibling_delays": 1}
