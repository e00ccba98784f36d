"""How many cores this process may use, which in a container is not what the machine has.

Linux says so in two places: the cores that the process may run on, and the share of their time that its control group gets (`cpu.max` in
version 2, `cpu.cfs_quota_us` in version 1). What was only requested of Kubernetes is in neither: tell Spark by `--master local[N]`.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Final

CGROUPS: Final = Path("/sys/fs/cgroup")


def usable_cores(cgroups: Path = CGROUPS) -> int:
    """The cores that this process may run on, or the time that its control group gets, in cores rounded up, if that is less; at least 1."""
    quota = _quota(cgroups)
    return max(1, min(_allowed(), _allowed() if quota is None else math.ceil(quota)))


def _allowed() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        return os.cpu_count() or 1


def _quota(cgroups: Path) -> float | None:
    """Seconds of core time per second; None without a limit."""
    if unified := _read(cgroups / "cpu.max"):
        quota, _, period = unified.partition(" ")
        return None if quota == "max" else int(quota) / int(period)
    quota, period = _read(cgroups / "cpu" / "cpu.cfs_quota_us"), _read(cgroups / "cpu" / "cpu.cfs_period_us")
    return int(quota) / int(period) if quota and period and int(quota) > 0 else None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return ""
