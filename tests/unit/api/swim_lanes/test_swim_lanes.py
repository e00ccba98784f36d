"""Swim-lane diagrams, as a reader of the SVG gets them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from api.swim_lanes import EVENTS_MAX, STYLE, NoDiagram, caption, swim_lanes
from api.swim_lanes.captions import CAPTIONS
from prober.core.events import Delivered, Ended, Event, Opened, PublishInvoked
from prober.core.findings import Facts, Finding, Kind, Status
from prober.core.rules import Mode
from prober.evidence.diagram.rows import absent
from prober.sinks.status.records import FindingRecord, OpenSession
from tests.notation import history
from tests.unit.api.drawing import drawn_of, found, recorded

SVG = "{http://www.w3.org/2000/svg}"
SKIPPED = "P1,2,3,4 A<1@1 A<2@1.1 A<3@1.2 A ack 3@1.3 A<2@2 A<4@2.1 stop @5"
HELD: Facts = {"seq": 3, "subscriber": "B", "holder": "A", "held": (1, 2)}
SPLIT = Finding(Kind.AFFINITY_SPLIT, Status.VIOLATION, "s", "k", 1.0, (), HELD)


class Drawing:
    """A parsed diagram."""

    def __init__(self, record: FindingRecord, *, standalone: bool = True) -> None:
        self.source = swim_lanes(record, standalone=standalone)
        self.root = ElementTree.fromstring(self.source)

    def texts(self, name: str) -> list[str]:
        """What is written in elements of a class, in order."""
        return [element.text or "" for element in self.root.iter(f"{SVG}text") if element.get("class") == name]

    def rows(self, name: str = "") -> list[str]:
        """All that is written on each line, on those of a class if one is given."""
        groups = [group for group in self.root.iter(f"{SVG}g") if "row" in (group.get("class") or "").split()]
        shown = [group for group in groups if not name or name in (group.get("class") or "").split()]
        lines = [" ".join(text.text or "" for text in group.iter(f"{SVG}text")) for group in shown]
        return [line for line in lines if line]  # those of the legend have no text

    def classes(self) -> set[str]:
        return {word for element in self.root.iter() for word in (element.get("class") or "").split()}


def many(events: Sequence[Event], *witnesses: int, status: Status = Status.VIOLATION) -> Drawing:
    return Drawing(drawn_of(events, replace(SPLIT, witnesses=witnesses, status=status)))


class TestWhatIsShown:
    def test_line_by_line(self) -> None:
        assert Drawing(found(SKIPPED)).rows() == [
            "0.000 opened",
            "0.100 publish 2",
            "0.200 publish 3",
            "0.300 publish 4",
            "+ 800 ms",
            "1.100 2",
            "1.200 3 evidence",
            "1.300 ack 3",
            "+ 700 ms",
            "2.000 again 2 evidence",
            "missing 3 should be here",
            "2.100 4 skips 3",
        ]

    def test_who_has_a_lane(self) -> None:
        assert Drawing(found("P1,2,3 A<1@1 A<2@1.1 B<3@2 stop @3")).texts("name") == [
            "publisher",
            "Pub/Sub",
            "subscriber A",
            "subscriber B",
        ]
        pulled = found("P1,2 pull b1@1 b1<1@1 pull b2@1.5 b2<2@1.6 stop @3", Mode.PULL)
        assert Drawing(pulled).texts("name")[2:] == ["pull response b1", "pull response b2"]
        events = [Delivered(1.0, "s", "k", f"{run}#1", "run-7", 1, "m1") for run in ("run-7-2", "other-3")]
        opened = [OpenSession("s", f"{name}#1", name) for name in ("run-7-2", "other-3")]
        drawn = Drawing(drawn_of(events, replace(SPLIT, witnesses=(1,)), *opened))
        assert drawn.texts("name")[2:] == ["subscriber 2", "other-3"]
        assert drawn.texts("role") == ["", "", "", "subscriber"]

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("P1 A<1@1 A ack 1@1.2 A<9@3", "ack 1"),
            ("P1 A<1@1 A nack 1@1.2 A<9@3", "nack 1"),
            ("P1 A<1@1 A modack 1 10s@1.2 A<9@3", "lease of 10 s 1"),
            ("P1 A<1@1 A ackOK 1@1.2 A<9@3", "ack confirmed 1"),
            ("P1 A<1@1 dlq m1@1.2 A<9@3", "1 dead-lettered"),
            ("P1 A<1@1 seek 5@1.2 A<9@3", "sought; for 5 s nothing is certain"),
            ("P1 A<1@1 filter 5@1.2 A<9@3", "filter changed; for 5 s nothing is certain"),
            ("P1 A<1@1 hole @1.2 A<9@3", "the record may have a hole here"),
            ("P1@0.1 fail1@0.2 A<9@3", "failed 1"),
            ("P1@0.1 info1@0.2 A<9@3", "outcome unknown 1"),
            ("P1@0.1 info1@0.2 abandon1@0.3 A<9@3", "1 given up"),
            ("P1'gen1@0.1 A<9@3", "publish 1'"),
            ("P1 A<9!checksum@3", "bad checksum 9"),
            ("P1 A<9!filter@3", "filtered 9"),
            ("P1 A<9#4@3", "attempt 4 9"),
            ("open A1 of client A open A2 of client A P1 A1<1@1 A2<9@2", "on A2 9"),
            ("P1 A<1@1 close A@2 A<9@3", "closed"),
            ("P1 A<1@1 end @3", "the run ended"),
            ("P1 A<1@1 stop @3", "the run was stopped"),
        ],
    )
    def test_in_words(self, text: str, words: str) -> None:
        events = history(text)
        lines = many(events, len(events)).rows()
        assert any(words in line for line in lines), lines

    def test_epochs_are_distinguished(self) -> None:
        drawn = many([PublishInvoked(0.0, "k", "run-a", 1), PublishInvoked(1.0, "k", "run-b", 1)], 2)
        assert drawn.rows("publish") == ["0.000 publish run-a:1", "1.000 publish run-b:1 second holder"]

    def test_a_session_that_began_before_belongs_to_its_subscriber(self) -> None:
        events = [Delivered(1.0, "s", "k", "stream-7", "e1", 1, "m1")]
        drawn = Drawing(drawn_of(events, replace(SPLIT, witnesses=(1,)), OpenSession("s", "stream-7", "A")))
        assert drawn.texts("name") == ["publisher", "Pub/Sub", "subscriber A"]

    def test_several_sessions_of_a_subscriber_are_distinguished(self) -> None:
        opened = [OpenSession("s", name, "run-7-2") for name in ("run-7-2#3", "run-7-2-of-a-very-long-name", "other")]
        events = [Delivered(1.0 + number, "s", "k", one.session, "e1", number, f"m{number}") for number, one in enumerate(opened)]
        drawn = Drawing(drawn_of(events, replace(SPLIT, witnesses=(1,)), *opened))
        assert [line.split()[2] for line in drawn.rows()] == ["#3", "..ong-name", "other"]

    def test_times_are_those_since_the_first_event(self) -> None:
        drawn = many([PublishInvoked(5000.25, "k", "e", 1), PublishInvoked(5001.75, "k", "e", 2)], 2)
        assert drawn.texts("time") == ["0.000", "1.500"]
        assert "t = 5000.250 s in the trace" in " ".join(drawn.texts("note"))

    def test_times_are_in_milliseconds_where_it_went_fast(self) -> None:
        drawn = many([PublishInvoked(7.0, "k", "e", 1), PublishInvoked(7.001523, "k", "e", 2)], 2)
        assert drawn.texts("time") == ["0.000", "1.523"]
        assert any(note.startswith("Times are those at the prober, in milliseconds") for note in drawn.texts("note"))
        assert "ms" in drawn.texts("note")

    def test_a_lease_that_may_end_is_shown_as_that(self) -> None:
        drawn = Drawing(found("P1,2 A<1@1 A<2@1.1 end @500"))
        assert any("may end" in line for line in drawn.rows())
        assert "lease may end" in drawn.texts("note")


class TestMarks:
    def test_what_is_wrong_is_marked_by_form_and_word(self) -> None:
        drawn = Drawing(found(SKIPPED))
        assert drawn.rows("wrong") == ["2.100 4 skips 3"]
        assert {"icon", "outline", "band", "dot"} <= drawn.classes()

    def test_a_delivery_that_is_found_wrong_later_is_the_one_that_is_marked(self) -> None:
        record = next(record for name, record in recorded() if name.startswith("t14"))
        drawn = Drawing(record)
        assert drawn.rows("wrong") == ["210.000 1 too late"]
        assert drawn.rows("settles") == ["300.100 confirmed as m2 2 settles it"]

    def test_a_wait_in_vain_ends_with_what_never_came(self) -> None:
        drawn = Drawing(found("P1,2 A<1@1 A ack 1@1.1 end @500"))
        assert drawn.rows()[-2:] == [
            "missing 2 should be here",
            "500.000 the deadline passed, 120 s after the wait began not delivered",
        ]

    def test_what_is_uncertain_looks_uncertain(self) -> None:
        certain, doubtful = (
            next(record for _, record in recorded() if record.status is status)
            for status in Status
            if status in (Status.VIOLATION, Status.INDETERMINATE)
        )
        assert "uncertain" not in Drawing(certain).classes()
        drawn = Drawing(doubtful)
        assert "uncertain" in drawn.classes()
        assert "perhaps " in drawn.rows("wrong")[0]
        assert "Not certain: " in caption(doubtful).sentence

    def test_every_recorded_finding(self) -> None:
        for name, record in recorded():
            assert record.evidence is not None
            drawn, said = Drawing(record), caption(record)
            assert said.sentence != record.explanation, f"{name} has words of its own"
            assert " ".join(drawn.texts("caption")) == said.sentence, name
            assert len(drawn.rows("wrong")) == 1, name
            assert said.mark in drawn.rows("wrong")[0], name
            evidence = [line for line in drawn.rows() if line.endswith(("evidence", "settles it"))]
            assert len(evidence) + 1 >= len(record.evidence.witnesses), name
            assert bool(absent(record.kind, record.facts)) == bool(drawn.rows("missing")), name


class TestBounds:
    def test_a_long_history_is_shown_around_what_matters(self) -> None:
        events = [PublishInvoked(number / 10, "k", "e", number) for number in range(1, 5001)]
        drawn = many(events, 2500, 4000)
        assert drawn.rows("publish")[0] == "0.000 publish x34 1-34"
        assert f"Sequence diagram of {EVENTS_MAX} events" in drawn.source
        assert sum("events left out" in line for line in drawn.rows()) >= 2
        assert f"{5000 - EVENTS_MAX:,} events of the trace that are further away are left out." in drawn.texts("note")
        assert len(drawn.source) < 100_000
        assert any("publish 2500 evidence" in line for line in drawn.rows())

    def test_many_subscribers_share_a_lane_but_not_those_that_matter(self) -> None:
        events: list[Event] = [Opened(0.0, "s", f"c{number}", f"c{number}") for number in range(20)]
        events += [Delivered(1.0 + number, "s", "k", f"c{number}", "e", number, f"m{number}") for number in range(20)]
        drawn = many(events, 38, 40)
        assert drawn.texts("name") == [
            "publisher",
            "Pub/Sub",
            *("subscriber c0", "subscriber c1", "subscriber c2"),
            *("c17", "c19"),  # with their role they are too long
            "15 more",
        ]

    def test_many_leases_take_one_line(self) -> None:
        events: list[Event] = [Delivered(number / 10, "s", "k", "A", "e", number, f"m{number}") for number in range(1, 40)]
        drawn = many([*events, Ended(500.0, True)], 1)
        assert [line for line in drawn.rows() if "may end" in line] == ["60.000 39 leases may end"]

    def test_names_from_outside_are_only_text(self) -> None:
        evil = "<script>alert(1)</script>\"'&]]>\x00\x1b\u202e\ud800" + "k" * 5000
        safe = evil.replace("\ud800", "")
        events: list[Event] = [PublishInvoked(0.0, safe, safe, 1), Delivered(1.0, safe, safe, safe, safe, 1, safe, defect=safe)]
        facts: Facts = {"seq": 1, "subscriber": safe, "holder": safe}
        drawn = Drawing(drawn_of(events, Finding(Kind.AFFINITY_SPLIT, Status.VIOLATION, safe, safe, 1.0, (2,), facts)))
        assert {element.tag for element in drawn.root.iter()} <= {
            SVG + name for name in ("svg", "title", "desc", "style", "rect", "text", "line", "g", "path", "circle")
        }
        assert re.search("[\x00-\x08\x0b-\x1f\u202e]", drawn.source) is None
        assert len(drawn.source) < 20_000
        assert "<script" not in drawn.source

    def test_facts_of_another_version_are_reported_by_the_explanation(self) -> None:
        record = drawn_of([Ended(1.0, True)], Finding(Kind.REDELIVERY_SKIP, Status.VIOLATION, "s", "k", 1.0, (1,), {"what": 1}))
        assert caption(record).sentence == "It is explained."
        assert Drawing(record).texts("caption") == ["It is explained."]


class TestCaption:
    """The sentence above a diagram."""

    @pytest.mark.parametrize(
        ("text", "mode", "sentence"),
        [
            (
                "P1@0 ok1=a1@0.1 P1[e2]@0.2 ok1=b1@0.3 A<a1(1)@1 B<b1(1)@2 stop @3",
                Mode.STREAMING,
                "B should have got nothing of the key while A held message 1 of epoch e1; it got message 1 of epoch e2.",
            ),
            (
                "P1,2 pull b1@0.9 b1<1@1 pull b2@1.5 b2<2@1.6 stop @3",
                Mode.PULL,
                "Pull response b2 should have got nothing of the key while pull response b1 held message 1; it got message 2.",
            ),
            (
                "P1,2 r1<1@1 r2<2@1.6 stop @3",
                Mode.PUSH,
                "Push request r2 should have got nothing of the key while push request r1 held message 1; it got message 2.",
            ),
            (
                "P1 A<1@1 A<9@2 stop @3",
                Mode.STREAMING,
                "Only what was published should come; message 9 came and never was.",
            ),
        ],
    )
    def test_names_epochs_and_holders(self, text: str, mode: Mode, sentence: str) -> None:
        assert caption(found(text, mode)).sentence.partition(" Not certain")[0] == sentence

    def test_every_kind_has_one(self) -> None:
        assert set(CAPTIONS) == set(Kind)

    def test_what_is_missing_in_several_epochs(self) -> None:
        facts: Facts = {"seq": 1, "epoch": "e2", "after": 1, "after_epoch": "e1", "skipped": (2, 3), "skipped_count": 2}
        facts = {**facts, "skipped_epochs": ("e1", "e1"), "subscriber": "A"}
        finding = Finding(Kind.REDELIVERY_SKIP, Status.VIOLATION, "s", "k", 1.0, (1,), facts)
        said = caption(drawn_of([Ended(1.0, True)], finding))
        assert said.sentence == (
            "Messages 2 and 3 of epoch e1 should have been redelivered between message 1 of epoch e1 and message 1 of epoch e2; "
            "they were not."
        )
        assert said.mark == "skips 2 and 1 more"
        assert absent(finding.kind, facts) == (2, 2)

    def test_of_another_subscription_the_last_part_of_its_name(self) -> None:
        facts: Facts = {"seq": 2, "epoch": "e1", "other": f"projects/p/subscriptions/{'s' * 30}"}
        finding = Finding(Kind.ORDER_DIVERGENCE, Status.VIOLATION, "s", "k", 1.0, (1,), facts)
        assert caption(drawn_of([Ended(1.0, True)], finding)).sentence == (
            f"Both subscriptions should see the same order; this one received message 2 at another place than {'s' * 30} did."
        )


class TestDocument:
    def test_it_is_described_to_those_who_do_not_see_it(self) -> None:
        drawn = Drawing(found(SKIPPED))
        assert drawn.root.get("role") == "img"
        title, description = drawn.root[0], drawn.root[1]
        assert (title.tag, title.text) == (f"{SVG}title", "REDELIVERY_SKIP on key k")
        assert description.text == (
            "Message 3 should have been redelivered between message 2 and message 4; it was not. "
            "Sequence diagram of 9 events, time downwards; what is wrong stands in line 10 of the trace."
        )

    def test_the_style_is_inside_only_where_it_stands_alone(self) -> None:
        alone, inline = Drawing(found(SKIPPED)), Drawing(found(SKIPPED), standalone=False)
        assert [element.text for element in alone.root.iter(f"{SVG}style")] == [STYLE]
        assert list(inline.root.iter(f"{SVG}style")) == []
        assert " style=" not in alone.source + inline.source
        assert (len(alone.texts("caption")), inline.texts("caption")) == (2, [])
        assert "prefers-color-scheme: dark" in STYLE

    def test_every_class_has_a_style(self) -> None:
        plain = {"row", "legend", "publish", "delivery", "lease", "opened"}
        shown = {name for _, record in recorded() for name in Drawing(record).classes()}
        assert {name for name in shown if f".{name}" not in STYLE} <= plain

    def test_without_evidence_there_is_none(self) -> None:
        record = found(SKIPPED)
        with pytest.raises(NoDiagram, match="the events of its run were not kept"):
            swim_lanes(replace(record, evidence=None, unproven_because="the events of its run were not kept"))
        assert record.evidence is not None
        for trace in ("", "nonsense\n", record.evidence.trace.splitlines()[0] + "\n"):
            with pytest.raises(NoDiagram, match="its evidence"):
                swim_lanes(replace(record, evidence=replace(record.evidence, trace=trace)))
