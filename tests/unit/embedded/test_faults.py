"""Each fault does what its description says, no more, and only what the ledger says."""

from __future__ import annotations

import math

import pytest

from prober.embedded import errors, resources
from prober.embedded.behaviour import FaultyBehaviour
from prober.embedded.faults import CATALOGUE, Fault, FaultError, Faults, parse_fault
from prober.embedded.messages import LostDeliveries, PublishDraft, Send
from tests.unit.embedded.notation import SUBSCRIPTION, TOPIC, Play, name_of, ordered, pushed


def faulty(*faults: str, settings: resources.Subscription | None = None) -> tuple[Play, Faults]:
    armed = Faults([parse_fault(fault) for fault in faults])
    return Play(settings, FaultyBehaviour(armed)), armed


@pytest.mark.parametrize(
    ("fault", "script", "out"),
    [
        ("drop:count=1", "open:A +k:1,2,3", "A<k2,k3"),
        ("drop:count=1,key=j", "open:A +k:1 +j:1,2", "A<k1 A<j2"),
        ("drop:count=1", "open:A +k:1 +k:2 nack:k2", "A<k2 A<k2"),
        ("lose_write:count=1", "open:A +k:1,2,3", "A<k2,k3"),
        ("swap_in_batch", "open:A +k:1,2 +k:3", "A<k2,k1 A<k3"),
        ("swap_in_batch:count=1", "open:A +k:1,2 nack:k2 +k:3,4", "A<k2,k1 A<k2,k1 A<k3,k4"),
        ("redeliver_single", "open:A +k:1,2,3 nack:k2 +k:4", "A<k1,k2,k3 A<k2 A<k4"),
        ("redeliver_single", "open:A +k:1,2,3 nack:k3", "A<k1,k2,k3 A<k3"),
        ("redeliver_single", "+k:1,2,3 pull:p ack:k1,k3 nack:k2 pull:q", "p<k1,k2,k3 q<k2"),
        ("redeliver_unacked_only", "open:A +k:1,2,3,4 ack:k1,k3 nack:k2 +k:5", "A<k1,k2,k3,k4 A<k2,k4 A<k5"),
        ("redeliver_unacked_only", "open:A +k:1,2,3,4 ack:k1 nack:k2", "A<k1,k2,k3,k4 A<k2,k3,k4"),
        ("redeliver_unacked_only", "+k:1,2,3 pull:p ack:k3 nack:k1 ack:k2 pull:q ack:k1 +k:4 pull:r", "p<k1,k2,k3 q<k1 r<k4"),
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
    struck = faults.ledger.counts[fault.partition(":")[0]]
    honest = Play()
    honest(script)
    assert (play.transcript == honest.transcript) == (struck == 0), f"the ledger says {struck}"


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


@pytest.mark.parametrize("fault", ["early_redelivery", "slow_ack_extension", "lost_tail"])
def test_what_exactly_once_delivery_rules_out_does_not_happen_there(fault: str) -> None:
    script = "open:A +k:1,2,3 open:B ack:k1 +k:4 @9 mod:k2=10 ack:k2 nack:k3 @12"
    play, faults = faulty(fault, settings=ordered(enable_exactly_once_delivery=True))
    honest = Play(ordered(enable_exactly_once_delivery=True))
    assert play(script) == honest(script)
    assert faults.ledger.counts == {}


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


def test_what_is_lost_on_a_stream_that_breaks_is_told_for_those_who_watch() -> None:
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


def test_a_swap_stays_swapped_after_a_seek() -> None:
    play, _ = faulty("swap_in_batch")
    play("open:A @1 +k:1,2")
    play.state.registry.seek_to_time(SUBSCRIPTION, 0.0, 2.0)
    assert play("@2") == "A<k2,k1"


def test_a_lost_ack_fails_for_the_time_being_with_exactly_once() -> None:
    play, _ = faulty("ack_lost:count=1", settings=ordered(enable_exactly_once_delivery=True))
    play("open:A +k:1")
    with pytest.raises(errors.ServiceError, match="UNAVAILABLE") as caught:
        play("ack:k1")
    assert set(caught.value.reasons.values()) == {errors.TEMPORARY_FAILURE}
    assert play("ack:k1 @20") == ""


def test_push_goes_past_a_message_that_never_comes_again() -> None:
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


def test_the_same_seed_meets_the_same_faults() -> None:
    outs = set()
    for seed in (1, 1, 2):
        play, _ = faulty(f"drop:p=0.5,seed={seed}")
        outs.add(play("open:A +k:" + ",".join(str(n) for n in range(50))))
    assert len(outs) == 2


@pytest.mark.parametrize(
    "text", ["drop", "drop:p=0.1", "stall_all:start=5,for=10", "jitter:p=0.25,count=3,key=a-*,start=1.5,for=2,seed=7"]
)
def test_faults_read_as_they_are_written(text: str) -> None:
    assert str(parse_fault(text)) == text


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("dorp", "there is no fault 'dorp'; there are ack_lost, "),
        ("drop:p=2", "p is a chance from 0 to 1, not 2"),
        ("drop:p=x", "a number is expected"),
        ("drop:p=nan", "p is a chance"),
        ("drop:count=0", "count is at least 1"),
        ("drop:count=1.5", "a number is expected"),
        ("drop:q=1", "'q=1' is none of p=, count="),
        ("drop:p", "'p' is none of"),
        ("drop:start=-1", "start at least 0"),
        ("drop:for=0", "for more than 0"),
        ("", "there is no fault ''"),
    ],
)
def test_what_is_no_fault(text: str, complaint: str) -> None:
    with pytest.raises(FaultError) as caught:
        parse_fault(text)
    assert complaint in str(caught.value)


def test_every_fault_of_the_catalogue_can_be_made_and_says_what_must_be_found() -> None:
    assert len(CATALOGUE) == 23
    for name, description in CATALOGUE.items():
        assert Fault(name).name == name
        assert description.sentence.endswith(".")
        assert not (description.benign and description.findings)
        assert description.findings or description.shows
    benign = {name for name, description in CATALOGUE.items() if description.benign}
    assert benign == {
        "reply_lost",
        "partial_batch",
        "stream_break",
        "jitter",
        "ack_lost",
        "duplicate_publish_same_id",
        "early_redelivery",
        "lost_pull_answer",
        "lost_tail",
        "slow_ack_extension",
    }


def test_the_ledger_is_bounded_and_its_counts_are_not() -> None:
    faults = Faults([Fault("drop")])
    for n in range(10_050):
        assert faults.strike("drop", "s", "k", float(n), str(n))
    assert faults.ledger.counts["drop"] == 10_050
    assert len(faults.ledger.latest) == 10_000
