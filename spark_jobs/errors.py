"""What a user can do something about."""

from __future__ import annotations


class JobError(Exception):
    """A job cannot be done. The text is one line that says what is wrong and what to do."""
