"""Brings `sequences.py` to the workers of a runner: `--setup_file ./setup.py`."""

import setuptools

setuptools.setup(name="sequences", version="1", py_modules=["sequences"])
