"""The chart's README and the descriptions of its schema, which `make generate` writes from the comments of values.yaml."""

from __future__ import annotations

import json
import re
from functools import reduce
from typing import Any, Final

import yaml

from tests.commands import ROOT

_CHART: Final = ROOT / "helm" / "ordering-keys-prober"
_INTRODUCTION: Final = """\
# The chart `ordering-keys-prober`

Installs the prober, its API and status page, the nightly jobs, alerts and dashboards on Kubernetes. In the source, docs/deploy.md describes
the choices and docs/gke.md has the commands. `make generate` writes this page from the comments of `values.yaml`, which contains all
values.

## General

"""
_TABLE: Final = "| value | default | description |\n|---|---|---|\n"
_LINE: Final = re.compile(r"( *)([A-Za-z]+):(.*?)(?:(?:^| +)# (.*))?")

Keys = tuple[str, ...]


def described() -> dict[Keys, str]:
    """Return the comment of each value that has one, by its keys: the lines above it and the one behind it."""
    found: dict[Keys, str] = {}
    above: list[str] = []
    keys: Keys = ()
    for line in (_CHART / "values.yaml").read_text(encoding="utf-8").splitlines():
        if line.lstrip().startswith("# "):
            text = line.lstrip()[2:]
            above.append(f"`{text.strip()}`" if text.startswith("  ") else text)
            continue
        if match := _LINE.fullmatch(line):
            indent, key, _, behind = match.groups()
            keys = (*keys[: len(indent) // 2], key)
            if comment := [*above, *([behind] if behind else [])]:
                found[keys] = " ".join(comment)
        above = []
    return found


def page() -> str:
    """Return the README: the values without commented values in them, then a section for each of the others."""
    comments = described()
    values = yaml.safe_load((_CHART / "values.yaml").read_text(encoding="utf-8"))
    groups = dict.fromkeys(keys[0] for keys in comments if len(keys) > 1)
    single = [_row(keys, text, values) for keys, text in comments.items() if keys[0] not in groups]
    parts = [_INTRODUCTION, _TABLE, *single]
    for group in groups:
        opening = f"{comments[group,]}\n\n" if (group,) in comments else ""
        rows = [_row(keys, text, values) for keys, text in comments.items() if keys[0] == group and len(keys) > 1]
        parts += [f"\n## `{group}`\n\n", opening, _TABLE, *rows]
    return "".join(parts)


def schema() -> str:
    """Return values.schema.json with the descriptions. A value inside a shared definition gets none."""
    whole = json.loads((_CHART / "values.schema.json").read_text(encoding="utf-8"))
    _clear(whole)
    for keys, text in described().items():
        part = reduce(lambda part, key: part.get("properties", {}).get(key, {}), keys, whole)
        part["description"] = text  # without effect where the schema has no such part
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def _row(keys: Keys, text: str, values: Any) -> str:
    default = json.dumps(reduce(lambda part, key: part[key], keys, values))
    cells = f"`{'.'.join(keys)}`", f"`{default}`" if len(default) <= 80 else "see `values.yaml`", text
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def _clear(schema: Any) -> None:
    """Remove the descriptions: a value of that name would be described by an object, not by a string."""
    if isinstance(schema, dict):
        if isinstance(schema.get("description"), str):
            del schema["description"]
        for part in schema.values():
            _clear(part)
