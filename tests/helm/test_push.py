"""What Pub/Sub pushes comes to the prober that it is for: the paths of the routes are those that the program tells Pub/Sub."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from prober.brokers.push.endpoint import PushEndpoint
from tests.helm.chart import Values, containers, documents, merged, pods
from tests.helm.policies import Peer, lets_in
from tests.helm.test_configuration import loaded
from tests.helm.test_network import labels
from tests.helm.test_refusals import POSTGRESQL, at

ADDRESS = "https://push.example.com/probers"
PUSHED = merged(
    POSTGRESQL,
    at("prober.replicas", 2),
    {
        "config": {
            "targets": [{"name": "eu", "project": "p1", "endpoint": "europe-west1", "environment": "test"}],
            "push": {"address": ADDRESS, "service_account": "push@p.iam.gserviceaccount.com"},
        }
    },
)
ROUTED = merged(
    PUSHED,
    {
        "push": {
            "service": {"annotations": {"example.com/a": "b"}},
            "ingress": {"enabled": True, "className": "nginx", "tls": [{"hosts": ["push.example.com"], "secretName": "tls"}]},
            "httpRoute": {"enabled": True, "parentRefs": [{"name": "external"}]},
        },
        "httpRoute": {"enabled": True, "parentRefs": [{"name": "internal"}], "hostnames": ["prober.example.com"]},
        "healthCheckPolicy": {"enabled": True},
    },
)


def made(values: Values, kind: str) -> list[dict[str, Any]]:
    """The documents of a kind that are about pushes."""
    return [one for one in documents(values) if one["kind"] == kind and "-push" in one["metadata"]["name"]]


def selected(service: dict[str, Any]) -> str:
    return str(service["spec"]["selector"]["statefulset.kubernetes.io/pod-name"])


def test_each_prober_has_a_service_that_no_other_pod_answers() -> None:
    services = made(ROUTED, "Service")
    (stateful,) = (one for one in documents(ROUTED) if one["kind"] == "StatefulSet")
    name = stateful["metadata"]["name"]
    assert [selected(service) for service in services] == [f"{name}-0", f"{name}-1"]
    assert all(service["spec"]["ports"] == [{"name": "push", "port": 80, "targetPort": "push"}] for service in services)
    assert all(service["metadata"]["annotations"] == {"example.com/a": "b"} for service in services)


def paths_by_service(values: Values) -> list[dict[str, str]]:
    """Of the Ingress and of the HTTPRoute: the paths, and the Service behind each."""
    (ingress,), (route,) = made(values, "Ingress"), made(values, "HTTPRoute")
    (rule,) = ingress["spec"]["rules"]
    assert [rule["host"]] == route["spec"]["hostnames"] == ["push.example.com"]
    of_ingress = {path["path"]: path["backend"]["service"]["name"] for path in rule["http"]["paths"]}
    of_route = {one["matches"][0]["path"]["value"]: one["backendRefs"][0]["name"] for one in route["spec"]["rules"]}
    return [of_ingress, of_route]


def test_the_routes_lead_where_the_program_has_messages_pushed_to() -> None:
    pods = {service["metadata"]["name"]: selected(service) for service in made(ROUTED, "Service")}
    for paths in paths_by_service(ROUTED):
        assert len(paths) == 2
        for path, service in paths.items():
            endpoint = PushEndpoint("127.0.0.1", 0, pods[service])
            config = endpoint.target("eu", ADDRESS, None).config_of("projects/p/subscriptions/s")
            assert urlsplit(config.endpoint).path == f"{path}/eu/s"


def test_the_load_balancer_of_a_gateway_asks_for_its_health() -> None:
    policies = made(ROUTED, "HealthCheckPolicy")
    assert [one["spec"]["targetRef"]["name"] for one in policies] == [one["metadata"]["name"] for one in made(ROUTED, "Service")]
    assert {one["spec"]["default"]["config"]["httpHealthCheck"]["requestPath"] for one in policies} == {"/healthz"}


def test_the_prober_listens_and_may_be_reached(tmp_path: Path) -> None:
    config = loaded(PUSHED, "prober", tmp_path)
    assert (config.push.host, config.push.port, config.push.address) == ("0.0.0.0", 8081, ADDRESS)
    values = merged(PUSHED, at("networkPolicy.from", [{"podSelector": {"matchLabels": {"a": "b"}}}]))
    assert lets_in(values, labels("prober"), Peer(address="203.0.113.7"), "push")
    assert not lets_in(values, labels("prober"), Peer(address="203.0.113.7"), "http")


def test_without_an_address_there_is_nothing() -> None:
    assert not made({}, "Service")
    assert all(
        port["name"] != "push" for _, pod in pods({}) for container in containers(pod) for port in container.get("ports", ())
    )
