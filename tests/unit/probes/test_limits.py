"""The keys of the probe `limits` are all that may be, and just beyond."""

from __future__ import annotations

from prober.probes.limits import EDGES, KEY_BYTES_MAX, TOO_LONG, key_of


def test_keys_differ_and_have_one_byte_to_the_limit() -> None:
    keys = [key_of(number) for number in range(3 * len(EDGES))]
    assert len(set(keys)) == len(keys)
    lengths = {len(key.encode()) for key in keys}
    assert (min(lengths), max(lengths)) == (1, KEY_BYTES_MAX)
    assert any(len(key) < len(key.encode()) == KEY_BYTES_MAX for key in keys)


def test_those_to_be_refused_are_too_long_in_bytes_only_or_in_characters_too() -> None:
    assert all(len(key.encode()) > KEY_BYTES_MAX for key in TOO_LONG)
    assert any(len(key) <= KEY_BYTES_MAX for key in TOO_LONG)
