"""A page as a test reads it: elements with their attributes, and the text that is seen."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser

VOID = frozenset({"meta", "link", "img", "br", "hr", "input"})

Element = tuple[str, dict[str, str]]


class Page(HTMLParser):
    """Reads a page. AssertionError where an element is not closed in its turn."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[Element] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += f" {data}"

    def said(self) -> str:
        """The text with single spaces."""
        return " ".join(self.text.split())

    def values(self, *names: str) -> Iterator[str]:
        """Every value of these attributes."""
        for _, attributes in self.elements:
            yield from (value for name, value in attributes.items() if name in names)

    def classes(self) -> set[str]:
        """Every class that some element has."""
        return {word for value in self.values("class") for word in value.split()}
