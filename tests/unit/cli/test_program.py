"""The list of all commands: each is there, and to show it none is imported."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from prober.cli import main
from prober.cli.help import TOPICS
from prober.cli.program import COMMANDS
from prober.cli.terminal import show
from tests.commands import Output, run

HEAVY = {"fastapi", "grpc", "pyarrow", "pydantic", "sqlalchemy"}
LATE = {"aiohttp", "fastapi", "grpc", "jinja2", "numpy", "prometheus_client", "pyarrow", "sqlalchemy", "starlette", "yaml"}
"""What a command imports when it does its work."""
UNKNOWN_FAULTS = {
    "drp": "no fault is called drp; did you mean drop?",
    "nonsense": "no fault is called nonsense; `ordering-prober faults` lists them",
}


def test_the_list_of_commands_imports_none_of_them() -> None:
    program = "import sys; from prober.cli import main; main(['--help']); print(*sys.modules)"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    shown, imported = ended.stdout.rsplit("\n", 2)[0], set(ended.stdout.splitlines()[-1].split())
    assert not imported & HEAVY
    assert not {name for name in imported if name.startswith("prober.cli.")} - {"prober.cli.process", "prober.cli.program"}
    for name, (_, line) in COMMANDS.items():
        assert f"  {name} " in shown
        assert line in shown


def test_help_of_a_command_imports_no_library_of_the_service() -> None:
    program = "\n".join(
        [
            "import sys",
            "from prober.cli import main",
            "from prober.cli.program import COMMANDS",
            "assert [main([name, '--help']) for name in COMMANDS] == [0] * len(COMMANDS)",
            "print(*sys.modules)",
        ]
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout.count("--help") == len(COMMANDS)
    imported = set(ended.stdout.splitlines()[-1].split())
    assert imported & LATE == set()
    assert {name for name in imported if name.startswith("prober.config.")} <= {"prober.config.models"}


@pytest.mark.parametrize("arguments", [[], ["history"], ["config"]])
def test_a_program_or_group_without_a_command_shows_its_help(arguments: list[str], capsys: Output) -> None:
    assert main(arguments) == 2
    assert "Commands:" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments", [["-h"], ["check", "-h"], ["config", "show", "-h"], ["help", "check"], ["help", "config", "show"]]
)
def test_help_has_a_short_option_everywhere(arguments: list[str], capsys: Output) -> None:
    assert main(arguments) == 0
    assert "-h, --help" in capsys.readouterr().out


@pytest.mark.parametrize("width", [80, 100, 120])
def test_help_fits_the_width(width: int, capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    for name in COMMANDS:
        main([name, "--help"])
    assert all(len(line) <= width for line in capsys.readouterr().out.splitlines())


@pytest.mark.parametrize("topic", TOPICS)
def test_topics_are_explained_within_80_columns_where_that_is_possible(topic: str, capsys: Output) -> None:
    assert main(["help", topic]) == 0
    assert all(len(line) <= 120 for line in capsys.readouterr().out.splitlines())


@pytest.mark.parametrize(
    ("topic", "words"),
    [
        ("ORDER_GAP", "a message was received although an earlier, confirmed one had not been"),
        ("order_gap", "a message was received although an earlier, confirmed one had not been"),
        ("swap_in_batch", "ordering-prober embedded --fault swap_in_batch"),
        ("ordering", "Messages of a key are received in the order in which the service received them"),
        ("observe", "--sequence"),
    ],
)
def test_kinds_of_findings_faults_and_probes_are_topics(topic: str, words: str, capsys: Output) -> None:
    assert main(["help", topic]) == 0
    assert words in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (["chek"], "No such command 'chek'. Did you mean 'check'? (see ordering-prober --help)"),
        (["check", "--prob", "x"], "No such option: --prob (Possible options: --probe) (see ordering-prober check --help)"),
        (["check", "--probe", "orderin"], "no probe is called orderin; did you mean ordering?"),
        (["check", "--target", "embeded"], "no target is called embeded; did you mean embedded?"),
        (
            ["check", "--vantage", "foo"],
            "Invalid value for '--vantage': 'foo' is not one of 'wire', 'library', 'external'. (see ordering-prober check --help)",
        ),
        (["config", "validate"], "No such command 'validate'. (see ordering-prober config --help)"),
        (["help", "orderng"], "no topic is called orderng; did you mean ordering?"),
        (["help", "exit-code"], "no topic is called exit-code; did you mean exit-codes?"),
        *((["embedded", "--fault", name], reported) for name, reported in UNKNOWN_FAULTS.items()),
        *((["drill", "--fault", name], reported) for name, reported in UNKNOWN_FAULTS.items()),
        *((["simulate", "--fault", name], reported) for name, reported in UNKNOWN_FAULTS.items()),
    ],
)
def test_a_wrong_name_is_answered_with_a_suggestion(arguments: list[str], reported: str, capsys: Output) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err == f"ordering-prober: {reported}\n"


@pytest.mark.parametrize("port", ["-1", "65536"])
@pytest.mark.parametrize(
    ("command", "option"),
    [("demo", "--port"), ("drill", "--port"), ("embedded", "--port"), ("embedded", "--rest-port"), ("embedded", "--admin-port")],
)
def test_a_number_that_is_no_port_is_refused(command: str, option: str, port: str, capsys: Output) -> None:
    assert main([command, option, port]) == 2
    assert f"Invalid value for '{option}'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "completed"),
    [
        ("ordering-prober ch", "check"),
        ("ordering-prober check --probe iso", "isolation"),
        ("ordering-prober drill --fault thr", "throttle_key"),
    ],
)
def test_the_shell_completes_commands_probes_and_faults(line: str, completed: str) -> None:
    words = {"_ORDERING_PROBER_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    assert completed in run(env=os.environ | words).stdout.split()


@pytest.mark.parametrize(
    ("no_color", "shown"),
    [
        ("", "\x1b[1mORDER_GAP\x1b[0m on shop: \x1b[32mPASS\x1b[0m\n"),
        ("1", "ORDER_GAP on shop: PASS\n"),
    ],
)
def test_a_terminal_has_colour_unless_it_is_refused(
    no_color: str, shown: str, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    show("ORDER_GAP on shop: PASS")
    assert capsys.readouterr().out == shown


def test_a_pipe_has_no_colour(capsys: Output) -> None:
    show("ordering on shop (wire): FAIL [red]:smile:")
    assert capsys.readouterr().out == "ordering on shop (wire): FAIL [red]:smile:\n"


def test_a_port_that_is_taken_is_reported_before_anything_is_probed(
    capsys: Output, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("prober.service.Service.__init__", lambda *_: pytest.fail("the service was made"))
    monkeypatch.setenv("ORDERING_PROBER_STATUS__URL", f"sqlite:///{tmp_path}/status.db")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setenv("ORDERING_PROBER_API__PORT", str(taken.getsockname()[1]))
        assert main(["run"]) == 2
    assert "is taken; name another with api.port" in capsys.readouterr().err


def test_a_wrong_configuration_is_reported_before_anything_is_probed(
    capsys: Output, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("prober.service.Service.__init__", lambda *_: pytest.fail("the service was made"))
    (tmp_path / "wrong.yaml").write_text("targets: 7\n", encoding="utf-8")
    assert main(["run", "--config", str(tmp_path / "wrong.yaml")]) == 2
    assert "targets" in capsys.readouterr().err


def test_a_trace_file_is_verified_without_the_libraries_of_the_service() -> None:
    program = "import sys, prober.cli.verify; print(*sys.modules)"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not set(ended.stdout.split()) & HEAVY
