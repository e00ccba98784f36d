"""As much of a Kubernetes API as Helm asks for when it renders for an upgrade: version, kinds, the StatefulSets that are there."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import helm_python as helm

from tests.helm.chart import NAMESPACE, RELEASE, Document, Values, chart

_APPS = "/apis/apps/v1"
_KINDS: dict[str, Mapping[str, Any]] = {
    "/version": {"major": "1", "minor": "32", "gitVersion": "v1.32.0"},
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/api/v1": {"kind": "APIResourceList", "groupVersion": "v1", "resources": []},
    "/apis": {
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": [
            {
                "name": "apps",
                "versions": [{"groupVersion": "apps/v1", "version": "v1"}],
                "preferredVersion": {"groupVersion": "apps/v1", "version": "v1"},
            }
        ],
    },
    _APPS: {
        "kind": "APIResourceList",
        "groupVersion": "apps/v1",
        "resources": [
            {"name": "statefulsets", "singularName": "statefulset", "namespaced": True, "kind": "StatefulSet", "verbs": ["get"]}
        ],
    },
}


_AFTERWARDS = "unable to build kubernetes objects from release manifest"
"""What Helm says once it has rendered, and finds that there is no cluster to check the result with."""


def rendered_for(values: Values, *there: Document) -> None:
    """Renders for a cluster in which these StatefulSets are, as `helm upgrade --dry-run=server` does. Raises what Helm then raises."""
    with _serving(*there) as address:
        about = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "one", "cluster": {"server": address}}],
            "contexts": [{"name": "one", "context": {"cluster": "one", "user": "one"}}],
            "current-context": "one",
            "users": [{"name": "one", "user": {}}],
        }
        with helm.Config(kubeconfig_content=json.dumps(about), namespace=NAMESPACE, storage_driver="memory") as cluster:
            try:
                cluster.install(chart(), RELEASE, values, dry_run="server")
            except helm.HelmReleaseError as error:
                if not str(error).startswith(_AFTERWARDS):
                    raise


@contextmanager
def _serving(*there: Document) -> Iterator[str]:
    objects = dict(_KINDS)
    for found in there:
        objects[f"{_APPS}/namespaces/{NAMESPACE}/statefulsets/{found['metadata']['name']}"] = found

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = objects.get(self.path.partition("?")[0])
            text = json.dumps(found or {"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404}).encode()
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
