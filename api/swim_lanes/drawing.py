"""A diagram as SVG. The style sheet defines the appearance, `layout.py` the positions, this module the shapes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple
from xml.etree.ElementTree import Element, SubElement, tostring

from api.swim_lanes.captions import Caption
from api.swim_lanes.layout import ICON, LETTER, LINE, NOTE, SMALL, Layout, Sheet, columns_on, plan_of
from api.swim_lanes.lettering import BOLD, clean, fitted, width, words_within, wrapped
from api.words import duration
from prober.core.findings import FAILING, Finding
from prober.evidence.diagram.columns import DiagramColumn
from prober.evidence.diagram.rows import Arrow, Banner, Diagram, Mark, Note, Omission, Pause, Row, Sign, Sort

CAPTION: Final = 16.0
CAPTION_LINES_MAX: Final = 4
NOTE_LINES_MAX: Final = 3
SHORT_NAME_MAX: Final = 4
"""Maximum length of a name that is shown after its role: `subscriber 2`."""
BOX: Final = 20.0
"""Height of the box around a message's number."""
ABOVE: Final = 19.0
"""Distance from an arrow to the words above it."""
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


def as_svg(diagram: Diagram, said: Caption, style: str, sheet: Sheet) -> str:
    """Return the document on a sheet. With a `style` it stands alone: it contains the style and a heading."""
    count = len(diagram.columns.all)
    total = columns_on(sheet, count)[-1]
    room = total - 2 * sheet.margin
    sentence = list(wrapped(said.sentence, room, CAPTION * BOLD, CAPTION_LINES_MAX))
    top = sheet.margin + (len(sentence) * 23.0 + 30.0 if style else 4.0)
    plan = plan_of(sheet, count, diagram.rows, said.mark, top)
    samples = list(_samples(diagram, room))
    notes = [line for note in _notes(diagram, plan) for line in wrapped(note, room, SMALL, NOTE_LINES_MAX)]
    legend_top = plan.bottom + 26.0
    height = legend_top + LEGEND_LINE * (samples[-1].line + 1 if samples else 1) + LINE * len(notes) + sheet.margin

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
        _caption(root, plan, diagram.finding, sentence)
    for index, row in enumerate(diagram.rows):
        _band(root, plan, row, index)
    for number, column in enumerate(diagram.columns.all):
        _column(root, plan, number, column)
    for bar in diagram.bars:
        _rect(root, "hold", plan.at[bar.column] - 4.0, plan.y[bar.first], 8.0, max(6.0, plan.y[bar.last] - plan.y[bar.first]))
    for index, row in enumerate(diagram.rows):
        _row(root, plan, row, index, certain)
    _text(root, "note", plan.times_end, plan.edges[0] - 20.0, "ms" if plan.in_ms else "seconds", anchor="end")
    for sample in samples:
        _sample(root, sample, sheet.margin, legend_top)
    for line, note in enumerate(notes):
        _text(root, "note", sheet.margin, height - sheet.margin - LINE * (len(notes) - 1 - line), note)
    return tostring(root, encoding="unicode")


def _describe(root: Element, diagram: Diagram, said: Caption) -> None:
    SubElement(root, "title").text = clean(f"{diagram.finding.kind} on key {clean(diagram.finding.key, 80)}")
    count = sum(row.events for row in diagram.rows if row.number)
    wrong = ", ".join(str(row.number) for row in diagram.rows if row.mark is Mark.WRONG)
    about = f"Sequence diagram of {count} events, time downwards; what is wrong stands in line {wrong} of the trace."
    SubElement(root, "desc").text = clean(f"{said.sentence} {about}", 1_000)


def _caption(root: Element, plan: Layout, finding: Finding, sentence: list[str]) -> None:
    margin = plan.sheet.margin
    for number, line in enumerate(sentence):
        _text(root, "caption", margin, margin + 15.0 + 23.0 * number, line)
    about = f"{finding.kind} ({finding.status}) · key {clean(finding.key, 60)} · subscription {clean(finding.subscription, 90)}"
    y = margin + 23.0 * len(sentence) + 10.0
    said = fitted(about, plan.width - 2 * margin, LETTER)
    _text(root, "note", margin, y, said, title=f"{finding.key} · {finding.subscription}")


def _notes(diagram: Diagram, plan: Layout) -> list[str]:
    since = f", which is t = {plan.start:.3f} s in the trace" if plan.start else ""
    unit = "milliseconds" if plan.in_ms else "seconds"
    notes = [f"Times are those at the prober, in {unit} since the first event shown{since}."]
    if diagram.omitted:
        notes.append(f"{diagram.omitted:,} events of the trace that are further away are left out.")
    return notes + [clean(note, 120) for note in diagram.notes]


# --- columns and rows -------------------------------------------------------------------------------------------------------


def _column(root: Element, plan: Layout, number: int, column: DiagramColumn) -> None:
    x, room, is_stacked = plan.at[number], plan.room_of_name(number), plan.sheet.is_stacked
    top = plan.top + 8.0 + (34.0 if is_stacked and number % 2 else 0.0)
    _line(root, "life", x, top + 26.0 if is_stacked else plan.edges[0] - 12.0, x, plan.bottom)
    numbered = f"{column.role} {column.short}"
    is_short = 0 < len(column.short) <= SHORT_NAME_MAX and width(numbered) * LETTER * BOLD <= room
    role, name = ("", numbered) if is_short else (column.role, column.short or column.name)
    above = fitted(" of ".join(filter(None, (role, column.subscription.rpartition("/")[2]))), room, 11.0)
    _text(root, "role", x, top, above, anchor="middle")
    full = f"{column.subscription} {column.name}"
    _text(root, "name", x, top + 18.0, fitted(name, room, LETTER * BOLD), anchor="middle", title=full)


def _band(root: Element, plan: Layout, row: Row, index: int) -> None:
    if row.mark:
        above, below = plan.edges[index] + 1.0, plan.edges[index + 1] - 1.0
        _rect(root, f"band {row.mark}", plan.sheet.margin / 2, above, plan.width - plan.sheet.margin, below - above, rx=6.0)


def _row(root: Element, plan: Layout, row: Row, index: int, certain: bool) -> None:
    y = plan.y[index]
    group = SubElement(root, "g", {"class": f"row {row.mark}".strip()})
    if row.number and row.t is not None:
        lines = (
            f"{row.events:,} events from line {row.number} of the trace on" if row.events > 1 else f"line {row.number} of the trace"
        )
        SubElement(group, "title").text = f"{lines}, t = {row.t:.6f} s"
    if row.t is not None:
        _text(group, "time", plan.times_end, y + 4.5, plan.time(row.t), anchor="end")
    match row.shape:
        case Arrow():
            _arrow(group, plan, row.shape, y)
        case Note():
            _note(group, plan, row.shape, y)
        case Banner():
            _across(group, plan, "banner", row.shape.words, y)
        case Pause():
            _pause(group, plan, row.shape, y)
        case Omission():
            _across(group, plan, "omission", f"{row.shape.count:,} events left out", y)
    if row.mark is Mark.WRONG:
        _reason(group, plan, plan.edges[index + 1], certain)
    else:
        _marked(group, plan, row, y)


def _marked(group: Element, plan: Layout, row: Row, y: float) -> None:
    has_words = plan.sheet.marks >= 100.0
    if isinstance(row.shape, Arrow) and row.shape.sort is Sort.MISSING and has_words:
        _text(group, "mark missing", plan.right + 18.0, y + 4.5, "should be here")
    elif row.mark in (Mark.WITNESS, Mark.SETTLES):
        SubElement(group, "circle", {"class": "dot", "cx": f"{plan.right + 7.0:g}", "cy": f"{y:g}", "r": "4"})
        if has_words:
            _text(group, "mark", plan.right + 18.0, y + 4.5, "evidence" if row.mark is Mark.WITNESS else "settles it")


def _reason(group: Element, plan: Layout, bottom: float, certain: bool) -> None:
    """Draw the reason why a row is a fault, at the left, where it is visible in the narrowest window."""
    y = bottom - LINE * len(plan.reason) + 3.0
    outline, sign = _ICONS["fail" if certain else "perhaps"]
    place = f"translate({plan.sheet.margin + 14.0:g} {y:g})"
    icon = SubElement(group, "g", {"class": "icon", "transform": place})
    SubElement(icon, "path", {"class": "outline", "d": outline})
    SubElement(icon, "path", {"class": "sign", "d": sign})
    for number, line in enumerate(plan.reason):
        _text(group, "mark reason", plan.sheet.margin + ICON, y + 4.5 + LINE * number, line)


def _arrow(group: Element, plan: Layout, arrow: Arrow, y: float) -> None:
    source, target = plan.at[arrow.source], plan.at[arrow.target]
    forward = 1.0 if target > source else -1.0
    inset = 5.0
    source, target = source + forward * inset, target - forward * inset
    group.set("class", f"{group.get('class')} {arrow.sort}")
    _line(group, "shaft", source, y, target - forward * 7.0, y)
    head = f"M{target:g} {y:g}l{-forward * 10.0:g}-5v10z"
    SubElement(group, "path", {"class": "head", "d": head})
    _label(group, plan, arrow, y)


def _label(group: Element, plan: Layout, arrow: Arrow, y: float) -> None:
    """Draw the box with the number, and words after it.

    The words are above the arrow, or on it in the space on the left of its right end.
    """
    is_stacked = plan.sheet.is_stacked
    left, room = plan.at[max(arrow.source, arrow.target)] - plan.gap + 18.0, plan.gap - 36.0
    if is_stacked:
        y, left, room = y - ABOVE, plan.left, plan.width - plan.sheet.margin - plan.left
    message = fitted(arrow.message, room * 0.6, LETTER)
    box = max(24.0, width(message) * LETTER * BOLD + 12.0)
    record = f"as {arrow.record}" if arrow.sort is Sort.REPLY and arrow.record else ""
    words = words_within([*filter(None, (arrow.verb, record)), *arrow.details], room - box - 14.0, SMALL)
    taken = box + (8.0 + width(words) * SMALL if words else 0.0)
    x = left + max(0.0, (room - taken) / 2)
    if is_stacked:
        middle = (plan.at[arrow.source] + plan.at[arrow.target]) / 2
        x = max(left, min(middle - taken / 2, left + room - taken))
    if words:
        _text(group, "words", x + box + 7.0, y + 4.0, words)
    _rect(group, "box", x, y - BOX / 2, box, BOX, rx=BOX / 2 if arrow.sort in (Sort.REPLY, Sort.ANSWER) else 4.0)
    _text(group, "number", x + box / 2, y + 4.5, message, anchor="middle")


def _note(group: Element, plan: Layout, note: Note, y: float) -> None:
    x = plan.at[note.column]
    if note.sign is Sign.OPENED:
        SubElement(group, "circle", {"class": "sign opened", "cx": f"{x:g}", "cy": f"{y:g}", "r": "5"})
    elif note.sign is Sign.LEASE:
        SubElement(group, "path", {"class": "sign lease", "d": f"M{x:g} {y - 6.0:g}l6 6-6 6-6-6z"})
    else:
        SubElement(group, "path", {"class": "sign closed", "d": f"M{x - 5.0:g} {y - 5.0:g}l10 10m0-10l-10 10"})
    before, behind = x - 13.0 - plan.left, plan.width - plan.sheet.margin - x - 13.0
    if before >= min(behind, width(note.words) * SMALL):
        _text(group, "words", x - 13.0, y + 4.0, fitted(note.words, before, SMALL), anchor="end")
    else:
        _text(group, "words", x + 13.0, y + 4.0, fitted(note.words, behind, SMALL))


def _pause(group: Element, plan: Layout, pause: Pause, y: float) -> None:
    for x in plan.at:
        _rect(group, "cut", x - 6.0, y - 5.0, 12.0, 10.0)
        SubElement(group, "path", {"class": "break", "d": f"M{x - 7.0:g} {y - 2.0:g}l14-5M{x - 7.0:g} {y + 7.0:g}l14-5"})
    text = f"+ {duration(pause.seconds)}"
    if plan.sheet.is_stacked:
        _text(group, "pause", plan.sheet.margin, y + 4.5, text)
    else:
        _text(group, "pause", plan.times_end, y + 4.5, text, anchor="end")


def _across(group: Element, plan: Layout, name: str, words: str, y: float) -> None:
    left, right = plan.across()
    lines = plan.banner(words)
    half = (NOTE - 8.0 + (LINE - 2.0) * (len(lines) - 1)) / 2
    _rect(group, name, left, y - half, right - left, half * 2, rx=4.0)
    for number, line in enumerate(lines):
        height = y + 4.5 + (LINE - 2.0) * (number - (len(lines) - 1) / 2)
        _text(group, f"{name}-words", (left + right) / 2, height, line, anchor="middle")


# --- legend ------------------------------------------------------------------------------------------------------------------


class Sample(NamedTuple):
    """A sign in the diagram, its meaning, and its position in the legend."""

    sign: str
    meaning: str
    line: int
    at: float


def _samples(diagram: Diagram, room: float) -> Iterator[Sample]:
    line, at = 0, 0.0
    for sign, meaning in _meanings(diagram):
        wide = LEGEND_SAMPLE + width(meaning) * SMALL
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
        "missing": ("missing: should have been delivered", Sort.MISSING in sorts),
        "hold": ("has messages not acknowledged yet", bool(diagram.bars)),
        "lease": ("lease may end", any(isinstance(shape, Note) and shape.sign is Sign.LEASE for shape in shapes)),
        "pause": ("nothing happens for a while", any(isinstance(shape, Pause) for shape in shapes)),
        "witness": ("evidence for the finding", any(row.mark in (Mark.WITNESS, Mark.SETTLES) for row in diagram.rows)),
    }
    return ((sign, meaning) for sign, (meaning, occurs) in there.items() if occurs)


def _sample(root: Element, sample: Sample, left: float, top: float) -> None:
    place = f"translate({left + sample.at:g} {top + LEGEND_LINE * sample.line:g})"
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
