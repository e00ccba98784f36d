"""Time and randomness come from outside, and tests talk to nobody: what is forbidden fails, what is allowed works."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest
from pytest_socket import SocketConnectBlockedError

from tests.architecture import tree


def complaints(code: str, filename: str) -> str:
    """What ruff says about banned calls in a piece of code, as if it were in that file."""
    ruff = str(Path(sys.executable).with_name("ruff"))
    command = [ruff, "check", "--no-cache", "--select=TID251", "--stdin-filename", filename, "-"]
    return subprocess.run(command, input=code, cwd=tree.ROOT, capture_output=True, text=True, check=False).stdout


@pytest.mark.parametrize(
    "code",
    [
        "import time\ntime.time()",
        "import time\ntime.monotonic_ns()",
        "import time\ntime.sleep(1)",
        "from time import monotonic",
        "from datetime import datetime\ndatetime.now()",
        "import random\nrandom.random()",
        "from random import choice",
    ],
)
def test_clocks_and_dice_are_banned_everywhere_but_in_the_clock(code: str) -> None:
    assert "TID251" in complaints(code, "prober/runs/runner.py")
    assert "TID251" not in complaints(code, "prober/clock.py")


def test_seeded_randomness_is_allowed() -> None:
    assert "TID251" not in complaints("import random\nrandom.Random(7).random()", "prober/runs/runner.py")


@pytest.mark.filterwarnings("ignore:A test tried to use socket")
def test_the_network_is_out_of_reach() -> None:
    reserved_for_documentation = ("192.0.2.1", 80)
    with socket.socket() as outgoing, pytest.raises(SocketConnectBlockedError):
        outgoing.connect(reserved_for_documentation)


def test_this_machine_is_within_reach() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        assert client.getpeername() == server.getsockname()
