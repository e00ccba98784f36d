"""Prints a run, one line of short events per key, for reading: `python -m tests.simulation.trace --mode push --seed 15`."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from prober.core import events as ev
from prober.core.rules import Mode
from tests.judging import FAILURES, judge
from tests.simulation.options import Fault
from tests.simulation.service import simulate_run


def short(event: ev.Event) -> str:
    """An event as one word: `A<3(id)@1.2` is a delivery of sequence number 3 to session A."""
    match event:
        case ev.PublishInvoked():
            text = f"P{event.epoch}:{event.seq}" + (f"'{event.generation}" if event.generation else "")
        case ev.Published():
            text = f"ok{event.epoch}:{event.seq}={event.message_id}"
        case ev.PublishFailed() | ev.PublishUnknown() | ev.PublishAbandoned():
            text = f"{type(event).__name__.removeprefix('Publish').lower()}{event.epoch}:{event.seq}"
        case ev.Delivered():
            attempt = f"#{event.delivery_attempt}" if event.delivery_attempt else ""
            text = f"{event.session}<{event.seq}({event.message_id}){attempt}"
        case ev.LeaseModified():
            text = f"{event.session} modack({event.message_id}, {event.seconds:g})"
        case ev.Acked() | ev.Nacked() | ev.AckConfirmed():
            text = f"{event.session} {type(event).__name__.lower()}({event.message_id})"
        case ev.Opened() | ev.Closed():
            text = f"{type(event).__name__.lower()} {event.session}"
        case _:
            text = type(event).__name__.lower()
    return f"{text}@{event.t:.3f}"


def show(events: Iterable[ev.Event], key: str | None = None, first: float = 0.0) -> str:
    """The numbered events of a key (and those of no key) from a time on."""
    return "\n".join(
        f"{number:4} {short(event)}"
        for number, event in enumerate(events, 1)
        if event.t >= first and getattr(event, "key", key) in (key, None)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mode", choices=list(Mode), type=Mode, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--fault", choices=list(Fault), type=Fault)
    parser.add_argument("--key", default="k1")
    args = parser.parse_args()
    run = simulate_run(args.seed, args.mode, args.fault)
    print(run.rules, dict(run.seen), "\n".join(run.fired), show(run.events, args.key), sep="\n")
    for finding in judge(run.rules, run.events):
        if finding.status in FAILURES:
            print(finding)


if __name__ == "__main__":
    main()
