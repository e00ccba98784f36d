"""What is worth a second look in a configuration that is valid: it may be right, so it is told and not refused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from difflib import get_close_matches
from typing import Final

from prober.brokers.base import Vantage
from prober.brokers.endpoint import parse_endpoint
from prober.config.models import Config, ProbeSettings, Reads, TargetSettings
from prober.config.problems import Path, Problem
from prober.config.regions import AS_OF, REGIONS, SOURCE
from prober.config.values import write_duration
from prober.config.workloads import MESSAGES_PER_S, busy_share

_LOOK_BACK: Final = timedelta(days=8)
"""The nightly jobs repeat up to seven days before yesterday if something was missing."""
_KEY_BYTES_PER_S_MAX: Final = 1_000_000
"""What Pub/Sub takes per ordering key (documentation, "Quotas and limits")."""
_LIKE_A_REGION: Final = re.compile(r"[a-z]+-[a-z]+[0-9]+")


def warnings_of(config: Config) -> list[Problem]:
    """Every warning, with the path of the key that it is about."""
    found = [*_history(config), *_access(config), *_capacity(config)]
    for number, target in enumerate(config.targets):
        at: Path = ("targets", number)
        found += _regions(target, at)
        for name, probe in target.probes.items():
            found += _probe(target, probe, (*at, "probes", str(name)))
    return found


def _regions(target: TargetSettings, at: Path) -> Iterator[Problem]:
    if target.is_embedded:
        return
    endpoint = parse_endpoint(target.endpoint)
    if endpoint.region and endpoint.region not in REGIONS:
        yield Problem((*at, "endpoint"), _unknown(endpoint.region))
    elif endpoint.region and endpoint.region != target.region:
        text = f"says {target.region}, but the endpoint is in {endpoint.region}: remove it, unless you mean that"
        yield Problem((*at, "region"), text)
    elif endpoint.secure and _LIKE_A_REGION.fullmatch(target.region) and target.region not in REGIONS:
        yield Problem((*at, "region"), _unknown(target.region))


def _unknown(region: str) -> str:
    close = get_close_matches(region, sorted(REGIONS), n=1, cutoff=0.6)
    hint = f"did you mean {close[0]}? " if close else ""
    return (
        f"{region} is not a region of Google Cloud that we know; {hint}(our list: {SOURCE}, {AS_OF}; newer ones are missing in it)"
    )


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


def _probe(target: TargetSettings, probe: ProbeSettings, at: Path) -> Iterator[Problem]:
    far = not target.is_embedded and parse_endpoint(target.endpoint).secure
    if not far:
        return
    needed = probe.ack_deadline + max(probe.deadlines.delivery, probe.deadlines.stall, probe.deadlines.unacked)
    if probe.deadlines.drain < needed:
        text = (
            f"{write_duration(probe.deadlines.drain)} is shorter than ack_deadline and the longest deadline together, so what falls due "
            f"last ends a run UNKNOWN and not FAIL; {write_duration(needed)} would do"
        )
        yield Problem((*at, "deadlines", "drain"), text)
    size = sum(probe.sizes) / len(probe.sizes)
    per_key = probe.rate / probe.keys * size if probe.rate else probe.messages * size
    if per_key > _KEY_BYTES_PER_S_MAX:
        text = (
            f"publishes {per_key / 1e6:.1f} MB{' a second' if probe.rate else ' at once'} on each key, and Pub/Sub takes 1 MB a second "
            "per key: its throttling will show as latency. Take more keys or smaller messages"
        )
        yield Problem(at, text)
