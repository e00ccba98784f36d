"""The filter language."""

from __future__ import annotations

import pytest

from prober.embedded import errors
from prober.embedded.filters import compile_filter
from tests.unit.embedded.notation import Play, ordered

RED = {"color": "red", "my-key": "x"}


@pytest.mark.parametrize(
    ("text", "accepted"),
    [
        ("attributes:color", True),
        ("attributes:size", False),
        ('attributes:"color"', True),
        ("attributes:my-key", True),
        ('attributes.color = "red"', True),
        ('attributes.color="blue"', False),
        ('attributes.size = ""', False),
        ('attributes.color != "red"', False),
        ('attributes.size != "big"', True),
        ('hasPrefix(attributes.color, "re")', True),
        ('hasPrefix(attributes.color, "ed")', False),
        ('hasPrefix(attributes.size, "")', False),
        ("NOT attributes:color", False),
        ("-attributes:color", False),
        ("NOT attributes:size AND attributes:color", True),
        ("attributes:size OR attributes:color", True),
        ("attributes:size AND attributes:color", False),
        ("NOT (attributes:size AND attributes:color)", True),
        ("attributes:color AND (attributes:size OR attributes:my-key)", True),
        ('attributes.color = "r\\u0065d"', True),
        ('attributes.color = "r\\x65d"', True),
        ('attributes.color = "\\162ed"', True),
        ('attributes.color = "\\U00000072ed"', True),
        ('attributes."color" = "red"', True),
        ("attributes:1st", False),
        ('attributes."a\\"b" != "red"', True),
        ('hasPrefix ( attributes."color" , "re" )', True),
        ("NOT -attributes:color", True),
    ],
)
def test_filters(text: str, accepted: bool) -> None:
    predicate = compile_filter(text)
    assert predicate is not None
    assert predicate(RED) is accepted


def test_the_empty_filter_accepts_everything() -> None:
    assert compile_filter("") is None
    assert compile_filter("  ") is None


@pytest.mark.parametrize(
    "text",
    [
        "color",
        "attributes",
        "attributes.color",
        'attributes.color = red"',
        "attributes.color = red",
        "attributes:color AND",
        "attributes:a AND attributes:b OR attributes:c",
        "(attributes:a",
        "attributes:a)",
        'hasPrefix(attributes.a "b")',
        "attributes:AND",
        "attributes:a ; attributes:b",
        "attributes:a and attributes:b",
        "Attributes:a",
        "attributes.a = 'b'",
        'attributes.a = "\\q"',
        'attributes.a = "\\x6"',
        'attributes.a = "\\U00110000"',
        'attributes.a = "b\nc"',
        "attributes:-a",
        'hasprefix(attributes.a, "b")',
        'hasPrefix(attributes:a, "b")',
        "attributes:" + "a" * 256,
    ],
)
def test_what_is_no_filter(text: str) -> None:
    with pytest.raises(errors.ServiceError, match="INVALID_ARGUMENT"):
        compile_filter(text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("attributes:a ; attributes:b", "no word, string or operator at character 14"),
        ("attributes.color = red", "a string in double quotes is expected at character 20"),
        ("attributes.color", "= or != is expected at character 17"),
        ("(attributes:a", ") is expected at character 14"),
        ("attributes:a attributes:b", "AND, OR or the end is expected at character 14"),
        ("attributes:a AND attributes:b OR attributes:c", "AND and OR are mixed without parentheses at character 31"),
    ],
)
def test_the_problem_of_a_filter_has_its_place(text: str, problem: str) -> None:
    with pytest.raises(errors.ServiceError) as caught:
        compile_filter(text)
    assert f"(argument=filter: {problem})" in caught.value.message


def test_what_a_filter_refuses_counts_as_acknowledged() -> None:
    play = Play(ordered(filter='attributes.keep = "yes"'))
    assert play("open:A +k:1?keep=yes +k:2?keep=no +k:3?keep=yes") == "A<k1 A<k3"
