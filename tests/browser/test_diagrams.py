"""The diagrams of all recorded traces as a browser draws them: nothing is written over anything else, what is wrong is in sight."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from api.swim_lanes import NARROW, WIDE, NoDiagram, swim_lanes
from prober.core.events import Delivered, Event, Nacked, Opened, Published, PublishInvoked
from prober.core.findings import Facts, Finding, Kind, Status
from prober.sinks.status.records import FindingRecord
from tests.browser.looking import DESKTOP, PAGES, looking
from tests.browser.world import World
from tests.streams import HOSTILE
from tests.unit.api.drawing import drawn_of, recorded

MEASURE = """
() => [...document.querySelectorAll('svg')].flatMap(svg => {
  const box = element => element.getBoundingClientRect();
  const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 3 && b.top < a.bottom - 3;
  const texts = [...svg.querySelectorAll('text')].map(text => ({said: text.textContent, box: box(text)}));
  const name = svg.parentElement.id, all = box(svg);
  const out = texts.filter(one => one.box.left < all.left || one.box.right > all.right || one.box.bottom > all.bottom);
  const over = texts.flatMap((one, at) => texts.slice(at + 1).filter(other => meet(one.box, other.box)).map(other => [one, other]));
  return [
    ...out.map(one => `${name}: sticks out: ${one.said}`),
    ...over.map(([one, other]) => `${name}: ${one.said} and ${other.said}`),
  ];
})
"""


def hard() -> Iterator[tuple[str, FindingRecord]]:
    """Histories with many subscribers, long names, many events."""
    long = "redelivery-af92f2164483-subscriber-of-a-very-long-name"
    events: list[Event] = [Opened(1000.0, "s", f"{long}-{number}", f"{long}-{number}") for number in range(9)]
    events += [PublishInvoked(1000.0 + number / 100, HOSTILE, "epoch-1", number) for number in range(1, 40)]
    events += [Published(1000.5, HOSTILE, "epoch-2", number, f"1923847123098{number}", 1) for number in range(1, 40)]
    events += [
        Delivered(
            1001.0 + number / 10,
            "s",
            HOSTILE,
            f"{long}-{number % 9}",
            "epoch-1",
            number,
            f"{number}" * 12,
            0,
            number % 7,
            "checksum",
        )
        for number in range(1, 60)
    ]
    events += [Nacked(1100.0, "s", HOSTILE, f"{long}-{number}", f"{number}" * 12) for number in range(1, 9)]
    facts: Facts = {"seq": 9, "subscriber": f"{long}-8", "holder": f"{long}-7", "held": tuple(range(1, 60))}
    yield "many", drawn_of(events, Finding(Kind.AFFINITY_SPLIT, Status.VIOLATION, "s", HOSTILE, 1.0, (96, 97), facts))
    absent: Facts = {"seqs": tuple(range(1_000_000, 1_000_009)), "count": 12_345}
    yield "late", drawn_of(events, Finding(Kind.STUCK, Status.LIVENESS, "s", HOSTILE, 1.0, (12,), absent))
    doubt = "what was held may have been released by its acknowledgement, which was under way"
    yield "doubt", drawn_of(events, Finding(Kind.PULL_OVERLAP, Status.INDETERMINATE, "s", HOSTILE, 1.0, (99,), facts, doubt))


@pytest.mark.parametrize("source", [recorded, hard])
def test_nothing_is_written_over_anything_else(browser: Browser, world: World, source: object) -> None:
    assert callable(source)
    drawings = []
    for name, record in source():
        for standalone, sheet in ((True, WIDE), (False, WIDE), (False, NARROW)):
            try:
                drawing = swim_lanes(record, standalone=standalone, sheet=sheet)
            except NoDiagram:
                continue
            drawings.append(f"<div id='{name} {sheet.width:g}'>{drawing}</div>")
    assert len(drawings) >= 6
    with looking(browser, world.url) as look:
        look.page.set_content("".join(drawings))
        assert look.page.evaluate(MEASURE) == []
        look.page.add_style_tag(content=".lanes text { font-size: 24px !important; }")
        assert look.page.evaluate(MEASURE) != []


def four_subscribers() -> FindingRecord:
    """A key that a fourth subscriber gets while others hold it."""
    names = [f"subscriber-{number}" for number in range(4)]
    events: list[Event] = [Opened(0.0, "s", name, name) for name in names]
    events += [Published(0.1, "k", "e", number, f"m{number}") for number in range(1, 5)]
    events += [Delivered(1.0 + number, "s", "k", name, "e", number + 1, f"m{number + 1}") for number, name in enumerate(names)]
    facts: Facts = {"seq": 4, "subscriber": names[3], "holder": names[2], "held": (3,)}
    return drawn_of(events, Finding(Kind.AFFINITY_SPLIT, Status.VIOLATION, "s", "k", 4.0, (11, 12), facts))


IN_SIGHT = """
() => {
  const drawing = [...document.querySelectorAll('.drawing:has(.lanes)')].find(one => one.checkVisibility());
  const svg = drawing.querySelector('svg'), room = drawing.getBoundingClientRect();
  const inside = element => {
    const box = element.getBoundingClientRect();
    return box.width > 0 && box.left >= room.left && box.right <= Math.min(room.right, innerWidth);
  };
  const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
  const letters = [...svg.querySelectorAll('text')].map(text => parseFloat(getComputedStyle(text).fontSize) * scale);
  const shown = ['.band.wrong', '.row.wrong .icon', '.row.wrong .reason', '.row.wrong .number'];
  return {hidden: shown.filter(name => ![...svg.querySelectorAll(name)].every(inside)), least: Math.min(...letters)};
}
"""


@pytest.mark.parametrize("width", [DESKTOP, 390])
def test_what_is_wrong_is_in_sight_without_scrolling(browser: Browser, world: World, width: int) -> None:
    record = four_subscribers()
    drawings = [swim_lanes(record, standalone=False, sheet=sheet) for sheet in (WIDE, NARROW)]
    with looking(browser, world.url, width=width) as look:
        look.open(PAGES["violation"])
        look.page.evaluate("all => all.forEach((one, at) => document.querySelectorAll('.drawing')[at].innerHTML = one)", drawings)
        seen = look.page.evaluate(IN_SIGHT)
    assert seen["hidden"] == []
    assert seen["least"] >= 11.0


def test_a_diagram_is_copied_as_svg_and_as_a_picture(browser: Browser, world: World) -> None:
    with looking(browser, world.url) as look:
        look.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        look.open(PAGES["violation"])
        copied = look.page.get_by_role("status").filter(has_text="Copied: the diagram")
        look.page.get_by_role("button", name="Copy the diagram as SVG").click()
        expect(copied).to_have_count(1)
        assert str(look.page.evaluate("navigator.clipboard.readText()")).startswith("<svg")
        look.page.get_by_role("button", name="Copy the diagram as PNG").click()
        expect(copied).to_contain_text("as PNG")
        types = look.page.evaluate("navigator.clipboard.read().then(items => items.flatMap(item => item.types))")
        assert types == ["image/png"]
        assert look.complaints == []


def test_without_a_clipboard_for_pictures_the_diagram_is_saved(browser: Browser, world: World) -> None:
    with looking(browser, world.url) as look:
        look.page.add_init_script("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
        look.open(PAGES["violation"])
        with look.page.expect_download() as saving:
            look.page.get_by_role("button", name="Copy the diagram as PNG").click()
        assert saving.value.path().read_bytes().startswith(b"\x89PNG")
        assert saving.value.suggested_filename.endswith(".png")
