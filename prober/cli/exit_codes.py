"""What a command tells its caller by its exit code."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from prober.core.verdict import Verdict


class ExitCode(IntEnum):
    """What the caller learns: the first of malformed, failed, unknown that is true of any file; else pass."""

    PASS = 0
    FAIL = 1
    MALFORMED = 2
    UNKNOWN = 3


_CODE: Final[Mapping[Verdict, ExitCode]] = {
    Verdict.PASS: ExitCode.PASS,
    Verdict.FAIL: ExitCode.FAIL,
    Verdict.UNKNOWN: ExitCode.UNKNOWN,
}


def code_of(verdict: Verdict) -> ExitCode:
    """The exit code that stands for a verdict, for every command that comes to one."""
    return _CODE[verdict]
