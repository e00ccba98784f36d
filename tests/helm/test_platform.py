"""What a platform adds to the pods or wants differently: users, volumes, containers, identities, budgets, health checks, scrapes."""

from __future__ import annotations

import json
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import google.auth.transport.requests
import pytest
import yaml
from google.auth import identity_pool

from api.middleware import OPEN_PATHS
from tests.helm.chart import CASES, LINKS, Pod, Values, documents, environment, merged, of_kind, only, pod_templates, pods, rendered
from tests.helm.test_refusals import FEDERATION, POSTGRESQL, at
from tests.helm.validation import KUBERNETES, complaints

EXTRAS: Values = {
    "extraEnv": [{"name": "EXTRA", "value": "1"}],
    "extraVolumes": [{"name": "extra", "emptyDir": {"sizeLimit": "1Mi"}}],
    "extraVolumeMounts": [{"name": "extra", "mountPath": "/extra"}],
    "extraInitContainers": [{"name": "before", "image": "before:1", "restartPolicy": "Always"}],
}
BESIDE: Values = {"extraContainers": [{"name": "beside", "image": "beside:1", "securityContext": {"runAsUser": 65532}}]}
EVERYWHERE: Values = merged(
    POSTGRESQL,
    {"prober": EXTRAS | BESIDE, "api": {"enabled": True} | EXTRAS | BESIDE, "jobs": {"mode": "cronjob"} | EXTRAS},
    at("history.volume.size", "1Gi"),
)
COMPONENTS = {"prober": "StatefulSet okp-ordering-keys-prober", "api": "Deployment okp-ordering-keys-prober-api"}
COMPONENTS |= {"nightly": "CronJob okp-ordering-keys-prober-nightly"}


def pod(values: Values, component: str) -> Pod:
    """The pod of a component, by the name of its container."""
    return dict(pods(values))[COMPONENTS[component]]


def container(found: Pod, name: str, kind: str = "containers") -> dict[str, Any]:
    """The container of this name."""
    (one,) = (one for one in found[kind] if one["name"] == name)
    return dict(one)


# --- what is added -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("component", sorted(COMPONENTS))
def test_what_is_added_is_in_the_pod(component: str) -> None:
    found = pod(EVERYWHERE, component)
    own = container(found, component)
    assert {"name": "EXTRA", "value": "1"} in own["env"]
    assert {"name": "extra", "mountPath": "/extra"} in own["volumeMounts"]
    assert {"name": "extra", "emptyDir": {"sizeLimit": "1Mi"}} in found["volumes"]
    assert container(found, "before", "initContainers")["restartPolicy"] == "Always"


@pytest.mark.parametrize("component", ["prober", "api"])
def test_a_container_beside_ours_is_locked_unless_it_says_otherwise(component: str) -> None:
    context = container(pod(EVERYWHERE, component), "beside")["securityContext"]
    assert context["runAsUser"] == 65532
    assert context["readOnlyRootFilesystem"] is True
    assert context["capabilities"] == {"drop": ["ALL"]}
    said = container(pod(CASES["openshift"], "prober"), "log-shipper")["securityContext"]
    assert said["readOnlyRootFilesystem"] is False


@pytest.mark.parametrize("added", [{}, FEDERATION, at("serviceAccounts.jobs.keySecret", {"name": "key", "key": "a: b"})])
def test_kubernetes_takes_what_is_added(added: Values) -> None:
    assert complaints(documents(merged(EVERYWHERE, added)), KUBERNETES[-1]) == []


def test_the_objectives_are_written_before_anything_else_of_a_job_starts() -> None:
    assert [one["name"] for one in pod(EVERYWHERE, "nightly")["initContainers"]] == ["objectives", "before"]


# --- labels, images, nodes ---------------------------------------------------------------------------------------------------


class _OnceOnly(yaml.SafeLoader):
    """Refuses a key that comes twice, as other YAML readers do; Helm's takes the last."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        assert len(keys) == len(set(keys)), keys
        return dict(super().construct_mapping(node, deep))


def test_a_label_of_one_kind_wins_over_that_of_all() -> None:
    own: Values = {"labels": {"team": "own"}}
    shipped = {"rules": {"enabled": True} | own, "dashboards": {"enabled": True} | own}
    watched = {"serviceMonitor": {"enabled": True} | own} | at("prober.podLabels", {"team": "own"})
    values = merged(LINKS, shipped, watched, {"commonLabels": {"team": "all", "unit": "u"}})
    for name, text in rendered(values).items():
        if name.endswith(".yaml"):
            list(yaml.load_all(text, Loader=_OnceOnly))
    found = [one["metadata"]["labels"] for one in of_kind(values, "ServiceMonitor", "PrometheusRule")]
    found += [only(values, "StatefulSet")["spec"]["template"]["metadata"]["labels"]]
    assert {(labels["team"], labels["unit"]) for labels in found} == {("own", "u")}
    assert only(values, "StatefulSet")["metadata"]["labels"]["team"] == "all"


@pytest.mark.parametrize(
    ("image", "reference"),
    [
        ({"registry": "r.example.com/"}, "r.example.com/ordering-keys-prober:0.1.0"),
        ({"repository": "localhost:5000/probers/okp", "tag": "1"}, "localhost:5000/probers/okp:1"),
        ({"digest": f"sha256:{'0' * 64}"}, f"ordering-keys-prober:0.1.0@sha256:{'0' * 64}"),
    ],
)
def test_images_by_their_usual_names(image: Values, reference: str) -> None:
    assert container(pod({"image": image}, "prober"), "prober")["image"] == reference


@pytest.mark.parametrize("cpu", [0.5, 1, "250m", "1.5"])
def test_quantities_may_be_numbers(cpu: float | str) -> None:
    values = at("prober.resources.requests.cpu", cpu)
    assert container(pod(values, "prober"), "prober")["resources"]["requests"]["cpu"] == cpu
    assert complaints(documents(values), KUBERNETES[-1]) == []


def test_helm_test_runs_where_the_pods_that_it_asks_run() -> None:
    """A namespace whose nodes all have a taint would never start it otherwise."""
    placed = {"nodeSelector": {"pool": "probers"}, "tolerations": [{"key": "dedicated", "operator": "Exists"}]}
    spec = only(merged(POSTGRESQL, at("api", {"enabled": True} | placed)), "Pod")["spec"]
    assert {key: spec[key] for key in placed} == placed
    assert not only({}, "Pod")["spec"].keys() & placed.keys()


# --- users -------------------------------------------------------------------------------------------------------------------


def test_a_platform_may_give_the_user() -> None:
    """OpenShift refuses a pod that asks for a user which is not of its namespace; root it is all the same not."""
    for name, found in pods(CASES["openshift"]):
        contexts = [found["securityContext"], *(one["securityContext"] for one in found["containers"])]
        assert not any(context.keys() & {"runAsUser", "runAsGroup", "fsGroup"} for context in contexts), name
        assert all(context["runAsNonRoot"] is True for context in contexts), name


def test_another_user_is_the_user_of_every_pod() -> None:
    values = merged(EVERYWHERE, at("podSecurityContext", {"runAsUser": 20000, "fsGroup": 30000}))
    for name, found in pods(values):
        assert found["securityContext"]["runAsUser"] == 20000, name
        assert found["securityContext"]["fsGroup"] == 30000, name


# --- who they are for Google Cloud -------------------------------------------------------------------------------------------


def test_on_gke_nothing_is_mounted() -> None:
    for name, found in pods(CASES["gke"]):
        assert not any(volume["name"] == "google" for volume in found.get("volumes", [])), name
        assert "GOOGLE_APPLICATION_CREDENTIALS" not in str(found), name


def test_a_key_goes_to_the_component_that_it_is_for() -> None:
    values = merged(EVERYWHERE, at("serviceAccounts.prober.keySecret", {"name": "mine", "key": "a.json"}))
    found = pod(values, "prober")
    (volume,) = (volume for volume in found["volumes"] if "secret" in volume)
    assert volume["secret"] == {"secretName": "mine", "items": [{"key": "a.json", "path": "credentials.json"}]}
    _points_to_its_file(found, "prober")
    assert not any("secret" in volume for component in ("api", "nightly") for volume in pod(values, component)["volumes"])


@pytest.mark.parametrize("component", sorted(COMPONENTS))
def test_federation_gives_each_component_a_token_of_its_own(component: str) -> None:
    found = pod(merged(EVERYWHERE, FEDERATION), component)
    (volume,) = (volume for volume in found["volumes"] if "projected" in volume)
    file, token = volume["projected"]["sources"]
    assert file["configMap"]["items"][0]["key"] == {"nightly": "jobs"}.get(component, component) + ".json"
    assert (
        token["serviceAccountToken"]["audience"]
        == f"https://iam.googleapis.com/{FEDERATION['workloadIdentityFederation']['provider']}"
    )
    assert found["automountServiceAccountToken"] is False
    _points_to_its_file(found, component)


def _points_to_its_file(found: Pod, component: str) -> None:
    own = container(found, component)
    (mount,) = (mount for mount in own["volumeMounts"] if mount["name"] == "google")
    (path,) = (one["value"] for one in own["env"] if one["name"] == "GOOGLE_APPLICATION_CREDENTIALS")
    assert path == f"{mount['mountPath']}/credentials.json"
    assert mount["readOnly"] is True


def test_another_audience_and_another_life_of_the_token() -> None:
    values = merged(
        EVERYWHERE, FEDERATION, at("workloadIdentityFederation", {"audience": "sts.example.com", "tokenExpirationSeconds": 600})
    )
    (volume,) = (volume for volume in pod(values, "prober")["volumes"] if "projected" in volume)
    token = volume["projected"]["sources"][1]["serviceAccountToken"]
    assert token == {"path": "token", "audience": "sts.example.com", "expirationSeconds": 600}


def test_another_identity_makes_other_pods() -> None:
    def annotations(values: Values) -> dict[str, str]:
        return dict(only(values, "StatefulSet")["spec"]["template"]["metadata"]["annotations"])

    federated = merged(EVERYWHERE, FEDERATION)
    other = merged(federated, at("serviceAccounts.prober.impersonate", "prober@p.iam.gserviceaccount.com"))
    assert annotations(federated) != annotations(other)
    assert "checksum/google" not in annotations(EVERYWHERE)


class _Exchange(BaseHTTPRequestHandler):
    """Google's token service, and what lets a federated identity act as a service account."""

    asked: list[tuple[str, str]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        type(self).asked.append((self.path, body))
        federated = {"access_token": "federated", "issued_token_type": "t", "token_type": "Bearer", "expires_in": 3600}
        impersonated = {"accessToken": "impersonated", "expireTime": "2099-01-01T00:00:00Z"}
        text = json.dumps(federated if self.path == "/v1/token" else impersonated).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.mark.parametrize(("impersonate", "token"), [("", "federated"), ("prober@p.iam.gserviceaccount.com", "impersonated")])
def test_google_s_library_exchanges_the_token_by_the_rendered_file(impersonate: str, token: str, tmp_path: Path) -> None:
    values = merged(EVERYWHERE, FEDERATION, at("serviceAccounts.prober.impersonate", impersonate))
    (tmp_path / "token").write_text("of the service account", encoding="utf-8")
    text = only(values, "ConfigMap", "-google")["data"]["prober.json"].replace("/var/run/google", str(tmp_path))
    _Exchange.asked = []
    with ThreadingHTTPServer(("127.0.0.1", 0), _Exchange) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for host in ("https://sts.googleapis.com", "https://iamcredentials.googleapis.com"):
            text = text.replace(host, f"http://127.0.0.1:{server.server_port}")
        credentials: Any = identity_pool.Credentials.from_info(json.loads(text), scopes=["https://www.googleapis.com/auth/pubsub"])  # type: ignore[no-untyped-call]
        credentials.refresh(google.auth.transport.requests.Request())
        server.shutdown()
    assert credentials.token == token
    exchanged = urllib.parse.parse_qs(_Exchange.asked[0][1])
    assert exchanged["subject_token"] == ["of the service account"]
    assert exchanged["audience"] == [f"//iam.googleapis.com/{FEDERATION['workloadIdentityFederation']['provider']}"]
    assert len(_Exchange.asked) == (2 if impersonate else 1)


# --- budgets, health checks, scrapes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", ["production", "canary", "staging", "test", "several-probers", "outside-google"])
def test_nodes_can_be_drained_and_each_pod_is_scraped_once(case: str) -> None:
    budgets = [budget["spec"] for budget in of_kind(CASES[case], "PodDisruptionBudget")]
    services = of_kind(CASES[case], "Service")
    for name, template in pod_templates(CASES[case]):
        if name.startswith(("StatefulSet", "Deployment")):
            labels = template["metadata"]["labels"].items()
            (own,) = (budget for budget in budgets if budget["selector"]["matchLabels"].items() <= labels)
            assert own["maxUnavailable"], name
            pod_monitors = of_kind(CASES[case], "PodMonitor", "PodMonitoring")
            scrapes = [one for one in pod_monitors if one["spec"]["selector"]["matchLabels"].items() <= labels]
            for monitor in of_kind(CASES[case], "ServiceMonitor"):
                wanted = monitor["spec"]["selector"]["matchLabels"].items()
                behind = [one for one in services if one["spec"]["selector"].items() <= labels]
                scrapes += [one for one in behind if wanted <= one["metadata"]["labels"].items()]
            assert len(scrapes) == 1, name


def test_budgets_can_be_switched_off_and_changed() -> None:
    assert not of_kind(merged(EVERYWHERE, at("podDisruptionBudget.enabled", False)), "PodDisruptionBudget")
    budgets = of_kind(merged(EVERYWHERE, at("podDisruptionBudget.maxUnavailable", "50%")), "PodDisruptionBudget")
    assert [budget["spec"]["maxUnavailable"] for budget in budgets] == ["50%", "50%"]


def test_a_gateway_asks_for_what_needs_no_token() -> None:
    assert CASES["gke"]["config"]["api"]["reads"] == "token"
    policy = only(CASES["gke"], "HealthCheckPolicy", "prober")["spec"]
    service = only(CASES["gke"], "Service", policy["targetRef"]["name"])
    assert [rule["backendRefs"][0]["name"] for rule in only(CASES["gke"], "HTTPRoute", "prober")["spec"]["rules"]] == [
        service["metadata"]["name"]
    ]
    asked = policy["default"]["config"]["httpHealthCheck"]
    assert asked["requestPath"] in OPEN_PATHS
    assert asked["portSpecification"] == "USE_SERVING_PORT"


def test_the_notes_say_what_a_gateway_needs() -> None:
    def notes(values: Values) -> str:
        return rendered(values)["ordering-keys-prober/templates/NOTES.txt"]

    hint = "On GKE set healthCheckPolicy.enabled"
    assert hint in notes(merged(CASES["gke"], at("healthCheckPolicy.enabled", False)))
    assert hint not in notes(CASES["gke"])
    assert hint not in notes(merged(CASES["gke"], at("healthCheckPolicy.enabled", False), at("config.api.reads", "open")))


DROP = [{"action": "drop", "sourceLabels": ["__name__"], "regex": "python_gc_.*"}]


@pytest.mark.parametrize(
    ("kind", "section", "endpoints", "field"),
    [
        ("ServiceMonitor", "serviceMonitor", "endpoints", "metricRelabelings"),
        ("PodMonitor", "podMonitor", "podMetricsEndpoints", "metricRelabelings"),
        ("PodMonitoring", "podMonitoring", "endpoints", "metricRelabeling"),
    ],
)
def test_series_can_be_left_out_at_the_scrape(kind: str, section: str, endpoints: str, field: str) -> None:
    values = merged(at(f"{section}.enabled", True), at("scrape.metricRelabelings", DROP))
    (endpoint,) = only(values, kind)["spec"][endpoints]
    assert endpoint[field] == DROP
    (plain,) = only(at(f"{section}.enabled", True), kind)["spec"][endpoints]
    assert field not in plain


def test_the_environment_is_complete_in_the_order_that_it_needs() -> None:
    """A variable that refers to one before it, such as the name of the pod."""
    values = at("prober.extraEnv", [{"name": "LABEL", "value": "pod=$(ORDERING_PROBER_INSTANCE)"}])
    assert environment(container(pod(values, "prober"), "prober"), {})["LABEL"] == "pod=okp-0"
