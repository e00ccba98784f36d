"""Problems of a configuration in words: the place, the value, and the correction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType, NoneType, UnionType
from typing import Annotated, Any, Final, NamedTuple, TypeAlias, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, SecretStr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from prober.errors import ConfigError, did_you_mean

Path: TypeAlias = tuple[str | int, ...]
Lines: TypeAlias = Mapping[Path, int]
"""Line of each key in a file."""

_Model = TypeVar("_Model", bound=BaseModel)

_SHOWN_MAX: Final = 60
_NO_LINES: Final[Lines] = MappingProxyType({})


class Problem(NamedTuple):
    """One problem to correct."""

    path: Path
    text: str


def dotted(path: Path) -> str:
    """Return a path in the notation of users: `targets[0].probes.ordering.keys`."""
    words = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return words.removeprefix(".")


def report(problems: Sequence[Problem], source: str, origins: Mapping[Path, str], lines: Lines = _NO_LINES) -> str:
    """Return all problems, one per line, each with its key, and the environment variable or the line of its origin."""
    ordered = sorted(dict.fromkeys(problems), key=lambda problem: [str(part) for part in problem.path])
    reported = []
    for path, text in ordered:
        where = place(path, origins, lines)
        reported.append(f"{where}: {text}" if where else text)
    if len(reported) == 1:
        return f"{source}: {reported[0]}"
    return "\n".join([f"{source}: {len(reported)} problems", *(f"  {line}" for line in reported)])


def place(path: Path, origins: Mapping[Path, str], lines: Lines = _NO_LINES) -> str:
    """Return the place of a key for users; empty for the whole configuration."""
    variable = next((origins[path[:end]] for end in range(len(path), 0, -1) if path[:end] in origins), "")
    if variable:
        return f"{variable} ({dotted(path)})"
    line = _line_of(path, lines)
    return f"{dotted(path)} (line {line})" if line else dotted(path)


def _line_of(path: Path, lines: Lines) -> int | None:
    """Return the line of a key, of the key that a target inherits, or of the section in which it is missing."""
    in_target = path[:1] == ("targets",) and path[2:3] == ("probes",)
    if in_target and path not in lines and (path[:4] not in lines or path[2:] in lines) and path[2:4] in lines:
        path = path[2:]
    return next((lines[path[:end]] for end in range(len(path), 0, -1) if path[:end] in lines), None)


def from_pydantic(error: ValidationError, model: type[BaseModel]) -> list[Problem]:
    """Return pydantic's validation errors of a model as problems."""
    # Of a list whose elements are wrong pydantic says too that it is too short.
    reported = [details for details in error.errors(include_url=False) if details["type"] != "too_short" or not details["input"]]
    return [_in_words(details, model) for details in reported]


def validated(model: type[_Model], written: Mapping[str, Any]) -> _Model:
    """Return a section from settings outside of a file.

    Raises ConfigError with every problem in one line.
    """
    try:
        return model.model_validate(written)
    except ValidationError as error:
        problems = (f"{dotted(one.path)}: {one.text}" if one.path else one.text for one in from_pydantic(error, model))
        raise ConfigError("; ".join(problems)) from None


def annotation_at(model: Any, path: Path) -> Any:
    """Return the type at a path inside a model, None if there is none."""
    current = model
    for part in path:
        current = _bare(current)
        origin, arguments = get_origin(current), get_args(current)
        if isinstance(current, type) and issubclass(current, BaseModel):
            field = fields_by_key(current).get(str(part))
            current = None if field is None else field.annotation
        elif origin is tuple:
            current = arguments[0]
        elif isinstance(origin, type) and issubclass(origin, Mapping):
            current = arguments[1]
        else:
            return None
    return _bare(current)


def fields_by_key(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """Return the fields of a model by their names in the file."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _bare(annotation: Any) -> Any:
    """Return a type without its annotations, and without "or None"."""
    while get_origin(annotation) in {Annotated, Union, UnionType}:
        annotation = next(argument for argument in get_args(annotation) if argument is not NoneType)
    return annotation


def _in_words(details: ErrorDetails, model: type[BaseModel]) -> Problem:
    path: Path = tuple(part for part in details["loc"] if part != "[key]")
    kind, context = details["type"], details.get("ctx", {})
    if kind == "extra_forbidden":
        section = annotation_at(model, path[:-1])
        return Problem(path, f"is not known; {did_you_mean(str(path[-1]), fields_by_key(section))}")
    if kind == "value_error":
        return Problem(path, str(context["error"]))
    if kind == "missing":
        return Problem(path, f"is missing{_choice(annotation_at(model, path))}")
    if details["input"] is None and kind not in _WITHOUT_INPUT:
        return Problem(path, "has no value: write one, or remove the key")
    text = _WORDS[kind].format(**context) if kind in _WORDS else details["msg"][0].lower() + details["msg"][1:]
    if kind in _WITHOUT_INPUT or annotation_at(model, path) is SecretStr:
        return Problem(path, text)
    return Problem(path, f"{text}, not {_short(details['input'])}{_HOW.get(text, '')}")


def _choice(annotation: Any) -> str:
    """Return the alternatives of a type with a few allowed words."""
    return f"; write one of {', '.join(annotation)}" if isinstance(annotation, type) and issubclass(annotation, StrEnum) else ""


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}..."


_A_LIST: Final = "must be a list"
_A_MAPPING: Final = "must be a mapping of keys to values"
_HOW: Final[Mapping[str, str]] = MappingProxyType(
    {
        _A_LIST: "; write [a, b], or each element on a line of its own behind a hyphen",
        _A_MAPPING: "; write key: value, with a space behind the colon",
    }
)
_WITHOUT_INPUT: Final = frozenset({"too_short", "timezone_aware"})
_WORDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "must be a whole number"),
        **dict.fromkeys(("float_type", "float_parsing"), "must be a number"),
        **dict.fromkeys(("model_type", "model_attributes_type", "dict_type", "mapping_type"), _A_MAPPING),
        **dict.fromkeys(("bool_type", "bool_parsing"), "must be true or false"),
        **dict.fromkeys(
            ("datetime_from_date_parsing", "datetime_parsing", "datetime_type"),
            "must be a time; write it like 2026-12-24T18:00:00Z",
        ),
        "string_type": "must be text; put it in quotes",
        "tuple_type": _A_LIST,
        "too_short": "must not be empty",
        "enum": "must be {expected}",
        "greater_than_equal": "must be at least {ge}",
        "less_than_equal": "must be at most {le}",
        "timezone_aware": "needs a time zone; write it like 2026-12-24T18:00:00Z",
        "is_instance_of": "must be text",
        "finite_number": "must be a finite number",
    }
)
"""Messages of this program for errors of pydantic, by type of error."""
