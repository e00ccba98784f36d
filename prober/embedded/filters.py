"""The filter language of subscriptions (documentation: "Filter messages from a subscription").

    filter     = term, { "AND", term } | term, { "OR", term }         AND and OR are not mixed without parentheses
    term       = [ "NOT" | "-" ], ( "(", filter, ")" | comparison )
    comparison = "attributes", ":", key                               the attribute exists
               | "attributes", ".", key, ( "=" | "!=" ), string       its value; `!=` also holds where it is missing
               | "hasPrefix", "(", "attributes", ".", key, ",", string, ")"
    key        = letters, digits, underscores and hyphens (not first) | string
    string     = in double quotes, with the escape sequences of `_ESCAPE`

A filter has at most 256 bytes. `compile_filter` returns a predicate on the attributes of a message.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeAlias

from prober.embedded import errors

Attributes: TypeAlias = Mapping[str, str]
Predicate: TypeAlias = Callable[[Attributes], bool]

FILTER_BYTES_MAX: Final = 256
_ESCAPE: Final = r"""\\(?: [\\"'abfnrtv] | [0-7]{1,3} | x[0-9A-Fa-f]{2} | u[0-9A-Fa-f]{4} | U[0-9A-Fa-f]{8} )"""
"""Escape sequences: characters, and octal, hexadecimal and Unicode numbers. Each has the same meaning in a literal of Python."""
_TOKEN: Final = re.compile(
    rf"""\s*(?: (?P<string>"(?: [^"\\\n\r] | {_ESCAPE} )*") | (?P<word>[A-Za-z0-9_][A-Za-z0-9_-]*) | (?P<mark>!=|[=:.,()-]) )""",
    re.VERBOSE,
)
_KEYWORDS: Final = frozenset({"AND", "OR", "NOT"})


def compile_filter(text: str) -> Predicate | None:
    """Return the filter as a predicate; None for the empty filter, which passes all messages. Raises INVALID_ARGUMENT."""
    if len(text.encode()) > FILTER_BYTES_MAX:
        raise errors.too_large("filter", len(text.encode()), FILTER_BYTES_MAX)
    if not text.strip():
        return None
    parser = _Parser(_tokens(text))
    predicate = parser.expression()
    parser.expect_end()
    return predicate


def _invalid(problem: str, position: int) -> errors.ServiceError:
    return errors.invalid("filter", f"{problem} at character {position + 1}")


def _tokens(text: str) -> list[Token]:
    found: list[Token] = []
    position, end = 0, len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            raise _invalid("no word, string or operator", position + len(text[position:]) - len(text[position:].lstrip()))
        kind = match.lastgroup or ""
        found.append(Token(kind, match[kind], match.start(kind)))
        position = match.end()
    return found


class Token(NamedTuple):
    """A string, a word or a mark, and its start offset."""

    kind: str
    text: str
    position: int


class _Parser:
    """Recursive descent parser of the tokens."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = 0

    def expression(self) -> Predicate:
        terms = [self._term()]
        operator = self._peek()
        if operator not in {"AND", "OR"}:
            return terms[0]
        while self._take(operator):
            terms.append(self._term())
        if self._peek() in {"AND", "OR"}:
            raise self._unexpected("AND and OR are mixed without parentheses")
        if operator == "AND":
            return lambda attributes: all(term(attributes) for term in terms)
        return lambda attributes: any(term(attributes) for term in terms)

    def expect_end(self) -> None:
        if self._at < len(self._tokens):
            raise self._unexpected("AND, OR or the end is expected")

    def _term(self) -> Predicate:
        if self._take("NOT") or self._take("-"):
            negated = self._term()
            return lambda attributes: not negated(attributes)
        if self._take("("):
            inner = self.expression()
            self._expect(")")
            return inner
        if self._take("hasPrefix"):
            return self._prefix()
        self._expect("attributes")
        if self._take(":"):
            present = self._key()
            return lambda attributes: present in attributes
        return self._comparison()

    def _comparison(self) -> Predicate:
        self._expect(".")
        key = self._key()
        if self._take("="):
            wanted = self._string()
            return lambda attributes: attributes.get(key) == wanted
        if not self._take("!="):
            raise self._unexpected("= or != is expected")
        unwanted = self._string()
        return lambda attributes: attributes.get(key) != unwanted

    def _prefix(self) -> Predicate:
        self._expect("(")
        self._expect("attributes")
        self._expect(".")
        key = self._key()
        self._expect(",")
        prefix = self._string()
        self._expect(")")
        return lambda attributes: attributes.get(key, "").startswith(prefix) and key in attributes

    def _key(self) -> str:
        if self._at < len(self._tokens):
            token = self._tokens[self._at]
            if token.kind == "word" and token.text not in _KEYWORDS:
                self._at += 1
                return token.text
        return self._string()

    def _string(self) -> str:
        if self._at == len(self._tokens) or self._tokens[self._at].kind != "string":
            raise self._unexpected("a string in double quotes is expected")
        try:
            value = str(ast.literal_eval(self._tokens[self._at].text))
        except (SyntaxError, ValueError):  # a Unicode number that is too large, a null character
            raise self._unexpected("the string has no valid value") from None
        self._at += 1
        return value

    def _peek(self) -> str:
        return self._tokens[self._at].text if self._at < len(self._tokens) else ""

    def _take(self, text: str) -> bool:
        if self._peek() != text:
            return False
        self._at += 1
        return True

    def _expect(self, text: str) -> None:
        if not self._take(text):
            raise self._unexpected(f"{text} is expected")

    def _unexpected(self, problem: str) -> errors.ServiceError:
        """Return the error for the next token, or for the end of the text."""
        last = self._tokens[-1]
        end = last.position + len(last.text)
        return _invalid(problem, self._tokens[self._at].position if self._at < len(self._tokens) else end)
