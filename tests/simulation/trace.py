"""A run, one line of short events per event, for reading."""

from __future__ import annotations

from collections.abc import Iterable

from prober.core import events as ev


def short(event: ev.Event) -> str:
    """An event as one word: `A<3(id)@1.2` is a delivery of sequence number 3 to session A."""
    match event:
        case ev.PublishInvoked():
            text = f"P{event.epoch}:{event.seq}" + (f"'{event.generation}" if event.generation else "")
            text += f" in {event.region}" if event.region else ""
        case ev.Published():
            text = f"ok{event.epoch}:{event.seq}={event.message_id}"
        case ev.PublishFailed() | ev.PublishUnknown() | ev.PublishAbandoned():
            text = f"{type(event).__name__.removeprefix('Publish').lower()}{event.epoch}:{event.seq}"
        case ev.Delivered():
            attempt = f"#{event.delivery_attempt}" if event.delivery_attempt else ""
            stored = f" stored {event.publish_time}" if event.publish_time is not None else ""
            defect = f"!{event.defect} under {event.key}" if event.defect else ""
            text = f"{event.session}<{event.seq}({event.message_id}){attempt}{defect}{stored}"
        case ev.LeaseModified():
            text = f"{event.session} modack({event.message_id}, {event.seconds:g})"
        case ev.Acked() | ev.Nacked() | ev.AckConfirmed():
            text = f"{event.session} {type(event).__name__.lower()}({event.message_id})"
        case ev.Opened() | ev.Closed():
            text = f"{type(event).__name__.lower()} {event.session}{' lost' if getattr(event, 'lost', False) else ''}"
        case _:
            text = type(event).__name__.lower()
    return f"{text}@{event.t:.3f}"


def show(events: Iterable[ev.Event], key: str | None = None, subscription: str | None = None, marks: Iterable[int] = ()) -> str:
    """The numbered events; only those of a key and a subscription, if they are named, and those of none. Marked: the witnesses."""
    marked = set(marks)
    return "\n".join(
        f"{'*' if number in marked else ' '}{number:5} {short(event)}"
        for number, event in enumerate(events, 1)
        if key in (None, getattr(event, "key", key)) and subscription in (None, getattr(event, "subscription", subscription))
    )
