"""The command `ordering-prober status`: the state of a running service from its API, read only."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from http.client import HTTPException
from socket import gaierror
from ssl import SSLError
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import ProxyHandler, Request, build_opener

import typer

from prober.cli.findings import number_of
from prober.cli.process import ExitCode, must_know
from prober.cli.terminal import show
from prober.core.kinds import KINDS, Symptom
from prober.errors import BrokerUnavailable, ConfigError, NotThere
from prober.sinks.live.condition import Condition, worst_of

if TYPE_CHECKING:
    from prober.config.models import Api

TIMEOUT_S: Final = 20.0
LISTED_MAX: Final = 5
_CODES: Final = {Condition.PASS: ExitCode.PASS, Condition.WARN: ExitCode.PASS, Condition.FAIL: ExitCode.FAIL}
_ALL_ADDRESSES: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}
_TROUBLES: Final[Mapping[type[Exception], str]] = {
    TimeoutError: f"no answer within {TIMEOUT_S:.0f} s",
    gaierror: "no such host",
    SSLError: "no trusted TLS server answers",
    HTTPException: "no HTTP server answers",
}

Answer = Mapping[str, Any]


class Subject(StrEnum):
    """Subject to print instead of the summary: an answer of the API, or lines of /metrics."""

    FINDINGS = "findings"
    SLOS = "slos"
    HOT_KEYS = "hot-keys"
    REPORTS = "reports"
    COMPARISONS = "comparisons"
    UPTIME = "uptime"
    METRICS = "metrics"


_TAKEN: Final[Mapping[Subject | None, tuple[str, ...]]] = {
    None: ("target", "probe", "kind"),
    Subject.FINDINGS: ("target", "probe", "kind"),
    Subject.SLOS: ("slo",),
    Subject.HOT_KEYS: ("target",),
    Subject.REPORTS: (),
    Subject.COMPARISONS: (),
    Subject.UPTIME: (),
    Subject.METRICS: ("target", "metric"),
}
"""Options that have an effect, by subject; None: the summary."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """Selected part of the service; an empty string selects all."""

    target: str = ""
    probe: str = ""
    kind: str = ""
    slo: str = ""
    metric: str = ""

    def check(self, subject: Subject | None) -> None:
        """Raise ConfigError for an option that has no effect on a subject (None: the summary), and for an unknown kind."""
        takes = _TAKEN[subject]
        for option in ("target", "probe", "kind", "slo", "metric"):
            if getattr(self, option) and option not in takes:
                known = f"only {', '.join(f'--{name}' for name in takes)}" if takes else "no option that selects"
                raise ConfigError(f"`status{f' {subject}' if subject else ''}` takes {known}: leave --{option} out")
        must_know("kind of finding", filter(None, (self.kind,)), KINDS, "`ordering-prober help KIND` explains one")

    def check_names(self, instances: Sequence[Answer]) -> None:
        """Raise ConfigError for a target or probe that no probe instance of the service has."""
        for option, chosen in (("target", self.target), ("probe", self.probe)):
            known = {instance[option] for instance in instances}
            must_know(option, filter(None, (chosen,)), known, "" if known else "the service reports no probe instance")

    def includes(self, instance: Answer) -> bool:
        """Return whether a probe instance is selected."""
        return self.target in ("", instance["target"]) and self.probe in ("", instance["probe"])

    def concerns(self, incident: Answer) -> bool:
        """Return whether an incident is selected: one selected probe instance is enough."""
        affected = [{**instance, "target": incident["target"]} for instance in incident["affected"]]
        return any(self.includes(instance) and (not self.kind or self.kind in instance["kinds"]) for instance in affected)


def status(
    subject: Annotated[Subject | None, typer.Argument(help="Print this instead of the summary.")] = None,
    target: Annotated[str, typer.Option(metavar="NAME", help="Only this target.")] = "",
    probe: Annotated[str, typer.Option(metavar="NAME", help="Only this probe.")] = "",
    kind: Annotated[str, typer.Option(metavar="KIND", help="Only findings and incidents of this kind.")] = "",
    slo: Annotated[str, typer.Option(metavar="NAME", help="With `slos`: only this objective.")] = "",
    metric: Annotated[str, typer.Option(metavar="TEXT", help="With `metrics`: only series whose name contains this text.")] = "",
    config: Annotated[
        str | None, typer.Option(metavar="FILE", help="The configuration of the running service, for its address and token.")
    ] = None,
    url: Annotated[str | None, typer.Option(metavar="URL", help="The address of the running service.")] = None,
) -> None:
    """Print the state of the running service: status, open incidents, probes that do not pass, problems of the prober.

    Without --config and --url it asks the port of the environment, or 8080, on this machine. Exit code of the summary: 0 PASS or WARN, 1
    FAIL, 3 any other status. With a subject: 0 answered, 3 there is no such report. Always: 2 wrong usage or an unknown name, 3 the
    service does not answer.
    """
    from prober.config.loading import load

    api = load(config, os.environ, opens_store=False).api
    address = address_of(api) if url is None else _checked(url)
    service = Service(address.rstrip("/"), None if api.token is None else api.token.get_secret_value())
    chosen = Chosen(target, probe, kind, slo, metric)
    chosen.check(subject)
    if subject is Subject.METRICS:
        if chosen.target:
            service.check_names(chosen)
        print("\n".join(series(service.get("/metrics"), chosen)))
    elif subject is not None:
        print(json.dumps(_answer(service, subject, chosen), indent=2, ensure_ascii=False))
    else:
        answer = service.answer("/api/v1/status")
        chosen.check_names(answer["probe_instances"])
        incidents = service.answer("/api/v1/incidents?open=true&limit=200")["items"]
        show("\n".join(summary(answer, incidents, chosen)))
        raise typer.Exit(int(_CODES.get(condition(answer, chosen), ExitCode.UNKNOWN)))


def _answer(service: Service, subject: Subject, chosen: Chosen) -> Any:
    """Return the answer about a subject. Findings of a target that is no longer probed are shown; a name without any must be known."""
    try:
        answer = service.answer(path_of(subject, chosen))
    except NotThere as absent:
        if subject is Subject.SLOS:
            raise ConfigError(str(absent)) from None
        raise
    if (chosen.target or chosen.probe) and not answer["items"]:
        service.check_names(chosen)
    return answer


@dataclass(frozen=True, slots=True)
class Service:
    """A running service at a URL without a slash at its end. `token`: for services that require it for reading."""

    url: str
    token: str | None = None

    def answer(self, path: str) -> Any:
        """Return the answer of the API. Raises the errors of `get`."""
        try:
            return json.loads(self.get(path))
        except ValueError:
            raise ConfigError(f"{self.url}{path} is not the API of this program: correct --url, or api.port of --config") from None

    def check_names(self, chosen: Chosen) -> None:
        """Raise ConfigError if the service does not report a chosen name, and the errors of `get`."""
        chosen.check_names(self.answer("/api/v1/status")["probe_instances"])

    def get(self, path: str) -> str:
        """Return the body of an answer.

        Raises NotThere if the API has nothing to answer, ConfigError if it refuses the request, BrokerUnavailable if there is no answer.
        """
        try:
            request = Request(self.url + path, headers={"Authorization": f"Bearer {self.token}"} if self.token else {})
            with build_opener(ProxyHandler({})).open(request, timeout=TIMEOUT_S) as response:
                return str(response.read().decode())
        except HTTPError as refusal:
            raise self._refused(path, refusal) from None
        except (OSError, HTTPException) as error:
            raise BrokerUnavailable(
                f"{_trouble(error)} at {self.url}; is the service running? Otherwise give --config FILE or --url URL"
            ) from None

    def _refused(self, path: str, refusal: HTTPError) -> ConfigError | BrokerUnavailable | NotThere:
        try:
            detail = str(json.loads(refusal.read())["detail"])
        except (ValueError, KeyError, TypeError):  # not the API, or something in front of it
            text = f"{self.url}{path}: {refusal.code} {refusal.reason}"
            return BrokerUnavailable(text) if refusal.code >= 500 else ConfigError(text)
        text = f"{self.url}: {detail}"
        if refusal.code >= 500:
            return BrokerUnavailable(text)
        return NotThere(text) if refusal.code == 404 else ConfigError(text)


def _trouble(error: Exception) -> str:
    reason = error.reason if isinstance(error, URLError) else error
    known = (words for kind, words in _TROUBLES.items() if isinstance(reason, kind))
    return next(known, "nothing answers")


def _checked(url: str) -> str:
    """Validate an address that the user gave. Raises ConfigError."""
    with suppress(ValueError):
        parts = urlsplit(url)
        if parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0 and url.isprintable() and " " not in url:
            return url
    raise ConfigError(f"--url {url}: not an address; write one like http://localhost:8080")


def address_of(api: Api) -> str:
    """Return the URL of a service on this machine with these settings. Raises ConfigError if the port is not fixed."""
    if api.port == 0:
        raise ConfigError("api.port is 0, so the service chooses its port: give --url with the address that `run` prints")
    host = _ALL_ADDRESSES.get(str(api.host), str(api.host))
    return f"http://{f'[{host}]' if ':' in host else host}:{api.port}"


def path_of(subject: Subject, chosen: Chosen) -> str:
    """Return the path of a subject in the API, with the filters that the API has for it."""
    if subject is Subject.SLOS and chosen.slo:
        return f"/api/v1/slos/{quote(chosen.slo, safe='')}"
    filters = {
        Subject.FINDINGS: {"kind": chosen.kind, "target": chosen.target, "probe": chosen.probe, "limit": str(LISTED_MAX)},
        Subject.HOT_KEYS: {"target": chosen.target},
    }
    query = urlencode({name: value for name, value in filters.get(subject, {}).items() if value})
    return f"/api/v1/{subject}{f'?{query}' if query else ''}"


def series(page: str, chosen: Chosen) -> Iterator[str]:
    """Return the samples whose metric name contains the text, and whose label `target`, if there is one, is the target."""
    for line in page.splitlines():
        name, _, labels = line.partition("{")
        other = chosen.target and 'target="' in labels and f'target="{chosen.target}"' not in labels
        if not line.startswith("#") and chosen.metric in name and not other:
            yield line


def condition(answer: Answer, chosen: Chosen) -> Condition:
    """Return the status of the chosen probe instances, as the page shows it."""
    if not (chosen.target or chosen.probe):
        return Condition(answer["status"])
    return worst_of(Condition(instance["status"]) for instance in answer["probe_instances"] if chosen.includes(instance))


def summary(answer: Answer, incidents: Sequence[Answer], chosen: Chosen) -> Iterator[str]:
    """Return the lines of the summary."""
    instances = [instance for instance in answer["probe_instances"] if chosen.includes(instance)]
    if not instances:
        known = sorted({f"{instance['probe']} on {instance['target']}" for instance in answer["probe_instances"]})
        yield f"no probe instance matches; the service probes {', '.join(known) or 'nothing'}"
    since = f"since {_time(answer['since'])}, prober {answer['instance']} {answer['version']}"
    yield f"{condition(answer, chosen)} at {_time(answer['at'])} ({since})"
    yield from answer["notices"]
    yield from _section("open incidents", [_incident(one) for one in incidents if chosen.concerns(one)])
    yield from _section(
        f"not passing, of {len(instances)} probe instances",
        [_instance(instance) for instance in instances if instance["status"] != "PASS"],
    )
    slos = [slo for slo in answer["slos"] if chosen.target in ("", slo["target"]) and chosen.slo in ("", slo["name"])]
    yield from _section("objectives that burn their error budget", list(filter(None, map(_burning, slos))))
    yield from _section("problems of the prober", list(answer["troubles"]))
    yield from _section("probers", [_prober(prober) for prober in answer["probers"]])


def _section(title: str, lines: Sequence[str]) -> Iterator[str]:
    yield f"{title}: {len(lines) or 'none'}"
    yield from (f"  {line}" for line in lines)


def _time(text: str | None) -> str:
    """Return a time of the API to the second; `none known` without one."""
    return "none known" if text is None else f"{text[:19]}Z"


def _incident(one: Answer) -> str:
    times = f"since {_time(one['first_at'])}, last seen {_time(one['last_at'])}"
    extent = f"{number_of(one['findings'], 'finding')} in {one['runs']:,} of {number_of(one['runs_total'], 'verified run')}"
    if one["symptom"] == Symptom.OUTAGE:
        extent = f"publishes not sent: {one['unsent']:,}, {number_of(one['runs'], 'run')} could not reach the target"
    kinds = ", ".join(sorted({kind for instance in one["affected"] for kind in instance["kinds"]}))
    probes = ", ".join(sorted({instance["probe"] for instance in one["affected"]}))
    return (
        f"{one['status']}: {one['title']} {times}: {extent}, by {probes}{f' ({kinds})' if kinds else ''}; "
        f"page /incidents/{quote(one['incident_id'], safe='')}"
    )


def _instance(instance: Answer) -> str:
    seen_from = " ".join(filter(None, (instance["vantage"], instance["part"])))
    place = f"{instance['probe']} on {instance['target']} ({seen_from})"
    if instance["maintenance"] is not None:
        return f"{place}: under maintenance: {instance['maintenance']}"
    reason = (instance["last_run"] or {}).get("reason") or "the page of the probe has more"
    known = Condition(instance["status"])
    is_of_run = known is not Condition.OUTAGE and known.verdict == instance["verdict"]  # when an outage began is in its incident
    since = f" since {_time(instance['since'])}" if is_of_run and instance["since"] else ""
    return f"{place}: {instance['status']}{since}; last PASS {_time(instance['last_pass_at'])}; {reason}"


def _burning(slo: Answer) -> str:
    """Return the most urgent firing alert of an objective; empty if none fires."""
    left = "unknown" if slo["budget_left"] is None else f"{max(0.0, slo['budget_left']):.1%}"
    firing = (burn for burn in slo["burn"] if burn["state"] == "firing")
    return next(
        (
            f"{slo['name']} on {slo['target']}: {one['severity']}, burn rate {one['burn_rate']:.1f}; budget left {left}"
            for one in firing
        ),
        "",
    )


def _prober(prober: Answer) -> str:
    configuration = prober["configuration"] or {}
    state = "silent" if prober["silent"] else "alive"
    refused = f"; configuration refused: {configuration['refusal']}" if configuration.get("refusal") else ""
    times = f"started {_time(prober['started_at'])}, heartbeat {_time(prober['last_heartbeat_at'])}"
    return f"{prober['instance']} {prober['version']}: {state}, {times}{refused}"
