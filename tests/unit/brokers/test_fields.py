"""Where in a message its group and its number stand, and what is said of one that has none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prober.brokers.base import Received
from prober.brokers.fields import FieldPath, Message, NoValue, parse_path
from prober.errors import ConfigError

DATA = b'{"account": {"id": "a7", "n": 12}, "flag": true, "none": null, "empty": ""}'
RECEIVED = Received("m1", "", "key-1", DATA, {"seq": "41", "user.name": "ann", "empty": ""}, 0, None)


@pytest.mark.parametrize(
    ("path", "group"),
    [("ordering_key", "key-1"), ("attributes.user.name", "ann"), ("json.account.id", "a7"), ("json.account.n", "12")],
)
def test_a_group_is_text_or_a_whole_number(path: str, group: str) -> None:
    assert Message(RECEIVED).group(parse_path(path)) == group


@pytest.mark.parametrize(("path", "number"), [("attributes.seq", 41), ("json.account.n", 12)])
def test_a_number_may_be_written_as_text(path: str, number: int) -> None:
    assert Message(RECEIVED).number(parse_path(path)) == number


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("attributes.account", "has no attribute account (it has: empty, seq, user.name)"),
        ("json.account.name", "has no field account.name in its data (it has: id, n)"),
        ("json.flag", "has true in json.flag, which is no name of a group"),
        ("json.none", "has null in json.none, which is no name of a group"),
        ("json.empty", "has nothing in json.empty"),
        ("attributes.empty", "has nothing in attributes.empty"),
        ("json.account", 'has {"id": "a7", "n": 12} in json.account, which is no name of a group'),
    ],
)
def test_a_message_without_a_group_says_why(path: str, why: str) -> None:
    with pytest.raises(NoValue) as error:
        Message(RECEIVED).group(parse_path(path))
    assert str(error.value) == why


@pytest.mark.parametrize("path", ["attributes.user.name", "json.flag", "json.account.id", "json.none", "ordering_key"])
def test_what_is_no_whole_number_is_none(path: str) -> None:
    with pytest.raises(NoValue, match=r"which is not a whole number|has no"):
        Message(RECEIVED).number(parse_path(path))


@pytest.mark.parametrize("data", [b"", b"\xff", b"[1]", b"7", b"{", b"[" * 100_000])
def test_data_that_are_no_object(data: bytes) -> None:
    received = Received("m1", "", "", data, {}, 0, None)
    with pytest.raises(NoValue, match=r"JSON"):
        Message(received).group(FieldPath("json", ("x",)))


@pytest.mark.parametrize(
    "text", ["", "attributes", "attributes.", "json", "json.", "json..x", "key", "ordering_key.x", "$.x", "message.id"]
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"write ordering_key, attributes\.NAME or json\.FIELD\.FIELD"):
        parse_path(text)


@given(st.text())
def test_what_is_read_is_written_so(text: str) -> None:
    try:
        path = parse_path(text)
    except ConfigError:
        return
    assert parse_path(str(path)) == path
