"""Every command of every runbook does what the runbook says, on a running prober, Prometheus and Alertmanager.

A new page needs nothing here: its `sh` and `promql` blocks, and the commands in its sentences, are found and run. A command must succeed;
`CODES` has those that tell by their exit code that something is broken. `NOT_RUN` has what cannot be run here, and how it is checked.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from spark_jobs.__main__ import _parser
from tests.integration.programs import get
from tests.runbooks.commands import FOLDER, LANGUAGES, PAGES, Command, blocks, commands, documented
from tests.runbooks.running import TARGET, Surroundings, surroundings

pytestmark = [
    pytest.mark.skipif(shutil.which("curl") is None, reason="curl is missing; install it"),
]

CODES = {
    "ordering-prober check": {0, 1, 3},  # the target violates a guarantee; a machine that is too busy decides nothing
    "ordering-prober status($| --)": {0, 1, 3},  # the verdict
    "ordering-prober verify HISTORY": {0, 1, 3},  # as much of it as has been written
    "ordering-prober cleanup": {0, 3},  # the target is no prober's own
    "curl .* && ordering-prober verify finding": {1},  # what was found is found again in its trace
}
NOT_RUN = {
    "kubectl": "there is no cluster: its command and its flags are held against a list; a command in a pod runs here",
    "python -m spark_jobs": "needs Java and a minute, tests/spark runs it: its arguments are parsed",
    "ordering-prober observe": "reads a stream of the cloud and Cloud Monitoring: its options are parsed",
    "py-spy": "is not part of the project, and may need root",
}
KUBECTL = {
    "exec POD": set(),
    "port-forward": set(),
    "logs": {"--previous", "-c", "--since", "--tail"},
    "describe pod": set(),
    "create job": {"--from"},
    "get": {"-o"},
}
"""What runbooks may ask of kubectl, with its flags (https://kubernetes.io/docs/reference/kubectl/generated/)."""

ALL = [command for page in PAGES for command in commands(page)]


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Surroundings]:
    with surroundings(tmp_path_factory.mktemp("runbooks")) as made:
        yield made


def is_not_run(command: Command) -> bool:
    return any(command.text.startswith(f"{start} ") or command.text == start for start in NOT_RUN)


@pytest.mark.parametrize("text", sorted({one.in_pod.text for one in ALL if not one.query and not is_not_run(one.in_pod)}))
def test_a_command_succeeds(text: str, here: Surroundings) -> None:
    try_out(text, Command("", text).filled(here.values), here)


def try_out(text: str, line: str, here: Surroundings) -> None:
    """Runs a line and looks at what it says. `text` is what the page has."""
    done = here.run(re.sub(r"--for \d+m", "--for 1s", line))
    expected = next((codes for start, codes in CODES.items() if re.match(start, text)), {0})
    assert done.returncode in expected, (text, done.returncode, done.stdout[-2000:], done.stderr[-2000:])
    if text.startswith("ordering-prober check"):
        assert f" on {TARGET} (wire): " in done.stdout, text
        assert "embedded server" not in done.stderr, text
        assert "UNAVAILABLE" not in done.stdout, done.stdout
    if re.fullmatch(r'curl -s "\$PROBER/api/\S+"', text):
        json.loads(done.stdout)
    if text.startswith("ordering-prober status findings --kind KIND"):
        assert json.loads(done.stdout)["items"], text


@pytest.mark.parametrize("page", sorted({one.page for one in ALL if one.query}))
def test_queries_are_understood(page: str, here: Surroundings) -> None:
    for command in (one for one in commands(page) if one.query):
        answer = get(f"http://{here.values['PROMETHEUS']}/api/v1/query?query={quote(command.filled(here.values))}")
        assert json.loads(answer)["status"] == "success", command.text


@pytest.mark.parametrize("command", [one for one in ALL if is_not_run(one)], ids=lambda one: f"{one.page}: {one.text}")
def test_what_is_not_run_is_well_formed(command: Command, here: Surroundings) -> None:
    if command.program == "kubectl":
        words = command.text.partition(" -- ")[0].split()[1:]
        known = next((flags for start, flags in KUBECTL.items() if " ".join(words).startswith(start)), None)
        assert known is not None, command.text
        assert {word.partition("=")[0] for word in words if word.startswith("-")} <= known, command.text
    if command.text.startswith("ordering-prober observe"):
        done = here.run(f"{command.filled(here.values)} --help")  # unknown options are refused before help is shown
        assert done.returncode == 0, done.stderr
    if command.text.startswith("python -m spark_jobs"):
        parsed = _parser().parse_args(command.filled(here.values).split()[3:])
        assert (parsed.history, parsed.reports) == (here.values["HISTORY"], here.values["REPORTS"])


def test_little_is_not_run() -> None:
    unused = [start for start in NOT_RUN if not any(command.text.startswith(start) for command in ALL)]
    assert unused == []
    assert len(NOT_RUN) <= 6
    assert sum(is_not_run(command.in_pod) for command in ALL) < len(ALL) / 8


@pytest.mark.parametrize("page", sorted(PAGES))
def test_a_block_names_its_language(page: str) -> None:
    strange = [body for language, body in blocks(page) if language not in LANGUAGES]
    assert strange == [], "write ```sh before commands and ```promql before queries: others are not tried out"
    assert PAGES[page].count("```") == 2 * len(blocks(page))


@pytest.mark.parametrize("page", sorted(PAGES))
def test_a_placeholder_is_in_the_table(page: str, here: Surroundings) -> None:
    for command in commands(page):
        assert command.placeholders <= documented(), command.text
    assert documented() <= here.values.keys()


def test_the_table_has_no_placeholder_that_nobody_uses() -> None:
    used = {word for command in ALL for word in command.placeholders}
    assert documented() == used


@pytest.mark.parametrize(
    "command", [one.in_pod for one in ALL if one.in_pod.program == "ordering-prober"], ids=lambda one: f"{one.page}: {one.text}"
)
def test_a_command_is_about_the_target_of_the_user(command: Command) -> None:
    """Without a configuration it would be the embedded server that is checked, and not what somebody was paged for."""
    if command.text.split()[1] in {"check", "slos", "alerts", "cleanup"}:
        assert "--config FILE" in command.text
    if command.text.split()[1] == "check":
        assert "--target TARGET" in command.text


def test_the_folder_is_read() -> None:
    assert len(list(FOLDER.glob("*.md"))) == len(PAGES) > 30
    assert len(ALL) > 120
