"""What the signs of a diagram mean: a line at its foot with those that occur in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from xml.etree.ElementTree import Element, SubElement

from api.lanes.lettering import width
from api.lanes.rows import Arrow, Mark, Note, Pause, Rows, Sort

LINE: Final = 24.0
SAMPLE: Final = 34.0
_SPACE: Final = 20.0


@dataclass(frozen=True, slots=True)
class Legend:
    """Signs with their meanings, in order."""

    entries: tuple[tuple[str, str], ...]

    def height(self, room: float) -> float:
        """What it takes within a width."""
        return LINE * (1 + max((line for _, _, line, _ in self._placed(room)), default=0))

    def draw(self, root: Element, x: float, y: float, room: float) -> None:
        """Draws it with its upper left corner there."""
        for sign, meaning, line, at in self._placed(room):
            group = SubElement(root, "g", {"class": "legend", "transform": f"translate({x + at:g} {y + LINE * line:g})"})
            _sample(group, sign)
            text = SubElement(group, "text", {"class": "note", "x": f"{SAMPLE:g}", "y": "4.5"})
            text.text = meaning

    def _placed(self, room: float) -> list[tuple[str, str, int, float]]:
        placed, line, at = [], 0, 0.0
        for sign, meaning in self.entries:
            wide = SAMPLE + width(meaning) * 12.0
            if at and at + wide > room:
                line, at = line + 1, 0.0
            placed.append((sign, meaning, line, at))
            at += wide + _SPACE
        return placed


def legend(drawn: Rows) -> Legend:
    """The legend of a diagram."""
    shapes = [row.shape for row in drawn.lines]
    sorts = {shape.sort for shape in shapes if isinstance(shape, Arrow)}
    signs = {shape.sign for shape in shapes if isinstance(shape, Note)}
    marks = {row.mark for row in drawn.lines}
    there = {
        "delivery": ("message, by its number", bool(sorts & {Sort.PUBLISH, Sort.DELIVERY})),
        "answer": ("answer to a message", bool(sorts & {Sort.REPLY, Sort.ANSWER})),
        "missing": ("missing: should have come", Sort.MISSING in sorts),
        "hold": ("has messages not acknowledged yet", bool(drawn.bars)),
        "lease": ("lease may end", "lease" in signs),
        "pause": ("nothing happens for a while", any(isinstance(shape, Pause) for shape in shapes)),
        "witness": ("evidence for the finding", bool(marks & {Mark.WITNESS, Mark.SETTLES})),
    }
    return Legend(tuple((sign, meaning) for sign, (meaning, occurs) in there.items() if occurs))


def _sample(group: Element, sign: str) -> None:
    if sign in ("delivery", "answer", "missing"):
        arrow = SubElement(group, "g", {"class": f"row {sign}"})
        SubElement(arrow, "line", {"class": "shaft", "x1": "0", "y1": "0", "x2": "20", "y2": "0"})
        SubElement(arrow, "path", {"class": "head", "d": "M26 0l-10-5v10z"})
    elif sign == "hold":
        SubElement(group, "rect", {"class": "hold", "x": "10", "y": "-9", "width": "8", "height": "18"})
    elif sign == "lease":
        SubElement(group, "path", {"class": "sign lease", "d": "M14-6l6 6-6 6-6-6z"})
    elif sign == "pause":
        SubElement(group, "path", {"class": "break", "d": "M6-2l14-5M6 7l14-5"})
    else:
        SubElement(group, "circle", {"class": "dot", "cx": "14", "cy": "0", "r": "4"})
