"""Control operations: a seek, a purge, a filter change or a hole in the record may explain what happens until they have settled."""

# ruff: noqa: E501 - a case is one line

from __future__ import annotations

from math import inf

import pytest

from prober.core.excuses import GRACE
from prober.core.rules import Rules
from prober.core.subscription import FILTER_CHANGE, SEEK
from prober.core.verifier import Verifier
from tests.notation import history
from tests.unit.core.cases import PULL, PUSH, Case, across, case, observe, only, pending, words
from tests.verification import verify

FOUR = "P1,2,3,4 A<1,2,3,4@1 A ack 1,2,3,4@1.5"
BACK = f"{FOUR} close A@19 seek 5/0.05@20 open B of client B@26"
CAME = "P1,2,3 A<1,2,3@3 A ack 1,2,3@4 seek 5@30 A<1,2,3@60 A ack 1,2,3@61"
THREE = "P1,2,3,4,5 A<1,2,3@1"


@pytest.mark.parametrize(
    "one",
    [
        case("forward over what was received", f"{THREE} seek 60@2 A<1@10 A<3@10.1", "I:REDELIVERY_SKIP"),
        case("forward over what was not received", f"{THREE} seek 60@2 A<1,2,3@10 A<5@10.3", "I:ORDER_GAP"),
        case("the same when it has settled", f"{THREE} seek 5@2 A<1,2,3@10 A<5@10.3", "I:ORDER_GAP"),
        case("published since", f"{THREE} seek 5@2 P6@10 ok6=m6@10.1 P7@10.1 ok7=m7@10.2 A<7@11", "V:ORDER_GAP"),
        case("published while it settled", f"{THREE} seek 5@2 P6@6 ok6=m6@6.1 P7@6.2 ok7=m7@6.3 A<7@11", "I:ORDER_GAP"),
        case("published since, with some from before", f"{THREE} seek 5@2 P6@10 ok6=m6@10.1 P7@10.1 ok7=m7@10.2 A<4@10.5 A<7@11", "V:ORDER_GAP"),
        case("back", "P1,2,3 A<1,2,3@1 A ack 1,2,3@1.4 seek 60@2 A<1,2,3@10"),
        case("back, in another order while it settles", "P1,2,3,4 A<1,2,3,4@1 A ack 1,2,3,4@1.5 seek 60@2 A<1@10 A<3@10.1 A<2@10.2", "I:REDELIVERY_SKIP"),
        case("a skip since", "P1,2,3,4 A<1,2,3@1 A ack 1,2,3@1.4 seek 5@2 P5@10 ok5=m5@10.1 P6@10.1 ok6=m6@10.2 P7@10.2 ok7=m7@10.3 A<4@11 A<5,6,7@11.1 A<5@12 A<7@12.1", "V:REDELIVERY_SKIP"),
        case("a message from before that comes first since", f"{THREE} seek 5@2 A<4,5@10 A<1@11 A<5@11.1", "I:REDELIVERY_SKIP"),
        case("what was on hold", "open B of client B P1,2,3,4 A<1,2,3,4@1 A<2@2 A<4@2.1 seek 5@3", "I:REDELIVERY_SKIP"),
        case("what was on hold, and is explained", "open B of client B P1,2,3,4 A<1,2,3,4@1 A<2@2 A<4@2.1 seek 5@3 B<3@3.5", "I:REDELIVERY_SKIP"),
        case("what nothing can explain", "P1,2,3,4 A<1,2,3,4@1 A<2@2 A<4@2.1 seek 5@3", "V:REDELIVERY_SKIP"),
        case("a split on hold", "P1,2,3 A<1,2@1 A ack 1@1.4 B<3@2 seek 5@3", "I:AFFINITY_SPLIT", close_detection_max_s=3),
        case("a split on hold, and its stream was broken", "P1,2,3 A<1,2@1 A ack 1@1.4 B<3@2 seek 5@3 close A@4", "I:AFFINITY_SPLIT", close_detection_max_s=3),
        case("holds of before are gone for good", "P1,2,3,4 A<1,2@1 A ack 1@1.4 seek 5@2 B<3@10 B ack 3@10.1 C<4@30"),
        case("holds of while it settled are gone when it has settled", "P1,2,3 A<1,2@1 seek 20@2 A<1@20 B<2@28"),
        case("no deadline passes while it settles", "P1 A<1@1 A ack 1@1.1 seek 600@2 A<z1(1)@3 end @500"),
        case("holds are gone", "P1,2,3 A<1,2@1 A ack 1@1.4 seek 5@2 B<3@10"),
        case("a split while it settles", "P1,2,3,4 A<1,2@1 seek 60@2 A<3@3 B<4@9", "I:AFFINITY_SPLIT"),
        case("an inversion of what was published before", "P1@0 P2@0 ok1=m1@0.1 ok2=m2@0.1 seek 5@0.5 A<2@10 A<1@10.1", "I:ORDER_GAP"),
        case("an inversion in real time of what was published before", "P1@0 ok1=b1@0.05 P2@0.1 ok2=b2@0.15 seek 5@0.5 A<a2(2)@10 A<b1(1)@10.1", "I:ORDER_GAP"),
        case("nothing is pending of what was before", f"{THREE} seek 5@2 end @500"),
        case("what is published since is pending", f"{THREE} seek 5@2 P6@10 ok6=m6@10.1 end @500", "L:STUCK"),
        case("a hole of before is no loss any more", "P1,2,3 A<1@1 A<3@1.1 A ack 1,3@1.2 seek 10@5 end @500", "V:ORDER_GAP"),
        case("what is received while it settles is not pending again", f"{THREE} seek 60@2 A<1@10 end @500"),
        case("a run over what was passed over is not pending", "P1,2,3 A<1,2,3@1 A ack 1,2,3@1.4 seek 5@2 A<2@10 A<1@11 A ack 1,2@12 end @500"),
        case("a late copy of what was delivered before", "P1,2,3 A<1,2@1 seek 5@2 B<1@12 A<3@12.5"),
        case("what may have been sent while it settled is not pending", "P1,2 A<1,2@1 A ack 1@1.4 seek 5@10 A<2@16 end @500"),
        case("what was sent when it had settled is pending", "P1,2 A<1,2@1 A ack 1@1.4 seek 5@10 A<2@21 end @500", "L:UNACKED_STALL@206"),
        case("a filter change is no different", f"{THREE} filter 60@2 A<1,2,3@10 A<5@10.3", "I:ORDER_GAP"),
        case("a leak while the filter changes", "P1,2 A<1@1 filter 60@2 A<2!filter@10", "I:FILTER_LEAK"),
        case("a leak when it has changed", "P1,2 A<1@1 filter 5@2 A<2!filter@10", "I:FILTER_LEAK"),
        case("the last moment of settling counts", "P1,2 A<1@1 filter 5@2 A<2!filter@7", "I:FILTER_LEAK"),
        case("two seeks, the later end counts", "P1,2 A<1@1 filter 50@2 filter 5@3 A<2!filter@20", "I:FILTER_LEAK"),
        case("what comes when it has settled was not passed over", f"{CAME} A<1@120 A<3@120.1", "V:REDELIVERY_SKIP"),
        case("a filter change passes over it as little", f"{CAME.replace('seek', 'filter')} A<1@120 A<3@120.1", "V:REDELIVERY_SKIP"),
        case("it must be redelivered", f"{CAME} A<1@120 end @900", "L:REDELIVERY_STALL"),
        case("until the next seek", f"{CAME} seek 5@70 A<1@120 A<3@120.1", "I:REDELIVERY_SKIP"),
        case("what may have been sent while it settled", f"{CAME.replace('@60', '@38')} A<1@120 A<3@120.1", "I:REDELIVERY_SKIP"),
        case("push: refused before", "P1,2 r1<1@1 r1 nack 1@1.1 seek 0@2 r2<1@20 r3<2@40", "V:PUSH_OVERLAP", mode=PUSH),
    ],
)  # fmt: skip
def test_seek(one: Case) -> None:
    one.check()


@pytest.mark.parametrize(
    "one",
    [
        case("all of it", f"{BACK} B<2,3,4@27 B ack 2,3,4@28 end @500"),
        case("and more", f"{BACK} B<1,2,3,4@27 B ack 1,2,3,4@28 end @500"),
        case("with a hole", f"{BACK} B<2,4@27", "V:REDELIVERY_SKIP"),
        case("with a hole behind more", f"{BACK} B<1,3,4@27", "V:REDELIVERY_SKIP"),
        case("without its beginning", f"{BACK} B<3,4@27", "V:REDELIVERY_SKIP"),
        case("nothing of it before what is new", f"{BACK} P5@26.2 ok5=m5@26.3 B<5@27", "V:REDELIVERY_SKIP"),
        case("and no further", f"{BACK} B<2,3@27 B ack 2,3@28 end @500", "L:REDELIVERY_STALL"),
        case("nothing at all", f"{BACK} end @500", "L:REDELIVERY_STALL"),
        case("in callbacks, with a hole", f"{BACK} B<2,4@27", "V:REDELIVERY_SKIP", delivery_delay_max_s=inf),
        case("in callbacks, nothing at all", f"{BACK} end @500", "L:REDELIVERY_STALL", delivery_delay_max_s=inf),
        case("begun anew, with a hole that was there", f"{BACK} B<2,3@27 B<2,3,4@28 B ack 2,3,4@29 end @500"),
        case("a hole in what is not known to come back", f"{BACK} B<1,4@27", "V:REDELIVERY_SKIP"),
        case("what was acknowledged shortly before may stay away", f"{FOUR} close A@4 seek 5/0.05@5 open B of client B@11 B<2,4@12", "I:REDELIVERY_SKIP"),
        case("what came while it settled may stay away", f"{FOUR} seek 5/0.05@20 A<2,3,4@21 A ack 3@22 A<2@27 A<4@27.1", "I:REDELIVERY_SKIP"),
        case("later than it settled", "P1@0.5 A<1@2 A ack 1@3 seek 10/0@300 A<1@312 A ack 1@313 end @900"),
        case("too late", "P1@0.5 A<1@2 A ack 1@3 seek 10/0@300 A<1@431 A ack 1@432 end @900", "L:REDELIVERY_STALL"),
        case("nothing of what was held, and acknowledged since", "P1@0.5 A<1@2 A modack 1 600s@3 seek 10/0@10 A ack 1@140 end @900"),
        case("nothing of what is held and never acknowledged", "P1@0.5 A<1@2 A modack 1 600s@3 seek 10/0@10 end @900", "L:REDELIVERY_STALL"),
        case("nothing of what was held, while it is", "P1@0.5 A<1@2 A modack 1 600s@3 seek 10/0@10 A<1@615 A ack 1@616 end @900"),
        case("nothing of what may have been acknowledged since", "P1,2,3@0.5 A<1,2,3@1 A ack 1,2,3@2 seek 10/0@5 end @900"),
        case("it is not known what comes back", f"{FOUR} close A@19 seek 5@20 open B of client B@26 B<2,4@27", "I:REDELIVERY_SKIP"),
        case("sought once more", f"{FOUR} close A@19 seek 5/0.05@20 seek 4@20.5 open B of client B@26 B<2,4@27", "I:REDELIVERY_SKIP"),
        case("a skip of what was acknowledged since", f"{BACK} B<2,3@27 B ack 3@27.2 B<2,4@28", "V:REDELIVERY_SKIP"),
        case("what was never received, and never comes", "open A of client A P1@1 ok1=m1@1.05 P2@1.1 ok2=m2@1.15 seek 5/0.5@2 end @900", "L:STUCK@127"),
        case("published while it settles", "P1 seek 5/0@2 P2@3 ok2=m2@3.1 A<1@10 A ack 1@11 end @900", "L:STUCK@130"),
        case("what was never received comes later", "open A of client A P1@1 ok1=m1@1.05 seek 60/0.5@100 A<1@200 A ack 1@201 end @900"),
        case("published before, and never received", "open A of client A P1@1 ok1=m1@1.05 seek 5/50@100 end @900"),
        case("what was passed over comes behind what was published since, and stands before it", "P1,2,3 A<1@1 A ack 1@1.1 seek 0@2 P4@10 ok4=m4@10.1 A<4@11 A ack 4@11.1 seek 0/0@30 A<1,2,3,4@40 A ack 1,2,3,4@41 P5@50 ok5=m5@50.1 A<5@51 A ack 5@52 end @900", "I:ORDER_GAP"),
    ],
)  # fmt: skip
def test_what_a_seek_brings_back(one: Case) -> None:
    one.check()


SOUGHT_BACK = "P1,2 A<1,2@1 A ack 1,2@2 seek 60/0@100"


@pytest.mark.parametrize(
    "one",
    [
        case("refused, and never again", f"{SOUGHT_BACK} A<1,2@170 A nack 1@171 A ack 2@171.1 end @900", "L:UNACKED_STALL@355"),
        case("left alone, and never again", f"{SOUGHT_BACK} A<1,2@170 A ack 2@171 end @900", "L:UNACKED_STALL@355"),
        case("the key moves on without it", f"{SOUGHT_BACK} A<1,2@170 A ack 2@171 P3@300 ok3=m3@300.1 A<3@300.2 A ack 3@300.3 end @400", "L:UNACKED_STALL@355"),
        case("nacked, redelivered, and left alone for its lease", f"{SOUGHT_BACK} A<1,2@170 A nack 1@171 A ack 2@171.1 A<1,2@175 A ack 2@175.2 end @355"),
        case("nacked, redelivered, and never again", f"{SOUGHT_BACK} A<1,2@170 A nack 1@171 A ack 2@171.1 A<1,2@175 A ack 2@175.2 end @360.1", "L:UNACKED_STALL@360"),
        case("nacked, redelivered, and acknowledged", f"{SOUGHT_BACK} A<1,2@170 A nack 1@171 A ack 2@171.1 A<1,2@175 A ack 1,2@175.2 end @900"),
        case("acknowledged, redelivered, and nacked", f"{SOUGHT_BACK} A<1,2@170 A ack 1,2@171 A<1,2@175 A nack 1@176 A ack 2@176.1 end @900"),
        case("acknowledged so shortly before that it may be applied since", "P1 A<1@1 A ack 1@91 seek 60/0@100 A<1@170 A nack 1@171 end @900"),
        case("published before what comes back", "P1@0 ok1=m1@0.1 A<1@1 A ack 1@2 seek 60/0.05@100 A<1@170 A nack 1@171 end @900"),
        case("it is not known what comes back", "P1 A<1@1 A ack 1@2 seek 60@100 A<1@170 A nack 1@171 end @900"),
        case("it came while that settled", f"{SOUGHT_BACK} A<1,2@120 A ack 1,2@121 A<1,2@170 A nack 1@171 A ack 2@171.1 end @900"),
        case("sought once more", f"{SOUGHT_BACK} A<1,2@170 A nack 1@171 A ack 2@171.1 seek 60@172 A<1@240 A nack 1@241 end @900"),
        case("dead-lettered", f"{SOUGHT_BACK} A<1,2@170 A nack 1@171 A ack 2@171.1 dlq m1@172 end @900"),
        case("dead-lettered, and a slow copy", f"{SOUGHT_BACK} A<1,2@170 A ack 2@171 dlq m1@172 A<1,2@173 A ack 2@173.2 end @900"),
        case("older than the retention", f"{SOUGHT_BACK} A<1,2@170 A nack 1@171 A ack 2@171.1 end @900", message_retention_s=290),
        case("received before the record", "P2 A<1@1 A ack 1@2 A<2@3 A ack 2@4 seek 60/0@100 A<1,2@170 A nack 1@171 A ack 2@171.1 end @900"),
    ],
)  # fmt: skip
def test_what_a_seek_brought_back_is_pending_like_anything_else(one: Case) -> None:
    """Until it is acknowledged once more."""
    one.check()


def test_a_hole_in_what_a_seek_brings_back_names_that_and_the_seek() -> None:
    finding = only(f"{BACK} B<1,4@27", "REDELIVERY_SKIP")
    assert finding.facts["skipped"] == (2, 3)
    assert only(f"{BACK} B<4@27", "REDELIVERY_SKIP").witnesses == (11, 12, 19, 21)  # 19 is the seek


@pytest.mark.parametrize(
    "one",
    [
        case("what is missing may be in the hole", "P1,2,3,4 A<1@1 hole @5 A<4@11", "I:ORDER_GAP"),
        case("what was held may be settled in the hole", "P1,2,3 A<1,2@1 hole @5 B<3@11"),
        case("what was pending may have come in the hole", "P1,2 A<1,2@1 hole @5 open A of client A@6 end @500"),
        case("what was sent in the hole is not known", "P1,2,3,4 A<1,2,3@1 hole @5 A<1@11 A<3@11.1", "I:REDELIVERY_SKIP"),
        case("an unknown outcome from before", "P1,2 A<1,2@1 P3@2 hole @5 P4@11 ok4=m4@11.1 ok3=m3@11.2 A<4@12 A<3@12.1", "I:ORDER_GAP"),
        case("nothing is reported until a baseline is known", "P1 A<1@1 A ack 1@1.1 hole @5 open A of client A@6 P3@11 ok3=m3@11.1 end @500"),
        case("a run through what was published in the hole", "P1,2 A<1,2@1 hole @5 P6@11 ok6=m6@11.1 A<4@12 A<3,4,5,6@12.1"),
        case("a hole in the numbering", "P1 A<1@1 hole @5 P9@11 ok9=m9@11.1 A<9@12 A<8@12.1"),
        case("a rewind to what was published in the hole", "P1,2 A<1,2@1 hole @5 P9@11 ok9=m9@11.05 P10@11.1 ok10=m10@11.15 A<9@12 A<8@12.1 A<9@12.2 A<10@12.3"),
        case("an epoch that began in the hole", "P1,2 A<1,2@1 hole @5 P4[e2]@11 ok4=f4@11.05 A<f4(4)@12 A<f3(3)[e2]@13"),
        case("published since", "P1,2 A<1,2@1 hole @5 open A of client A@6 P3@11 ok3=m3@11.1 P4@11.2 ok4=m4@11.3 P5@11.4 ok5=m5@11.5 A<3@12 A<5@12.1", "V:ORDER_GAP"),
        case("published since, at once", "P1,2 A<1,2@1 hole @5 P3@5.1 ok3=m3@5.2 P4@5.3 ok4=m4@5.4 P5@5.5 ok5=m5@5.6 A<3@6 A<5@6.1", "V:ORDER_GAP"),
        case("a skip since", "P1 A<1@1 hole @5 open A of client A@6 P3@11 ok3=m3@11.1 P4@11.2 ok4=m4@11.3 P5@11.4 ok5=m5@11.5 A<3,4,5@12 A<3@13 A<5@13.1", "V:REDELIVERY_SKIP"),
        case("a split since", "P1 A<1@1 hole @5 open A of client A@6 open B of client B@6 P3@11 ok3=m3@11.1 P4@11.2 ok4=m4@11.3 A<3@12 B<4@18", "V:AFFINITY_SPLIT"),
        case("published since, on a stream that was not seen to open again", "P1,2 A<1,2@1 hole @5 P3@11 ok3=m3@11.1 P4@11.2 ok4=m4@11.3 P5@11.4 ok5=m5@11.5 A<3@12 A<5@12.1", "V:ORDER_GAP"),
        case("stuck since", "P1 A<1@1 hole @5 P3@11 ok3=m3@11.1 P4@11.2 ok4=m4@11.3 A<3@12 A ack 3@12.1 end @500", "L:STUCK"),
        case("a copy of what was acknowledged since", "P1@0 ok1=m1@0.1 A<1~1@1 hole @2 P2@20 ok2=m2@20.1 P3@20.2 ok3=m3@20.3 P4@20.4 ok4=m4@20.5 A<2~2@21 A ack 2@21.1 A<2~3@21.2 A<3~4@21.3 A<2~2@31 A<2~3@31.1 A<3~4@31.2 A<4~5@31.3 stop @200"),
        case("the past is foreign to nobody", "P1,2 A<1@1 hole @5 A<2@11 A ack 2@11.1 A<2@12"),
    ],
)  # fmt: skip
def test_interrupted(one: Case) -> None:
    one.check()


HOLED = "P1 A<1@1 A ack 1@1.1 P2@1.5 ok2=m2@1.6 hole @3 open A2 of client A@4"
GOES_ON = "P3@10 ok3=m3@10.1"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (f"{HOLED} {GOES_ON} end @7200", True),
        (f"{HOLED} {GOES_ON} A2<1@11 A2<2@11.1 end @7200", True),
        (f"{HOLED} {GOES_ON} A2<3@11 A2 ack 3@11.1 end @7200", False),
        (f"{HOLED} P3@10 A2<3@11 A2 ack 3@11.1 ok3=m3@12 end @7200", False),
        (f"{HOLED} P3@10 end @7200", False),
        (f"{HOLED} P3@8 ok3=m3@10.1 end @7200", True),
        (f"{HOLED} P3@3 ok3=m3@10.1 end @7200", False),
        (f"{HOLED} end @7200", False),
        (f"{HOLED} {GOES_ON} dlq m3@12 end @7200", False),
        (f"{HOLED} {GOES_ON} seek 5@12 end @7200", False),
        (f"{HOLED} {GOES_ON} seek 5/9@12 end @7200", True),
        (f"{HOLED} P1[e2]@10 ok1=n1@10.1 A2<n1(1)@11 A2 ack 1@11.1 {GOES_ON.replace('10', '12')} end @7200", True),
    ],
)  # fmt: skip
def test_what_is_published_when_a_hole_has_settled_is_pending(line: str, expected: bool) -> None:
    """What was published before is not known."""
    assert pending(line, delivery_deadline_s=inf) is expected


@pytest.mark.parametrize(
    "one",
    [
        case("an unseen delivery may be leased for as long as Pub/Sub allows", f"{HOLED} {GOES_ON} end @7200", "L:STUCK@728"),
        case("by pull as well", "pull a@0.9 hole @3 pull b@4 P3@10 ok3=m3@10.1 end @7200", "L:STUCK@728", mode=PULL),
        case("not any more when a later message was sent", f"{HOLED} {GOES_ON} A2<1@11 A2 ack 1@11.1 end @7200", "L:STUCK@131"),
        case("it may have been sent in the hole", f"{HOLED} {GOES_ON} A2<1@7.5 A2 ack 1@11.1 end @7200", "L:STUCK@728"),
        case("what was published before may have been acknowledged in the hole", "P1 hole @3 open A of client A@4 A<1@30 end @7200"),
        case("a stream from before the hole is there once it delivers", "P1 A<1@1 hole @3 P2@10 ok2=m2@10.1 A<1@11 A ack 1@11.1 end @7200", "L:STUCK@131"),
    ],
)  # fmt: skip
def test_deadlines_after_a_hole(one: Case) -> None:
    one.check()


def test_it_is_pending_until_it_is_older_than_the_retention() -> None:
    assert not pending(f"{HOLED} {GOES_ON} end @7200", message_retention_s=7000, delivery_deadline_s=inf)


def test_why_it_is_in_doubt() -> None:
    assert only("P1,2 A<1@1 filter 60@2 A<2!filter@10", "FILTER_LEAK").doubt == f"{FILTER_CHANGE} may explain it"
    assert only(f"{THREE} seek 5@2 A<1,2,3@10 A<5@10.3", "ORDER_GAP").doubt == GRACE.format(SEEK)
    assert only(f"{THREE} seek 60@2 A<1@10 A<3@10.1", "REDELIVERY_SKIP").doubt == GRACE.format(SEEK)


def test_a_drained_record_after_a_purge_has_nothing_pending() -> None:
    verifier = Verifier(Rules())
    observe(verifier, history("P1,2,3 A<1@1 A ack 1@1.2 seek 10@5 end @500"))
    assert not verifier.pending


def test_a_key_that_appears_while_a_seek_settles_is_excused_as_well() -> None:
    verifier = Verifier(Rules())
    found = observe(verifier, history("seek 60@2") + history("P1@3 P2@3 ok1=x1@3.1 ok2=x2@3.1 A<x2(2)@4", key="late"))
    assert words(found) == {"I:ORDER_GAP"}


def test_a_seek_concerns_its_subscription_alone() -> None:
    found = across(("s", "P1,2,3 A<1@1 seek 60@2 A<3@3"), ("t", "A<1@1 A<3@3"))
    assert {(f.subscription, f.status.value) for f in found if f.kind == "ORDER_GAP"} == {
        ("s", "indeterminate"),
        ("t", "violation"),
    }


def test_without_a_bound_on_the_delay_a_hole_is_over_for_what_is_published_after_it() -> None:
    since = "P3@{0}.1 ok3=m3@{0}.2 P4@{0}.3 ok4=m4@{0}.4 P5@{0}.5 ok5=m5@{0}.6 open A of client A@{0}.7 A<3@{0}.8 A<5@{0}.9"
    rules = Rules(delivery_delay_max_s=inf)
    assert words(verify(rules, history("P1 A<1@1 hole @5 " + since.format(4)))) == {"I:AFFINITY_SPLIT", "I:ORDER_GAP"}
    assert words(verify(rules, history("P1 A<1@1 hole @5 " + since.format(6)))) == {"V:ORDER_GAP"}
