"""An image's files run as a container runtime would run them, with nothing but Linux and buildah.

The root file system is read-only; the command runs as the image's user, without capabilities or new privileges, in an environment of
its own. The network is that of the machine.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.integration.programs import PATIENCE_S

_STORAGE = {"BUILDAH_ISOLATION": "chroot", "STORAGE_DRIVER": "vfs"}

_START = r"""
root=$1; shift
mount --make-rprivate /
mount --bind "$root" "$root"
while [ "$1" != -- ]; do mount --bind "$2" "$root$1"; shift 2; done; shift
mount -t proc -o nosuid,nodev,noexec proc "$root/proc"
mount --rbind /dev "$root/dev"
mount --bind "$hosts" "$root/etc/hosts"
mount -o remount,bind,ro "$root"
exec "$chroot" "$root" python -c "$DROP" "$user" "$group" "$folder" "$@"
"""
_DROP = """
import ctypes, os, sys
user, group, folder, *command = sys.argv[1:]
PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 24, 38
prctl = ctypes.CDLL(None).prctl
for capability in range(64):
    prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
os.setgroups([])
os.setgid(int(group))
os.setuid(int(user))
prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
os.chdir(folder)
del os.environ["DROP"]
os.execvp(command[0], command)
"""
"""Runs inside, as the images contain no program that drops rights."""


@dataclass(frozen=True)
class Image:
    """An image whose files are at `root`."""

    root: Path
    about: Mapping[str, Any]

    @property
    def environ(self) -> dict[str, str]:
        """The environment that the image sets."""
        return dict(variable.split("=", 1) for variable in self.about["Env"])

    @property
    def entrypoint(self) -> list[str]:
        """What runs with a container's arguments."""
        return list(self.about["Entrypoint"])


@dataclass
class Ended:
    """How a command ended, once it has."""

    code: int | None = None


def _buildah(*arguments: str) -> str:
    done = subprocess.run(["buildah", *arguments], env=os.environ | _STORAGE, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _skipped_without(name: str) -> None:
    tools = [tool for tool in ("buildah", "unshare", "chroot", "mount") if shutil.which(tool) is None]
    if tools or os.geteuid() != 0:
        pytest.skip(f"running an image needs root and {', '.join(tools) or 'nothing else'}")
    there = subprocess.run(
        ["buildah", "inspect", "--type", "image", name], env=os.environ | _STORAGE, capture_output=True, check=False
    )
    if there.returncode:
        pytest.skip(f"there is no image {name}; build it (see docs/deploy.md), with STORAGE_DRIVER=vfs")


@contextmanager
def image(name: str) -> Iterator[Image]:
    """An image that was built before; the test is skipped where there is none."""
    _skipped_without(name)
    about = json.loads(_buildah("inspect", "--type", "image", name))["OCIv1"]["config"]
    container = _buildah("from", "--pull-never", name)
    try:
        yield Image(Path(_buildah("mount", container)), about)
    finally:
        _buildah("rm", container)


def _hosts(of: Image) -> Path:
    """A file with the name of this machine in it, as runtimes give one to every container; Java wants to find it."""
    hosts = of.root.parent / "hosts"
    hosts.write_text(f"127.0.0.1 localhost {socket.gethostname()}\n", encoding="utf-8")
    return hosts


def _command(of: Image, volumes: Mapping[str, Path], command: Sequence[str]) -> list[str]:
    mounts: list[str] = []
    for inside, outside in volumes.items():
        (of.root / inside.lstrip("/")).mkdir(parents=True, exist_ok=True)
        mounts += [inside, str(outside)]
    user, group = of.about["User"].split(":")
    reported = {
        "user": user,
        "group": group,
        "folder": of.about["WorkingDir"],
        "hosts": _hosts(of),
        "chroot": shutil.which("chroot"),
    }
    start = "set -e\n" + "\n".join(f"{name}={value}" for name, value in reported.items()) + _START
    return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", start, "sh", str(of.root), *mounts, "--", *command]


def writable(folder: Path, of: Image) -> Path:
    """A folder that the image's user may write to, as volumes are by fsGroup."""
    folder.mkdir(parents=True, exist_ok=True)
    user, group = map(int, of.about["User"].split(":"))
    os.chown(folder, user, group)
    return folder


def run(of: Image, volumes: Mapping[str, Path], *command: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Runs a command in the image to its end."""
    return subprocess.run(
        _command(of, volumes, command),
        env=of.environ | environ | {"DROP": _DROP},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


@contextmanager
def running(
    of: Image, volumes: Mapping[str, Path], command: Sequence[str], environ: Mapping[str, str], log: Path
) -> Iterator[Ended]:
    """A command in the image, stopped in the end as Kubernetes stops it: SIGTERM. Its output goes to a file."""
    ended = Ended()
    with log.open("w") as output:
        process = subprocess.Popen(
            _command(of, volumes, command),
            env=of.environ | dict(environ) | {"DROP": _DROP},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            yield ended
            _signal(process, signal.SIGTERM)
            ended.code = process.wait(PATIENCE_S)
        finally:
            if process.poll() is None:
                _signal(process, signal.SIGKILL)  # what has changed its user no longer dies with its parent
            process.kill()
            process.wait(PATIENCE_S)


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Sends a signal to the command itself, the first process of its namespace."""
    for child in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
        os.kill(int(child), number)
