"""The tables of the reference page docs/configuration.md, generated from the models and the probes."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin

import yaml
from pydantic import AwareDatetime, BaseModel, SecretStr

from prober.config.comparisons import ComparisonSettings, Margins
from prober.config.defaults import DEFAULT_PROBES, DEFAULT_SLOS
from prober.config.models import (
    Api,
    Config,
    Deadlines,
    Embedded,
    Maintenance,
    ProbeSettings,
    Schedule,
    Sharding,
    Slo,
    TargetSettings,
)
from prober.config.problems import fields_by_key
from prober.config.sections import (
    Budget,
    Drills,
    HistorySettings,
    Monitoring,
    Observe,
    OwnDiscovery,
    OwnSubscription,
    PushSettings,
    StatusSettings,
    Telemetry,
)
from prober.config.values import Written, write_size
from prober.config.workloads import ACT_MAX_S, BURST_BYTES_MAX, HEADROOM, MESSAGES_PER_S
from prober.probes.catalogue import DECLARED
from prober.slo.indicators import MEANINGS, Indicator

MARK: Final = "<!-- what follows is made by `make generate`; do not change it by hand -->\n"

_SECTIONS: Final[tuple[tuple[str, type[BaseModel], str], ...]] = (
    ("targets", TargetSettings, "A list. `probes` of a target override the shared settings, key by key."),
    ("probes", ProbeSettings, "A mapping of the names of [probes](probes/README.md) to:"),
    ("schedule", Schedule, "Inside a probe. A written key replaces the default."),
    ("deadlines", Deadlines, "Inside a probe."),
    (
        "slos",
        Slo,
        "A mapping of names to objectives. A written objective is merged over the default of its name; `false` removes it.",
    ),
    ("observe", Observe, "Under `probes.observe.observe`; see [observe](probes/observe.md)."),
    ("history", HistorySettings, ""),
    ("status", StatusSettings, ""),
    ("api", Api, ""),
    ("push", PushSettings, ""),
    ("telemetry", Telemetry, ""),
    ("maintenance", Maintenance, "A list."),
    ("sharding", Sharding, ""),
    ("budget", Budget, ""),
    ("comparisons", ComparisonSettings, "A list of at most 20 ([comparing targets](compare.md))."),
    (
        "margins",
        Margins,
        "Inside a comparison: differences of bad shares, or of the median (`_p50`) and p99 (`_p99`) of a run, averaged over runs.",
    ),
    ("embedded", Embedded, ""),
    ("drills", Drills, ""),
    ("monitoring", Monitoring, ""),
    ("monitoring.subscriptions[]", OwnSubscription, ""),
    ("monitoring.discover[]", OwnDiscovery, ""),
)
# Completed by `load`, so that the models see them always.
_COMPLETED: Final[Mapping[tuple[type[BaseModel], str], str]] = {
    (TargetSettings, "probes"): "all possible",
    (TargetSettings, "region"): "from `endpoint`",
    (ProbeSettings, "schedule"): "see below",
    (ProbeSettings, "keys"): "see below",
    (ProbeSettings, "messages"): "see below",
    (ProbeSettings, "subscribers"): "see below",
    (ProbeSettings, "ack_deadline"): "see below",
}


def with_keys(page: str) -> str:
    """Return the page with everything behind its mark updated."""
    parts = [page.partition(MARK)[0] + MARK, _limits_of_workloads(), "## Keys\n", _keys()]
    for name, section, note in _SECTIONS:
        parts += [f"## {name}\n", f"{' '.join(filter(None, (section.__doc__, note)))}\n", _table(section)]
        if section is ProbeSettings:
            parts += ["By default:\n", _yaml({"probes": {name: dict(probe) for name, probe in DEFAULT_PROBES.items()}})]
        if section is Slo:
            parts += [
                "By default, if a probe of a target counts enough, each for the indicator of its name:\n",
                _yaml({"slos": {name: _without_name(name, slo) for name, slo in DEFAULT_SLOS.items()}}),
            ]
            parts += ["The indicators:\n", _indicators()]
    return "\n".join(parts)


def _limits_of_workloads() -> str:
    wire, library = (f"{MESSAGES_PER_S[vantage]:,}" for vantage in MESSAGES_PER_S)
    most = " or ".join(f"{HEADROOM * MESSAGES_PER_S[vantage]:,} a second ({vantage})" for vantage in MESSAGES_PER_S)
    workloads = {name: DECLARED[name].workload for name in DEFAULT_PROBES}
    bursts = ", ".join(
        f"`{name}` {workload.bursts}{f' + {workload.beside} messages' if workload.beside else ''}"
        for name, workload in workloads.items()
    )
    rows = {
        "messages of a run, with a `rate`": f"what `rate` sends before the next run begins, and within {ACT_MAX_S:g} s",
        "messages of a run, with `rate: 0`": f"the same at {most}, for each of its `parts`",
        "messages of all probes, without `sharding.group`": f"on average {most}",
        "one burst": f"{write_size(BURST_BYTES_MAX)} in memory: `keys` x `messages` x `sizes`; with a `rate`, that of one key",
    }
    table = "\n".join(f"| {what} | {bound} |" for what, bound in rows.items())
    return f"""\
## Limits of workloads

| quantity | maximum |
|---|---|
{table}

A run publishes `keys` x `messages` x bursts. Bursts: {bursts}. Rates above the measured {wire} messages a second (wire) and
{library} (library) of one process are warnings, and above their double errors ([capacity](deploy.md#capacity)).
"""


def _keys() -> str:
    """Return the table of the file's keys: its sections, and single values."""
    sections = {name for name, _, _ in _SECTIONS}
    names = {key: f"[`{key}`](#{key})" if key in sections else f"`{key}`" for key in fields_by_key(Config)}
    return "".join(f"- {names[key]}: {field.description}\n" for key, field in fields_by_key(Config).items())


def _without_name(name: str, slo: Mapping[str, str]) -> Mapping[str, str]:
    """Return a default objective without an indicator of the same name, which is its default."""
    return {key: value for key, value in slo.items() if (key, value) != ("indicator", name)}


def _table(section: type[BaseModel]) -> str:
    rows = ["| key | value | default | meaning |", "|---|---|---|---|"]
    defaults = section.model_construct().model_dump(mode="json", by_alias=True)
    for key, field in fields_by_key(section).items():
        if key.endswith("_p99"):
            continue
        meaning = " ".join((field.description or "").split())
        default = _COMPLETED.get((section, key)) or ("**required**" if field.is_required() else _shown(defaults[key]))
        name = f"`{key}`"
        if key.endswith("_p50"):
            slow = key.replace("_p50", "_p99")
            name, default = f"`{key}`, `_p99`", f"{default}, {_shown(defaults[slow])}"
        rows.append(f"| {name} | {_kind(field.annotation, field.metadata)} | {default} | {meaning} |")
    return "\n".join(rows) + "\n"


def _indicators() -> str:
    rows = ["| indicator | counts each | bad if |", "|---|---|---|"]
    for indicator, meaning in MEANINGS.items():
        threshold = " than the threshold" if meaning.thresholded else ""
        rows.append(f"| `{indicator}` | {meaning.unit} | {meaning.bad}{threshold} |")
    return "\n".join(rows) + "\n"


def _yaml(value: Mapping[str, Any]) -> str:
    return f"```yaml\n{yaml.safe_dump(value, sort_keys=False, default_flow_style=None, width=120)}```\n"


def _shown(value: Any) -> str:
    """Return a default in the notation of the file; empty if there is none."""
    return "" if value is None or isinstance(value, dict) or value in ([], "") else f"`{_plain(value)}`"


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_plain, value))}]"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _kind(annotation: Any, metadata: list[Any] | tuple[Any, ...] = ()) -> str:
    how = [item.how for item in metadata if isinstance(item, Written)]
    if how:
        return how[-1]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _kind(arguments[0], arguments[1:])
    if origin in {Union, UnionType}:
        return _kind(next(argument for argument in arguments if argument is not NoneType))
    if origin is tuple:
        return f"list: {_kind(arguments[0])}"
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return (
            "mapping"
            if get_origin(arguments[1]) or isinstance(arguments[1], type(BaseModel))
            else f"mapping to {_kind(arguments[1])}"
        )
    return _kind_of_class(annotation, metadata)


def _kind_of_class(annotation: Any, metadata: list[Any] | tuple[Any, ...]) -> str:
    if annotation is AwareDatetime or annotation.__name__ == "datetime":
        return "time"
    if issubclass(annotation, BaseModel):
        return "mapping"
    if issubclass(annotation, StrEnum):
        return ", ".join(f"`{member}`" for member in annotation) if annotation is not Indicator else "indicator"
    if issubclass(annotation, SecretStr):
        return "secret text"
    return {"bool": "`true` or `false`", "int": "whole number", "float": "number", "str": "text"}[annotation.__name__] + _limits(
        metadata
    )


def _limits(metadata: list[Any] | tuple[Any, ...]) -> str:
    low = next((item.ge for item in metadata if hasattr(item, "ge")), None)
    high = next((item.le for item in metadata if hasattr(item, "le")), None)
    if low is None:
        return ""
    return f", {low} or more" if high is None else f", {low} to {high:,}"
