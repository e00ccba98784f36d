"""What a program is, by which simulations may come out otherwise."""

from __future__ import annotations

import ast
import sys
from subprocess import run

from prober.simulation import results as programs


def test_it_is_all_that_takes_part_and_nothing_else() -> None:
    modules = programs._modules()
    assert modules.keys() >= {"prober.core.verifier", "prober.embedded.state", "prober.probes.pull", "prober.simulation.plan"}
    assert not [
        name for name in modules if name.startswith(("prober.cli", "prober.alerting", "prober.drills", "spark_jobs", "api"))
    ]


def test_it_is_the_same_in_another_process() -> None:
    said = run([sys.executable, "-c", "from prober.simulation.results import *; print(program())"], capture_output=True, text=True)
    assert said.stdout.strip() == programs.program()


def test_what_is_said_about_it_is_no_part_of_it() -> None:
    def dumped(source: str) -> str:
        return ast.dump(programs._without_docstrings(ast.parse(source)))

    plain = "class A:\n    x = 1\n    def f(self):\n        return 2\n"
    reported = """'''A module.'''
# of a class
class A:
    '''One.'''
    x = 1
    '''Its x.'''

    def f(self):
        '''F.'''
        return 2
"""
    assert dumped(reported) == dumped(plain)
    assert dumped(reported.replace("return 2", "return 3")) != dumped(plain)
