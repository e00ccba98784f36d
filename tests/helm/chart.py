"""The chart, rendered by Helm's own engine, and what stands in a rendering."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import helm_python as helm
import yaml

from tests.commands import ROOT

CHART = ROOT / "helm" / "ordering-keys-prober"
RELEASE, NAMESPACE = "okp", "probing"
CONFIG = "prober.yaml"

Values: TypeAlias = dict[str, Any]
Document: TypeAlias = dict[str, Any]
Pod: TypeAlias = dict[str, Any]

LINKS: Values = {
    "links": {
        "runbooks": "https://example.com/runbooks",
        "dashboards": "https://grafana.example.com",
        "pages": "https://p.example.com",
    }
}
"""What alerts and dashboards need."""

helm.disable_logging()


@functools.cache
def chart() -> helm.Chart:
    """The chart as it is in this checkout, its links to `alerts/` and `dashboards/` followed."""
    return helm.Chart.load(CHART)


def merged(*layers: Mapping[str, Any]) -> Values:
    """Values files as `helm install -f one -f two` lays them over each other."""
    result: Values = {}
    for layer in layers:
        for key, value in layer.items():
            inner = result.get(key)
            result[key] = merged(inner, value) if isinstance(inner, dict) and isinstance(value, dict) else value
    return result


def values_file(name: str) -> Values:
    """A values file of the chart."""
    return dict(yaml.safe_load((CHART / name).read_text(encoding="utf-8")))


def _cases() -> dict[str, Values]:
    cases = {path.name.removesuffix("-values.yaml"): values_file(f"ci/{path.name}") for path in CHART.glob("ci/*-values.yaml")}
    production = values_file("values-production.yaml")
    cases |= {name: values_file(f"values-{name}.yaml") for name in ("argo-cd", "test", "several-probers", "outside-google")} | {
        "production": production
    }
    return cases | {name: merged(production, values_file(f"values-{name}.yaml")) for name in ("staging", "canary")}


CASES = _cases()
"""Every combination of values that is shipped: the cases of ci/, and the environments as they are installed."""


@functools.cache
def _rendered(values: str, name: str, namespace: str) -> Mapping[str, str]:
    return chart().render(json.loads(values), name=name, namespace=namespace)


def rendered(values: Values, name: str = RELEASE, namespace: str = NAMESPACE) -> Mapping[str, str]:
    """What Helm makes of the values: template by template."""
    return _rendered(json.dumps(values), name, namespace)


@functools.cache
def _documents(values: str, name: str, namespace: str) -> list[Document]:
    texts = (text for path, text in _rendered(values, name, namespace).items() if path.endswith(".yaml"))
    return [document for text in texts for document in yaml.load_all(text, Loader=yaml.CSafeLoader) if document]


def documents(values: Values, name: str = RELEASE, namespace: str = NAMESPACE) -> list[Document]:
    """The objects that would be created, `helm test`'s included. They are not to be changed."""
    return _documents(json.dumps(values), name, namespace)


def of_kind(values: Values, *kinds: str) -> list[Document]:
    """The objects of these kinds."""
    return [document for document in documents(values) if document["kind"] in kinds]


def only(values: Values, kind: str, name: str = "") -> Document:
    """The one object of this kind, or the one whose name ends like that."""
    (found,) = (document for document in of_kind(values, kind) if document["metadata"]["name"].endswith(name))
    return found


def rules_of(found: list[Document]) -> list[Document]:
    """All rules among objects."""
    kinds = {"PrometheusRule", "Rules"}
    return [rule for one in found if one["kind"] in kinds for group in one["spec"]["groups"] for rule in group["rules"]]


def boards_of(found: list[Document]) -> dict[str, Any]:
    """All dashboards among objects, by the name of their file."""
    labelled = [one for one in found if one["kind"] == "ConfigMap" and "grafana_dashboard" in one["metadata"]["labels"]]
    return {name: json.loads(text) for one in labelled for name, text in one["data"].items()}


def pod_templates(values: Values) -> Iterator[tuple[str, Document]]:
    """Every pod that an object makes, with the object's name. Those of Spark's operator are not among them."""
    for document in documents(values):
        match document["kind"]:
            case "Pod":
                template = document
            case "StatefulSet" | "Deployment" | "Job":
                template = document["spec"]["template"]
            case "CronJob":
                template = document["spec"]["jobTemplate"]["spec"]["template"]
            case _:
                continue
        yield f"{document['kind']} {document['metadata']['name']}", template


def pods(values: Values) -> Iterator[tuple[str, Pod]]:
    """The specifications of those pods."""
    for name, template in pod_templates(values):
        yield name, template["spec"]


def containers(pod: Pod) -> list[dict[str, Any]]:
    """The containers of a pod, those that run before the others included."""
    return [*pod.get("initContainers", []), *pod["containers"]]


def configuration(values: Values) -> str:
    """The configuration file that the pods get, the pod that checks it before them included."""
    (text,) = {document["data"][CONFIG] for document in of_kind(values, "ConfigMap") if CONFIG in document["data"]}
    return str(text)


def environment(container: Mapping[str, Any], secrets: Mapping[str, str], pod_name: str = f"{RELEASE}-0") -> dict[str, str]:
    """What a container finds in its environment. Secrets are looked up by NAME/KEY."""
    found: dict[str, str] = {}
    for variable in container.get("env", []):
        source = variable.get("valueFrom", {})
        if "fieldRef" in source:
            value = {"metadata.name": pod_name}[source["fieldRef"]["fieldPath"]]
        elif "resourceFieldRef" in source:
            value = str(cores(container["resources"], source["resourceFieldRef"]["resource"]))
        elif "secretKeyRef" in source:
            value = secrets[f"{source['secretKeyRef']['name']}/{source['secretKeyRef']['key']}"]
        else:
            value = variable["value"]
            for name, known in found.items():
                value = value.replace(f"$({name})", known)
        found[variable["name"]] = value
    return found


def cores(resources: Mapping[str, Any], field: str) -> int:
    """What Kubernetes makes of `limits.cpu` or `requests.cpu` in a variable: whole cores, rounded up."""
    kind, _, resource = field.partition(".")
    quantity = str(resources[kind][resource])
    return math.ceil(float(quantity.removesuffix("m")) / (1000 if quantity.endswith("m") else 1))


def linted(values: Values, kube_version: str) -> list[str]:
    """What `helm lint --strict` complains about; that there is no icon is no complaint."""
    said = helm.lint(CHART, values, strict=True, namespace=NAMESPACE, kube_version=kube_version)
    return [str(message["error"]) for message in said["messages"] if "icon" not in message["error"]]


def packaged(folder: Path) -> Path:
    """The chart as an archive."""
    return Path(helm.package(CHART, destination=folder))
