"""What is shown of a configuration: everything but its secrets, so that it can be loaded again."""

from __future__ import annotations

from pathlib import Path

import pytest

from prober.config.loading import load, show
from prober.errors import ConfigError
from tests.unit.config.writing import loaded, problems

SECRET = "correct-horse"
EUROPE = "{name: eu, endpoint: europe-west1, project: my-project, environment: production}"


def test_a_token_does_not_belong_into_a_file(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, f"api: {{token: {SECRET}}}")
    assert problem == "api.token: must not be in a file; set ORDERING_PROBER_API__TOKEN"


def test_secrets_are_never_printed(tmp_path: Path) -> None:
    config = loaded(
        tmp_path,
        f"status: {{url: 'postgresql+psycopg://prober:{SECRET}@db:5432/prober'}}",
        {"ORDERING_PROBER_API__TOKEN": SECRET},
    )
    assert config.api.token is not None
    assert SECRET in config.api.token.get_secret_value()
    assert SECRET not in f"{config} {config!r} {show(config)} {config.model_dump_json()}"
    assert "token: '**********'" in show(config)
    assert "postgresql+psycopg://prober:**********@db:5432/prober" in show(config)


@pytest.mark.parametrize(
    "text",
    [
        f"status: {{url: 'mysql://prober:{SECRET}@db/prober'}}",
        f"status: {{url: [{SECRET}]}}",
        f"history: {{location: 's3://key:{SECRET}@bucket/x'}}",
        f"drills: {{prometheus: 'http://u:{SECRET}@host'}}",
        f"api: {{token: {SECRET}}}",
    ],
)
def test_problems_do_not_print_secrets(tmp_path: Path, text: str) -> None:
    assert SECRET not in "".join(problems(tmp_path, text))


def test_what_is_shown_can_be_loaded_again(tmp_path: Path) -> None:
    config = loaded(
        tmp_path,
        f"""
        targets: [{EUROPE}, {{name: here, labels: {{team: a}}, probes: {{affinity: {{schedule: {{cron: "0 * * * *"}}, keys: 30}}}}}}]
        slos: {{redelivery: false, fast: {{indicator: end_to_end_latency, objective: 95%, threshold: 250ms}}}}
        history: {{location: gs://bucket/history, size_max: 10GiB}}
        maintenance: [{{target: here, from: 2026-01-01T00:00:00+02:00, to: 2026-01-02T00:00:00Z, reason: "a: b"}}]
        embedded: {{faults: [jitter, "drop:p=0.1,key=a*"]}}
        """,
    )
    again = loaded(tmp_path, show(config))
    assert show(again) == show(config)
    assert again == config


def test_without_a_file_the_emulator_of_the_environment_is_the_target() -> None:
    (target,) = load(None, {"PUBSUB_EMULATOR_HOST": "localhost:8085"}).targets
    assert (target.name, target.endpoint, target.peer, target.region) == ("emulator", "localhost:8085", "localhost:8085", "local")
    assert set(target.probes) == set(load(None, {}).targets[0].probes)
    named = {"ORDERING_PROBER_TARGETS__0__NAME": "shop", "ORDERING_PROBER_TARGETS__0__ENDPOINT": "embedded"}
    assert load(None, {"PUBSUB_EMULATOR_HOST": "localhost:8085", **named}).targets[0].is_embedded
    with pytest.raises(ConfigError, match="PUBSUB_EMULATOR_HOST: endpoint 'localhost' has no port"):
        load(None, {"PUBSUB_EMULATOR_HOST": "localhost"})
