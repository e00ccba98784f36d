"""Contradictions between settings that are valid by themselves.

Examples are two locations that must differ, and a setting that requires another.

`warnings_of` lists doubtful settings of a valid configuration. They may be right, so they are reported and not refused.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable, Iterator
from datetime import timedelta
from difflib import get_close_matches
from typing import Final
from urllib.parse import urlsplit

from prober.brokers.base import Vantage
from prober.brokers.endpoint import parse_endpoint
from prober.config.models import Api, Config, Embedded, ProbeSettings, Reads, Sharding, TargetSettings
from prober.config.problems import Path, Problem
from prober.config.sections import Drills, HistorySettings, Monitoring, PushSettings, StatusSettings, is_here
from prober.config.values import EMBEDDED
from prober.config.workloads import MESSAGES_PER_S, busy_share, workload_of
from prober.core.rules import Mode
from prober.durations import write_duration
from prober.errors import no_such
from prober.probes.catalogue import DECLARED, ProbeName
from prober.probes.context import PULL_TIMEOUT_S
from prober.probes.hot_key import KEY_BYTES_PER_S_MAX

_TABLES: Final = ("events", "runs", "findings", "messages", "_spool")
"""Folders of a history, which its retention, its readers and `compact` use."""
_LOCAL: Final = ("", "file")
_LOOK_BACK: Final = timedelta(days=8)
"""The nightly jobs repeat up to seven days before yesterday if something was missing."""
_LIKE_A_REGION: Final = re.compile(r"[a-z]+-[a-z]+[0-9]+")
REGIONS_SOURCE: Final = "docs.cloud.google.com/bigquery/docs/locations"
REGIONS_AS_OF: Final = "2026-04-15"
REGIONS: Final = frozenset(
    """
    africa-south1 asia-east1 asia-east2 asia-northeast1 asia-northeast2 asia-northeast3 asia-south1 asia-south2
    asia-southeast1 asia-southeast2 asia-southeast3 australia-southeast1 australia-southeast2 europe-central2 europe-north1
    europe-north2 europe-southwest1 europe-west1 europe-west2 europe-west3 europe-west4 europe-west6 europe-west8
    europe-west9 europe-west10 europe-west12 me-central1 me-central2 me-west1 northamerica-northeast1
    northamerica-northeast2 northamerica-south1 southamerica-east1 southamerica-west1 us-central1 us-east1 us-east4 us-east5
    us-south1 us-west1 us-west2 us-west3 us-west4
    """.split()  # noqa: SIM905  # a list has a region a line
)
"""The regions of Google Cloud, to notice a misspelled one.

Pub/Sub is in every region, and Google adds regions. An unknown region may be right, so it is a warning and no error.
"""


def history_problems(history: HistorySettings) -> Iterator[Problem]:
    """Report locations of the history that overlap."""
    location, reports = history.location, history.reports
    for key, place in (("location", location), ("reports", reports), ("spool", history.spool)):
        if place is not None and place.startswith("~"):
            yield Problem(("history", key), f"{place!r} begins with ~, which only a shell replaces: write the whole path")
    if reports is not None and location is not None:
        if _plain(reports) == _plain(location):
            yield Problem(("history", "reports"), _elsewhere("must not be the same as history.location", location))
        elif any(_inside(reports, f"{_plain(location)}/{table}") for table in _TABLES):
            yield Problem(("history", "reports"), _elsewhere("must not be in a folder of the history", location))
    local = location is not None and urlsplit(location).scheme in _LOCAL
    if local and history.spool is not None and any(_inside(history.spool, f"{location}/{table}") for table in _TABLES[:-1]):
        yield Problem(
            ("history", "spool"), f"must not be in a table of the history at {location}: leave it out, or write another folder"
        )
    if urlsplit(history.spool or "").scheme:
        yield Problem(("history", "spool"), f"{history.spool!r} must be a folder of this machine, not a URI")


def sharding_problems(sharding: Sharding, status: StatusSettings) -> Iterator[Problem]:
    """Report probers that divide the work over a database that other probers cannot reach."""
    if sharding.group is not None and urlsplit(status.url.get_secret_value()).scheme.startswith("sqlite"):
        text = (
            "probers that share the work need one database for all of them, and SQLite is a file of one machine: set status.url (or "
            "ORDERING_PROBER_STATUS__URL) to postgresql://USER:PASSWORD@HOST/NAME, or remove sharding.group"
        )
        yield Problem(("sharding", "group"), text)


def peer_problems(target: TargetSettings, at: Path) -> Iterator[Problem]:
    """Report a probe without the second endpoint that it needs, and a second endpoint that the first cannot have."""
    if target.peer is None:
        for name in target.probes:
            if DECLARED[name].paired:
                needed = "needs a second endpoint of the service, in another region"
                yield Problem((*at, "probes", str(name)), f"{needed}: write peer for the target, or leave the {name} probe out")
    elif _sort_of(target.peer) != _sort_of(target.endpoint):
        yield Problem((*at, "peer"), "must be what endpoint is: embedded, one of Google's, or an address")


def observe_problems(target: TargetSettings, at: Path) -> Iterator[Problem]:
    """Report `observe` without a stream, and streams of other probes."""
    for name, probe in target.probes.items():
        observes = not DECLARED[name].own_messages
        if observes and probe.observe is None:
            text = (
                "needs a stream to observe: write observe.topic, and observe.group and observe.sequence if its messages have them"
            )
            yield Problem((*at, "probes", str(name)), text)
        elif not observes and probe.observe is not None:
            yield Problem((*at, "probes", str(name), "observe"), f"the {name} probe observes nothing: move it to probes.observe")
        elif observes and probe.parts > 1:
            yield Problem(
                (*at, "probes", str(name), "parts"), "a stream is observed as a whole: leave parts out, and use observe.share"
            )


def _sort_of(endpoint: str) -> tuple[bool, bool]:
    """Return whether an endpoint is embedded, and whether it is one of Google's."""
    return endpoint == EMBEDDED, endpoint != EMBEDDED and parse_endpoint(endpoint).secure


def push_problems(push: PushSettings, targets: Iterable[tuple[Path, TargetSettings]]) -> Iterator[Problem]:
    """Report missing settings for pushes from targets on other machines, which must be authenticated."""
    elsewhere = [
        (target, (*at, "probes", str(name)))
        for at, target in targets
        for name in target.probes
        if DECLARED[name].uses(Mode.PUSH) and not is_here(target.endpoint)
    ]
    google = any(parse_endpoint(target.endpoint).secure for target, _ in elsewhere)
    if elsewhere and push.address is None:
        text = "Pub/Sub must know by which URL it reaches this prober: set push.address, or leave the push probe out here"
        yield from (Problem(at, text) for _, at in elsewhere)
    elif google and not (push.address or "").startswith("https://"):
        yield Problem(("push", "address"), "must begin with https://: Pub/Sub pushes to nothing else")
    if google and push.address is not None and push.service_account is None:
        text = "is missing: name the service account whose tokens come along with pushes, or anybody could push what was never published"
        yield Problem(("push", "service_account"), text)
    if push.address is not None and not push.port:
        yield Problem(("push", "port"), "must be fixed, since push.address leads to it: write one, such as 8081")


def monitoring_problems(monitoring: Monitoring, targets: Collection[str]) -> Iterator[Problem]:
    """Report own subscriptions without a target for the comparison, or with an unknown one."""
    there = ", ".join(sorted(targets))
    chosen = [("subscriptions", at, one.target) for at, one in enumerate(monitoring.subscriptions)]
    chosen += [("discover", at, one.target) for at, one in enumerate(monitoring.discover)]
    for key, at, target in chosen:
        if target is None and len(targets) > 1:
            yield Problem(("monitoring", key, at, "target"), f"is missing: write which it is compared with, of {there}")
        elif target is not None and target not in targets:
            yield Problem(("monitoring", key, at, "target"), no_such("target", target, targets))


def port_problems(api: Api, push: PushSettings, embedded: Embedded, drills: Drills) -> Iterator[Problem]:
    """Report two listeners on one port."""
    taken: dict[int, str] = {}
    for section, port in (("api", api.port), ("push", push.port), ("embedded", embedded.port), ("drills", drills.port)):
        if port and port in taken:
            yield Problem((section, "port"), f"{port} is {taken[port]}.port too; give each its own, or 0 for any free one")
        elif port:
            taken[port] = section


def _elsewhere(wrong: str, location: str) -> str:
    parent = posixpath.dirname(_plain(location)) or "."
    return f"{wrong}: the jobs would read their own reports as history; write a folder next to it, such as {parent}/reports"


def _plain(place: str) -> str:
    """Return a path or URI without options, without the scheme of local files, and normalized."""
    parts = urlsplit(place)
    if parts.scheme in _LOCAL:
        return posixpath.normpath(parts.path)
    return f"{parts.scheme}://{parts.netloc}{posixpath.normpath('/' + parts.path.lstrip('/')).rstrip('/')}"


def _inside(place: str, folder: str) -> bool:
    inner, outer = _plain(place), _plain(folder)
    return inner == outer or inner.startswith(f"{outer}/")


def warnings_of(config: Config) -> list[Problem]:
    """Return every warning, with the path of its key."""
    found = [*_history(config), *_access(config), *_capacity(config), *_faults(config)]
    for number, target in enumerate(config.targets):
        at: Path = ("targets", number)
        found += _regions(target, at)
        for name, probe in target.probes.items():
            found += _probe(target, name, probe, (*at, "probes", str(name)))
    return found


def _faults(config: Config) -> Iterator[Problem]:
    if config.embedded.faults and not any(target.is_embedded for target in config.targets):
        text = (
            "no target is the embedded server, so nothing is injected: remove the faults, or write endpoint: embedded for a target"
        )
        yield Problem(("embedded", "faults"), text)


def _regions(target: TargetSettings, at: Path) -> Iterator[Problem]:
    if target.is_embedded:
        return
    yield from _unproven_regions(target, at)
    endpoint = parse_endpoint(target.endpoint)
    if endpoint.region and endpoint.region not in REGIONS:
        yield Problem((*at, "endpoint"), _unknown(endpoint.region))
    elif endpoint.region and endpoint.region != target.region:
        text = f"says {target.region}, but the endpoint is in {endpoint.region}: remove it, unless you mean that"
        yield Problem((*at, "region"), text)
    elif endpoint.secure and _LIKE_A_REGION.fullmatch(target.region) and target.region not in REGIONS:
        yield Problem((*at, "region"), _unknown(target.region))


def _unproven_regions(target: TargetSettings, at: Path) -> Iterator[Problem]:
    """Report endpoints whose findings about order are always indeterminate."""
    publishes = any(DECLARED[name].own_messages for name in target.probes)
    for key, endpoint in (("endpoint", target.endpoint), ("peer", target.peer)):
        if publishes and endpoint and not parse_endpoint(endpoint).is_one_region:
            text = (
                f"{endpoint} may reroute publishes to another region, and order holds within one region: findings about order stay "
                "indeterminate; write a region, such as us-central1"
            )
            yield Problem((*at, key), text)


def _unknown(region: str) -> str:
    close = get_close_matches(region, sorted(REGIONS), n=1, cutoff=0.6)
    hint = f"did you mean {close[0]}? " if close else ""
    ours = f"our list: {REGIONS_SOURCE}, {REGIONS_AS_OF}; newer ones are missing in it"
    return f"{region} is not a region of Google Cloud that we know; {hint}({ours})"


def _history(config: Config) -> Iterator[Problem]:
    history = config.history
    if history.reports is not None and history.retention < _LOOK_BACK:
        text = (
            f"{write_duration(history.retention)} is shorter than {write_duration(_LOOK_BACK)}, so nightly jobs that did not run for some "
            "days cannot make up for all of them"
        )
        yield Problem(("history", "retention"), text)


def _access(config: Config) -> Iterator[Problem]:
    if config.api.reads is Reads.TOKEN and config.api.token is None:
        yield Problem(("api", "reads"), "asks for the token, and there is none: nobody can read. Set ORDERING_PROBER_API__TOKEN")


def _capacity(config: Config) -> Iterator[Problem]:
    share = busy_share(config.targets)
    if share > 1.0 and config.sharding.group is None:
        text = (
            f"all probes together need {share:.1f} times what one prober was measured to do ({MESSAGES_PER_S[Vantage.WIRE]:,} messages a "
            f"second at the wire, {MESSAGES_PER_S[Vantage.LIBRARY]:,} through the library): watch PubsubProberLagging"
        )
        yield Problem(("targets",), text)


def _lost_pulls(probe: ProbeSettings, at: Path) -> Iterator[Problem]:
    """Report a lease that ends later than the run can wait for a lost pull.

    A lost answer shows when its pull is abandoned. Its messages are redelivered when their lease ends.
    """
    needed = timedelta(seconds=PULL_TIMEOUT_S) + probe.ack_deadline
    for name in ("delivery", "stall", "unacked"):
        seconds = getattr(probe.deadlines, name)
        if seconds < needed:
            text = (
                f"{write_duration(seconds)} is shorter than a pull waits ({PULL_TIMEOUT_S:g} s) and ack_deadline together, so an answer "
                f"that is lost on its way looks like a service that falls silent; {write_duration(needed)} would do"
            )
            yield Problem((*at, name), text)


def _probe(target: TargetSettings, name: ProbeName, probe: ProbeSettings, at: Path) -> Iterator[Problem]:
    far = not target.is_embedded and parse_endpoint(target.endpoint).secure
    if not far:
        return
    if DECLARED[name].uses(Mode.PULL):
        yield from _lost_pulls(probe, (*at, "deadlines"))
    needed = probe.ack_deadline + max(probe.deadlines.delivery, probe.deadlines.stall, probe.deadlines.unacked)
    if probe.deadlines.drain < needed:
        text = (
            f"{write_duration(probe.deadlines.drain)} is shorter than ack_deadline and the longest deadline together, so what falls due "
            f"last ends a run UNKNOWN and not FAIL; {write_duration(needed)} would do"
        )
        yield Problem((*at, "deadlines", "drain"), text)
    size = workload_of(name, probe).mean_size
    per_key = probe.rate / probe.keys * size if probe.rate else probe.messages * size
    if per_key > KEY_BYTES_PER_S_MAX:
        text = (
            f"publishes {per_key / 1e6:.1f} MB{' a second' if probe.rate else ' at once'} on each key, and Pub/Sub takes 1 MB a second "
            "per key: its throttling will show as latency. Take more keys or smaller messages"
        )
        yield Problem(at, text)
