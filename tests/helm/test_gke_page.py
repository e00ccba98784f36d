"""What can be known without Google Cloud of docs/gke.md: its commands, its values, its permissions, its figures."""

from __future__ import annotations

import re
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from prober.cli.cleanup import cleanup
from prober.probes.cost import MONTH_S, message_bytes
from prober.schedule.forecast import monthly_cost
from tests.architecture import tree
from tests.commands import ROOT
from tests.helm.chart import CASES, RELEASE, Values, documents, merged
from tests.helm.costs import Environment
from tests.helm.test_configuration import loaded

FILE = ROOT / "docs" / "gke.md"
TEXT = FILE.read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```sh\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
SCRIPT = "\n".join(BLOCKS)
ENVIRONMENT = {
    "PROJECT": "my-prober-project",
    "REGION": "europe-west1",
    "IMAGES": "europe-west1-docker.pkg.dev/my-prober-project/probers",
    "BUCKET": "my-prober-project-history",
    "DOMAIN": "prober.example.com",
}

PERMISSIONS = {
    "CreateTopic": {"pubsub.topics.create"},
    "GetTopic": {"pubsub.topics.get"},
    "DeleteTopic": {"pubsub.topics.delete"},
    "ListTopics": {"pubsub.topics.list"},
    "Publish": {"pubsub.topics.publish"},
    "CreateSubscription": {"pubsub.subscriptions.create", "pubsub.topics.attachSubscription"},
    "GetSubscription": {"pubsub.subscriptions.get"},
    "UpdateSubscription": {"pubsub.subscriptions.update"},
    "DeleteSubscription": {"pubsub.subscriptions.delete"},
    "ListSubscriptions": {"pubsub.subscriptions.list"},
    "Pull": {"pubsub.subscriptions.consume"},
    "StreamingPull": {"pubsub.subscriptions.consume"},
    "Acknowledge": {"pubsub.subscriptions.consume"},
    "ModifyAckDeadline": {"pubsub.subscriptions.consume"},
    "Seek": {"pubsub.subscriptions.consume", "pubsub.snapshots.seek"},
    "CreateSnapshot": {"pubsub.snapshots.create", "pubsub.subscriptions.consume"},
    "DeleteSnapshot": {"pubsub.snapshots.delete"},
}
"""What each procedure of Pub/Sub asks for (cloud.google.com/pubsub/docs/access-control)."""


def written(name: str) -> Values:
    """A values file that the page writes, with the variables of the shell put in."""
    (text,) = re.findall(rf"^cat > {re.escape(name)} <<END\n(.*?)^END$", SCRIPT, re.MULTILINE | re.DOTALL)
    return dict(yaml.safe_load(re.sub(r"\$([A-Z]+)", lambda found: ENVIRONMENT[found[1]], text)))


FIRST, PRODUCTION = written("first.yaml"), merged(CASES["production"], written("own.yaml"))
EITHER = pytest.mark.parametrize("values", [FIRST, PRODUCTION], ids=["first", "production"])


@pytest.mark.parametrize("block", BLOCKS)
def test_the_shell_understands_every_block(block: str) -> None:
    asked = subprocess.run(["bash", "-n"], input=block, text=True, capture_output=True, check=False)
    assert (asked.returncode, asked.stderr) == (0, "")


def test_every_variable_is_set_before_it_is_used() -> None:
    known = {"EDITOR"}
    for line in re.sub(r"<<'END'\n.*?^END$", "", SCRIPT, flags=re.MULTILINE | re.DOTALL).splitlines():
        used = set(re.findall(r"(?<!\\)\$\{?([A-Za-z_]+)", line))
        assigned = (
            re.findall(r"([A-Za-z_]+)=", line) if line.strip().startswith("export ") else re.findall(r"^\s*for (\w+) in", line)
        )
        assert used - set(assigned) <= known, line
        known |= set(assigned)


@EITHER
def test_the_chart_and_the_program_accept_the_values(values: Values, tmp_path: Path) -> None:
    config = loaded(values, "prober", tmp_path)
    assert {target.project for target in config.targets} == {ENVIRONMENT["PROJECT"]}


def test_what_the_commands_name_is_what_the_chart_makes() -> None:
    made = {(one["kind"].lower(), one["metadata"]["name"]) for one in documents(PRODUCTION)}
    named = set(re.findall(rf"\b(statefulset|service|configmap)[/ ]({RELEASE}-[\w-]+)", SCRIPT))
    assert named
    assert named <= made
    accounts = set(re.findall(rf"\$POOL/({RELEASE}-[\w-]+)", SCRIPT))
    assert {("serviceaccount", name) for name in accounts} == {one for one in made if one[0] == "serviceaccount"}
    assert set(re.findall(rf"exec ({RELEASE}-[\w-]+)", TEXT)) == {f"{next(name for kind, name in made if kind == 'statefulset')}-0"}
    secrets = set(re.findall(r"create secret generic ([\w-]+)", SCRIPT))
    own = written("own.yaml")
    assert {own[part]["existingSecret"]["name"] for part in ("status", "api")} == secrets - {"alertmanager"}
    (stateful,) = (one for one in documents(PRODUCTION) if one["kind"] == "StatefulSet")
    assert stateful["spec"]["selector"]["matchLabels"]["app.kubernetes.io/instance"] == RELEASE


def test_the_role_has_the_permissions_of_the_calls_that_the_program_makes() -> None:
    paths = r"(?:google\.pubsub\.v1\.(?:Publisher|Subscriber)/|\{_(?:PUBLISHER|SUBSCRIBER)\})(\w+)"
    called = {name for path, text in tree.sources("prober") if "brokers" in path.parts for name in re.findall(paths, text)}
    needed = set[str]().union(*(PERMISSIONS[name] for name in called))
    (granted,) = re.findall(r"--permissions \\\n((?:[\w.,]+\\?\n)+)", SCRIPT)
    assert set(re.findall(r"pubsub\.\w+\.\w+", granted)) == needed
    explained = re.search(r"\| permission \|.*?\n\n", TEXT, re.DOTALL)
    assert explained is not None
    assert set(re.findall(r"pubsub\.\w+\.\w+", explained[0])) == needed


def test_the_options_of_cleanup_are_those_of_the_command() -> None:
    explained = re.search(r"\| option \|.*?\n\n", TEXT, re.DOTALL)
    assert explained is not None
    command: Any = typer.main.get_command(_alone())
    options = {name for option in command.params for name in option.opts} - {"--help"}
    assert set(re.findall(r"--[a-z][\w-]+", explained[0])) == options


def _alone() -> typer.Typer:
    app = typer.Typer(add_completion=False)
    app.command()(cleanup)
    return app


def test_files_that_it_names_exist() -> None:
    for name in re.findall(r"(?:^|\s)((?:alerts|helm)/[\w./-]+)", SCRIPT):
        assert (ROOT / name).exists(), name
    for name, anchor in re.findall(r"\]\(([\w./-]*)#?([\w-]*)\)", TEXT):
        target = FILE.parent / name if name else FILE
        assert target.exists(), name
        headings = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.MULTILINE)
        assert not anchor or anchor in map(partial(re.sub, r"[^\w-]", ""), (one.lower().replace(" ", "-") for one in headings)), (
            anchor
        )


def test_the_quotas_are_compared_with_what_production_uses() -> None:
    instances = Environment("production").probe_instances
    assert sum(len(instance.experiment.subscriptions) for instance in instances) < 100
    assert sum(instance.settings.subscribers for instance in instances) < 200
    ordering = next(instance for instance in instances if instance.probe == "ordering")
    each = message_bytes(ordering.settings.sizes)
    assert f"| {ordering.settings.rate / ordering.keys * each / 1e6:.2f} MB/s while a burst is sent |" in TEXT
    bursts = sum(instance.settings.rate for instance in instances) * each
    assert 1e6 < bursts < 2e6  # "under 2 MB/s while bursts are sent"
    here = [
        (cost.runs, cost.traffic)
        for cost in (monthly_cost(instance) for instance in instances if instance.target is ordering.target)
    ]
    average = sum(runs * traffic.published for runs, traffic in here) * each / MONTH_S
    assert f"{average / 1e6:.1f} MB/s per target on average" in TEXT
