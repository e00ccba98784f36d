"""The examples: each runs, or is valid for the program that reads it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import yaml

from tests.alerts.tools import said
from tests.commands import ROOT
from tests.forking import called
from tests.integration.embedded import WAIT_S, running

EXAMPLES = ROOT / "examples"
COMPOSE = EXAMPLES / "compose"
TOPIC = "projects/shop/topics/orders"


def test_the_page_lists_every_example() -> None:
    linked = {link.partition("/")[0] for link in re.findall(r"\]\(([^).][^)]*)\)", (EXAMPLES / "README.md").read_text("utf-8"))}
    assert linked == {path.name for path in EXAMPLES.iterdir()} - {"README.md"}


def test_the_trace_shows_a_violation() -> None:
    done = called("verify", "examples/skipped-redelivery.jsonl")
    assert done.returncode == 1
    assert "REDELIVERY_SKIP" in done.stdout


def test_the_publisher_records_what_it_publishes(tmp_path: Path) -> None:
    record = tmp_path / "orders.publishes.jsonl"
    with running() as server:
        environment = {**os.environ, "PUBSUB_EMULATOR_HOST": server.address, "PYTHONPATH": str(ROOT)}
        create = f"from google.cloud.pubsub_v1 import PublisherClient; PublisherClient().create_topic(name={TOPIC!r})"
        subprocess.run([sys.executable, "-c", create], env=environment, check=True, timeout=WAIT_S)
        command = [sys.executable, str(EXAMPLES / "publisher" / "publish.py"), TOPIC, str(record)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=WAIT_S, check=False)
    assert (done.returncode, done.stdout) == (0, f"100 of 100 messages confirmed; the record is in {record}\n"), done.stderr
    events = Counter(json.loads(line).get("event") for line in record.read_text(encoding="utf-8").splitlines()[1:])
    assert events == {"publish": 100, "published": 100}


def test_the_compose_file_is_valid_and_mounts_what_exists() -> None:
    file = COMPOSE / "compose.yaml"
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    services = yaml.safe_load(file.read_text(encoding="utf-8"))["services"]
    mounts = [mount.partition(":")[0] for service in services.values() for mount in service["volumes"]]
    assert all((COMPOSE / source).exists() for source in mounts if source.startswith("."))
    assert called("config", "check", str(COMPOSE / "prober.yaml")).returncode == 0
    code, words = said("promtool", "check", "config", COMPOSE / "prometheus.yaml")
    assert code == 0, words
