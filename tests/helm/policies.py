"""What network policies let through, as Kubernetes defines it: a pod that no policy selects is open; one that a policy selects may do
only what some rule of some policy allows.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.helm.chart import Values, of_kind

INTERNET = "203.0.113.9"
METADATA_SERVER = "169.254.169.254"


@dataclass(frozen=True)
class Peer:
    """The other end: a pod of this namespace by its labels, a pod of another namespace by that one's, or an address."""

    labels: Mapping[str, str] = field(default_factory=dict)
    namespace: Mapping[str, str] | None = None
    address: str | None = None


def lets_out(values: Values, labels: Mapping[str, str], peer: Peer, port: int | str, protocol: str = "TCP") -> bool:
    """Whether a pod with these labels may connect to the peer."""
    return _allowed(values, labels, "egress", peer, port, protocol)


def lets_in(values: Values, labels: Mapping[str, str], peer: Peer, port: int | str) -> bool:
    """Whether the peer may connect to a pod with these labels."""
    return _allowed(values, labels, "ingress", peer, port, "TCP")


def _allowed(values: Values, labels: Mapping[str, str], way: str, peer: Peer, port: int | str, protocol: str) -> bool:
    rules = list(_rules(values, labels, way))
    return not rules or any(_matches(rule, way, peer, port, protocol) for rule in rules if rule)


def _rules(values: Values, labels: Mapping[str, str], way: str) -> Iterator[dict[str, Any]]:
    """The rules of the policies that select a pod; an empty one for each policy, so that no rule is not the same as no policy."""
    for policy in of_kind(values, "NetworkPolicy"):
        spec = policy["spec"]
        if way.title() in spec["policyTypes"] and _selected(spec["podSelector"], labels):
            yield {}
            yield from spec.get(way) or []


def _matches(rule: Mapping[str, Any], way: str, peer: Peer, port: int | str, protocol: str) -> bool:
    ports = rule.get("ports")
    if ports and not any(one["port"] == port and one["protocol"] == protocol for one in ports):
        return False
    peers = rule.get("from" if way == "ingress" else "to")
    return not peers or any(_is(one, peer) for one in peers)


def _is(wanted: Mapping[str, Any], peer: Peer) -> bool:
    if "ipBlock" in wanted:
        return peer.address is not None and ipaddress.ip_address(peer.address) in ipaddress.ip_network(wanted["ipBlock"]["cidr"])
    if peer.address is not None:
        return False
    if "namespaceSelector" in wanted:
        return _selected(wanted["namespaceSelector"], peer.namespace or {}) and _selected(
            wanted.get("podSelector", {}), peer.labels
        )
    return peer.namespace is None and _selected(wanted["podSelector"], peer.labels)


def _selected(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    assert selector.keys() <= {"matchLabels"}, "this stand-in knows no expressions"
    wanted: Mapping[str, str] = selector.get("matchLabels", {})
    return wanted.items() <= labels.items()
