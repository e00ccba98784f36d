"""The order of keys in exports, in the notation `2@1.5#b`: number 2, published at 1.5 s, with the message id b (default: the number)."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prober.core.findings import Status
from prober.core.verdict import Verdict
from prober.exports.sources import ExportedMessage
from prober.exports.verification import KEPT_PER_KIND_MAX, ExportAssumptions, ExportKind, ExportVerification, verify_export

IN_ORDER_OF_NUMBERS = ExportAssumptions(numbers_follow_publishing=True)
INVERSION, MISSING = ExportKind.ORDER_INVERSION, ExportKind.MISSING_NUMBERS
_WRITTEN = re.compile(r"(-|\d+)(?:@([\d.]+))?(?:#(\w+))?")


def message(text: str, source: str = "f", row: int = 1, key: str = "k") -> ExportedMessage:
    found = _WRITTEN.fullmatch(text)
    assert found, text
    number = None if found[1] == "-" else int(found[1])
    published = None if found[2] is None else float(found[2])
    return ExportedMessage(source, row, "", key, found[3] or ("" if number is None else f"m{number}"), published, number)


def verified(
    *files: str, assumptions: ExportAssumptions = IN_ORDER_OF_NUMBERS, has_order: bool = True, cut: bool = False
) -> ExportVerification:
    messages = [message(text, f"f{at}", row) for at, file in enumerate(files) for row, text in enumerate(file.split(), 1)]
    return verify_export(messages, assumptions, has_order=has_order, cut=cut)


def statuses(verification: ExportVerification) -> dict[ExportKind, Status]:
    return dict(verification.counts.keys())


def test_in_order() -> None:
    verification = verified("1 2 3 4")
    assert (verification.verdict, verification.reason, verification.findings) == (Verdict.PASS, "", ())


def test_out_of_order_in_a_file() -> None:
    verification = verified("1 3 2 4")
    assert verification.verdict is Verdict.FAIL
    [finding] = verification.findings
    assert (finding.kind, finding.status) == (INVERSION, Status.VIOLATION)
    assert finding.explanation.startswith("f0 has message 3 in row 2 and message 2 only in row 3.")
    assert [row.row for row in finding.rows] == [2, 3]


def test_files_are_not_compared() -> None:
    """A later message may be in a file whose name has an earlier time."""
    verification = verified("3 4", "1 2")
    assert verification.verdict is Verdict.PASS
    assert verification.counters["keys_in_several_files"] == 1


@pytest.mark.parametrize(
    ("files", "why"),
    [
        (("1 2 3 2 3 4",), "redelivered from 2 on"),
        (("1 3 2 3 4",), "the first delivery of 2 got lost with its file, and the redelivery brings 3 again"),
        (("1 3 2 4", "3"), "and 3 is there again in another file"),
        (("2", "3 2 3 4"), "2 was delivered to another file before"),
        (("1#a 2#b 1#c 2#d 3 4",), "a publisher that repeats"),
        (("2#b 1 2#d 3",), "of the first attempt only 2 was stored"),
        (("2#b 1#c 2#d 3 4", "1#a"), "the first copy of 1 is in another file"),
    ],
)
def test_what_looks_wrong_and_is_not(files: tuple[str, ...], why: str) -> None:
    assert verified(*files).verdict is Verdict.PASS, why


def test_what_may_still_be_written_again_is_undecided() -> None:
    verification = verified("1 3 2")
    assert verification.verdict is Verdict.UNKNOWN
    assert statuses(verification) == {INVERSION: Status.INDETERMINATE}


def test_numbers_alone_need_a_guarantee() -> None:
    verification = verified("1 3 2 4", assumptions=ExportAssumptions())
    assert (verification.verdict, statuses(verification)) == (Verdict.UNKNOWN, {INVERSION: Status.INDETERMINATE})
    assert "there are none" in verification.findings[0].explanation


@pytest.mark.parametrize(
    ("rows", "verdict"),
    [
        ("1@10 3@30 2@20 4@40", Verdict.FAIL),
        ("1@10 3@20.5 2@20 4@40", Verdict.UNKNOWN),  # too close to tell
        ("1@10 3@20 2@30 4@40", Verdict.PASS),  # published in this order
    ],
)
def test_publish_times_tell_who_was_first(rows: str, verdict: Verdict) -> None:
    assert verified(rows, assumptions=ExportAssumptions()).verdict is verdict


def test_published_in_this_order_whatever_was_guaranteed() -> None:
    assert statuses(verified("1@10 3@20 2@30 4@40")) == {ExportKind.PUBLISHED_OUT_OF_NUMBER_ORDER: Status.INFO}


def test_publish_times_alone_prove_nothing() -> None:
    verification = verified("-@10#a -@30#b -@20#c -@40#d")
    assert (verification.verdict, statuses(verification)) == (Verdict.UNKNOWN, {INVERSION: Status.INDETERMINATE})
    assert verified("-@10#a -@20#b -@30#c").verdict is Verdict.PASS


def test_missing_numbers_are_unknown() -> None:
    verification = verified("1 2 5 7")
    assert (verification.verdict, verification.counters["missing_numbers"]) == (Verdict.UNKNOWN, 3)
    assert [finding.explanation[:40] for finding in verification.findings] == [
        "The numbers 3 to 4 are missing, though 5",
        "The number 6 is missing, though 7 is the",
    ]


def test_a_missing_number_hides_no_violation() -> None:
    assert verified("1 3 2 9").verdict is Verdict.FAIL


def test_a_table_has_no_order() -> None:
    assert verified("3@30 1@10 2@20", has_order=False).verdict is Verdict.PASS
    assert verified("3@30 1@10", has_order=False).verdict is Verdict.UNKNOWN
    swapped = verified("1@10 2@30 3@20", has_order=False)
    assert (swapped.verdict, statuses(swapped)) == (Verdict.PASS, {ExportKind.PUBLISHED_OUT_OF_NUMBER_ORDER: Status.INFO})


@pytest.mark.parametrize(
    ("rows", "reason"), [("", "no message has an ordering key"), ("1", "no two messages"), ("-#a -#b", "no two messages")]
)
def test_without_anything_to_compare_nothing_is_known(rows: str, reason: str) -> None:
    verification = verified(rows)
    assert verification.verdict is Verdict.UNKNOWN
    assert verification.reason.startswith(reason)


def test_what_was_not_read_is_unknown() -> None:
    assert verified("1 2", cut=True).verdict is Verdict.UNKNOWN
    assert verified("1 3 2 4", cut=True).verdict is Verdict.FAIL


def test_keys_and_subscriptions_are_apart() -> None:
    rows = [message("2"), message("1", key="other"), message("3"), message("4")._replace(subscription="s")]
    verification = verify_export([*rows, message("1", key="")], IN_ORDER_OF_NUMBERS, has_order=True)
    assert verification.verdict is Verdict.PASS
    assert (verification.counters["keys"], verification.counters["without_key"]) == (3, 1)


def test_findings_are_bounded_and_counted() -> None:
    verification = verified(" ".join(["1000000", *map(str, range(1, 1500)), "1000001"]))
    assert verification.counts[INVERSION, Status.VIOLATION] == 1499
    kept = [finding for finding in verification.findings if finding.kind is INVERSION]
    assert len(kept) == KEPT_PER_KIND_MAX


@given(
    steps=st.lists(st.tuples(st.integers(0, 30), st.integers(1, 12), st.integers(0, 3)), max_size=12),
    again=st.sets(st.integers(1, 10)),
    gap_s=st.sampled_from([0.0, 0.5, 2.0]),
    assumptions=st.sampled_from([ExportAssumptions(), IN_ORDER_OF_NUMBERS]),
)
def test_no_legal_export_fails(
    steps: list[tuple[int, int, int]], again: set[int], gap_s: float, assumptions: ExportAssumptions
) -> None:
    """Whatever is delivered again, wherever it is written, and whatever the publisher repeats."""
    log: list[int] = []
    for number in range(1, 11):
        log.append(number)
        if number in again:
            log += [earlier for earlier in (number - 1, number) if earlier]
    files: dict[int, list[ExportedMessage]] = {}
    position = reached = 0
    for back, length, file in [*steps, (0, len(log), 0)]:  # at last everything that is pending is delivered
        position = max(0, position - back)
        for place in range(position, min(position + length, len(log))):
            rows = files.setdefault(file, [])
            text = f"{log[place]}@{100 + place * gap_s}#p{place}"
            rows.append(message(text, f"f{file}", len(rows) + 1))
        position = min(position + length, len(log))
        reached = max(reached, position)
    messages = [row for rows in files.values() for row in rows]
    assert verify_export(messages, assumptions, has_order=True).verdict is not Verdict.FAIL


@given(count=st.integers(3, 30), data=st.data())
def test_a_swap_is_always_found(count: int, data: st.DataObject) -> None:
    numbers = list(range(1, count + 1))
    at = data.draw(st.integers(0, count - 3))
    numbers[at], numbers[at + 1] = numbers[at + 1], numbers[at]
    rows = " ".join(f"{number}@{number * 10}" for number in numbers)
    assert verified(rows, assumptions=ExportAssumptions()).verdict is Verdict.FAIL
