"""What a platform team checks before it lets a chart in, for every values file that is shipped.

A check looks at what Helm renders and says what is wrong with it: nothing, or a sentence. None means that there is nothing to check.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from api.access import HEALTH_PATHS
from prober.brokers.endpoint import parse_endpoint
from prober.config.values import EMBEDDED
from tests.helm.chart import (
    CASES,
    NAMESPACE,
    Document,
    Pod,
    Values,
    containers,
    documents,
    linted,
    of_kind,
    only,
    pod_templates,
    pods,
)
from tests.helm.policies import INTERNET, METADATA_SERVER, Peer, lets_in, lets_out
from tests.helm.validation import KUBERNETES, complaints

COLUMNS: Final[Mapping[str, str]] = {
    "production": "production",
    "canary": "production + canary",
    "staging": "production + staging",
    "test": "test",
    "several-probers": "several-probers",
    "outside-google": "outside-google",
}
"""The values files, by the name of the case."""

_LONG_LIVED: Final = ("StatefulSet", "Deployment")
_CLUSTER_WIDE: Final = {
    "ClusterRole",
    "ClusterRoleBinding",
    "Namespace",
    "CustomResourceDefinition",
    "PriorityClass",
    "StorageClass",
}

Finding = str | None


@dataclass(frozen=True)
class Check:
    """A question, and who answers it."""

    question: str
    wrong: Callable[[Values], Finding]


def _first(wrong: Iterable[str]) -> str:
    return next(iter(wrong), "")


def _containers(values: Values) -> Iterator[tuple[str, Pod, dict[str, Any]]]:
    for name, pod in pods(values):
        for container in containers(pod):
            yield f"{name}, {container['name']}", pod, container


def _long_lived(values: Values) -> Iterator[tuple[str, Document]]:
    return ((name, template) for name, template in pod_templates(values) if name.startswith(_LONG_LIVED))


def _labels(template: Document) -> Mapping[str, str]:
    found: Mapping[str, str] = template["metadata"]["labels"]
    return found


# --- what is rendered --------------------------------------------------------------------------------------------------------


def _lints(values: Values) -> Finding:
    return _first(linted(values, f"v{KUBERNETES[0]}"))


def _is_valid(values: Values) -> Finding:
    return _first(wrong for version in KUBERNETES for wrong in complaints(documents(values), version))


def _stays_in_its_namespace(values: Values) -> Finding:
    return _first(
        f"{one['kind']} {one['metadata']['name']}"
        for one in documents(values)
        if one["kind"] in _CLUSTER_WIDE or one["metadata"].get("namespace", NAMESPACE) != NAMESPACE
    )


def _needs_no_rights(values: Values) -> Finding:
    return _first(str(one["kind"]) for one in of_kind(values, "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"))


def _names_images(values: Values) -> Finding:
    return _first(
        f"{where}: {container['image']}"
        for where, _, container in _containers(values)
        if ":" not in container["image"].rpartition("/")[2] or container["image"].endswith(":latest")
    )


def _keeps_secrets_out(values: Values) -> Finding:
    text = json.dumps([one for one in documents(values) if one["kind"] not in {"PrometheusRule", "Rules"}])
    return "a Secret is rendered" if of_kind(values, "Secret") else "a URL with a password" if "postgresql://" in text else ""


# --- pods --------------------------------------------------------------------------------------------------------------------


def _is_restricted(values: Values) -> Finding:
    """The Pod Security Standard `restricted`, and a read-only file system."""
    return _first(where for where, pod, container in _containers(values) if not _locked(pod, container))


def _locked(pod: Pod, container: Mapping[str, Any]) -> bool:
    context = {**pod["securityContext"], **container["securityContext"]}
    wanted = {
        "runAsNonRoot": True,
        "allowPrivilegeEscalation": False,
        "privileged": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    on_the_host = pod.keys() & {"hostNetwork", "hostPID", "hostIPC"} or any("hostPath" in one for one in pod.get("volumes", []))
    return wanted.items() <= context.items() and context.get("runAsUser") != 0 and not on_the_host


def _leaves_the_user_open(values: Values) -> Finding:
    """Only pods name a user, in one place that a value changes: OpenShift brings its own."""
    return _first(where for where, _, container in _containers(values) if "runAsUser" in container["securityContext"])


def _has_limits(values: Values) -> Finding:
    return _first(
        where
        for where, _, container in _containers(values)
        if not container["resources"]["requests"].keys() >= {"cpu", "memory"} or "memory" not in container["resources"]["limits"]
    )


def _bounds_its_scratch(values: Values) -> Finding:
    scratch = ((name, volume) for name, pod in pods(values) for volume in pod.get("volumes", []) if "emptyDir" in volume)
    return _first(f"{name}: {volume['name']}" for name, volume in scratch if not volume["emptyDir"].get("sizeLimit"))


def _holds_no_token(values: Values) -> Finding:
    return _first(name for name, pod in pods(values) if pod.get("automountServiceAccountToken") is not False)


def _is_somebody(values: Values) -> Finding:
    """An account for each component: one that is taken over has not the rights of the others."""
    names = [pod["serviceAccountName"] for name, pod in pods(values) if not name.startswith(("Pod ", "Job "))]
    return "" if len(set(names)) == len(names) else "two components share an account"


def _knows_who_it_is(values: Values) -> Finding:
    mounted = [volume for _, pod in pods(values) for volume in pod.get("volumes", []) if volume["name"] == "google"]
    if any("secret" in volume for volume in mounted):
        return "a key is mounted"
    return "" if bool(mounted) == bool(values.get("workloadIdentityFederation")) else "a token without federation, or the reverse"


def _reports_its_health(values: Values) -> Finding:
    for name, template in _long_lived(values):
        (own,) = (one for one in template["spec"]["containers"] if one["name"] in {"prober", "api"})
        if not {own[probe]["httpGet"]["path"] for probe in ("startupProbe", "livenessProbe", "readinessProbe")} <= HEALTH_PATHS:
            return f"{name} is asked for what may need a token"
    return ""


def _may_be_moved(values: Values) -> Finding:
    """A node can be drained: every component has a budget, and each lets a pod go."""
    budgets = [budget["spec"] for budget in of_kind(values, "PodDisruptionBudget")]
    for name, template in _long_lived(values):
        mine = [budget for budget in budgets if budget["selector"]["matchLabels"].items() <= _labels(template).items()]
        if len(mine) != 1 or not mine[0].get("maxUnavailable"):
            return name
    return ""


def _survives_chart_bumps(values: Values) -> Finding:
    versions = {"helm.sh/chart", "app.kubernetes.io/version"}
    return _first(name for name, template in _long_lived(values) if versions & _labels(template).keys())


# --- network -----------------------------------------------------------------------------------------------------------------


def _guards_every_pod(values: Values) -> Finding:
    """Nobody gets out on a port that nobody named, or in but on the ports that are served."""
    nobody, port = Peer(address=INTERNET), 6379
    return _first(
        name
        for name, template in pod_templates(values)
        if lets_out(values, _labels(template), nobody, port) or lets_in(values, _labels(template), nobody, port)
    )


def _reaches_its_targets(values: Values) -> Finding:
    labels = _labels(only(values, "StatefulSet")["spec"]["template"])
    for target in values["config"]["targets"]:
        if target["endpoint"] != EMBEDDED:
            host, _, port = parse_endpoint(target["endpoint"]).address.rpartition(":")
            peer = Peer(address=host if host.replace(".", "").isdecimal() else INTERNET)
            if not lets_out(values, labels, peer, int(port)):
                return f"{target['name']}, port {port}"
    return ""


def _reaches_its_stores(values: Values) -> Finding:
    asked: list[tuple[str, int]] = []
    if values.get("status", {}).get("existingSecret", {}).get("name"):
        asked += [(kind, int(values["status"].get("port", 5432))) for kind in _LONG_LIVED]
    if values.get("history", {}).get("location"):
        asked += [("StatefulSet", 443), ("CronJob", 443)]
    for variable in values.get("prober", {}).get("extraEnv", ()):
        if variable["name"] == "OTEL_EXPORTER_OTLP_ENDPOINT":
            asked.append(("StatefulSet", int(variable["value"].rpartition(":")[2])))
    there = {name.partition(" ")[0]: _labels(template) for name, template in pod_templates(values)}
    wrong = (
        f"{kind}, port {port}"
        for kind, port in asked
        if kind in there and not lets_out(values, there[kind], Peer(address=INTERNET), port)
    )
    return _first(wrong) if asked else None


def _asks_the_right_metadata_server(values: Values) -> Finding:
    """On GKE it says who a pod is; elsewhere at that address somebody else hands out rights."""
    labels = _labels(only(values, "StatefulSet")["spec"]["template"])
    reached = lets_out(values, labels, Peer(address=METADATA_SERVER), 80)
    return "" if reached is not bool(values.get("workloadIdentityFederation")) else f"reached: {reached}"


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
        _labels(template) for _, template in pod_templates(values) if service["selector"].items() <= _labels(template).items()
    )
    return _labels(tester), asked, service["ports"][0]["targetPort"]


def _passes_its_own_test(values: Values) -> Finding:
    tester, asked, port = helm_test_path(values)
    return "" if lets_out(values, tester, Peer(asked), port) and lets_in(values, asked, Peer(tester), port) else "it is blocked"


# --- operation ---------------------------------------------------------------------------------------------------------------


def _is_scraped_once(values: Values) -> Finding:
    for name, template in _long_lived(values):
        labels, found = _labels(template), 0
        for monitor in of_kind(values, "PodMonitor", "PodMonitoring"):
            found += monitor["spec"]["selector"]["matchLabels"].items() <= labels.items()
        for monitor in of_kind(values, "ServiceMonitor"):
            wanted = monitor["spec"]["selector"]["matchLabels"].items()
            services = (one for one in of_kind(values, "Service") if wanted <= one["metadata"]["labels"].items())
            found += sum(one["spec"]["selector"].items() <= labels.items() for one in services)
        if found != 1:
            return f"{name}: {found} times"
    return ""


def _alerts_lead_somewhere(values: Values) -> Finding:
    rules = of_kind(values, "PrometheusRule", "Rules")
    text = json.dumps(rules)
    return _first(place for place in ("localhost", '"docs/') if place in text) if rules else None


def _shares_its_work(values: Values) -> Finding:
    if only(values, "StatefulSet")["spec"]["replicas"] == 1:
        return None
    (own,) = (one for _, _, one in _containers(values) if one["name"] == "prober")
    return (
        "" if any(one["name"] == "ORDERING_PROBER_STATUS__URL" for one in own["env"]) else "several probers without a common store"
    )


def _runs_jobs_on_its_cores(values: Values) -> Finding:
    jobs = of_kind(values, "CronJob")
    return ("" if "local[$(CORES)]" in json.dumps(jobs) else "on those of the node") if jobs else None


def _fails_jobs_for_failures_only(values: Values) -> Finding:
    jobs = of_kind(values, "CronJob")
    return ("" if "--exit-zero-on-findings" in json.dumps(jobs) else "a broken promise fails the Job") if jobs else None


CHECKS: Final = (
    Check("`helm lint --strict` has no complaint", _lints),
    Check(f"Kubernetes {KUBERNETES[0]} to {KUBERNETES[-1]} and the operators know every field", _is_valid),
    Check("Nothing is cluster-wide, or in another namespace", _stays_in_its_namespace),
    Check("No Role or ClusterRole is needed", _needs_no_rights),
    Check("Images have a version, and not `latest`", _names_images),
    Check("No secret is rendered", _keeps_secrets_out),
    Check("Pod Security Standard `restricted`, read-only file systems", _is_restricted),
    Check("The user can be left to the platform (OpenShift)", _leaves_the_user_open),
    Check("CPU and memory are requested, memory is limited", _has_limits),
    Check("Scratch space is bounded", _bounds_its_scratch),
    Check("No pod holds a token for the Kubernetes API", _holds_no_token),
    Check("Each component has a service account of its own", _is_somebody),
    Check("No key for Google Cloud: its metadata server, or federation", _knows_who_it_is),
    Check("Startup, liveness and readiness are asked without a token", _reports_its_health),
    Check("Nodes can be drained: budgets let a pod go", _may_be_moved),
    Check("A new version of the chart alone restarts no prober", _survives_chart_bumps),
    Check("A network policy guards every pod, in and out", _guards_every_pod),
    Check("The policy lets probers reach every target", _reaches_its_targets),
    Check("The policy lets pods reach database, bucket and collector", _reaches_its_stores),
    Check("The metadata server is reached on GKE, and nowhere else", _asks_the_right_metadata_server),
    Check("`helm test` passes under the policy", _passes_its_own_test),
    Check("Every pod is scraped, once", _is_scraped_once),
    Check("Alerts link to addresses of the installation", _alerts_lead_somewhere),
    Check("Several probers share one database", _shares_its_work),
    Check("Jobs use the cores of their pod", _runs_jobs_on_its_cores),
    Check("A Job fails only if it did not do its work", _fails_jobs_for_failures_only),
)


def answer(check: Check, case: str) -> str:
    """`yes`, `**no**` with the reason, or `-`: nothing to check."""
    wrong = check.wrong(CASES[case])
    return "-" if wrong is None else f"**no**: {wrong}" if wrong else "yes"
