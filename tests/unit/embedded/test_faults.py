"""Each fault does what its description says, no more, and only what the ledger says."""

from __future__ import annotations

import math

import pytest

from prober.embedded import errors, resources
from prober.embedded.fault_catalogue import CATALOGUE
from prober.embedded.faults import Fault, FaultError, Faults, parse_fault
from prober.embedded.faulty import FaultyConduct
from prober.embedded.messages import Draft
from tests.unit.embedded.notation import SUBSCRIPTION, TOPIC, Play, ordered, pushed


def faulty(*faults: str, settings: resources.Subscription | None = None) -> tuple[Play, Faults]:
    armed = Faults([parse_fault(fault) for fault in faults])
    return Play(settings, FaultyConduct(armed)), armed


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
    (message_id,) = play.state.publish(TOPIC, [Draft(b"1", {}, "k")], 0.0)
    assert faults.ledger.latest[0].message_id == message_id
    assert play("open:A +k:2") == "A<k2"


def test_a_duplicate_id() -> None:
    play, faults = faulty("duplicate_id:count=1")
    play("open:A +k:1 +j:1 +k:2,3")
    feed = play.state.admin.feeds[SUBSCRIPTION]
    ids = [entry.message.id for entry in feed.lanes["k"].entries]
    assert ids[0] == ids[1] != ids[2]
    assert faults.ledger.counts == {"duplicate_id": 1}
    assert faults.ledger.latest[0].message_id == ids[0]


def test_a_swap_stays_swapped_after_a_seek() -> None:
    play, _ = faulty("swap_in_batch")
    play("open:A @1 +k:1,2")
    play.state.admin.seek_to_time(SUBSCRIPTION, 0.0, 2.0)
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
    assert len(CATALOGUE) == 18
    for name, description in CATALOGUE.items():
        assert Fault(name).name == name
        assert description.sentence.endswith(".")
        assert not (description.benign and description.findings)
        assert description.findings or description.shows
    benign = {name for name, description in CATALOGUE.items() if description.benign}
    assert benign == {"reply_lost", "partial_batch", "stream_break", "jitter", "ack_lost"}


def test_the_ledger_is_bounded_and_its_counts_are_not() -> None:
    faults = Faults([Fault("drop")])
    for n in range(10_050):
        assert faults.strike("drop", "s", "k", float(n), str(n))
    assert faults.ledger.counts["drop"] == 10_050
    assert len(faults.ledger.latest) == 10_000
