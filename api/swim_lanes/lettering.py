"""Text in a diagram: cut, measured, wrapped, and valid in XML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final
from unicodedata import combining, east_asian_width

BOLD: Final = 1.12
"""Width of bold letters relative to normal ones."""
_NARROW: Final = frozenset("iljtfrI.,:;'|!()[] ")


def clean(text: str, length: int = 200) -> str:
    """Return at most `length` characters, with the middle left out.

    Unprintable characters and those that change the writing direction become U+FFFD.
    """
    if len(text) > length:
        head = (length - 1) // 2
        text = f"{text[:head]}…{text[len(text) - (length - 1 - head) :]}"
    return text if text.isprintable() else "".join(character if character.isprintable() else "\ufffd" for character in text)


def width(text: str) -> float:
    """Return the approximate width of a text, in widths of the letter size; rather too large than too small."""
    return sum(map(_advance, text))


def fitted(text: str, room: float, size: float) -> str:
    """Return a cleaned text at most `room` wide at this size, with its middle cut out."""
    text = clean(text)
    length = len(text)
    while length > 3 and width(text) * size > room:
        length -= 1
        text = clean(text, length)
    return text


def words_within(words: Sequence[str], room: float, size: float) -> str:
    """Return as many words as fit, at least the first one, cut if necessary."""
    if not words:
        return ""
    text = fitted(words[0], room, size)
    for word in words[1:]:
        longer = f"{text} {clean(word)}"
        if width(longer) * size > room:
            break
        text = longer
    return text


def wrapped(text: str, room: float, size: float, lines_max: int) -> Iterator[str]:
    """Yield the lines of a text, each at most about `room` wide.

    The last line is cut if the text does not fit.
    """
    words, line, count = clean(text, 1_000).split(" "), "", 1
    while words:
        longer = f"{line} {words[0]}" if line else words[0]
        if width(longer) * size <= room or not line:
            line = longer
            words.pop(0)
        elif count == lines_max:
            break
        else:
            yield fitted(line, room, size)
            line, count = "", count + 1
    yield fitted(" ".join([line, *words]), room, size) if words else fitted(line, room, size)


def _advance(character: str) -> float:
    if combining(character):
        return 0.0
    if east_asian_width(character) in "WF":
        return 1.05
    if character in _NARROW:
        return 0.36
    return 0.74 if character.isupper() or character in "mwMW…@%_" else 0.6
