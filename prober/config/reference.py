"""The reference page docs/configuration.md, made from the models and the probes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin

import yaml
from pydantic import AwareDatetime, BaseModel, SecretStr

from prober.config.comparisons import ComparisonSettings, Margins
from prober.config.contradictions import REGIONS_AS_OF, REGIONS_SOURCE
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
from prober.slo.indicators import MEANINGS

INTRODUCTION: Final = """\
# Configuration

One YAML file, `ordering-prober run --config FILE`. Without a file, one embedded Pub/Sub server is probed with the default probes.
`ordering-prober config check FILE` lists everything that is wrong with a file at once, each with its key and line, and warns of what
is valid but looks wrong. `ordering-prober config show` prints what is in force, complete, with secrets masked.

```yaml
targets:
  - name: europe
    project: my-project
    endpoint: europe-west1
    environment: production
    labels: {team: messaging}
  - name: staging
    project: my-staging-project
    endpoint: us-central1
    environment: staging
    probes:
      ordering: {keys: 50, vantages: [wire, library]}
      redelivery: {}
slos:
  order: {objective: 99.9%}
  redelivery: false
  fast: {indicator: end_to_end_latency, objective: 95%, threshold: 250ms, labels: {team: payments}}
maintenance:
  - {region: europe-west1, from: 2026-12-24T18:00:00Z, to: 2026-12-25T06:00:00Z, reason: network works}
  - {target: staging, cron: "0 3 * * sun", duration: 2h}
```

## Values

A duration is written `30s`, `1h30m`, `250ms` or `28d`. A bare number is seconds where that is likely, such as `interval: 10`; where
nobody means seconds (retentions, windows, thresholds, maintenance) it is refused. A size is written `10GiB`, `512MB`, `4kB`, or as a
number of bytes. A share is `99.9%` or `0.999`. Times have a time zone. Schedules are in UTC. A key that is not known is an error, and
so is one that stands twice. Cron lines that begin with `*` need quotes.

## Environment

Every key can be set by the environment too, which wins over the file: `ORDERING_PROBER_` and the path of the key in capitals, with two
underscores between its parts. Elements of lists are numbered from 0; a value that begins with `[` or `{` is read as YAML; an empty
value counts as not set.

```sh
ORDERING_PROBER_API__PORT=9090
ORDERING_PROBER_API__TOKEN=secret
ORDERING_PROBER_TARGETS__0__ENDPOINT=europe-west1
ORDERING_PROBER_TARGETS__0__PROJECT=my-project
ORDERING_PROBER_TARGETS__0__ENVIRONMENT=production
ORDERING_PROBER_PROBES__ORDERING__SCHEDULE__INTERVAL=5s
ORDERING_PROBER_SLOS__AFFINITY=false
```

A variable with that prefix that names no key is an error. Those that Kubernetes sets for a Service called `ordering-prober`
(`ORDERING_PROBER_SERVICE_HOST` and the like) are left alone.

`PUBSUB_EMULATOR_HOST` is honoured as in every Google client: it replaces the `endpoint` of the targets; if none is configured, the
target is called `emulator`. `--endpoint` on the command line wins over it.

`LOG_LEVEL` sets `telemetry.log_level`, unless `ORDERING_PROBER_TELEMETRY__LOG_LEVEL` does.

The `OTEL_*` variables configure the [export of traces and metrics](service.md#traces-metrics-and-logs).

## When it changes

`ordering-prober run` looks at its file every two seconds, and on SIGHUP at once; `ordering-prober api` does the same. What counts is
the content, so a ConfigMap that Kubernetes mounts works too. `targets`, `probes`, `slos`, `maintenance`, `budget` and `comparisons` are
taken over while everything goes on. All other sections are read at the start only: if they changed, the log and the status page say
`restart to apply:` and the keys. A latency objective whose `threshold` is not among the bounds of the histograms waits for a restart
too. A wrong file changes nothing, and the status page says why ([the service](service.md#another-configuration)). The environment of
a process never changes.

## How often a probe must run

An objective of 99.99 % cannot be judged by ten messages an hour: one bad message would be a burn rate of a thousand and wake somebody.
So a probe that counts too little for an objective is refused, with the rate that would do. One bad thing must not fire any alert,
and the fastest alert fires when 2 % of the period's budget is spent; over 30 days that makes

| objective | at least |
|---|---|
| 99 % | 7 an hour |
| 99.5 % | 14 an hour |
| 99.9 % | 70 an hour |
| 99.95 % | 139 an hour |
| 99.99 % | 695 an hour |

per target and vantage. A run of `ordering` counts `keys` x `messages` messages, a run of `redelivery` at least one redelivery per key,
a run of `affinity` at least one message per key; ages and stalled keys are counted every minute. With `cron`, the longest gap
between two runs counts.

"""

_SECTIONS: Final[tuple[tuple[str, type[BaseModel], str], ...]] = (
    ("targets", TargetSettings, "A list. What a target writes under `probes` is merged over the shared settings, key by key."),
    ("probes", ProbeSettings, "A mapping of the names of [probes](probes/README.md) to:"),
    ("schedule", Schedule, "Inside a probe. Exactly one of the two keys; one that is written replaces the default."),
    ("deadlines", Deadlines, "Inside a probe."),
    (
        "slos",
        Slo,
        "A mapping of names to objectives. The names below exist by default; what is written about one is merged over it, `false` "
        "leaves it out, and other names add to them.",
    ),
    ("observe", Observe, "Of the probe `observe`, under `probes.observe`; see [observe](probes/observe.md)."),
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
        "Inside a comparison. What the candidate measures less what the baseline measures: of an indicator that counts things the share "
        "that is bad, of one that measures durations the median (`_p50`) and the 99th percentile (`_p99`) of a run, on average over runs.",
    ),
    ("embedded", Embedded, ""),
    ("drills", Drills, ""),
    ("monitoring", Monitoring, ""),
    ("monitoring.subscriptions[]", OwnSubscription, ""),
    ("monitoring.discover[]", OwnDiscovery, ""),
)
# Completed by `load`, so that the models see them always.
_COMPLETED: Final[Mapping[tuple[type[BaseModel], str], str]] = {
    (Config, "targets"): "one embedded server",
    (Config, "probes"): "see below",
    (Config, "slos"): "see below",
    (TargetSettings, "probes"): "all; `push` on this machine only, unless `push.address` is set",
    (TargetSettings, "region"): "from `endpoint`",
    (ProbeSettings, "schedule"): "see below",
    (ProbeSettings, "keys"): "see below",
    (ProbeSettings, "messages"): "see below",
    (ProbeSettings, "subscribers"): "see below",
    (ProbeSettings, "ack_deadline"): "see below",
}


def reference_page() -> str:
    """The whole page."""
    parts = [INTRODUCTION, _limits_of_workloads(), "## Keys\n", _table(Config)]
    for name, section, note in _SECTIONS:
        parts += [f"## {name}\n", *_prose(section, note), _table(section)]
        if section is ProbeSettings:
            parts += ["By default:\n", _yaml({"probes": {name: dict(probe) for name, probe in DEFAULT_PROBES.items()}})]
        if section is Slo:
            parts += [
                "By default, as far as a probe of a target counts enough for them with its default settings:\n",
                _yaml({"slos": {name: dict(slo) for name, slo in DEFAULT_SLOS.items()}}),
            ]
            parts += ["The indicators:\n", _indicators()]
    return "\n".join(parts)


def _limits_of_workloads() -> str:
    wire, library = (f"{MESSAGES_PER_S[vantage]:,}" for vantage in MESSAGES_PER_S)
    most = " or ".join(f"{HEADROOM * MESSAGES_PER_S[vantage]:,} a second ({vantage})" for vantage in MESSAGES_PER_S)
    beside = "".join(
        f"; `{name}` {DECLARED[name].workload.beside} more" for name in DEFAULT_PROBES if DECLARED[name].workload.beside
    )
    bursts = ", ".join(f"{DECLARED[name].workload.bursts} of `{name}`" for name in DEFAULT_PROBES)
    rows = {
        "messages of a run, with a `rate`": f"what `rate` sends before the next run begins, and within {ACT_MAX_S:g} s",
        "messages of a run, with `rate: 0`": f"the same at {most}, for each of its `parts`",
        "messages of all probes, without `sharding.group`": f"on average {most}",
        "one burst": f"{write_size(BURST_BYTES_MAX)} in memory: `keys` x `messages` x `sizes`; with a `rate`, that of one key",
    }
    table = "\n".join(f"| {what} | {bound} |" for what, bound in rows.items())
    return f"""\
## How much a probe may do

| what | at most |
|---|---|
{table}

A run publishes `keys` x `messages` x bursts: {bursts}{beside}. One process was measured to do {wire} messages a
second at the wire and {library} through the library ([capacity](deploy.md#capacity)). Your CPU may be twice as fast; so more than twice as
much is refused, and more than was measured is a warning.

## Warnings

`config check`, `check` and `run` (in its log) warn of settings that may be right but look wrong:

* a region that is not in our list of Google Cloud's regions ({REGIONS_SOURCE}, {REGIONS_AS_OF});
* `endpoint: global`, where publishes may be rerouted to another region, so that findings about order stay indeterminate;
* a `region` that contradicts its endpoint;
* a `drain` that is too short for what falls due last;
* more than 1 MB a second on one key, which Pub/Sub throttles;
* a history that is too short for the nightly jobs to make up for missed days;
* `reads: token` without a token.
"""


def _prose(section: type[BaseModel], note: str) -> Iterator[str]:
    text = " ".join(part for part in ((section.__doc__ or "").strip(), note) if part)
    yield f"{text}\n"


def _table(section: type[BaseModel]) -> str:
    rows = ["| key | value | default | meaning |", "|---|---|---|---|"]
    defaults = section.model_construct().model_dump(mode="json", by_alias=True)
    for key, field in fields_by_key(section).items():
        meaning = " ".join((field.description or "").split())
        default = _COMPLETED.get((section, key)) or ("**required**" if field.is_required() else _shown(defaults[key]))
        rows.append(f"| `{key}` | {_kind(field.annotation, field.metadata)} | {default} | {meaning} |")
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
    """A default as a file would have it; empty if there is none."""
    return "" if value is None or isinstance(value, dict) or value in ([], "") else f"`{_plain(value)}`"


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_plain, value))}]"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _kind(annotation: Any, metadata: list[Any] | tuple[Any, ...] = ()) -> str:
    """What may be written for a type, in words."""
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
        return "time: `2026-12-24T18:00:00Z`"
    if issubclass(annotation, BaseModel):
        return "mapping"
    if issubclass(annotation, StrEnum):
        return ", ".join(f"`{member}`" for member in annotation)
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
