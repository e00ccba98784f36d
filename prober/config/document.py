"""A YAML file: its content, and the line of each key for error messages.

Standard YAML, except for three traps: a repeated key in a mapping is an error, `1:30` is text and not 90, and `010` is not 8.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from prober.config.problems import Lines, Path, Problem

_INT_TAG: Final = "tag:yaml.org,2002:int"
_FLOAT_TAG: Final = "tag:yaml.org,2002:float"
_INT: Final = re.compile(r"[-+]?(?:0|[1-9][0-9_]*)$")
_FLOAT: Final = re.compile(
    r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?$|[-+]?\.(?:inf|Inf|INF)$|\.(?:nan|NaN|NAN)$"
)
_MERGE: Final = "<<"

_QUOTES: Final = 'text that begins with {0} must be in quotes, such as "{0}..."'
_HINTS: Final = (
    (r"character '\\t'", "a tab: indent with spaces"),
    (r"character '(.)' that cannot start", _QUOTES),
    (r"scanning an alias", 'text that begins with * must be in quotes, such as cron: "*/5 * * * *"'),
    (r"undefined alias '(.*)'", "*{0} stands for nothing; text that begins with * must be in quotes"),
    (r"scanning an anchor", _QUOTES.format("&")),
    (
        r"mapping values are not allowed",
        "a second colon in a value, or a line indented too far; text with a colon must be in quotes",
    ),
    (r"could not find expected ':'", "a key without a colon and a space behind it: write key: value"),
    (r"unhashable key", "a mapping where a key is expected: is {{{{...}}}} a template that nobody has filled in?"),
    (r"expected ',' or '(.)'", "a bracket that is not closed: {0} is missing"),
    (r"scanning a quoted scalar", "a quote that is not closed"),
    (r"expected a single document", "a second document begins here with ---: keep one"),
    (r"expected the node content, but found '(.)'", "a value is missing before {0}"),
    (r"constructor for the tag '(.*)'", "the tag {0} is not known here: remove it"),
    (
        r"did not find expected|expected <block end>",
        "a line that does not fit those before: is its indentation right?",
    ),
)


class _Loader(yaml.SafeLoader):
    """Loader without numbers to the base of 60 and 8."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in (_INT_TAG, _FLOAT_TAG)]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(_INT_TAG, _INT, list("-+0123456789"))
_Loader.add_implicit_resolver(_FLOAT_TAG, _FLOAT, list("-+0123456789."))


@dataclass(frozen=True)
class Document:
    """The content of a file.

    lines     line of each key, or element of a list, counted from 1.
    problems  repeated keys. In `content` they have their last value.
    """

    content: Any
    lines: Lines = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()


class NotYaml(ValueError):
    """The text is not YAML; the message states the line and the reason."""


def read_document(text: str) -> Document:
    """Parse YAML with at most one document. Raises NotYaml."""
    places, content = _Places(), None
    try:
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            if node is not None:
                places.walk(node, ())  # before keys that are merged in (<<) stand beside the written ones
                content = loader.construct_document(node)
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        raise NotYaml(_in_words(error)) from error
    return Document(content, places.lines, tuple(places.problems))


class _Places:
    """Every key and element below a node with its line. Content of an alias has the line of its anchor."""

    def __init__(self) -> None:
        self.lines: dict[Path, int] = {}
        self.problems: list[Problem] = []
        self._seen: set[int] = set()

    def walk(self, node: yaml.Node, path: Path) -> None:
        if id(node) in self._seen:
            return
        self._seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            for number, value in enumerate(node.value):
                self._enter((*path, number), value.start_mark.line + 1, value)
        elif isinstance(node, yaml.MappingNode):
            here: dict[str, int] = {}
            for key, value in node.value:
                line = key.start_mark.line + 1
                if isinstance(key.value, str) and key.value in here and key.value != _MERGE:
                    first = here[key.value]
                    words = f"stands twice, on lines {first} and {line}" if first != line else "stands twice"
                    self.problems.append(Problem((*path, key.value), f"{words}; remove one of the two"))
                here[str(key.value)] = line
                self._enter((*path, str(key.value)), line, value)

    def _enter(self, path: Path, line: int, value: yaml.Node) -> None:
        self.lines[path] = line
        self.walk(value, path)


def _in_words(error: yaml.YAMLError) -> str:
    if not isinstance(error, yaml.MarkedYAMLError):
        return " ".join(str(error).split())
    said = f"{error.context or ''}, {error.problem or ''}"
    found = next(((hint, match) for pattern, hint in _HINTS if (match := re.search(pattern, said))), None)
    words = (
        found[0].format(*(group.replace("tag:yaml.org,2002:", "!!") for group in found[1].groups())) if found else said.strip(", ")
    )
    opened = re.search(r"scanning a quoted scalar|expected ',' or", said)
    mark = (error.context_mark if opened else None) or error.problem_mark or error.context_mark
    return words if mark is None else f"line {mark.line + 1}: {words}"
