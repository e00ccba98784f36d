"""Text on standard output: verdicts and kinds of findings are coloured on a terminal, unless NO_COLOR is set."""

from __future__ import annotations

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


def show(text: str) -> None:
    """Print a text, in colour if standard output is a terminal. The lines stay as they are."""
    console = Console(highlighter=_Marks(), theme=_THEME, soft_wrap=True, markup=False, emoji=False)
    if console.is_terminal:
        console.print(text)
    else:
        print(text, flush=True)
