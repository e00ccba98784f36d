"""Draws the options of a run from its seed.

Every feature is on in a part of the runs and its rate is drawn anew, because runs in which everything happens hide what only a rare
combination shows. What a record cannot show is not combined with what needs it to be legal:

* A service that paces a key by itself (`pace`) has nothing recorded that would explain why it waits while a client holds on to a
  message, so clients hold for long only where the flow control is that of the stream, which is recorded.
* Answers that acknowledged messages may have been lost in, and times in which nobody pulls, need pulls that are recorded from their
  invocation to their end (row 7 of the amendments); older recorders wrote less.
* A client with several streams gets its messages on those that have room, so that flow control makes them race.
* A client whose streams race is not brought down by a message: `streams` says why.
* A run with many epochs is long, and short of refusals (of messages, and of acknowledgements that are out of order): each of them would
  bring back a good part of it.
* A merged record of several clocks is neither cut nor has it holes: where a cut goes through it is a matter of clocks.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from random import Random

from prober.core.rules import Mode, Rules
from tests.simulation.dice import Dice
from tests.simulation.options import (
    NEVER,
    Bounds,
    ClientOptions,
    Options,
    PublishTime,
    PullRecord,
    RecordOptions,
    ServiceOptions,
    SessionOptions,
    TopicOptions,
)

PATIENCE_LEASES = 30
FEW_EPOCHS = 20
MANY_EPOCHS = 280


def patience(options: Options) -> float:
    """Every deadline that the checker is given, in seconds."""
    return PATIENCE_LEASES * options.bounds.lease_s


def swarm(seed: int, mode: Mode) -> Options:
    """The options of the run with this seed."""
    dice = Dice(Random(f"options {mode} {seed}"))
    topic = _topic(dice)
    first = _subscription(dice, mode, _record(dice), topic)
    first = replace(first, keys=1 if topic.epoch_per_burst else dice.random.choice((1, 1, 1, 2, 3)))
    if not dice.flag(0.2) or topic.bursts == MANY_EPOCHS:
        return first
    second = _subscription(dice, dice.random.choice(list(Mode)), first.record, topic)
    late_s = dice.random.uniform(0, topic.bursts * topic.burst_gap_s) if dice.flag(0.2) else 0.0
    return replace(first, second=replace(second, keys=first.keys, late_s=late_s))


def _record(dice: Dice) -> RecordOptions:
    random = dice.random
    kind = random.choice(("one", "one", "one", "one", "skewed", "skewed", "excerpt", "hole"))
    return RecordOptions(
        recorders=random.randint(2, 5) if kind == "skewed" else 1,
        clock_error_s=random.choice((0.01, 0.3, 1.0, 5.0)) if kind == "skewed" else 0.0,
        clock_steps=dice.flag(0.3),
        excerpt=kind == "excerpt",
        hole=kind == "hole",
    )


def _topic(dice: Dice) -> TopicOptions:
    random = dice.random
    epoch_per_burst = dice.flag(0.06)
    store_twice = dice.rate(0.4, 0.25)
    reported = list(PublishTime)[1:] if store_twice else [PublishTime.NONE, PublishTime.NONE, *PublishTime]
    options = TopicOptions(
        bursts=random.randint(2, 10),
        burst_max=random.randint(1, 7),
        burst_gap_s=random.choice((0.3, 2.0, 8.0, 30.0)),
        pause_s=random.choice((400.0, 2000.0)) if dice.flag(0.1) else 0.0,
        attempts=random.randint(1, 4),
        request_loss=dice.rate(0.4),
        reply_loss=dice.rate(0.5),
        partial=dice.rate(0.5),
        zombie=dice.rate(0.5),
        slow_reply=dice.rate(0.7),
        republish=random.choice((0.0, 0.5, 1.0)),
        pipelined=dice.flag(0.5),
        restart=dice.flag(0.25),
        epoch_per_burst=epoch_per_burst,
        failover=dice.rate(0.6, 0.2),
        store_twice=store_twice,
        publish_time=random.choice(reported),
    )
    if epoch_per_burst:
        bursts = random.choice((10, FEW_EPOCHS, FEW_EPOCHS, FEW_EPOCHS, 80, MANY_EPOCHS))
        options = replace(options, bursts=bursts, burst_max=min(2, options.burst_max), burst_gap_s=min(2.0, options.burst_gap_s))
    return options


def _bounds(dice: Dice) -> Bounds:
    random = dice.random
    return Bounds(
        delay_max_s=random.choice((0.02, 0.3, 1.0, 3.0)),
        lease_s=random.choice((10.0, 20.0, 60.0)),
        ack_lag_s=random.choice((0.05, 0.5, 5.0)),
        close_detection_s=random.choice((0.0, 0.5, 3.0)),
        retention_s=random.choice((60.0, 200.0, 600.0)) if dice.flag(0.12) else inf,
        backoff_s=random.choice((5.0, 60.0, 600.0)) if dice.flag(0.15) else 0.0,
    )


def _client(dice: Dice, bounds: Bounds, dead_letter: int, may_be_away: bool) -> ClientOptions:
    random = dice.random
    patience_s = PATIENCE_LEASES * bounds.lease_s
    return ClientOptions(
        clients=random.randint(1, 4),
        streams=random.choice((1, 1, 2, 3)),
        nack=random.uniform(0.2, 0.7) if dead_letter else dice.rate(0.25),
        ignore=dice.rate(0.15),
        ack_loss=dice.rate(0.2),
        late_ack=dice.rate(0.4),
        shorten=dice.rate(0.4, 0.3),
        extend=dice.rate(0.4, 0.3),
        hold=dice.rate(0.15, 0.25),
        hold_max_s=random.choice((0.3, 1.5)) * patience_s,
        ack_after_close=dice.rate(0.5, 0.3),
        away_s=random.choice((0.2, 1.5, 3.0)) * patience_s if may_be_away and dice.flag(0.12) else 0.0,
    )


def _sessions(dice: Dice, bounds: Bounds) -> SessionOptions:
    random = dice.random
    return SessionOptions(
        break_every_s=dice.every(5.0, 60.0),
        half_open=dice.rate(1.0),
        half_open_loses=dice.rate(1.0, 0.3),
        client_first=dice.rate(1.0),
        handover=dice.rate(1.0, 0.3),
        other_client=dice.rate(1.0),
        loss=dice.rate(0.2),
        batch_max=random.choice((1, 3, 10)),
        pulls=random.choice((PullRecord.COMPLETE, PullRecord.COMPLETE, PullRecord.INVOKED, PullRecord.ANSWERED)),
        pull_timeout_s=random.choice((0.1, 1.0, 3.0)) * bounds.lease_s,
    )


def _service(dice: Dice, mode: Mode, dead_letter: int) -> ServiceOptions:
    random = dice.random
    exactly_once = mode is not Mode.PUSH and dice.flag(0.2)
    repeats = not exactly_once
    return ServiceOptions(
        pace=random.choice((1, 3, 10, 1000)),
        limit_messages=random.choice((1, 2, 5, 20)) if dice.flag(0.25) else 0,
        limit_bytes=random.choice((100, 400, 2000)) if dice.flag(0.15) else 0,
        spontaneous_every_s=dice.every(10.0, 100.0) if repeats else NEVER,
        forget_every_s=dice.every(10.0, 100.0, 0.3) if repeats and mode is not Mode.PUSH else NEVER,
        idle_move=dice.rate(1.0),
        turn=dice.rate(1.0),
        race=dice.rate(1.0, 0.4),
        lazy_rewind=dice.rate(1.0, 0.4),
        deeper_rewind=dice.rate(0.5, 0.4),
        old_ack_counts=dice.rate(1.0),
        stays_lost=dice.rate(1.0),
        neighbour_delay=dice.rate(0.3, 0.25),
        dead_letter=dead_letter,
        dead_letter_observed=random.choice((0.0, 0.5, 1.0)),
        leaves_out=dice.rate(0.3) if dead_letter else 0.0,
        poison=dice.rate(0.35, 0.7) if dead_letter else 0.0,
        exactly_once=exactly_once,
        seek=dice.flag(0.1),
    )


def _subscription(dice: Dice, mode: Mode, record: RecordOptions, topic: TopicOptions) -> Options:
    bounds = _bounds(dice)
    dead_letter = dice.random.choice((5, 6)) if dice.flag(0.2) else 0
    session = _sessions(dice, bounds)
    service = _service(dice, mode, dead_letter)
    complete = session.pulls is PullRecord.COMPLETE
    client = _client(dice, bounds, dead_letter, mode is Mode.STREAMING or (mode is Mode.PULL and complete))
    if client.hold and mode is not Mode.PUSH:
        service = replace(service, pace=1000)
    if topic.epoch_per_burst:
        client = replace(client, hold=0.0, nack=min(0.05, client.nack))
        service = replace(service, exactly_once=service.exactly_once and topic.bursts <= FEW_EPOCHS)
    if client.streams > 1 and (service.limit_messages or service.limit_bytes):
        service = replace(service, race=max(service.race, 0.1))
    if mode is Mode.STREAMING and (service.race or session.handover):
        service = replace(service, poison=0.0)
    if mode is Mode.PULL and not complete:
        service = replace(service, stays_lost=0.0)
    return Options(mode, 1, bounds, topic, client, session, service, record, short_memory=dice.flag(0.15))


def rules_for(seed: int, options: Options, name: str) -> Rules:
    """What the checker is reported: the true bounds or, in other runs, more generous ones. `name` is that of the subscription."""
    dice = Dice(Random(f"rules {options.mode} {name} {seed}"))
    random, bounds = dice.random, options.bounds
    error = options.record.clock_error_s
    return Rules(
        mode=options.mode,
        delivery_delay_max_s=random.choice((bounds.delay_max_s, bounds.delay_max_s, 2 * bounds.delay_max_s, 5.0)),
        clock_error_s=random.choice((error, error, 2 * error)),
        ack_deadline_s=bounds.lease_s,
        ack_lag_max_s=random.choice((bounds.ack_lag_s, 10.0)),
        close_detection_max_s=random.choice((bounds.close_detection_s, bounds.close_detection_s, 10.0)),
        exactly_once=options.service.exactly_once,
        dead_letter_max_attempts=options.service.dead_letter,
        window=random.choice((1, 2, 16, 1024)) if options.short_memory else 1024,
        delivery_deadline_s=patience(options),
        stall_deadline_s=patience(options),
        unacked_deadline_s=patience(options),
        subscription_predates_first_publish=not options.late_s,
        idle_after_s=random.choice((1.0, 20.0, 900.0)) if options.short_memory else 900.0,
        message_retention_s=bounds.retention_s,
        retry_backoff_max_s=bounds.backoff_s,
    )
