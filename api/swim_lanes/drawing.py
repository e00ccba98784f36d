"""A diagram as SVG. Sizes are in pixels; how things look stands in the style sheet, what shape they have stands here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple
from xml.etree.ElementTree import Element, SubElement, tostring

from api.swim_lanes.captions import Caption
from api.swim_lanes.lettering import BOLD, clean, fitted, width, words_within, wrapped
from api.words import duration
from prober.core.findings import FAILING, Finding
from prober.evidence.diagram.columns import Column
from prober.evidence.diagram.rows import Arrow, Banner, Diagram, Mark, Note, Omission, Pause, Row, Sign, Sort

LETTER: Final = 13.0
CAPTION: Final = 16.0
CAPTION_LINES_MAX: Final = 4
MARGIN: Final = 16.0
GUTTER: Final = 74.0
ROW: Final = 30.0
PAUSE: Final = 34.0
HEAD: Final = 52.0
MARKS: Final = 232.0
BOX: Final = 20.0
"""The height of the box around a message's number."""
_GAPS: Final = {3: 212.0, 4: 190.0}  # between columns, by how many there are
_GAP_MIN: Final = 168.0
LEGEND_LINE: Final = 24.0
LEGEND_SAMPLE: Final = 34.0
LEGEND_SPACE: Final = 20.0
_ICONS: Final = {
    "fail": ("M-3.8-9h7.6L9-3.8v7.6L3.800 9h-7.600L-9 3.800v-7.600z", "M-3.500-3.500l7 7M3.500-3.500l-7 7"),
    "perhaps": (
        "M0-9a9 9 0 1 1 0 18a9 9 0 1 1 0-18z",
        "M-2.600-2.500c0-3.500 5.400-3.500 5.400 0 0 2-2.700 2.200-2.700 4M.100 4.700v.300",
    ),
}


@dataclass(frozen=True, slots=True)
class Plan:
    """Where columns and rows are, and from when on times count, in milliseconds where all of it takes less than a second."""

    at: tuple[float, ...]
    gap: float
    top: float
    y: tuple[float, ...]
    bottom: float
    width: float
    start: float
    in_ms: bool

    def time(self, t: float) -> str:
        """A time as it stands at the left."""
        return f"{(t - self.start) * 1000.0:,.3f}" if self.in_ms else f"{t - self.start:,.3f}"

    @property
    def right(self) -> float:
        """Where the last column's room ends and the marks begin."""
        return self.at[-1] + 66.0


def as_svg(diagram: Diagram, said: Caption, style: str) -> str:
    """The whole document. With a `style` it stands alone: that is put inside, and so is a heading."""
    gap = _GAPS.get(len(diagram.columns.all), _GAP_MIN)
    first = MARGIN + GUTTER + 50.0
    at = tuple(first + gap * number for number in range(len(diagram.columns.all)))
    total = at[-1] + 66.0 + MARKS + MARGIN
    sentence = list(wrapped(said.sentence, total - 2 * MARGIN, CAPTION * BOLD, CAPTION_LINES_MAX))
    top = MARGIN + (len(sentence) * 23.0 + 30.0 if style else 4.0)
    plan = _plan(at, gap, top, total, diagram.rows)
    samples = list(_samples(diagram, total - 2 * MARGIN))
    notes = _notes(diagram, plan)
    legend_top = plan.bottom + 26.0
    height = legend_top + LEGEND_LINE * (samples[-1].line + 1 if samples else 1) + 18.0 * len(notes) + MARGIN

    certain = diagram.finding.status in FAILING
    root = Element(
        "svg", {"xmlns": "http://www.w3.org/2000/svg", "class": "lanes" if certain else "lanes uncertain", "role": "img"}
    )
    root.attrib |= {"viewBox": f"0 0 {total:g} {height:g}", "width": f"{total:g}", "height": f"{height:g}"}
    _describe(root, diagram, said)
    if style:
        SubElement(root, "style").text = style
    SubElement(root, "rect", {"class": "ground", "width": "100%", "height": "100%"})
    if style:
        _caption(root, diagram.finding, sentence, total)
    for row, y in zip(diagram.rows, plan.y, strict=True):
        _band(root, plan, row, y)
    for number, column in enumerate(diagram.columns.all):
        _column(root, plan, number, column)
    for bar in diagram.bars:
        _rect(root, "hold", plan.at[bar.column] - 4.0, plan.y[bar.first], 8.0, max(6.0, plan.y[bar.last] - plan.y[bar.first]))
    for row, y in zip(diagram.rows, plan.y, strict=True):
        _row(root, plan, row, y, said, certain)
    _text(root, "note", MARGIN + GUTTER - 12.0, top + HEAD - 20.0, "ms" if plan.in_ms else "seconds", anchor="end")
    for sample in samples:
        _sample(root, sample, legend_top)
    for line, note in enumerate(notes):
        _text(root, "note", MARGIN, height - MARGIN - 18.0 * (len(notes) - 1 - line), note)
    return tostring(root, encoding="unicode")


def _plan(at: tuple[float, ...], gap: float, top: float, total: float, rows: Sequence[Row]) -> Plan:
    y, places = top + HEAD, []
    for row in rows:
        step = PAUSE if isinstance(row.shape, Pause) else ROW
        places.append(y + step / 2)
        y += step
    times = [row.t for row in rows if row.t is not None]
    return Plan(at, gap, top, tuple(places), y + 8.0, total, times[0], times[-1] - times[0] < 1.0)


def _describe(root: Element, diagram: Diagram, said: Caption) -> None:
    SubElement(root, "title").text = clean(f"{diagram.finding.kind} on key {clean(diagram.finding.key, 80)}")
    count = sum(bool(row.number) for row in diagram.rows)
    wrong = ", ".join(str(row.number) for row in diagram.rows if row.mark is Mark.WRONG)
    about = f"Sequence diagram of {count} events, time downwards; what is wrong stands in line {wrong} of the trace."
    SubElement(root, "desc").text = clean(f"{said.sentence} {about}", 1_000)


def _caption(root: Element, finding: Finding, sentence: list[str], total: float) -> None:
    for number, line in enumerate(sentence):
        _text(root, "caption", MARGIN, MARGIN + 15.0 + 23.0 * number, line)
    about = f"{finding.kind} ({finding.status}) · key {clean(finding.key, 60)} · subscription {clean(finding.subscription, 90)}"
    y = MARGIN + 23.0 * len(sentence) + 10.0
    _text(root, "note", MARGIN, y, fitted(about, total - 2 * MARGIN, LETTER), title=f"{finding.key} · {finding.subscription}")


def _notes(diagram: Diagram, plan: Plan) -> list[str]:
    since = f", which is t = {plan.start:.3f} s in the trace" if plan.start else ""
    unit = "milliseconds" if plan.in_ms else "seconds"
    notes = [f"Times are those at the prober, in {unit} since the first event shown{since}."]
    if diagram.omitted:
        notes.append(f"{diagram.omitted:,} events of the trace that are further away are left out.")
    return notes + [clean(note, 120) for note in diagram.notes]


# --- columns and rows -------------------------------------------------------------------------------------------------------


def _column(root: Element, plan: Plan, number: int, column: Column) -> None:
    x, room = plan.at[number], plan.gap - 16.0 if number > 1 else 116.0
    _line(root, "life", x, plan.top + HEAD - 12.0, x, plan.bottom)
    above = fitted(" of ".join(filter(None, (column.role, column.subscription.rpartition("/")[2]))), room, 11.0)
    _text(root, "role", x, plan.top + 8.0, above, anchor="middle")
    full = f"{column.subscription} {column.name}"
    _text(root, "name", x, plan.top + 26.0, fitted(column.name, room, LETTER * BOLD), anchor="middle", title=full)


def _band(root: Element, plan: Plan, row: Row, y: float) -> None:
    if row.mark:
        _rect(root, f"band {row.mark}", MARGIN / 2, y - ROW / 2 + 1.0, plan.width - MARGIN, ROW - 2.0, rx=6.0)


def _row(root: Element, plan: Plan, row: Row, y: float, said: Caption, certain: bool) -> None:
    group = SubElement(root, "g", {"class": f"row {row.mark}".strip()})
    if row.number and row.t is not None:
        SubElement(group, "title").text = f"line {row.number} of the trace, t = {row.t:.6f} s"
    if row.t is not None:
        _text(group, "time", MARGIN + GUTTER - 12.0, y + 4.5, plan.time(row.t), anchor="end")
    match row.shape:
        case Arrow():
            _arrow(group, plan, row.shape, y)
        case Note():
            _note(group, plan, row.shape, y)
        case Banner():
            _across(group, plan, "banner", clean(row.shape.words), y)
        case Pause():
            _pause(group, plan, row.shape, y)
        case Omission():
            _across(group, plan, "omission", f"{row.shape.count:,} events left out", y)
    _marked(group, plan, row, y, said, certain)


def _marked(group: Element, plan: Plan, row: Row, y: float, said: Caption, certain: bool) -> None:
    if isinstance(row.shape, Arrow) and row.shape.sort is Sort.MISSING:
        _text(group, "mark missing", plan.right + 18.0, y + 4.5, "should be here")
    elif row.mark in (Mark.WITNESS, Mark.SETTLES):
        SubElement(group, "circle", {"class": "dot", "cx": f"{plan.right + 7.0:g}", "cy": f"{y:g}", "r": "4"})
        _text(group, "mark", plan.right + 18.0, y + 4.5, "evidence" if row.mark is Mark.WITNESS else "settles it")
    elif row.mark is Mark.WRONG:
        outline, sign = _ICONS["fail" if certain else "perhaps"]
        icon = SubElement(group, "g", {"class": "icon", "transform": f"translate({plan.right + 7.0:g} {y:g})"})
        SubElement(icon, "path", {"class": "outline", "d": outline})
        SubElement(icon, "path", {"class": "sign", "d": sign})
        _text(group, "mark", plan.right + 21.0, y + 4.5, fitted(said.mark, MARKS - 16.0, LETTER * BOLD))


def _arrow(group: Element, plan: Plan, arrow: Arrow, y: float) -> None:
    source, target = plan.at[arrow.source], plan.at[arrow.target]
    forward = 1.0 if target > source else -1.0
    inset = 5.0
    source, target = source + forward * inset, target - forward * inset
    group.set("class", f"{group.get('class')} {arrow.sort}")
    _line(group, "shaft", source, y, target - forward * 7.0, y)
    head = f"M{target:g} {y:g}l{-forward * 10.0:g}-5v10z"
    SubElement(group, "path", {"class": "head", "d": head})
    _label(group, plan, arrow, y, max(arrow.source, arrow.target))


def _label(group: Element, plan: Plan, arrow: Arrow, y: float, right: int) -> None:
    """The box with the number, and words behind it, in the room on the left of the arrow's right end."""
    left, room = plan.at[right] - plan.gap + 18.0, plan.gap - 36.0
    message = fitted(arrow.message, room * 0.6, LETTER)
    box = max(24.0, width(message) * LETTER * BOLD + 12.0)
    record = f"as {arrow.record}" if arrow.sort is Sort.REPLY and arrow.record else ""
    words = words_within([*filter(None, (arrow.verb, record)), *arrow.details], room - box - 14.0, 12.0)
    taken = box + (8.0 + width(words) * 12.0 if words else 0.0)
    x = left + max(0.0, (room - taken) / 2)
    if words:
        _text(group, "words", x + box + 7.0, y + 4.0, words)
    _rect(group, "box", x, y - BOX / 2, box, BOX, rx=BOX / 2 if arrow.sort in (Sort.REPLY, Sort.ANSWER) else 4.0)
    _text(group, "number", x + box / 2, y + 4.5, message, anchor="middle")


def _note(group: Element, plan: Plan, note: Note, y: float) -> None:
    x = plan.at[note.column]
    if note.sign is Sign.OPENED:
        SubElement(group, "circle", {"class": "sign opened", "cx": f"{x:g}", "cy": f"{y:g}", "r": "5"})
    elif note.sign is Sign.LEASE:
        SubElement(group, "path", {"class": "sign lease", "d": f"M{x:g} {y - 6.0:g}l6 6-6 6-6-6z"})
    else:
        SubElement(group, "path", {"class": "sign closed", "d": f"M{x - 5.0:g} {y - 5.0:g}l10 10m0-10l-10 10"})
    _text(group, "words", x - 13.0, y + 4.0, fitted(note.words, plan.gap - 36.0, 12.0), anchor="end")


def _pause(group: Element, plan: Plan, pause: Pause, y: float) -> None:
    for x in plan.at:
        _rect(group, "cut", x - 6.0, y - 5.0, 12.0, 10.0)
        SubElement(group, "path", {"class": "break", "d": f"M{x - 7.0:g} {y - 2.0:g}l14-5M{x - 7.0:g} {y + 7.0:g}l14-5"})
    _text(group, "pause", MARGIN + GUTTER - 12.0, y + 4.5, f"+ {duration(pause.seconds)}", anchor="end")


def _across(group: Element, plan: Plan, name: str, words: str, y: float) -> None:
    left, right = plan.at[0] - 40.0, plan.at[-1] + 40.0
    _rect(group, name, left, y - 11.0, right - left, 22.0, rx=4.0)
    _text(group, f"{name}-words", (left + right) / 2, y + 4.5, fitted(words, right - left - 12.0, 12.0), anchor="middle")


# --- legend ------------------------------------------------------------------------------------------------------------------


class Sample(NamedTuple):
    """A sign that occurs in the diagram, what it means, and where that stands in the legend."""

    sign: str
    meaning: str
    line: int
    at: float


def _samples(diagram: Diagram, room: float) -> Iterator[Sample]:
    line, at = 0, 0.0
    for sign, meaning in _meanings(diagram):
        wide = LEGEND_SAMPLE + width(meaning) * 12.0
        if at and at + wide > room:
            line, at = line + 1, 0.0
        yield Sample(sign, meaning, line, at)
        at += wide + LEGEND_SPACE


def _meanings(diagram: Diagram) -> Iterator[tuple[str, str]]:
    shapes = [row.shape for row in diagram.rows]
    sorts = {shape.sort for shape in shapes if isinstance(shape, Arrow)}
    there = {
        "delivery": ("message, by its number", bool(sorts & {Sort.PUBLISH, Sort.DELIVERY})),
        "answer": ("answer to a message", bool(sorts & {Sort.REPLY, Sort.ANSWER})),
        "missing": ("missing: should have come", Sort.MISSING in sorts),
        "hold": ("has messages not acknowledged yet", bool(diagram.bars)),
        "lease": ("lease may end", any(isinstance(shape, Note) and shape.sign is Sign.LEASE for shape in shapes)),
        "pause": ("nothing happens for a while", any(isinstance(shape, Pause) for shape in shapes)),
        "witness": ("evidence for the finding", any(row.mark in (Mark.WITNESS, Mark.SETTLES) for row in diagram.rows)),
    }
    return ((sign, meaning) for sign, (meaning, occurs) in there.items() if occurs)


def _sample(root: Element, sample: Sample, top: float) -> None:
    place = f"translate({MARGIN + sample.at:g} {top + LEGEND_LINE * sample.line:g})"
    group = SubElement(root, "g", {"class": "legend", "transform": place})
    if sample.sign == "lease":
        SubElement(group, "path", {"class": "sign lease", "d": "M14-6l6 6-6 6-6-6z"})
    elif sample.sign == "pause":
        SubElement(group, "path", {"class": "break", "d": "M6-2l14-5M6 7l14-5"})
    elif sample.sign == "hold":
        _rect(group, "hold", 10.0, -9.0, 8.0, 18.0)
    elif sample.sign == "witness":
        SubElement(group, "circle", {"class": "dot", "cx": "14", "cy": "0", "r": "4"})
    else:
        arrow = SubElement(group, "g", {"class": f"row {sample.sign}"})
        _line(arrow, "shaft", 0.0, 0.0, 20.0, 0.0)
        SubElement(arrow, "path", {"class": "head", "d": "M26 0l-10-5v10z"})
    _text(group, "note", LEGEND_SAMPLE, 4.5, sample.meaning)


# --- shapes ------------------------------------------------------------------------------------------------------------------


def _text(parent: Element, name: str, x: float, y: float, text: str, *, anchor: str = "", title: str = "") -> None:
    element = SubElement(parent, "text", {"class": name, "x": f"{x:g}", "y": f"{y:g}"})
    if anchor:
        element.set("text-anchor", anchor)
    element.text = text
    if title.strip():
        SubElement(element, "title").text = clean(title.strip())


def _line(parent: Element, name: str, x1: float, y1: float, x2: float, y2: float) -> None:
    SubElement(parent, "line", {"class": name, "x1": f"{x1:g}", "y1": f"{y1:g}", "x2": f"{x2:g}", "y2": f"{y2:g}"})


def _rect(parent: Element, name: str, x: float, y: float, wide: float, high: float, rx: float = 0.0) -> None:
    element = SubElement(parent, "rect", {"class": name, "x": f"{x:g}", "y": f"{y:g}", "width": f"{wide:g}", "height": f"{high:g}"})
    if rx:
        element.set("rx", f"{rx:g}")
