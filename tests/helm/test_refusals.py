"""Values that make no sense are refused before anything is installed, in words that say what to do."""

from __future__ import annotations

from typing import Any

import helm_python as helm
import pytest
import yaml

from prober.config.models import Config
from tests.helm.chart import CASES, CHART, NAMESPACE, Values, chart, merged, rendered, values_file

POSTGRESQL: Values = {"status": {"existingSecret": {"name": "s"}}}
FEDERATION: Values = {
    "workloadIdentityFederation": {"provider": "projects/1/locations/global/workloadIdentityPools/pool/providers/cluster"}
}
RULES: Values = {
    "rules": {"enabled": True},
    "links": {"runbooks": "https://r.example.com", "dashboards": "https://g.example.com", "pages": "https://p.example.com"},
}
BUCKET: Values = {"history": {"location": "gs://b/h", "reports": "gs://b/r"}}


def at(path: str, value: Any) -> Values:
    """Values with one thing set: `at("api.replicas", 3)`."""
    for key in reversed(path.split(".")):
        value = {key: value}
    return dict(value)


def schema() -> dict[str, Any]:
    """What values may be, as Helm checks it."""
    found = chart().schema
    assert found is not None
    return found


BY_SCHEMA: list[tuple[Values, str]] = [
    (at("replicas", 3), "additional properties 'replicas' not allowed"),
    (at("prober.replica", 3), "additional properties 'replica' not allowed"),
    (at("prober.replicas", -1), "at '/prober/replicas': minimum: got -1, want 0"),
    (at("prober.replicas", "3"), "at '/prober/replicas': got string, want integer"),
    (at("prober.terminationGracePeriodSeconds", 5), "at '/prober/terminationGracePeriodSeconds': minimum: got 5, want 45"),
    (at("prober.persistence.size", "4 GB"), "at '/prober/persistence/size': '4 GB' does not match pattern"),
    (at("prober.resources.limits", {"cpu": "1", "memory": None}), "at '/prober/resources/limits': missing property 'memory'"),
    (at("prober.extraEnv", [{"name": "A"}]), "at '/prober/extraEnv/0': "),
    (at("jobs.extraContainers", []), "additional properties 'extraContainers' not allowed"),
    (at("podSecurityContext.runAsUser", 0), "at '/podSecurityContext/runAsUser': minimum: got 0, want 1"),
    (at("podSecurityContext.runAsNonRoot", False), "additional properties 'runAsNonRoot' not allowed"),
    (at("podDisruptionBudget.maxUnavailable", 0), "at '/podDisruptionBudget/maxUnavailable'"),
    (
        at("workloadIdentityFederation.provider", "my-pool"),
        "at '/workloadIdentityFederation/provider': 'my-pool' does not match pattern",
    ),
    (at("serviceAccounts.prober.impersonate", "me@example.com"), "at '/serviceAccounts/prober/impersonate'"),
    (at("rules.severities", {"ciritical": "page"}), "invalid propertyName 'ciritical'"),
    (at("config.tragets", []), "at '/config': additional properties 'tragets' not allowed"),
    (at("config.targets", {"name": "a"}), "at '/config/targets': got object, want array"),
    (at("image.digest", "sha256:abc"), "at '/image/digest': 'sha256:abc' does not match pattern"),
    (at("image.pullPolicy", "Sometimes"), "at '/image/pullPolicy': value must be one of 'Always', 'IfNotPresent', 'Never'"),
    (at("jobs.mode", "airflow"), "at '/jobs/mode': value must be one of 'none', 'cronjob', 'sparkOperator'"),
    (at("jobs.schedule", "at night"), "at '/jobs/schedule': 'at night' does not match pattern"),
    (at("jobs.memory", "2Gi"), "at '/jobs/memory': '2Gi' does not match pattern"),
    (at("jobs.sparkConf", {"sparks": "1"}), "invalid propertyName 'sparks'"),
    (at("history.location", "/somewhere"), "at '/history/location': '/somewhere' does not match pattern"),
    (
        at("history.location", "s3://key:secret@bucket/x"),
        "at '/history/location': 's3://key:secret@bucket/x' does not match pattern",
    ),
    (at("history.volume.accessMode", "ReadWriteOncePod"), "at '/history/volume/accessMode': value must be one of"),
    (at("service.type", "ExternalName"), "at '/service/type': value must be one of"),
    (at("status.job.command", "migrate"), "at '/status/job/command': value must be one of 'none', 'upgrade', 'downgrade'"),
    (at("status.job.to", "head"), "at '/status/job/to': 'head' does not match pattern"),
    (at("service.port", 70000), "at '/service/port': maximum: got 70,000, want 65,535"),
    (at("ingress.enabled", True), "at '/ingress/hosts': minItems: got 0, want 1"),
    (at("ingress.hosts", ["not a host"]), "at '/ingress/hosts/0': 'not a host' does not match pattern"),
    (at("httpRoute.enabled", True), "at '/httpRoute/hostnames': minItems: got 0, want 1"),
    (at("scrape.interval", "30 sec"), "at '/scrape/interval': '30 sec' does not match pattern"),
    (at("rules.kind", "PrometheusRules"), "at '/rules/kind': value must be one of 'PrometheusRule', 'Rules'"),
    (at("links.pages", "prober.example.com"), "at '/links/pages': 'prober.example.com' does not match pattern"),
    (at("fullnameOverride", "Prober"), "at '/fullnameOverride': 'Prober' does not match pattern"),
    (at("ingress", None), "at '': missing property 'ingress'"),
    (at("config", None), "at '': missing property 'config'"),
    (at("api.autoscaling", None), "at '/api': missing property 'autoscaling'"),
    (at("prober.replicas", None), "at '/prober': missing property 'replicas'"),
    (at("networkPolicy.egress", [{"port": 3128}]), "at '/networkPolicy/egress/0': additional properties 'port' not allowed"),
    (at("networkPolicy.from", [{"cidr": "10.0.0.0/8"}]), "at '/networkPolicy/from/0': additional properties 'cidr' not allowed"),
    (at("networkPolicy.from", [{}]), "at '/networkPolicy/from/0': minProperties: got 0, want 1"),
    (at("status.existingSecret.url", "postgresql://u:p@h/d"), "additional properties 'url' not allowed"),
]

BY_TEMPLATE: list[tuple[Values, str]] = [
    (at("config.api.reads", "token"), "config.api.reads is token, so api.existingSecret.name must name a Secret"),
    (at("fullnameOverride", "p" * 50), "fullnameOverride has 50 characters: 40 is the most"),
    (at("commonLabels", {"app.kubernetes.io/name": "x"}), "commonLabels has app.kubernetes.io/name, which the chart sets"),
    (at("prober.podLabels", {"app.kubernetes.io/component": "x"}), "prober.podLabels has app.kubernetes.io/component"),
    (at("rules.labels", {"helm.sh/chart": "x"}), "rules.labels has helm.sh/chart, which the chart sets"),
    (at("image.tag", "latest"), "image.tag is latest, which is another image every day: name a version, or a digest"),
    (at("jobs.image.tag", "latest"), "jobs.image.tag is latest, which is another image every day"),
    (
        at("prober.extraEnv", [{"name": "ORDERING_PROBER_API__TOKEN", "value": "x"}]),
        "prober.extraEnv has ORDERING_PROBER_API__TOKEN, which must go: no secret belongs into values; name one in api.existingSecret",
    ),
    (
        at("prober.extraEnv", [{"name": "ORDERING_PROBER_API__PORT", "value": "9090"}]),
        "prober.extraEnv has ORDERING_PROBER_API__PORT, which must go: the chart sets it",
    ),
    (
        at("api.extraEnv", [{"name": "ORDERING_PROBER_HISTORY__REPORTS", "value": "gs://b/r"}]),
        "api.extraEnv has ORDERING_PROBER_HISTORY__REPORTS, which must go: write history.reports",
    ),
    (
        at("prober.extraEnv", [{"name": "ORDERING_PROBER_SHARDING__GROUP", "value": "a"}]),
        "prober.extraEnv has ORDERING_PROBER_SHARDING__GROUP, which must go: the chart sets it",
    ),
    (at("prober.extraVolumes", [{"name": "data", "emptyDir": {}}]), "prober.extraVolumes has data, as one of the chart's own"),
    (at("prober.extraContainers", [{"name": "a", "image": "a:latest"}]), "the image a:latest, which is another one every day"),
    (at("jobs.extraInitContainers", [{"name": "objectives", "image": "a:1"}]), "jobs has an extra container called objectives"),
    (
        merged(
            POSTGRESQL,
            at("api", {"enabled": True, "autoscaling": {"enabled": True}, "resources": {"requests": {"cpu": None}}}),
        ),
        "api.autoscaling.enabled needs api.resources.requests.cpu",
    ),
    (at("prober.replicas", 2), "prober.replicas is more than 1, so status.existingSecret.name must name a Secret"),
    (at("api.enabled", True), "api.enabled needs status.existingSecret.name"),
    (
        merged(POSTGRESQL, at("api", {"enabled": True, "autoscaling": {"enabled": True, "minReplicas": 9}})),
        "minReplicas is more than",
    ),
    (at("api.autoscaling.enabled", True), "api.autoscaling.enabled does nothing without api.enabled"),
    (merged(BUCKET, at("history.volume.size", "1Gi")), "history.location and history.volume are both set"),
    (at("history", {"reports": "gs://b/r", "volume": {"size": "1Gi"}}), "history.reports must go"),
    (
        merged(POSTGRESQL, at("prober.replicas", 2), at("history.volume", {"size": "1Gi", "accessMode": "ReadWriteOnce"})),
        "with more than one prober write ReadWriteMany",
    ),
    (at("jobs.mode", "cronjob"), "jobs.mode needs a history to work on"),
    (merged(at("history.location", "gs://b/h"), at("jobs.mode", "cronjob")), "jobs.mode needs history.reports"),
    (
        merged(at("history.volume.size", "1Gi"), at("jobs", {"mode": "sparkOperator", "spark": {"image": "a:1"}})),
        "executors do not mount history.volume",
    ),
    (
        merged(BUCKET, at("jobs", {"mode": "sparkOperator", "spark": {"image": "a:1"}}), at("serviceAccounts.jobs.create", False)),
        "jobs.mode sparkOperator would let every pod of the namespace make pods",
    ),
    (
        merged(POSTGRESQL, at("prober.replicas", 2), at("config.drills.cron", "0 9 * * *")),
        "config.drills.cron needs prober.replicas 1",
    ),
    (at("serviceMonitor.enabled", True) | at("podMonitor.enabled", True), "every series would come twice: choose one"),
    (at("healthCheckPolicy.enabled", True), "healthCheckPolicy.enabled needs httpRoute.enabled"),
    (
        merged(FEDERATION, at("serviceAccounts.api.keySecret.name", "key")),
        "serviceAccounts.api.keySecret and workloadIdentityFederation.provider are both set",
    ),
    (
        at("serviceAccounts.prober.impersonate", "a@p.iam.gserviceaccount.com"),
        "serviceAccounts.prober.impersonate needs workloadIdentityFederation.provider",
    ),
    (
        merged(FEDERATION, at("jobs.extraEnv", [{"name": "GOOGLE_APPLICATION_CREDENTIALS", "value": "/a"}])),
        "jobs.extraEnv sets GOOGLE_APPLICATION_CREDENTIALS, and so does the chart",
    ),
    (
        at("prober.extraEnv", [{"name": "ORDERING_PROBER_TARGETS__0__ENDPOINT", "value": "emulator:8085"}]),
        "prober.extraEnv sets ORDERING_PROBER_TARGETS__0__ENDPOINT, which the network policy cannot follow",
    ),
    (
        merged(BUCKET, at("jobs", {"mode": "cronjob", "resources": {"requests": {"cpu": None, "memory": "1Gi"}}})),
        "jobs.resources has no cpu",
    ),
    (
        merged(RULES, at("rules.alerts", {"PubsubProberDwon": {"enabled": False}})),
        "rules.alerts.PubsubProberDwon: there is no alert of that name",
    ),
    (at("config.drills.port", 1), "config.drills.port must go: the chart sets it"),
    (at("push.ingress.enabled", True), "push.ingress and push.httpRoute lead to nothing without config.push.address"),
    (at("push.httpRoute", {"enabled": True, "parentRefs": [{"name": "a"}]}), "lead to nothing without config.push.address"),
    (at("config.push.port", 1), "config.push.port must go: the chart sets it"),
    (at("config.instance", "a"), "config.instance must go: each prober is named after its pod"),
    (at("config.api.token", "t"), "config.api.token must go: no secret belongs into values; name one in api.existingSecret"),
    (at("config.api.port", 9090), "config.api.port must go: the chart sets it"),
    (at("config.status.url", "postgresql://u:p@h/d"), "config.status.url must go: no secret belongs into values"),
    (at("config.history.location", "gs://b/h"), "config.history.location must go: write history.location"),
    (at("config.sharding.group", "a"), "config.sharding must go"),
    (at("status.job.command", "upgrade"), "status.job.command needs status.existingSecret.name"),
    (
        merged(POSTGRESQL, at("status.job.command", "downgrade")),
        "status.job.command is downgrade, so status.job.to must be the revision of the older version",
    ),
]


@pytest.mark.parametrize(("values", "words"), BY_SCHEMA, ids=[words for _, words in BY_SCHEMA])
def test_the_schema_refuses(values: Values, words: str) -> None:
    with pytest.raises(helm.HelmValuesError) as refusal:
        rendered(values)
    assert words in str(refusal.value)


@pytest.mark.parametrize(("values", "words"), BY_TEMPLATE, ids=[words for _, words in BY_TEMPLATE])
def test_values_that_contradict_each_other_are_refused(values: Values, words: str) -> None:
    with pytest.raises(helm.HelmRenderError) as refusal:
        rendered(values)
    assert words in str(refusal.value)


def test_a_release_that_begins_with_a_digit_is_refused() -> None:
    """Kubernetes would refuse its Services, after it has made the rest."""
    with pytest.raises(helm.HelmRenderError, match="begins with a digit, and names of Services must not: set fullnameOverride"):
        chart().render({}, name="1okp", namespace=NAMESPACE)
    assert chart().render({"fullnameOverride": "okp"}, name="1okp", namespace=NAMESPACE)


def sections(values: Values, path: str = "") -> list[str]:
    """The paths of all sections with a shape of their own."""
    free = {"podSecurityContext.seccompProfile", "dashboards.labels"}
    inner = [(f"{path}{key}", value) for key, value in values.items() if isinstance(value, dict) and value]
    return [one for where, value in inner if where not in free for one in (where, *sections(value, f"{where}."))]


@pytest.mark.parametrize("path", sections(values_file("values.yaml")))
def test_a_section_that_is_emptied_is_missed_by_its_name(path: str) -> None:
    """A heading whose lines are all commented out is null, and Helm takes the section away. No template may stumble over that."""
    with pytest.raises(helm.HelmValuesError, match=f"missing property '{path.rpartition('.')[2]}'"):
        rendered(at(path, None))


def test_everything_that_contradicts_is_reported_at_once() -> None:
    with pytest.raises(helm.HelmRenderError) as refusal:
        rendered(merged(at("prober.replicas", 2), at("api.enabled", True), at("jobs.mode", "cronjob"), at("config.instance", "a")))
    assert str(refusal.value).count("\n  - ") == 4


def test_a_secret_is_not_repeated_in_the_refusal() -> None:
    with pytest.raises(helm.HelmRenderError) as refusal:
        rendered(at("config.status.url", "postgresql://u:planted@h/d"))
    assert "planted" not in str(refusal.value)


def test_the_schema_knows_the_keys_of_the_configuration() -> None:
    known = set(schema()["properties"]["config"]["properties"])
    assert known == set(Config.model_fields)


def test_every_value_is_in_the_schema_and_has_a_default() -> None:
    definitions = schema()["definitions"]
    free = {".config", ".podSecurityContext"}

    def walk(values: Any, part: Any, path: str) -> None:
        part = definitions[part["$ref"].rpartition("/")[2]] if "$ref" in part else part
        if isinstance(values, dict) and part.get("additionalProperties") is False and path not in free:
            assert values.keys() == part["properties"].keys(), path
            for key, value in values.items():
                walk(value, part["properties"][key], f"{path}.{key}")

    defaults = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    walk(defaults, schema(), "")


def test_every_switch_is_thrown_in_some_case() -> None:
    defaults = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    touched = {f"{section}.{key}" for values in CASES.values() for section, inner in values.items() for key in inner if inner}
    switches = {
        f"{section}.{key}" for section, inner in defaults.items() if isinstance(inner, dict) for key in inner if key == "enabled"
    }
    assert switches <= touched
