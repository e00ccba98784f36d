"""What a configuration file and the environment mean, and what is wrong with wrong ones."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pydantic import ValidationError

from prober.brokers.base import Vantage
from prober.config.defaults import DEFAULT_SLOS
from prober.config.loading import load
from prober.config.sections import LogLevel
from prober.errors import ConfigError
from prober.probes.catalogue import ProbeName
from prober.slo.indicators import Indicator
from prober.slo.objectives import DEFAULTS
from tests.unit.config.writing import loaded, problems

EUROPE = "{name: eu, endpoint: europe-west1, project: my-project, environment: production}"


# -------------------------------------------------------------------------------------------------------------- defaults


def test_without_a_file_one_embedded_target_has_all_probes() -> None:
    config = load(None, {})
    (target,) = config.targets
    assert (target.name, target.endpoint, target.environment, target.region) == ("embedded", "embedded", "test", "local")
    assert target.is_embedded
    assert set(target.probes) == set(ProbeName) - {ProbeName.OBSERVE} == set(config.probes) - {ProbeName.OBSERVE}


def test_an_empty_file_says_nothing(tmp_path: Path) -> None:
    assert loaded(tmp_path, "") == load(None, {})


def test_the_default_objectives_are_those_of_the_catalogue_that_a_probe_feeds() -> None:
    objectives = {objective.indicator: objective for objective in load(None, {}).objectives}
    assert {str(indicator): (one.target, one.threshold_s) for indicator, one in objectives.items()} == {
        "order": (0.9999, None),
        "redelivery": (0.999, None),
        "affinity": (0.99, None),
        "completeness": (0.9999, None),
        "publish_availability": (0.9995, None),
        "publish_latency": (0.99, 0.5),
        "end_to_end_latency": (0.99, 1.0),
        "pull_latency": (0.99, 1.0),
        "push_latency": (0.99, 1.0),
        "control_plane_latency": (0.99, 5.0),
        "creation_to_receipt_latency": (0.99, 10.0),
        "oldest_unacked_message_age": (0.99, 60.0),
        "stalled_keys": (0.999, None),
        "head_of_line_delay": (0.99, 1.0),
    }
    assert {objective.window_s for objective in objectives.values()} == {30 * 86400}


# ------------------------------------------------------------------------------------------------------------------ files


def test_a_target_overrides_the_shared_settings_key_by_key(tmp_path: Path) -> None:
    config = loaded(
        tmp_path,
        f"""
        targets:
          - {EUROPE}
          - name: here
            probes:
              ordering: {{keys: 7, deadlines: {{publish: 3s}}, schedule: {{cron: "* * * * *"}}}}
              affinity:
        probes:
          ordering: {{messages: 44, deadlines: {{drain: 5m}}}}
        """,
    )
    shared = config.probes[ProbeName.ORDERING]
    assert config.probes.keys() - config.targets[0].probes == {ProbeName.PUSH, ProbeName.REGION, ProbeName.OBSERVE}
    assert set(config.targets[1].probes) == {ProbeName.ORDERING, ProbeName.AFFINITY}
    own = config.targets[1].probes[ProbeName.ORDERING]
    assert (own.keys, own.messages, own.subscribers) == (7, 44, shared.subscribers)
    assert (own.deadlines.publish, own.deadlines.drain) == (timedelta(seconds=3), timedelta(minutes=5))
    assert (own.schedule.interval, str(own.schedule.cron)) == (None, "* * * * *")
    assert shared.deadlines.publish == timedelta(seconds=10)


def test_default_objectives_of_probes_that_run_nowhere_are_left_out(tmp_path: Path) -> None:
    config = loaded(tmp_path, "targets: [{name: here, probes: [affinity]}]")
    assert set(config.slos) == {"affinity", "oldest_unacked_message_age", "stalled_keys"}


def test_every_objective_that_is_there_by_default_is_counted_by_the_default_probes() -> None:
    assert set(load(None, {}).slos) == set(DEFAULT_SLOS)


def test_the_nightly_jobs_have_the_same_objectives_by_default() -> None:
    assert load(None, {}).objectives == DEFAULTS


def test_an_objective_that_is_not_there_may_be_left_out(tmp_path: Path) -> None:
    assert loaded(tmp_path, "slos: {of_another_version: false}").slos == load(None, {}).slos


def test_objectives_are_changed_added_and_left_out_by_name(tmp_path: Path) -> None:
    config = loaded(
        tmp_path,
        """
        slos:
          order: {objective: 99.5%, labels: {team: messaging}}
          affinity: false
          fast: {indicator: end_to_end_latency, objective: 0.9, threshold: 250ms, window: 7d}
        """,
    )
    assert config.slos["order"].objective == 0.995
    assert config.slos["order"].indicator is Indicator.ORDER
    assert config.slos["order"].labels == {"team": "messaging"}
    assert "affinity" not in config.slos
    (fast,) = [objective for objective in config.objectives if objective.name == "fast"]
    assert (fast.target, fast.threshold_s, fast.window_s) == (0.9, 0.25, 7 * 86400)


@pytest.mark.parametrize(
    ("endpoint", "region"),
    [
        ("global", "global"),
        ("europe-west1", "europe-west1"),
        ("us-east4-pubsub.googleapis.com:443", "us-east4"),
        ("pubsub.us-east4.rep.googleapis.com", "us-east4"),
        ("localhost:8085", "local"),
    ],
)
def test_the_region_is_what_the_endpoint_says_unless_written(tmp_path: Path, endpoint: str, region: str) -> None:
    target = f"name: a, project: p1, environment: test, endpoint: '{endpoint}'"
    config = loaded(tmp_path, f"targets: [{{{target}}}, {{{target.replace('a,', 'b,', 1)}, region: elsewhere}}]")
    assert [target.region for target in config.targets] == [region, "elsewhere"]


def test_maintenance_covers_a_target_or_a_region(tmp_path: Path) -> None:
    config = loaded(
        tmp_path,
        f"""
        targets: [{EUROPE}, {{name: here}}]
        maintenance:
          - {{region: europe-west1, from: 2026-12-24T18:00:00Z, to: 2026-12-24T20:00:00+01:00, reason: works}}
          - {{target: here, cron: "30 2 * * sun", duration: 90m}}
        """,
    )
    europe, here = config.targets

    def under(month: int, day: int, hour: int, minute: int) -> tuple[bool, bool]:
        at = datetime(2026, month, day, hour, minute, tzinfo=UTC)
        return config.maintenance_of(europe, at) is not None, config.maintenance_of(here, at) is not None

    assert under(12, 24, 17, 59) == (False, False)
    assert under(12, 24, 18, 0) == (True, False)
    assert under(12, 24, 19, 0) == (False, False)
    assert under(12, 27, 2, 29) == (False, False)
    assert under(12, 27, 2, 30) == (False, True)  # a Sunday
    assert under(12, 27, 3, 59) == (False, True)
    assert under(12, 27, 4, 0) == (False, False)


def test_values_are_frozen() -> None:
    with pytest.raises((ValidationError, FrozenInstanceError)):
        load(None, {}).api.port = 1


@pytest.mark.parametrize(
    ("endpoint", "push", "runs"),
    [
        ("europe-west1", "", False),
        ("127.0.0.1:8085", "", True),
        ("'[::1]:8085'", "", True),
        ("emulator.test:8085", "", False),
        ("emulator.test:8085", "{address: 'http://push.test', port: 81}", True),
        ("global", "{address: 'https://push.test', port: 81, service_account: push@p.iam.gserviceaccount.com}", True),
    ],
)
def test_by_default_messages_are_pushed_where_that_is_possible(tmp_path: Path, endpoint: str, push: str, runs: bool) -> None:
    target = f"{{name: one, project: p1, environment: test, endpoint: {endpoint}}}"
    config = loaded(tmp_path, f"targets: [{target}]\npush: {push}\n")
    assert (ProbeName.PUSH in config.targets[0].probes) is runs


# ----------------------------------------------------------------------------------------------------------- environment


def test_every_key_can_come_from_the_environment(tmp_path: Path) -> None:
    config = loaded(
        tmp_path,
        "api: {port: 1, host: example}",
        {
            "ORDERING_PROBER_API__PORT": "9090",
            "ORDERING_PROBER_API__TOKEN": "[not yaml",
            "ORDERING_PROBER_TARGETS__0__ENDPOINT": "europe-west1",
            "ORDERING_PROBER_TARGETS__0__PROJECT": "my-project",
            "ORDERING_PROBER_TARGETS__0__ENVIRONMENT": "staging",
            "ORDERING_PROBER_TARGETS__1__NAME": "second",
            "ORDERING_PROBER_PROBES__ORDERING__SCHEDULE__CRON": "* * * * *",
            "ORDERING_PROBER_PROBES__ORDERING__VANTAGES": "[wire, library]",
            "ORDERING_PROBER_SLOS__AFFINITY": "false",
            "ORDERING_PROBER_SLOS__ORDER__OBJECTIVE": "99%",
            "ORDERING_PROBER_MAINTENANCE__0__TARGET": "second",
            "ORDERING_PROBER_MAINTENANCE__0__CRON": "0 0 * * *",
            "ORDERING_PROBER_MAINTENANCE__0__DURATION": "1h",
            "ORDERING_PROBER_EMBEDDED__FAULTS": "['drop:p=0.5,count=3']",
            "ORDERING_PROBER_HISTORY__LOCATION": "",
            "PATH": "/bin",
        },
    )
    assert (config.api.host, config.api.port) == ("example", 9090)
    assert config.api.token is not None
    assert config.api.token.get_secret_value() == "[not yaml"
    assert [(target.name, target.endpoint, target.region) for target in config.targets] == [
        ("embedded", "europe-west1", "europe-west1"),
        ("second", "embedded", "local"),
    ]
    assert config.probes[ProbeName.ORDERING].vantages == (Vantage.WIRE, Vantage.LIBRARY)
    assert config.probes[ProbeName.ORDERING].schedule.interval is None
    assert config.slos["order"].objective == 0.99
    assert "affinity" not in config.slos
    assert config.maintenance[0].target == "second"
    assert [str(fault) for fault in config.embedded.faults] == ["drop:p=0.5,count=3"]
    assert config.history.location is None


def test_a_problem_names_the_variable_it_comes_from(tmp_path: Path) -> None:
    assert problems(tmp_path, "", {"ORDERING_PROBER_API__PORT": "many", "ORDERING_PROBER_APPI__PORT": "1"}) == [
        "ORDERING_PROBER_API__PORT (api.port): must be a whole number, not 'many'",
        "ORDERING_PROBER_APPI__PORT (appi): is not known; did you mean api?",
    ]


@pytest.mark.parametrize(
    "variable", ["ORDERING_PROBER_TARGETS__5__NAME", "ORDERING_PROBER_TARGETS__NAME", "ORDERING_PROBER_TARGETS__0__NAME__0"]
)
def test_a_variable_that_can_name_no_key_is_a_problem(tmp_path: Path, variable: str) -> None:
    text = "targets: [{name: a}]"
    assert any(variable in line for line in problems(tmp_path, text, {variable: "x"}))


def test_a_list_that_cannot_be_read_is_a_problem(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, "", {"ORDERING_PROBER_EMBEDDED__FAULTS": "[drop"})
    assert problem == "ORDERING_PROBER_EMBEDDED__FAULTS (embedded.faults): begins like a list or mapping, but is not valid YAML"


def test_what_kubernetes_puts_into_every_container_is_left_alone() -> None:
    assert load(
        None,
        {
            "ORDERING_PROBER_SERVICE_HOST": "10.0.0.7",
            "ORDERING_PROBER_SERVICE_PORT": "8080",
            "ORDERING_PROBER_SERVICE_PORT_HTTP": "8080",
            "ORDERING_PROBER_PORT": "tcp://10.0.0.7:8080",
            "ORDERING_PROBER_PORT_8080_TCP": "tcp://10.0.0.7:8080",
            "ORDERING_PROBER_PORT_8080_TCP_PROTO": "tcp",
            "ORDERING_PROBER_PORT_8080_TCP_PORT": "8080",
            "ORDERING_PROBER_PORT_8080_TCP_ADDR": "10.0.0.7",
            "ORDERING_PROBER_METRICS_SERVICE_HOST": "10.0.0.8",
            "ORDERING_PROBER_METRICS_PORT": "tcp://10.0.0.8:80",
        },
    ) == load(None, {})


def test_a_single_underscore_is_not_taken_for_kubernetes(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, "", {"ORDERING_PROBER_API_PORT": "9090"})
    assert problem.startswith("ORDERING_PROBER_API_PORT (api_port): is not known")


@pytest.mark.parametrize(
    ("environ", "level"),
    [
        ({"LOG_LEVEL": "DEBUG"}, LogLevel.DEBUG),
        ({"LOG_LEVEL": "warning", "ORDERING_PROBER_TELEMETRY__LOG_LEVEL": "error"}, LogLevel.ERROR),
        ({"LOG_LEVEL": ""}, LogLevel.INFO),
    ],
)
def test_the_common_variable_of_levels_sets_ours_unless_ours_is_set(environ: dict[str, str], level: LogLevel) -> None:
    assert load(None, environ).telemetry.log_level is level


def test_a_wrong_level_is_named_by_its_variable() -> None:
    with pytest.raises(ConfigError, match=r"LOG_LEVEL \(telemetry\.log_level\): must be 'debug', .* not 'loud'"):
        load(None, {"LOG_LEVEL": "loud"})


# --------------------------------------------------------------------------------------------------------------- problems


def test_all_problems_are_reported_at_once(tmp_path: Path) -> None:
    assert problems(
        tmp_path,
        """
        targets:
          - {name: a, endpoint: europe-west1, project: p1}
          - {name: a, endpoint: nowhere, projekt: x, project: p1, environment: test, probes: [orderng, affinity]}
          - {name: c, probes: {affinity: {subscribers: 1}}, labels: {region: x}}
        probes:
          ordering: {keys: none, schedule: {interval: 1s, cron: "* * * * *"}}
        slos:
          order: {objective: 99.9}
          slow: {indicator: publish_latency, objective: 99%}
          admin: {indicator: control_plane_latency, objective: 99%, threshold: 5s}
        api: {port: 99999}
        status: {url: "mysql://user:hidden@host/name"}
        maintenance:
          - {target: b, cron: "0 0 * * *", duration: 1h}
          - {region: nowhere, from: 2026-01-01T00:00:00, to: 2026-01-02T00:00:00Z}
        embedded: {faults: ["drop:p=2"]}
        """,
    ) == [
        "api.port: must be at most 65535, not 99999",
        "embedded.faults[0]: drop: p is a probability from 0 to 1, not 2",
        "maintenance[0].target: no target has the name b; there are a, c",
        "maintenance[1].from: needs a time zone; write it like 2026-12-24T18:00:00Z",
        "probes.ordering.keys: must be a whole number, not 'none'",
        "probes.ordering.schedule: write either interval or cron, one of the two",
        "slos.order.objective: must be more than 0 and less than 1, not 99.9: write 99.9% or 0.999",
        "slos.slow: threshold is missing: publish_latency is bad from some duration on, so write threshold: 1s",
        "status.url: must be a database URL that begins with sqlite:// or postgresql://",
        "targets[0].environment: is missing: only the embedded server has a default",
        "targets[1].endpoint: endpoint 'nowhere' has no port: write HOST:PORT, global, or a region such as europe-west1; or embedded",
        "targets[1].name: 'a' is the name of another target too; every target needs its own",
        "targets[1].probes.orderng: is not a probe; did you mean ordering?",
        "targets[1].projekt: is not known; did you mean project?",
        "targets[2]: labels must not hold region: every series has that already",
    ]


def test_a_file_that_is_a_list(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, "[1, 2]")
    assert problem.startswith("must be a mapping that begins with keys such as targets:")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"missing\.yaml: cannot be read: No such file or directory"):
        load(tmp_path / "missing.yaml", {})


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    path = tmp_path / "binary.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="is not UTF-8 text"):
        load(path, {})
