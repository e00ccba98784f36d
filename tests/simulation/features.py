"""The features of the legal service that can be switched off one by one, to see which of them an accusation comes from.

Each function gives the options without the feature. What is off by default is nothing that sections 3 and 5 of the specification, before
the amendments, would call legal; so a run without all of them is what that specification imagined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from math import inf

from tests.simulation.options import NEVER, Options, PublishTime

Change = Callable[[Options], Options]


def _store_twice(options: Options) -> Options:
    return replace(options, topic=replace(options.topic, store_twice=0.0))


def _publish_time(options: Options) -> Options:
    return replace(options, topic=replace(options.topic, store_twice=0.0, publish_time=PublishTime.NONE))


def _forget(options: Options) -> Options:
    return replace(options, service=replace(options.service, forget_every_s=NEVER))


def _stays_lost(options: Options) -> Options:
    return replace(options, service=replace(options.service, stays_lost=0.0))


def _half_open_loses(options: Options) -> Options:
    return replace(options, session=replace(options.session, half_open_loses=0.0))


def _hold(options: Options) -> Options:
    return replace(options, client=replace(options.client, hold=0.0))


def _flow_control(options: Options) -> Options:
    return replace(options, service=replace(options.service, limit_messages=0, limit_bytes=0))


def _flow_control_bytes(options: Options) -> Options:
    return replace(options, service=replace(options.service, limit_bytes=0))


def _neighbours(options: Options) -> Options:
    return replace(options, service=replace(options.service, neighbour_delay=0.0))


def _race(options: Options) -> Options:
    return replace(options, service=replace(options.service, race=0.0))


def _handover(options: Options) -> Options:
    return replace(options, session=replace(options.session, handover=0.0))


def _retention(options: Options) -> Options:
    return replace(options, bounds=replace(options.bounds, retention_s=inf))


def _backoff(options: Options) -> Options:
    return replace(options, bounds=replace(options.bounds, backoff_s=0.0))


def _dead_letter(options: Options) -> Options:
    return replace(options, service=replace(options.service, dead_letter=0, leaves_out=0.0, poison=0.0))


def _leaves_out(options: Options) -> Options:
    return replace(options, service=replace(options.service, leaves_out=0.0))


def _poison(options: Options) -> Options:
    return replace(options, service=replace(options.service, poison=0.0))


def _failover(options: Options) -> Options:
    return replace(options, topic=replace(options.topic, failover=0.0))


def _clocks(options: Options) -> Options:
    return replace(options, record=replace(options.record, recorders=1, clock_error_s=0.0))


def _clock_steps(options: Options) -> Options:
    return replace(options, record=replace(options.record, clock_steps=False))


def _away(options: Options) -> Options:
    return replace(options, client=replace(options.client, away_s=0.0))


def _pause(options: Options) -> Options:
    return replace(options, topic=replace(options.topic, pause_s=0.0))


def _epochs(options: Options) -> Options:
    topic = replace(options.topic, epoch_per_burst=False, bursts=min(10, options.topic.bursts))
    return replace(options, topic=topic)


def _excerpt(options: Options) -> Options:
    return replace(options, record=replace(options.record, excerpt=False))


def _hole(options: Options) -> Options:
    return replace(options, record=replace(options.record, hole=False))


def _seek(options: Options) -> Options:
    return replace(options, service=replace(options.service, seek=False))


def _exactly_once(options: Options) -> Options:
    return replace(options, service=replace(options.service, exactly_once=False))


def _windows(options: Options) -> Options:
    return replace(options, short_memory=False)


def _second(options: Options) -> Options:
    return replace(options, second=None)


def _late(options: Options) -> Options:
    return replace(options, late_s=0.0)


FEATURES: dict[str, Change] = {
    "away": _away,
    "backoff": _backoff,
    "clock_steps": _clock_steps,
    "clocks": _clocks,
    "dead_letter": _dead_letter,
    "epochs": _epochs,
    "exactly_once": _exactly_once,
    "excerpt": _excerpt,
    "failover": _failover,
    "flow_control": _flow_control,
    "flow_control_bytes": _flow_control_bytes,
    "forget": _forget,
    "half_open_loses": _half_open_loses,
    "handover": _handover,
    "hold": _hold,
    "hole": _hole,
    "late": _late,
    "leaves_out": _leaves_out,
    "neighbours": _neighbours,
    "pause": _pause,
    "poison": _poison,
    "publish_time": _publish_time,
    "race": _race,
    "retention": _retention,
    "second": _second,
    "seek": _seek,
    "short_memory": _windows,
    "stays_lost": _stays_lost,
    "store_twice": _store_twice,
}

NEEDS: dict[str, tuple[str, ...]] = {
    "clock_steps": ("clocks",),
    "flow_control": ("race",),
    "flow_control_bytes": ("flow_control", "race"),
    "late": ("second",),
    "leaves_out": ("dead_letter",),
    "poison": ("dead_letter",),
    "store_twice": ("publish_time",),
}
"""Features that are nothing without others."""


def without(options: Options, names: Iterable[str]) -> Options:
    """The options without these features, for both subscriptions."""
    for name in names:
        options = FEATURES[name](options)
        if options.second is not None:
            options = replace(options, second=FEATURES[name](options.second))
    return options


def only(options: Options, names: Iterable[str]) -> Options:
    """The options with no other features than these and what they need."""
    kept = {each for name in names for each in (name, *NEEDS.get(name, ()))}
    return without(options, [name for name in FEATURES if name not in kept])
