"""The network policies follow the configuration: each pod reaches what its configuration names, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from prober.brokers.endpoint import parse_endpoint
from prober.config.values import EMBEDDED
from tests.helm.chart import CASES, NAMESPACE, RELEASE, Values, merged, of_kind, only, pod_templates
from tests.helm.policies import INTERNET, METADATA_SERVER, Peer, lets_in, lets_out
from tests.helm.test_refusals import BUCKET, FEDERATION, POSTGRESQL, at

EVERY_CASE = pytest.mark.parametrize("case", sorted(CASES))
GUARDED = [case for case in sorted(CASES) if CASES[case].get("networkPolicy", {}).get("enabled", True)]


def labels(component: str) -> Mapping[str, str]:
    """Of a pod of the component."""
    name = {"app.kubernetes.io/name": "ordering-keys-prober", "app.kubernetes.io/instance": RELEASE}
    return {**name, "app.kubernetes.io/component": component}


def target(endpoint: str) -> Values:
    """One target."""
    return {"config": {"targets": [{"name": "one", "project": "p", "endpoint": endpoint, "environment": "test"}]}}


def jobs(values: Values) -> Values:
    """With nightly jobs."""
    return merged(values, {"jobs": {"mode": "cronjob"}})


def collector(url: str, variable: str = "ENDPOINT") -> Values:
    """With a collector for OpenTelemetry."""
    return at("prober.extraEnv", [{"name": f"OTEL_EXPORTER_OTLP_{variable}", "value": url}])


GOOGLE = target("europe-west1")
OWN = at("config.monitoring.subscriptions", [{"name": "projects/shop/subscriptions/orders"}])
"""A subscription of one's own, of which Cloud Monitoring is asked."""
SPARK = {"jobs": {"mode": "sparkOperator", "spark": {"image": "a:1"}}}
MINIO: Values = {
    "history": {"location": "s3://b/h?endpoint_override=minio:9000&scheme=http", "reports": "s3://b/r?endpoint_override=minio:9001"}
}

REACHED: list[tuple[str, Values, str, str, int]] = [
    ("Pub/Sub", GOOGLE, "prober", INTERNET, 443),
    ("the global endpoint", target("global"), "prober", INTERNET, 443),
    ("a host of Google's", target("pubsub.europe-west1.rep.googleapis.com"), "prober", INTERNET, 443),
    ("an emulator by name", target("emulator.test:8085"), "prober", INTERNET, 8085),
    ("an emulator by address", target("10.1.2.3:8085"), "prober", "10.1.2.3", 8085),
    ("an emulator by IPv6 address", target("[2001:db8::7]:8085"), "prober", "2001:db8::7", 8085),
    (
        "an emulator by environment",
        at("prober.extraEnv", [{"name": "PUBSUB_EMULATOR_HOST", "value": "e:8999"}]),
        "prober",
        INTERNET,
        8999,
    ),
    ("a proxy", at("prober.extraEnv", [{"name": "HTTPS_PROXY", "value": "http://u:p@proxy:3128"}]), "prober", INTERNET, 3128),
    ("a proxy by address", at("prober.extraEnv", [{"name": "https_proxy", "value": "10.1.2.3:3128"}]), "prober", "10.1.2.3", 3128),
    (
        "a proxy of the API",
        merged(POSTGRESQL, at("api", {"enabled": True, "extraEnv": [{"name": "all_proxy", "value": "http://proxy:8080"}]})),
        "api",
        INTERNET,
        8080,
    ),
    ("the bucket of reports that others write", merged(BUCKET, POSTGRESQL, at("api.enabled", True)), "api", INTERNET, 443),
    ("a collector", collector("http://collector:4317"), "prober", INTERNET, 4317),
    ("a collector of metrics", collector("http://collector:4318/v1/metrics", "METRICS_ENDPOINT"), "prober", INTERNET, 4318),
    ("a collector on each node", collector("http://$(NODE_IP):4317"), "prober", INTERNET, 4317),
    ("a collector without a port", collector("https://collector"), "prober", INTERNET, 443),
    ("Prometheus of drills", at("config.drills.prometheus", "http://prometheus:9090"), "prober", INTERNET, 9090),
    ("Alertmanager of drills", at("config.drills.alertmanager", "http://alerts/path"), "prober", INTERNET, 80),
    ("PostgreSQL", merged(POSTGRESQL, at("status.port", 5433)), "prober", INTERNET, 5433),
    ("PostgreSQL of the API", merged(POSTGRESQL, at("api.enabled", True)), "api", INTERNET, 5432),
    ("a bucket", BUCKET, "prober", INTERNET, 443),
    ("a bucket of the jobs", jobs(BUCKET), "jobs", INTERNET, 443),
    ("the reports of the API", merged(jobs(BUCKET), POSTGRESQL, at("api.enabled", True)), "api", INTERNET, 443),
    ("a store like S3", MINIO, "prober", INTERNET, 9000),
    ("a store like S3 for reports", jobs(MINIO), "jobs", INTERNET, 9001),
    (
        "Spark's own word for it",
        merged(jobs(BUCKET), at("jobs.sparkConf", {"spark.hadoop.fs.s3a.endpoint": "http://m:9002"})),
        "jobs",
        INTERNET,
        9002,
    ),
    ("Hadoop", {"history": {"location": "hdfs://namenode/h"}}, "prober", INTERNET, 8020),
    ("the metadata server", GOOGLE, "prober", METADATA_SERVER, 80),
    ("Cloud Monitoring", merged(target("emulator.test:8085"), OWN), "prober", INTERNET, 443),
    ("the metadata server for Cloud Monitoring", merged(target("emulator.test:8085"), OWN), "prober", METADATA_SERVER, 80),
    ("Cloud Monitoring with discovery", at("config.monitoring.discover", [{"matching": ".*"}]), "prober", INTERNET, 443),
    ("Cloud Monitoring elsewhere", merged(OWN, at("config.monitoring.endpoint", "10.1.2.3:9443")), "prober", "10.1.2.3", 9443),
    ("a host of Cloud Monitoring", merged(OWN, at("config.monitoring.endpoint", "monitoring.test")), "prober", INTERNET, 443),
    ("the exchange of tokens", merged(FEDERATION, target("e:1")), "prober", INTERNET, 443),
    ("a proxy beside it", at("prober.extraContainers", [{"name": "a", "image": "a:1"}]), "prober", INTERNET, 443),
    ("the API server of Spark's driver", merged(BUCKET, SPARK), "jobs", INTERNET, 6443),
    ("what is added", at("networkPolicy.egress", [{"ports": [{"protocol": "TCP", "port": 3128}]}]), "prober", INTERNET, 3128),
]

NOT_REACHED: list[tuple[str, Values, str, str, int]] = [
    ("the internet, for the embedded server", {}, "prober", INTERNET, 443),
    ("the internet, for an emulator", target("emulator.test:8085"), "prober", INTERNET, 443),
    ("another host on an emulator's port", target("10.1.2.3:8085"), "prober", INTERNET, 8085),
    ("a database without one", GOOGLE, "prober", INTERNET, 5432),
    ("a database from the jobs", jobs(merged(BUCKET, POSTGRESQL)), "jobs", INTERNET, 5432),
    (
        "the collector from the API",
        merged(POSTGRESQL, at("api.enabled", True), collector("http://c:4317")),
        "api",
        INTERNET,
        4317,
    ),
    ("a target from the API", merged(POSTGRESQL, at("api.enabled", True), GOOGLE), "api", INTERNET, 443),
    ("Cloud Monitoring without a subscription", at("config.monitoring.every", "2m"), "prober", INTERNET, 443),
    (
        "Cloud Monitoring of Google, if it is elsewhere",
        merged(OWN, at("config.monitoring.endpoint", "m:9443")),
        "prober",
        INTERNET,
        443,
    ),
    ("Cloud Monitoring from the API", merged(POSTGRESQL, at("api.enabled", True), OWN), "api", INTERNET, 443),
    ("the metadata server without Google", target("emulator.test:8085"), "prober", METADATA_SERVER, 80),
    ("another cloud's metadata server", merged(GOOGLE, FEDERATION), "prober", METADATA_SERVER, 80),
    (
        "another cloud's metadata server, with a key",
        merged(GOOGLE, at("serviceAccounts.prober.keySecret.name", "k")),
        "prober",
        METADATA_SERVER,
        80,
    ),
    ("an emulator in the same pod", target("localhost:8085"), "prober", INTERNET, 8085),
]


@pytest.mark.parametrize(("values", "component", "address", "port"), [row[1:] for row in REACHED], ids=[row[0] for row in REACHED])
def test_what_the_configuration_names_is_reached(values: Values, component: str, address: str, port: int) -> None:
    assert lets_out(values, labels(component), Peer(address=address), port)


@pytest.mark.parametrize(
    ("values", "component", "address", "port"), [row[1:] for row in NOT_REACHED], ids=[row[0] for row in NOT_REACHED]
)
def test_nothing_else_is_reached(values: Values, component: str, address: str, port: int) -> None:
    assert not lets_out(values, labels(component), Peer(address=address), port)


@pytest.mark.parametrize("case", GUARDED)
def test_every_pod_may_resolve_names(case: str) -> None:
    for _, template in pod_templates(CASES[case]):
        for protocol in ("UDP", "TCP"):
            assert lets_out(CASES[case], template["metadata"]["labels"], Peer(address=INTERNET), 53, protocol)


def test_names_are_resolved_on_the_ports_of_the_platform() -> None:
    assert lets_out(CASES["openshift"], labels("prober"), Peer(address=INTERNET), 5353, "UDP")


@EVERY_CASE
def test_every_target_of_a_values_file_is_reached(case: str) -> None:
    prober = only(CASES[case], "StatefulSet")["spec"]["template"]["metadata"]["labels"]
    for one in CASES[case].get("config", {}).get("targets", []):
        if (endpoint := one.get("endpoint", EMBEDDED)) != EMBEDDED:
            host, _, port = parse_endpoint(endpoint).address.rpartition(":")
            peer = Peer(address=host if host.replace(".", "").isdecimal() else INTERNET)
            assert lets_out(CASES[case], prober, peer, int(port)), one["name"]


def helm_test_path(values: Values) -> tuple[Mapping[str, str], Mapping[str, str], str]:
    """Which way `helm test` takes: the labels of its pod, those of the pods that the Service selects, and their port."""
    tester = only(values, "Pod")
    url = str(tester["spec"]["containers"][0]["args"][1])
    (service,) = (
        one["spec"]
        for one in of_kind(values, "Service")
        if url == f"http://{one['metadata']['name']}.{NAMESPACE}.svc:{one['spec']['ports'][0]['port']}"
    )
    (asked,) = (
        template["metadata"]["labels"]
        for _, template in pod_templates(values)
        if service["selector"].items() <= template["metadata"]["labels"].items()
    )
    return tester["metadata"]["labels"], asked, service["ports"][0]["targetPort"]


@EVERY_CASE
def test_helm_test_gets_through(case: str) -> None:
    """From its pod to those that the Service selects, both ways through the policies."""
    tester, asked, port = helm_test_path(CASES[case])
    assert lets_out(CASES[case], tester, Peer(asked), port)
    assert lets_in(CASES[case], asked, Peer(tester), port)


def test_helm_test_may_do_nothing_else() -> None:
    values = merged(CASES["gke"], at("networkPolicy.from", [{"podSelector": {"matchLabels": {"app": "proxy"}}}]))
    assert not lets_out(values, labels("test"), Peer(address=INTERNET), 443)
    assert not lets_in(values, labels("prober"), Peer({"app": "other"}), "http")
    assert lets_in(values, labels("prober"), Peer({"app": "proxy"}), "http")


def test_google_s_load_balancers_ask_the_pods_of_the_front_only() -> None:
    asks = Peer(address="35.191.7.7")
    assert lets_in(CASES["gke"], labels("api"), asks, "http")
    assert not lets_in(CASES["gke"], labels("prober"), asks, "http")
    assert not lets_in(merged(CASES["gke"], at("healthCheckPolicy.enabled", False)), labels("api"), asks, "http")
