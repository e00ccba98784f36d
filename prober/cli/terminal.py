"""Output on a terminal: verdicts and kinds of findings are coloured, unless NO_COLOR is set."""

from __future__ import annotations

import os
from typing import Literal

from rich.console import Console
from rich.highlighter import RegexHighlighter
from rich.theme import Theme


class _Marks(RegexHighlighter):
    base_style = "mark."
    highlights = (
        r"\b(?P<good>PASS|NO_WORSE|OK)\b",
        r"\b(?P<bad>FAIL|WORSE|OUTAGE)\b",
        r"\b(?P<doubtful>UNKNOWN|WARN|BLIND)\b",
        r"(?m)^ *(?P<kind>[A-Z]+(_[A-Z]+)+)\b",
    )


_THEME = Theme({"mark.good": "green", "mark.bad": "red", "mark.doubtful": "yellow", "mark.kind": "bold"})


def color_system() -> Literal["auto"] | None:
    """Return the colours of a console; None if NO_COLOR is set, so that rich writes no styles, of which it would keep bold."""
    return None if os.environ.get("NO_COLOR") else "auto"


def progress_console() -> Console:
    """Return the console for progress: standard error, so that standard output is unchanged."""
    return Console(stderr=True, color_system=color_system())


def show(text: str) -> None:
    """Print a text, in colour if standard output is a terminal. The lines stay unchanged."""
    console = Console(color_system=color_system(), highlighter=_Marks(), theme=_THEME, soft_wrap=True, markup=False, emoji=False)
    if console.is_terminal:
        console.print(text)
    else:
        print(text, flush=True)
