"""The list of all commands: each is there, and to show it none is imported."""

from __future__ import annotations

import subprocess
import sys

from prober.cli.program import _COMMANDS

HEAVY = {"fastapi", "grpc", "pyarrow", "pydantic", "sqlalchemy"}
LATE = {"aiohttp", "fastapi", "grpc", "jinja2", "numpy", "prometheus_client", "pyarrow", "sqlalchemy", "starlette", "yaml"}
"""What a command imports when it does its work."""


def test_the_list_of_commands_imports_none_of_them() -> None:
    program = "import sys; from prober.cli import main; main(['--help']); print(*sys.modules)"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    shown, imported = ended.stdout.rsplit("\n", 2)[0], set(ended.stdout.splitlines()[-1].split())
    assert not imported & HEAVY
    assert not {name for name in imported if name.startswith("prober.cli.")} - {"prober.cli.process", "prober.cli.program"}
    for name, (_, line) in _COMMANDS.items():
        assert f"  {name} " in shown
        assert line in shown


def test_help_of_a_command_imports_no_library_of_the_service() -> None:
    program = "\n".join(
        [
            "import sys",
            "from prober.cli import main",
            "from prober.cli.program import _COMMANDS",
            "assert [main([name, '--help']) for name in _COMMANDS] == [0] * len(_COMMANDS)",
            "print(*sys.modules)",
        ]
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout.count("--help") == len(_COMMANDS)
    imported = set(ended.stdout.splitlines()[-1].split())
    assert imported & LATE == set()
    assert {name for name in imported if name.startswith("prober.config.")} <= {"prober.config.models"}


def test_a_trace_file_is_verified_without_the_libraries_of_the_service() -> None:
    program = "import sys, prober.cli.verify; print(*sys.modules)"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not set(ended.stdout.split()) & HEAVY
