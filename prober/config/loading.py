"""Loading: from a file and an environment to one `Config`, or to one error with all problems.

Later sources win: the defaults, the file, the environment. Then everything is validated; problems are collected. Checks across sections run
on the valid sections, so that one message contains all problems.

PUBSUB_EMULATOR_HOST sets the target of a configuration without targets. Otherwise it is not applied here, like `--endpoint` of the command
line. Both replace the endpoint of a target when the program connects to it (`--endpoint` first, then the variable, then the configured
endpoint); see `brokers.endpoint.resolve_endpoint`.

The name of an environment variable is `ORDERING_PROBER_` and the path of a key in capitals, its parts joined by two underscores:

    ORDERING_PROBER_API__PORT=9090
    ORDERING_PROBER_TARGETS__0__ENDPOINT=europe-west1
    ORDERING_PROBER_EMBEDDED__FAULTS=[jitter]

LOG_LEVEL, which many programs use, sets `telemetry.log_level`; the variable of this program has precedence.

Elements of lists are numbered from 0, and the next free number adds an element. A value that starts with `[` or `{` is YAML, any other
value is text. An empty value counts as not set. A variable that names no key is an error, except those that Kubernetes sets in every
container for a Service of this name (ORDERING_PROBER_SERVICE_HOST, ORDERING_PROBER_PORT_8080_TCP and the like). pydantic-settings does
not do this: it ignores misspelled variables, reads the environment of the process only, and cannot address elements of lists.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path as File
from typing import Any, Final, TypeVar

import yaml
from pydantic import BaseModel, SecretStr, ValidationError

from prober.config.comparisons import ComparisonSettings, comparison_problems
from prober.config.contradictions import (
    history_problems,
    monitoring_problems,
    observe_problems,
    peer_problems,
    port_problems,
    push_problems,
    sharding_problems,
    warnings_of,
)
from prober.config.defaults import DEFAULT_PROBES, DEFAULT_SLOS, Raw, default_target, laid_over, region_of
from prober.config.document import Document, NotYaml, read_document
from prober.config.models import Api, Config, Embedded, Maintenance, Sharding, Slo, TargetSettings
from prober.config.problems import Path, Problem, annotation_at, from_pydantic, place, report
from prober.config.sections import Drills, HistorySettings, Monitoring, PushSettings, StatusSettings, is_here
from prober.config.values import EMBEDDED
from prober.config.workloads import capacity_problems, feeding, feeds_by_default, rate_problems, vacuous_problems, workload_problems
from prober.core.rules import Mode
from prober.errors import ConfigError, did_you_mean
from prober.probes.catalogue import DECLARED, ProbeName
from prober.probes.experiment import Experiment
from prober.slo.objectives import DEFAULTS

VARIABLE_PREFIX: Final = "ORDERING_PROBER_"
DELIMITER: Final = "__"
TOKEN_VARIABLE: Final = f"{VARIABLE_PREFIX}API__TOKEN"
_OFF: Final = (False, "false", "off", "no")

_Section = TypeVar("_Section", bound=BaseModel)


def load(path: File | str | None, environ: Mapping[str, str], *, opens_store: bool = True) -> Config:
    """Read a file (None: the defaults) and an environment. Raises ConfigError with every problem in one text.

    A program that does not open the status store needs no URL of it, which is a secret and so not in the file of the chart.
    """
    return load_with_warnings(path, environ, opens_store=opens_store)[0]


def load_with_warnings(
    path: File | str | None, environ: Mapping[str, str], *, opens_store: bool = True, content: bytes | None = None
) -> tuple[Config, tuple[str, ...]]:
    """Return the result of `load`, and the warnings: one line each, with file, key and line.

    Raises ConfigError with every problem in one text. `content`: that of the file, if the caller has read it already.
    """
    source = "configuration" if path is None else str(path)
    document = _read(path, source, content)
    raw, problems = document.content, list(document.problems)
    if raw.get("api") and isinstance(raw["api"], dict) and raw["api"].get("token") is not None:
        problems.append(Problem(("api", "token"), f"must not be in a file; set {TOKEN_VARIABLE}"))
        raw["api"] = {key: value for key, value in raw["api"].items() if key != "token"}
    raw.setdefault("targets", [default_target(environ)])
    unwritable, origins = _lay_over(raw, environ, Config)
    problems += unwritable
    dropped = _complete(raw, problems)
    found = _validation_problems(raw)
    problems += _crossing_problems(raw, dropped) + found + list(_contradictions(raw, opens_store))
    if problems:
        raise ConfigError(report(problems, source, origins, document.lines))
    config = Config.model_validate(raw)
    return config, tuple(f"{source}: {place(at, origins, document.lines)}: {text}" for at, text in warnings_of(config))


def written_objectives(path: File | str | None, environ: Mapping[str, str]) -> Raw:
    """Return the section `slos` of file and environment, without defaults. Raises ConfigError like `load`; validates nothing else."""
    raw = _read(path, "configuration" if path is None else str(path)).content
    _lay_over(raw, environ, Config)
    return raw.get("slos") or {}


def show(config: Config) -> str:
    """Return the complete configuration as YAML that `load` accepts, secrets masked."""
    shown = config.model_dump(mode="json", by_alias=True)
    shown["slos"] |= {name: False for name in DEFAULT_SLOS if name not in config.slos}
    return yaml.safe_dump(shown, sort_keys=False, allow_unicode=True, width=120)


def read_content(path: File | str) -> bytes:
    """Return the content of a file. Raises ConfigError if it cannot be read."""
    try:
        return File(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from error


def _read(path: File | str | None, source: str, content: bytes | None = None) -> Document:
    """Return the mapping of a file; a key without a value counts as not written."""
    if content is None and path is not None:
        content = read_content(path)
    try:
        document = Document({}) if content is None else read_document(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ConfigError(f"{source}: is not UTF-8 text") from error
    except NotYaml as error:
        raise ConfigError(f"{source}: is not YAML: {error}") from error
    written = {} if document.content is None else document.content
    if not isinstance(written, dict):
        raise ConfigError(f"{source}: must be a mapping that begins with keys such as targets:")
    return replace(document, content={str(key): value for key, value in written.items() if value is not None})


# ------------------------------------------------------------------------------------------------------------ environment

_OF_KUBERNETES = re.compile(
    r"([A-Z0-9]+_)*(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)
_ADDRESS_OF_KUBERNETES = re.compile(r"(tcp|udp|sctp)://.*")


_COMMON_VARIABLES: Final[Mapping[str, Path]] = {"LOG_LEVEL": ("telemetry", "log_level")}


def _variables(environ: Mapping[str, str]) -> dict[Path, str]:
    """Return the variables of this program, by the path of their key."""
    found = {path: name for name, path in _COMMON_VARIABLES.items() if environ.get(name)}
    for name in sorted(environ):
        rest = name.removeprefix(VARIABLE_PREFIX)
        if rest != name and rest and environ[name] and not _is_of_kubernetes(rest, environ[name]):
            found[tuple(int(part) if part.isdecimal() else part.lower() for part in rest.split(DELIMITER))] = name
    return found


def _lay_over(raw: Raw, environ: Mapping[str, str], model: type[BaseModel]) -> tuple[list[Problem], dict[Path, str]]:
    """Write the values of the environment into the raw configuration.

    Returns the problems, and the variable of each written path, including created mappings and lists.
    """
    problems = []
    origins: dict[Path, str] = {}
    for path, variable in sorted(_variables(environ).items(), key=lambda item: [str(part) for part in item[0]]):
        text = environ[variable]
        origins[path] = variable
        try:
            for made in _set(raw, path, _parsed(text, annotation_at(model, path))):
                origins.setdefault(made, variable)
        except yaml.YAMLError:
            problems.append(Problem(path, "begins like a list or mapping, but is not valid YAML"))
        except LookupError:
            problems.append(Problem(path, "is not a key of the configuration"))
    return problems, origins


def _is_of_kubernetes(rest: str, value: str) -> bool:
    if DELIMITER in rest:
        return False
    if rest == "PORT" or rest.endswith("_PORT"):
        return _OF_KUBERNETES.fullmatch(rest) is not None or _ADDRESS_OF_KUBERNETES.fullmatch(value) is not None
    return _OF_KUBERNETES.fullmatch(rest) is not None


def _parsed(text: str, annotation: Any) -> Any:
    if annotation is not SecretStr and text.lstrip()[:1] in {"[", "{"}:
        return yaml.safe_load(text)
    return text


def _set(raw: Raw, path: Path, value: Any) -> Iterator[Path]:
    """Set the value at a path. Yields the created mappings and lists; raises LookupError where there can be none."""
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


# ------------------------------------------------------------------------------------------------------------- completing


def _complete(raw: Raw, problems: list[Problem]) -> frozenset[str]:
    """Fill in the defaults. Returns the names of default objectives; those that no probe feeds enough are omitted."""
    probes = raw.get("probes", {})
    if isinstance(probes, dict):
        raw["probes"] = _probes(probes, DEFAULT_PROBES, ("probes",), problems)
        # A probe that is not even a mapping is reported once, and not for each target again.
        probes = {name: DEFAULT_PROBES[name] if not isinstance(probe, dict) else probe for name, probe in raw["probes"].items()}
    else:
        probes = dict(DEFAULT_PROBES)
    targets = raw["targets"]
    if isinstance(targets, list):
        pushed_anywhere = _section(raw, "push", PushSettings).address is not None
        raw["targets"] = [
            _target(one, probes, pushed_anywhere, ("targets", number), problems) for number, one in enumerate(targets)
        ]
    slos = raw.get("slos", {})
    if not isinstance(slos, dict):
        return frozenset()
    written = {str(name): {} if slo is None else slo for name, slo in slos.items()}
    switched_off = {name for name, slo in written.items() if slo in _OFF}
    complete = laid_over(DEFAULT_SLOS, written)
    raw["slos"] = {name: slo for name, slo in complete.items() if name not in switched_off}
    by_default = frozenset(raw["slos"]) - frozenset(written)
    run = {name for _, target in _valid_targets(raw) for name in target.probes}
    unfed = {one.name for one in DEFAULTS if one.name in by_default and not any(feeds_by_default(name, one) for name in run)}
    raw["slos"] = {name: slo for name, slo in raw["slos"].items() if name not in unfed}
    return by_default


def _probes(written: Mapping[Any, Any], base: Mapping[str, Any], at: Path, problems: list[Problem]) -> Raw:
    """Return the probes of `base`, with the written settings of each."""
    known = {}
    for name, settings in written.items():
        if name in set(ProbeName):
            known[str(name)] = {} if settings is None else settings
        else:
            problems.append(Problem((*at, str(name)), f"is not a probe; {did_you_mean(str(name), ProbeName)}"))
    return laid_over(base, known)


def _can_run(probe: Experiment, target: Raw, pushed_anywhere: bool) -> bool:
    """Return whether a target has what a probe needs; the probe then runs there by default.

    Streams to observe must be configured.
    """
    reached = pushed_anywhere or not probe.uses(Mode.PUSH) or is_here(target["endpoint"])
    return probe.own_messages and reached and (not probe.paired or bool(target.get("peer")))


def _target(target: Any, probes: Raw, pushed_anywhere: bool, at: Path, problems: list[Problem]) -> Any:
    """Return a target with its region and the complete settings of its probes; by default without those for this machine only."""
    if not isinstance(target, dict):
        return target
    complete: Raw = {"endpoint": EMBEDDED, **target}
    endpoint = complete["endpoint"]
    if endpoint == EMBEDDED:
        complete.setdefault("peer", EMBEDDED)
    else:
        for key in ("project", "environment"):
            if key not in complete:
                problems.append(Problem((*at, key), "is missing: only the embedded server has a default"))
    if isinstance(endpoint, str) and "region" not in complete:
        with suppress(ConfigError):  # the endpoint is reported by itself
            complete["region"] = region_of(endpoint.strip())
    chosen = complete.get("probes") or [name for name in probes if _can_run(DECLARED[name], complete, pushed_anywhere)]
    if isinstance(chosen, list):
        chosen = dict.fromkeys(map(str, chosen))
    if isinstance(chosen, dict):
        known = _probes(chosen, {}, (*at, "probes"), problems)
        chosen = {name: laid_over(probes, {name: settings})[name] for name, settings in known.items()}
    complete["probes"] = chosen
    return complete


# --------------------------------------------------------------------------------------------------------------- checking


def _validation_problems(raw: Raw) -> list[Problem]:
    """Return the problems inside sections. Settings that a target inherits from `probes:` are reported there only."""
    try:
        Config.model_validate(raw)
    except ValidationError as error:
        problems = from_pydantic(error, Config)
    else:
        return []
    shared = {(problem.path[1:], problem.text) for problem in problems if problem.path[:1] == ("probes",)}
    return [problem for problem in problems if problem.path[:1] != ("targets",) or (problem.path[3:], problem.text) not in shared]


def _crossing_problems(raw: Raw, by_default: frozenset[str]) -> list[Problem]:
    targets = list(_valid_targets(raw))
    slos = {name: slo for name, written in _items(raw.get("slos")) if (slo := _valid(Slo, written)) is not None}
    problems = [
        *_double_names(raw),
        *_strange_maintenance(raw),
        *(problem for at, target in targets for problem in vacuous_problems(target, at)),
    ]
    for at, target in targets:
        problems += [*rate_problems(target, at, slos), *peer_problems(target, at), *observe_problems(target, at)]
    too_much = [problem for at, target in targets for problem in workload_problems(target, at)]
    problems += too_much
    complete = isinstance(raw["targets"], list) and len(targets) == len(raw["targets"])
    if not too_much:  # a workload too large for one probe is reported there
        problems += capacity_problems([target for _, target in targets], shared=bool(_section(raw, "sharding", Sharding).group))
    if complete:
        problems += comparison_problems(_comparisons(raw), [target.name for _, target in targets])
    for name, slo in slos.items():
        if complete and name not in by_default and not any(feeding(target, slo.indicator) for _, target in targets):
            problems.append(
                Problem(("slos", name), f"no probe of any target feeds {slo.indicator}; leave it out with {name}: false")
            )
    return problems


def _comparisons(raw: Raw) -> list[ComparisonSettings]:
    """Return all comparisons if they are valid by themselves, else none; their problems are reported elsewhere."""
    written = raw.get("comparisons")
    valid = [_valid(ComparisonSettings, one) for one in written] if isinstance(written, list) else []
    return [one for one in valid if one is not None] if None not in valid else []


def _contradictions(raw: Raw, opens_store: bool) -> Iterator[Problem]:
    yield from history_problems(_section(raw, "history", HistorySettings))
    if opens_store:
        yield from sharding_problems(_section(raw, "sharding", Sharding), _section(raw, "status", StatusSettings))
    yield from monitoring_problems(_section(raw, "monitoring", Monitoring), [target.name for _, target in _valid_targets(raw)])
    push = _section(raw, "push", PushSettings)
    yield from push_problems(push, _valid_targets(raw))
    yield from port_problems(_section(raw, "api", Api), push, _section(raw, "embedded", Embedded), _section(raw, "drills", Drills))


def _section(raw: Raw, name: str, model: type[_Section]) -> _Section:
    """Return a valid section.

    An invalid section is reported elsewhere, and counts here as missing.
    """
    return _valid(model, raw.get(name, {})) or model()


def _valid_targets(raw: Raw) -> Iterator[tuple[Path, TargetSettings]]:
    for number, target in enumerate(raw["targets"] if isinstance(raw["targets"], list) else ()):
        if (valid := _valid(TargetSettings, target)) is not None:
            yield ("targets", number), valid


def _valid(section: type[_Section], raw: Any) -> _Section | None:
    try:
        return section.model_validate(raw)
    except ValidationError:
        return None


def _items(raw: Any) -> list[tuple[str, Any]]:
    return list(raw.items()) if isinstance(raw, dict) else []


def _named(raw: Raw, key: str) -> list[tuple[Path, str]]:
    """Return the value of a key in every target."""
    targets = enumerate(raw["targets"] if isinstance(raw["targets"], list) else ())
    return [
        (("targets", number, key), str(target[key])) for number, target in targets if isinstance(target, dict) and key in target
    ]


def _double_names(raw: Raw) -> Iterator[Problem]:
    seen: set[str] = set()
    for path, name in _named(raw, "name"):
        if name in seen:
            yield Problem(path, f"{name!r} is the name of another target too; every target needs its own")
        seen.add(name)


def _strange_maintenance(raw: Raw) -> Iterator[Problem]:
    windows = raw.get("maintenance")
    for number, written in enumerate(windows if isinstance(windows, list) else ()):
        window = _valid(Maintenance, written)
        for key, where in (("target", "name"), ("region", "region")):
            known = {name for _, name in _named(raw, where)}
            wanted = getattr(window, key, None)
            if wanted is not None and wanted not in known:
                yield Problem(("maintenance", number, key), f"no target has the {where} {wanted}; {did_you_mean(wanted, known)}")
