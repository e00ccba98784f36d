"""What stands in for Kubernetes around one container: folders for volumes, a free port for its port, the kubelet's questions."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tests.helm.chart import CONFIG, Values, configuration, containers, environment, only, pods
from tests.integration.programs import eventually, get

PORT = 8080


@dataclass(frozen=True)
class Place:
    """Where a pod's volumes are, and which port it has instead of its own."""

    folder: Path
    port: int

    @property
    def url(self) -> str:
        """What the Service stands for."""
        return f"http://127.0.0.1:{self.port}"

    def volume(self, mount_path: str) -> Path:
        """The folder that is, or stands for, a mounted one."""
        return self.folder / mount_path.lstrip("/")

    def moved(self, text: str, container: Mapping[str, Any]) -> str:
        """A text that names the folders of here where it names mounted ones."""
        mounts = "|".join(re.escape(mount["mountPath"]) for mount in container["volumeMounts"])
        return re.sub(rf"({mounts})/", rf"{self.folder}\1/", text)


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def container_named(values: Values, name: str) -> dict[str, Any]:
    """The container of this name."""
    (found,) = (container for _, pod in pods(values) for container in containers(pod) if container["name"] == name)
    return found


def prepared(values: Values, name: str, folder: Path) -> tuple[dict[str, Any], Place, str]:
    """A container, the place for it with its volumes made, and its configuration with the port of here."""
    container, place = container_named(values, name), Place(folder, free_port())
    for mount in container["volumeMounts"]:
        place.volume(mount["mountPath"]).mkdir(parents=True, exist_ok=True)
    text = configuration(values).replace(f"port: {PORT}", f"port: {place.port}").replace("0.0.0.0", "127.0.0.1")
    return container, place, text


def configure(place: Place, text: str) -> None:
    """Puts the configuration file where it is mounted."""
    (place.volume("/etc/ordering-prober") / CONFIG).write_text(text, encoding="utf-8")


def probed(container: Mapping[str, Any], place: Place) -> None:
    """Asks what the kubelet asks, as long as it would before it gives up."""
    assert {port["containerPort"] for port in container["ports"] if port["name"] == "http"} == {PORT}
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        asked = container[probe]["httpGet"]
        assert asked["port"] == "http"
        patience_s = float(container[probe]["periodSeconds"] * container[probe]["failureThreshold"])
        eventually(partial(_answers, place.url + asked["path"]), patience_s)


def _answers(url: str) -> bool:
    try:
        return bool(get(url))
    except OSError:
        return False


def helm_test(values: Values, place: Place, secrets: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """What `helm test` runs, with the Service's address replaced."""
    (container,) = only(values, "Pod")["spec"]["containers"]
    script, url = container["args"]
    assert url == "http://okp-ordering-keys-prober.probing.svc:80"
    command = [sys.executable, *container["command"][1:], script, place.url]
    return subprocess.run(command, env=environment(container, secrets), capture_output=True, text=True, check=False)
