"""Errors that a user or operator can resolve. Each is one clear line; none is ever a violation by the service.

A violation by the service is a finding, a fault of the prober is a bug; neither is one of these.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class ProberError(Exception):
    """An error of the prober; the text states the problem and the remedy, in one line."""


class ConfigError(ProberError):
    """The configuration cannot be used; the text lists every problem."""


class BrokerError(ProberError):
    """The target did not perform a request."""


class BrokerUnavailable(BrokerError):
    """The target cannot be reached: no answer from its address, or not in time.

    The requested action did not happen.
    """


class TargetFailed(BrokerUnavailable):
    """The target answers with an error of its own."""


class AdminUnavailable(BrokerUnavailable):
    """An administration call got no answer in time, or an error of the target's own. The data plane may work."""


class ConnectionGivenUp(BrokerError):
    """The prober closed the connection; the target had no part in it."""


class PermissionRefused(BrokerError):
    """The target knows the prober and denies the permission, or does not know it."""


class NotSupported(BrokerError):
    """The target lacks a feature that a probe needs, or is configured without it.

    So the probe is inconclusive there.
    """


class RequestRefused(BrokerError):
    """The target rejects a request for its content, whatever the caller's identity."""


class NotThere(BrokerError):
    """A topic, subscription or snapshot does not exist."""


class CheckpointUnavailable(ProberError):
    """The state that a run stored for the next one cannot be read or written."""


class NotOurs(BrokerError):
    """A resource of that name exists, but the prober did not create it, or it is not as requested."""


def did_you_mean(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """Suggest a close match, in any case, or else return `otherwise`, by default the list of known words."""
    known = sorted(known)
    folded = {name.casefold(): name for name in known}
    if close := get_close_matches(word.casefold(), folded, n=1, cutoff=0.6):
        return f"did you mean {folded[close[0]]}?"
    return otherwise or f"there {'is' if len(known) == 1 else 'are'} {', '.join(known)}"


def no_such(what: str, name: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return the message about a name that does not exist, such as that of a fault, with a suggestion."""
    return f"no {what} is called {name or repr(name)}; {did_you_mean(name, known, otherwise)}"
