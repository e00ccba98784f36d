"""The diagrams of all recorded traces as a browser draws them: nothing is written over anything else, nothing sticks out."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from api.swim_lanes import NoDiagram, swim_lanes
from prober.core.events import Delivered, Event, Nacked, Opened, Published, PublishInvoked
from prober.core.findings import Facts, Finding, Kind, Status
from prober.sinks.status.records import FindingRecord
from tests.browser.looking import looking
from tests.browser.world import HOSTILE, World
from tests.unit.api.drawing import drawn_of, recorded

MEASURE = """
() => [...document.querySelectorAll('svg')].flatMap(svg => {
  const box = element => element.getBoundingClientRect();
  const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 3 && b.top < a.bottom - 3;
  const texts = [...svg.querySelectorAll('text')], name = svg.parentElement.id, all = box(svg);
  const out = texts.filter(text => box(text).left < all.left || box(text).right > all.right || box(text).bottom > all.bottom);
  const over = texts.flatMap((one, index) => texts.slice(index + 1).filter(other => meet(box(one), box(other))).map(other => [one, other]));
  return [
    ...out.map(text => `${name}: sticks out: ${text.textContent}`),
    ...over.map(([one, other]) => `${name}: ${one.textContent} and ${other.textContent}`),
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
    doubt = "what was held may have been released: refused, its lease over, its stream gone, or an acknowledgement under way"
    yield "doubt", drawn_of(events, Finding(Kind.PULL_OVERLAP, Status.INDETERMINATE, "s", HOSTILE, 1.0, (99,), facts, doubt))


@pytest.mark.parametrize("source", [recorded, hard])
def test_nothing_is_written_over_anything_else(browser: Browser, world: World, source: object) -> None:
    assert callable(source)
    drawings = []
    for name, record in source():
        for standalone in (True, False):
            try:
                drawings.append(f"<div id='{name}'>{swim_lanes(record, standalone=standalone)}</div>")
            except NoDiagram:
                continue
    assert len(drawings) >= 6
    with looking(browser, world.url) as look:
        look.page.set_content("".join(drawings))
        assert look.page.evaluate(MEASURE) == []
        look.page.add_style_tag(content=".lanes text { font-size: 24px !important; }")
        assert look.page.evaluate(MEASURE) != []
