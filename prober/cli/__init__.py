"""The command line, `ordering-prober`: the only place that knows about terminals."""

from prober.cli.program import main

__all__ = ["main"]
