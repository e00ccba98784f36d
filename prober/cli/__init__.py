"""The command line, `ordering-prober`: the only package that writes to a terminal."""

from prober.cli.program import main

__all__ = ["main"]
