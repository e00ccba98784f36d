"""Records that begin late, end early or have a hole: any part of a legal history is legal."""

from __future__ import annotations

from typing import TypeAlias

from prober.core.events import (
    Delivered,
    Ended,
    Event,
    Interrupted,
    PublishAbandoned,
    Published,
    PublishFailed,
    PublishInvoked,
    PublishUnknown,
)
from tests.documented.freedoms import Freedom
from tests.documented.world import World

Message: TypeAlias = tuple[str, str, int]


def cut(world: World, events: list[Event]) -> list[Event]:
    """Cut a record as the settings of its history demand."""
    place, at = world.settings.cut, world.rng.randrange(len(events))
    if place == "start":
        return _cut_start(world, events, at)
    if place == "hole":
        return _cut_hole(world, events, at)
    if place in ("end", "stop"):
        world.note(Freedom.CUT_END if place == "end" else Freedom.NOT_DRAINED)
        return _cut_end(world, events, at, stopped=place == "stop")
    return events


def _cut_start(world: World, events: list[Event], at: int) -> list[Event]:
    """Begin late, where no publish is under way unless the record may begin inside one."""
    world.note(Freedom.CUT_START)
    under_way = _publishes_under_way(events)
    if Freedom.CUT_START_IN_PUBLISH in world.switched_off:
        at = next(index for index in range(at, len(events)) if not under_way[index])
    elif under_way[at]:
        world.note(Freedom.CUT_START_IN_PUBLISH)
    return events[at:]


def _cut_hole(world: World, events: list[Event], at: int) -> list[Event]:
    """Lose some events in the middle, after a part that could end there."""
    world.note(Freedom.HOLE)
    kept = _cut_end(world, events, at, stopped=False)
    end = min(len(kept) + world.rng.randint(0, 40), len(events) - 1)
    return [*kept, Interrupted(events[end].t), *events[end:]]


def _publishes_under_way(events: list[Event]) -> list[int]:
    """Return, for each event, how many messages before it were invoked but neither confirmed nor abandoned."""
    pending: set[Message] = set()
    counts = []
    for event in events:
        counts.append(len(pending))
        if isinstance(event, PublishInvoked | PublishFailed | PublishUnknown):
            pending.add((event.key, event.epoch, event.seq))
        elif isinstance(event, Published | PublishAbandoned):
            pending.discard((event.key, event.epoch, event.seq))
    return counts


def _cut_end(world: World, events: list[Event], at: int, *, stopped: bool) -> list[Event]:
    """End early, where every delivered message was invoked unless the publisher's fast clock may show it later."""
    early = _first_early_delivery(events[: at + 1])
    if early is not None:
        if Freedom.CUT_END_BEFORE_PUBLISH in world.switched_off:
            at = max(0, early - 1)
        else:
            world.note(Freedom.CUT_END_BEFORE_PUBLISH)
    ended = [Ended(events[at].t + world.rng.random(), drained=False)] if stopped else []
    return [*events[: at + 1], *ended]


def _first_early_delivery(events: list[Event]) -> int | None:
    """Return the index of the first delivery whose message this record never invokes."""
    invoked = {(event.key, event.epoch, event.seq) for event in events if isinstance(event, PublishInvoked)}
    for index, event in enumerate(events):
        if isinstance(event, Delivered) and (event.key, event.epoch, event.seq) not in invoked:
            return index
    return None
