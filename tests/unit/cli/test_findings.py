"""Findings as every command prints them."""

from __future__ import annotations

from dataclasses import replace

from prober.cli.findings import finding_lines, finding_row
from tests.unit.sinks.status.examples import failed

FOUND = replace(failed()[0].findings[0].finding, key="red\x1b[31m" + "k" * 200)


def test_a_key_steers_no_terminal_and_fills_no_screen() -> None:
    head, sentence = finding_lines(FOUND, None)
    assert head.startswith(f"  {FOUND.kind} ({FOUND.status}), key red\\x1b[31mkkk")
    assert head.endswith("kkk (208 characters)")
    assert sentence.startswith("    Pub/Sub delivered")


def test_the_side_with_the_cause_takes_the_place_of_the_status() -> None:
    assert next(finding_lines(FOUND, None, "the service", ", group a")).startswith(f"  {FOUND.kind} (the service), key ")
    assert next(finding_lines(FOUND, None, "the service", ", group a")).endswith(", group a")


def test_witnesses_are_named_by_where_they_are() -> None:
    assert finding_row(FOUND, None)["witnesses"] == list(FOUND.witnesses)
    assert finding_row(FOUND, None, [7, 8])["witnesses"] == [7, 8]
    assert finding_row(FOUND, None)["key"] == FOUND.key
