"""Series over time as one SVG: a panel for each thing that is measured, below each other, on one axis of time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

WIDTH: Final = 900
HEIGHT: Final = 150
"""Of a panel, without what is around it."""
LEFT: Final = 70
RIGHT: Final = 50
ABOVE: Final = 44
BELOW: Final = 24
COLOURS: Final = ("#0b6bcb", "#c4540a", "#5b8c00", "#8a3ffc")
LEGEND: Final = 210
"""From the name of a series to that of the next one."""
TICKS: Final = 3
LINE: Final = "#d0d0d0"
SHADE: Final = "#f3ead9"


@dataclass(frozen=True, slots=True)
class Series:
    """A named line: times and values, in the order of time."""

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Panel:
    """What is drawn on one axis, from zero on."""

    title: str
    series: Sequence[Series]

    @property
    def top(self) -> float:
        """The upper end of the axis: a little above the highest value."""
        return 1.1 * max((value for one in self.series for _, value in one.points), default=0.0) or 1.0


@dataclass(frozen=True, slots=True)
class Band:
    """A time in which something was different, shaded in all panels."""

    name: str
    begin: float
    end: float


def picture(panels: Sequence[Panel], unit: str, bands: Sequence[Band] = ()) -> str:
    """The SVG. `unit`: of the times."""
    end = max((t for panel in panels for one in panel.series for t, _ in one.points), default=1.0) or 1.0
    step = ABOVE + HEIGHT + BELOW
    legend = BELOW * len(bands)
    shaded = "".join(line for at, band in enumerate(bands) for line in _band(at, band, end, legend + step * len(panels)))
    drawn = shaded + "".join(
        line for at, panel in enumerate(panels) for line in _panel(panel, end, legend + at * step + ABOVE, unit)
    )
    size = f'width="{LEFT + WIDTH + RIGHT}" height="{legend + step * len(panels)}"'
    style = "font: 13px sans-serif"
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} style="{style}"><rect width="100%" height="100%" fill="white"/>{drawn}</svg>\n'


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100.0 else f"{value:.3g}"


def _band(at: int, band: Band, end: float, bottom: float) -> Iterator[str]:
    """From its name, which has a line of its own above the panels, down to the end of the last panel."""
    top = BELOW * at
    x, width = LEFT + WIDTH * band.begin / end, WIDTH * (band.end - band.begin) / end
    yield f'<rect x="{x:.1f}" y="{top + 4}" width="{width:.1f}" height="{bottom - top - 4}" fill="{SHADE}"/>'
    side = f'x="{x + width + 4:.1f}"' if 2 * x < WIDTH else f'x="{x - 4:.1f}" text-anchor="end"'
    yield f'<text {side} y="{top + 18}">{escape(band.name)}</text>'


def _panel(panel: Panel, end: float, top: float, unit: str) -> Iterator[str]:
    bottom = top + HEIGHT
    yield f'<text x="{LEFT}" y="{top - 24}" font-weight="bold">{escape(panel.title)}</text>'
    for tick in range(TICKS + 1):
        y, value = bottom - HEIGHT * tick / TICKS, panel.top * tick / TICKS
        yield f'<line x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="{LINE}"/>'
        yield f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{_number(value)}</text>'
        x = LEFT + WIDTH * tick / TICKS
        yield f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{end * tick / TICKS:,.0f} {escape(unit)}</text>'
    for at, one in enumerate(panel.series):
        colour = COLOURS[at % len(COLOURS)]
        yield f'<text x="{LEFT + LEGEND * at}" y="{top - 8}" fill="{colour}">{escape(one.name)}</text>'
        points = " ".join(f"{LEFT + WIDTH * t / end:.1f},{bottom - HEIGHT * value / panel.top:.1f}" for t, value in one.points)
        yield f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
