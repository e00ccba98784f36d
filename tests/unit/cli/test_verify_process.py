"""`ordering-prober verify` as a process: its streams, its terminal, and how it ends."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from prober.cli import bars, main, verify
from tests.commands import FAILING, PASSING, PROGRAM, ROOT, Output, run, saved
from tests.notation import history


def test_the_process_gives_the_exit_code() -> None:
    done = run("verify", FAILING, PASSING)
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == f"{PASSING}: PASS (10 events)"
    assert done.stderr == ""


def test_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(Path(PASSING).read_bytes())))
    assert main(["verify", "-"]) == 0
    assert capsys.readouterr().out == "<stdin>: PASS (10 events)\n"


def test_standard_input_is_read_once() -> None:
    with open(PASSING, encoding="utf-8") as stream:
        done = run("verify", "-", "-", stdin=stream)
    assert done.returncode == 2
    assert done.stderr == "<stdin>:1: the file is empty; the first line must be a header\n"


def test_standard_input_is_explained_from_where_it_began(tmp_path: Path) -> None:
    shell = f"read skipped; {sys.executable} -c 'import sys; from prober.cli import main; sys.exit(main())' verify --explain -"
    prefixed = tmp_path / "prefixed"
    prefixed.write_text("skipped\n" + Path(FAILING).read_text(encoding="utf-8"), encoding="utf-8")
    with prefixed.open(encoding="utf-8") as stream:
        done = subprocess.run(["sh", "-c", shell], cwd=ROOT, stdin=stream, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "X <-- wrong" in done.stdout


def test_a_key_that_the_terminal_cannot_show(tmp_path: Path) -> None:
    path = saved(tmp_path / "f.jsonl", history("P1 A<q7(7)@1", key="clé"))
    done = run("verify", path, env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 1
    assert r"key cl\xe9" in done.stdout


def test_a_closed_pipe_is_quiet() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run([*PROGRAM, "verify", FAILING], cwd=ROOT, stdout=write_end, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write_end)
    assert (done.returncode, done.stderr) == (141, "")


def test_an_interruption_is_quiet(monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(verify, "verify_files", interrupted)
    assert main(["verify", PASSING]) == 130
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_a_mistake_of_ours_is_undecided_and_no_violation(monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(verify, "verify_files", broken)
    assert main(["verify", PASSING]) == 3
    assert "internal error; please report" in capsys.readouterr().err


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="this system has no pseudo-terminals")
def test_a_terminal_sees_how_far_a_big_file_is(tmp_path: Path) -> None:
    events = history(f"P{','.join(map(str, range(1, 26_001)))}")
    path = saved(tmp_path / "big.jsonl", events)
    assert os.path.getsize(path) > bars.BYTES_MIN
    controller, terminal = os.openpty()
    with subprocess.Popen(
        [*PROGRAM, "verify", path], cwd=ROOT, stdout=subprocess.PIPE, stderr=terminal, env=os.environ | {"TERM": "xterm"}
    ) as process:
        os.close(terminal)
        shown = b""
        while chunk := _available(controller):
            shown += chunk
        assert process.stdout is not None
        assert process.stdout.read().startswith(path.encode())
    os.close(controller)
    assert b"MB" in shown
    assert b"\x1b[" in shown


def _available(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65_536)
    except OSError:  # how Linux says that the other side of a pseudo-terminal is closed
        return b""
