"""Which subscriptions of a project a rule chooses, by name and labels. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

PREFIX_PARTS: Final = 3
"""Of `projects/PROJECT/subscriptions/NAME`, the parts before the name."""


class Chosen(NamedTuple):
    """The full names that are chosen, and how many other matches exceed the limit."""

    names: tuple[str, ...]
    left_out: int


@dataclass(frozen=True, slots=True)
class Rule:
    """What a subscription must match: the whole name after `subscriptions/` (None: any), and labels with their values."""

    matching: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)

    def choose(self, found: Mapping[str, Mapping[str, str]], known: Collection[str], room: int) -> Chosen:
        """At most `room` of the subscriptions that match, given all with their labels.

        Those `known` come first, then the order is by name.
        """
        matching = [name for name, labels in found.items() if self._matches(name, labels)]
        matching.sort(key=lambda name: (name not in known, name))
        names = tuple(matching[: max(0, room)])
        return Chosen(names, len(matching) - len(names))

    def _matches(self, name: str, labels: Mapping[str, str]) -> bool:
        short = name.split("/", PREFIX_PARTS)[PREFIX_PARTS]
        is_named_so = self.matching is None or re.fullmatch(self.matching, short) is not None
        return is_named_so and self.labels.items() <= labels.items()

    def __str__(self) -> str:
        labels = [f"{name}={value}" for name, value in self.labels.items()]
        return " and ".join([*([self.matching] if self.matching is not None else []), *labels])
