"""The command `ordering-prober help`: a command, a topic of several commands, a kind of finding, a probe, or a fault."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from prober.cli.program import COMMANDS, PROGRAM, app
from prober.core.findings import Kind
from prober.core.kinds import KINDS
from prober.embedded.catalogue import CATALOGUE, describe_faults
from prober.embedded.faults import SYNTAX
from prober.errors import ConfigError, no_such

TOPICS: Final = {
    "endpoints": """\
Where a service is, in --endpoint, in `endpoint` of a target, and in PUBSUB_EMULATOR_HOST:

  global         Google's endpoint, which publishes to a nearby region
  europe-west1   Google's endpoint of a region; Pub/Sub guarantees order within one region only
  HOST:PORT      an emulator, without encryption and credentials
  embedded       the server inside this process (configuration only)

--endpoint wins over PUBSUB_EMULATOR_HOST, which wins over the configuration.
""",
    "environment": """\
Variables of the environment:

  ORDERING_PROBER_SECTION__KEY    any key of the configuration, such as ORDERING_PROBER_API__PORT=8081
  PUBSUB_EMULATOR_HOST            HOST:PORT of an emulator, in place of every configured endpoint
  LOG_LEVEL                       the least important log lines of a service: debug, info, warning or error
  GOOGLE_APPLICATION_CREDENTIALS  the credentials for Google's endpoints
  NO_COLOR                        if set, output on a terminal has no colour and no bold text

`ordering-prober config show` prints the configuration that results.
""",
    "exit-codes": """\
Exit codes of commands that come to a verdict:

  0  PASS: no guarantee was violated
  1  FAIL: a guarantee was violated; of `observe` also: publishers sent messages out of order
  2  wrong usage, configuration or input
  3  UNKNOWN: undecided, or the service cannot be reached

130: Ctrl-C ended the command.
""",
    "faults": SYNTAX,
    "times": """\
Durations and times, on the command line and in the configuration:

  30s, 5m, 1h30m, 250ms, 28d   durations
  2026-11-20T08:00:00Z         a time; on the command line UTC is meant without a zone, in the configuration
                               the zone is needed
""",
}


def show_help(
    topic: Annotated[
        list[str] | None, typer.Argument(metavar="TOPIC", help="A command, a topic, a kind of finding, a probe, or a fault.")
    ] = None,
) -> None:
    """Explain a command, a topic that several commands share, a kind of finding such as ORDER_GAP, a probe, or a fault.

    Without a topic: the list of all commands and topics.
    """
    words = topic or []
    name = " ".join(words)
    if name in TOPICS:
        print(TOPICS[name], end="")
    elif name.upper() in KINDS:
        print(_about(Kind(name.upper())))
    elif name in CATALOGUE:
        print(describe_faults([name]), end="")
        print(f"Injection: {PROGRAM} embedded --fault {name}; its options: {PROGRAM} help faults")
    elif not words or words[0] in COMMANDS:
        app(args=[*words, "--help"], prog_name=PROGRAM, standalone_mode=False)
        if not words:
            print(
                f"\nTopics of `{PROGRAM} help`: {', '.join(TOPICS)}, every kind of finding, such as {Kind.ORDER_GAP}, probe and fault."
            )
    else:
        print(_about_probe(name))


def _about(kind: Kind) -> str:
    meaning = KINDS[kind]
    statuses = " or ".join(meaning.statuses)
    broken = f"\n{meaning.broken}" if meaning.broken else ""
    return f"{kind} ({statuses}): {meaning.happened}.{broken}\nMore: docs/findings.md"


def _about_probe(name: str) -> str:
    """Return the guarantee of a probe. Raises ConfigError for a name that is no topic of any kind."""
    from prober.probes.catalogue import DECLARED  # takes half a second to load

    if name not in DECLARED:
        known = [*COMMANDS, *TOPICS, *KINDS, *CATALOGUE, *DECLARED]
        raise ConfigError(no_such("topic", name, known, f"`{PROGRAM} help` lists them"))
    return f"The probe {name}: {DECLARED[name].guarantee}\nPower and cost: {PROGRAM} probes. More: docs/probes/{name}.md"
