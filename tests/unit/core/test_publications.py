"""The publisher's record: unknown is never turned into known, what is settled is dropped, what is forgotten proves nothing."""

from __future__ import annotations

from math import inf

import pytest

from prober.core import publications
from prober.core.attempts import Early
from prober.core.publications import EpochRecord, Publications
from prober.core.rules import Rules
from prober.core.verifier import Verifier
from tests.judging import judge
from tests.notation import history
from tests.unit.core.cases import merged, observe, say, words


def invoke(epoch: EpochRecord, seq: int, generation: int = 0, t: float = 0.0, region: str = "") -> bool:
    """One subscription waits for it; True if another was given up for it."""
    return epoch.invoke(seq, generation, t, 1, 1, region, 100)


def record(*seqs: int) -> EpochRecord:
    epoch = EpochRecord("e")
    for seq in seqs:
        invoke(epoch, seq)
    return epoch


def test_what_was_invoked() -> None:
    epoch = record(3, 4, 7)
    assert [seq for seq in range(1, 10) if epoch.was_invoked(seq)] == [1, 2, 3, 4, 7]  # it may begin in the middle
    invoke(epoch, 5, 0, 1.0)
    assert [seq for seq in range(1, 10) if epoch.was_invoked(seq)] == [1, 2, 3, 4, 5, 7]
    invoke(epoch, 1, 0, 1.0)
    assert [seq for seq in range(1, 10) if epoch.was_invoked(seq)] == [1, 3, 4, 5, 7]


def test_too_many_holes_in_the_numbering_prove_nothing() -> None:
    epoch = record(*range(1, 2 * publications.EXCEPTIONS_KEPT + 3, 2))
    assert not epoch.was_invoked(2)
    assert epoch.complete
    invoke(epoch, 1000, 0, 0.0)
    assert epoch.was_invoked(2)
    assert not epoch.complete


def test_a_settled_number_is_dropped_and_still_known() -> None:
    epoch = record(1, 2)
    first = epoch.open[1]
    assert first.confirm(11, 0, 1.0, 5)
    epoch.settle(first)
    assert 1 in epoch.open  # nobody has received it
    first.received, first.waiting = True, 0
    epoch.settle(first)
    assert list(epoch.open) == [2]
    assert epoch.was_invoked(1)
    assert epoch.was_attempted_once(1)


def test_an_open_attempt_keeps_the_number() -> None:
    epoch = record(1)
    first = epoch.open[1]
    invoke(epoch, 1, 1, 2.0)
    assert first.confirm(11, 1, 3.0, 7)
    first.received, first.waiting = True, 0
    epoch.settle(first)
    assert 1 in epoch.open
    first.close_attempt(unknown=True)
    epoch.settle(first)
    assert not epoch.open
    assert not epoch.was_attempted_once(1)


def test_a_settled_number_that_is_published_again() -> None:
    epoch = record(1, 2)
    first = epoch.open.pop(1)
    assert first.attempts == 1
    invoke(epoch, 1, 1, 5.0)
    assert 1 not in epoch.open
    assert not epoch.was_attempted_once(1)


def test_outcomes() -> None:
    publication = record(1).open[1]
    unsent = [publication.certainly_unsent]
    publication.close_attempt(unknown=False)
    unsent.append(publication.certainly_unsent)
    publication.republish(1, 2.0, "")
    unsent.append(publication.certainly_unsent)
    publication.close_attempt(unknown=True)
    publication.republish(2, 3.0, "")
    publication.close_attempt(unknown=False)
    unsent.append(publication.certainly_unsent)
    assert unsent == [False, True, False, False]


def test_the_first_confirmation_names_the_primary() -> None:
    publication = record(1).open[1]
    publication.republish(3, 4.0, "")
    assert publication.confirm(11, 3, 5.0, 9)
    assert (publication.confirmed, publication.ordered_t, publication.confirmed_t) == (True, 4.0, 5.0)
    assert not publication.confirm(12, 0, 6.0, 10)
    assert publication.token == 11


def test_the_confirmed_attempt_says_where_it_is_ordered() -> None:
    first, second = record(1).open[1], record(1).open[1]
    for publication, generation in ((first, 0), (second, 1)):
        publication.republish(1, 4.0, "")
        publication.confirm(11, generation, 5.0, 9)
    assert (first.ordered_t, second.ordered_t) == (0.0, 4.0)


def test_an_abandoned_number_has_no_primary() -> None:
    publication = record(1).open[1]
    publication.abandoned = True
    assert not publication.confirm(11, 0, 1.0, 2)
    assert not publication.confirmed
    assert not publication.certainly_unsent


def test_a_hole_in_the_record_gives_up_what_is_open() -> None:
    epoch = record(1, 3)
    epoch.forget()
    assert not epoch.open
    assert epoch.was_invoked(2)
    assert not epoch.was_attempted_once(1)


def invoke_of_key(record_of_key: Publications, epoch: str, seq: int = 1, size: int = 100) -> EpochRecord | None:
    return record_of_key.invoke(epoch, seq, 0, 0.0, 1, 1, "", size)


def test_the_epochs_idle_longest_are_forgotten() -> None:
    record_of_key = Publications()
    for n in range(publications.EPOCHS_KEPT):
        invoke_of_key(record_of_key, f"e{n}")
    invoke_of_key(record_of_key, "e0", 2)  # the oldest, but not idle
    invoke_of_key(record_of_key, "one more")
    invoke_of_key(record_of_key, "another")
    assert len(record_of_key.epochs) == publications.EPOCHS_KEPT
    assert record_of_key.forgotten == 2
    assert {"e1", "e2"}.isdisjoint(record_of_key.epochs)
    assert {"e0", "e3", "one more", "another"} <= set(record_of_key.epochs)


def test_a_forgotten_epoch_that_is_published_again_begins_anew() -> None:
    record_of_key = Publications()
    invoke_of_key(record_of_key, "first")
    for n in range(publications.EPOCHS_KEPT):
        invoke_of_key(record_of_key, f"e{n}")
    invoke_of_key(record_of_key, "first", 2)
    assert record_of_key.epochs["first"].first == 2
    assert record_of_key.epochs["first"].was_invoked(1)  # it may have been


def test_an_epoch_that_begins_after_a_hole_is_whole_if_it_begins_with_one() -> None:
    record_of_key = Publications()
    invoke_of_key(record_of_key, "before")
    record_of_key.interrupt()
    invoke_of_key(record_of_key, "whole", 1)
    invoke_of_key(record_of_key, "in the middle", 4)
    assert {name: one.complete for name, one in record_of_key.epochs.items()} == {
        "before": False,
        "whole": True,
        "in the middle": False,
    }


def test_the_largest_message_of_a_key() -> None:
    record_of_key = Publications()
    for seq, size in ((1, 100), (2, 700), (3, 50)):
        invoke_of_key(record_of_key, "e", seq, size)
    assert record_of_key.largest == 700
    invoke_of_key(record_of_key, "e", 4, 0)
    assert record_of_key.largest == inf  # not recorded: it may be of any size


def test_which_publication_an_id_names() -> None:
    record_of_key = Publications()
    for seq in (1, 2):
        invoke_of_key(record_of_key, "e", seq)
    epoch = record_of_key.epochs["e"]
    for seq in (1, 2):
        assert record_of_key.primary(10 + seq) is None
        epoch.open[seq].confirm(10 + seq, 0, 1.0, 5)
        record_of_key.confirmed(epoch, epoch.open[seq])
        assert record_of_key.primary(10 + seq) is epoch.open[seq]
    assert epoch.confirmed_rank == 2
    record_of_key.interrupt()
    assert record_of_key.primary(11) is None


def test_publications_are_linked_in_the_order_of_their_invocations() -> None:
    epoch = record(1, 2, 4, 3)
    linked, one = [], epoch.oldest
    while one is not None:
        linked.append((one.seq, one.rank))
        one = one.following
    assert linked == [(1, 1), (2, 2), (4, 3), (3, 4)]
    assert epoch.latest is epoch.open[3]


def test_what_is_settled_leaves_the_links_of_the_others_alone() -> None:
    epoch = record(1, 2, 3)
    second = epoch.open[2]
    second.confirm(12, 0, 1.0, 5)
    epoch.receive(second)
    assert sorted(epoch.open) == [1, 3]
    assert epoch.open[1].following is second
    assert second.following is epoch.open[3]


def test_the_oldest_of_too_many_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publications, "OPEN_KEPT", 2)
    epoch = EpochRecord("e")
    assert [invoke(epoch, seq) for seq in (1, 2, 3, 3)] == [False, False, True, False]
    assert (sorted(epoch.open), epoch.given_up) == ([2, 3], 1)
    assert not epoch.was_attempted_once(1)


def test_every_attempt_has_its_time_and_region() -> None:
    epoch = record()
    invoke(epoch, 1, 0, 1.0, "us")
    publication = epoch.open[1]
    assert (publication.invocation(0), publication.invocation(7)) == ((1.0, "us"), (1.0, "us"))
    invoke(epoch, 1, 1, 2.0, "eu")
    assert [publication.invocation(generation) for generation in (0, 1, 7)] == [(1.0, "us"), (2.0, "eu"), (1.0, "us")]
    publication.confirm(11, 1, 3.0, 9)
    assert (publication.region, publication.ordered_t) == ("eu", 2.0)


def test_how_many_records_of_a_number_there_are() -> None:
    publication = record(1).open[1]
    for token in (21, 22, 21):
        publication.delivered_early(Early(0, token, token, 1))
    publication.delivered_early(Early(1, 23, 1, 1))
    assert [early.token for early in publication.early_on(0)] == [21, 22, 21]
    assert (publication.records_beside(22), publication.records_beside(99)) == (2, 3)
    publication.confirm(24, 0, 1.0, 2)
    assert publication.records_beside(22) == 3


def test_one_subscription_gives_up_what_was_not_meant_for_it() -> None:
    epoch = EpochRecord("e")
    epoch.invoke(1, 0, 0.0, 1, 2, "", 100)
    publication = epoch.open[1]
    publication.confirm(11, 0, 1.0, 2)
    epoch.give_up(publication)
    assert 1 in epoch.open
    epoch.give_up(publication)
    assert 1 not in epoch.open


def test_an_outcome_begins_no_epoch() -> None:
    record_of_key = Publications()
    assert record_of_key.find("e", 1) is None
    assert not record_of_key.epochs


def test_too_many_unsettled_numbers_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest is not judged any more: neither missed, nor taken for a duplicate."""
    line = "P1@0 info1@0.1 abandon1@0.2 P2,3,4,5 A<2,3,4,5@1 A<x1(1)@2"
    hole = "P1,2,3,4,5 A<5@1"
    assert say(line, attempts_observed=True) == set()
    assert say(hole) == {"V:ORDER_GAP"}
    monkeypatch.setattr(publications, "OPEN_KEPT", 3)
    assert say(line, attempts_observed=True) == set()
    monkeypatch.setattr(publications, "OPEN_KEPT", 1)
    assert say(hole) == set()


def test_too_many_records_before_an_outcome_are_not_judged() -> None:
    shadows = " ".join(f"A<x{n}(1)@0.{100 + n}" for n in range(40))
    line = f"P1@0 P2@0 {shadows} A<m1(1)@0.2 ok1=m1@0.5 ok2=m2@0.5 A<2@1 A ack 2@1.1"
    assert say(line) == set()


def test_many_subscriptions_receive_a_message_before_it_is_confirmed() -> None:
    names = [f"s{n}" for n in range(40)]
    verifier = Verifier(Rules(), subscriptions=names)
    published = history("P1@0 P2@0.01 ok1=m1@0.5 ok2=m2@0.51")
    received = (history(f"A<1@0.{100 + n} A ack 1@0.6 A<2@1", subscription=name) for n, name in enumerate(names))
    assert words([*observe(verifier, merged(published, *received)), *verifier.finish()], notes=True) == set()


def test_a_settled_backlog_leaves_nothing_behind() -> None:
    verifier = Verifier(Rules(), subscriptions=("s",))
    observe(verifier, history("P1@0 P2@0 A<1@0.1 ok1=m1@0.2 ok2=m2@0.2 A<2@1 P3@2 info3@2.1 P3'gen1@2.2 ok3'gen1=m3@2.3 A<3@3"))
    (group,) = verifier._groups.values()
    assert group.epochs["e1"].open == {}


def test_what_another_subscription_waits_for_is_kept() -> None:
    verifier = Verifier(Rules(), subscriptions=("s", "t"))
    observe(verifier, history("P1,2 A<1,2@1"))
    (group,) = verifier._groups.values()
    assert sorted(group.epochs["e1"].open) == [1, 2]
    observe(verifier, history("B<2@2", subscription="t"))
    assert sorted(group.epochs["e1"].open) == [1]


def test_a_subscription_that_appears_later_waits_too() -> None:
    verifier = Verifier(Rules(subscription_predates_first_publish=False), subscriptions=("s",))
    observe(verifier, history("P1,2") + history("B<2@0.5", subscription="late") + history("A<1,2@1"))
    (group,) = verifier._groups.values()
    assert sorted(group.epochs["e1"].open) == [1]


def test_counters_of_publishing() -> None:
    verifier = Verifier(Rules())
    observe(verifier, history("P1 P2@1 info2@1.1 abandon2@1.2 P3@2 fail3@2.1"))
    counted = {name: count for name, count in verifier.counters.items() if name.startswith("publishes_")}
    assert counted == {
        "publishes_invoked": 3,
        "publishes_confirmed": 1,
        "publishes_unknown": 1,
        "publishes_abandoned": 1,
        "publishes_rejected": 1,
    }
    assert judge(Rules(), history("ok1=m1@1 info2@1.1 fail3@1.2 abandon4@1.3")) == []
