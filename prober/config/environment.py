"""Configuration by environment: `ORDERING_PROBER_` and the path of a key in capitals, its parts joined by two underscores.

    ORDERING_PROBER_API__PORT=9090
    ORDERING_PROBER_TARGETS__0__ENDPOINT=europe-west1
    ORDERING_PROBER_PROBES__ORDERING__SCHEDULE__INTERVAL=30s
    ORDERING_PROBER_EMBEDDED__FAULTS=[jitter]

Elements of lists are numbered from 0, and the next free number adds one. A value that begins with `[` or `{` is read as YAML,
anything else is text. An empty value counts as not set. A variable that names no key is an error, except those that Kubernetes puts
into every container for a Service of our name (ORDERING_PROBER_SERVICE_HOST, ORDERING_PROBER_PORT_8080_TCP and the like).

This is not done by pydantic-settings because that ignores misspelled variables, reads the process's own environment only, and cannot
reach into lists.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import yaml
from pydantic import BaseModel, SecretStr

from prober.config.defaults import Raw
from prober.config.problems import Path, Problem, annotation_at

PREFIX: Final = "ORDERING_PROBER_"
DELIMITER: Final = "__"

_OF_KUBERNETES = re.compile(
    r"([A-Z0-9]+_)*(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)
_ADDRESS_OF_KUBERNETES = re.compile(r"(tcp|udp|sctp)://.*")


def _variables(environ: Mapping[str, str]) -> dict[Path, str]:
    """The variables that are ours, by the path of the key that they set."""
    found: dict[Path, str] = {}
    for name in sorted(environ):
        rest = name.removeprefix(PREFIX)
        if rest != name and rest and environ[name] and not _is_of_kubernetes(rest, environ[name]):
            found[tuple(int(part) if part.isdecimal() else part.lower() for part in rest.split(DELIMITER))] = name
    return found


def lay_over(raw: Raw, environ: Mapping[str, str], model: type[BaseModel]) -> tuple[list[Problem], dict[Path, str]]:
    """Writes what the environment says into the raw configuration.

    Returns what could not be written, and which variable each path comes from, mappings and lists that had to be made included.
    """
    problems = []
    origins: dict[Path, str] = {}
    for path, variable in sorted(_variables(environ).items(), key=lambda item: [str(part) for part in item[0]]):
        text = environ[variable]
        origins[path] = variable
        try:
            for made in _set(raw, path, _read(text, annotation_at(model, path))):
                origins.setdefault(made, variable)
        except yaml.YAMLError:
            problems.append(Problem(path, "begins like a list or mapping, but cannot be read as one"))
        except LookupError:
            problems.append(Problem(path, "names no key: nothing with such parts can be set"))
    return problems, origins


def _is_of_kubernetes(rest: str, value: str) -> bool:
    if DELIMITER in rest:
        return False
    if rest == "PORT" or rest.endswith("_PORT"):
        return _OF_KUBERNETES.fullmatch(rest) is not None or _ADDRESS_OF_KUBERNETES.fullmatch(value) is not None
    return _OF_KUBERNETES.fullmatch(rest) is not None


def _read(text: str, annotation: Any) -> Any:
    if annotation is not SecretStr and text.lstrip()[:1] in {"[", "{"}:
        return yaml.safe_load(text)
    return text


def _set(raw: Raw, path: Path, value: Any) -> Iterator[Path]:
    """Walks to the place and sets it. Yields the mappings and lists made on the way; LookupError where there can be none."""
    here: Any = raw
    for depth, part in enumerate(path):
        last = depth == len(path) - 1
        if isinstance(here, list) and isinstance(part, int) and part <= len(here):
            if part == len(here):
                here.append({})
        elif isinstance(here, dict):
            part = str(part)
            if not isinstance(here.get(part), dict | list) and not last:
                here[part] = [] if isinstance(path[depth + 1], int) else {}
                yield path[: depth + 1]
        else:
            raise LookupError(part)
        if last:
            here[part] = value
        here = here[part]
