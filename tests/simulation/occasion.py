"""What a bug needs to show."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from random import Random

from tests.simulation.faults import EXACTLY_ONCE, Fault
from tests.simulation.options import NEVER, ClientOptions, Options, PullRecord, TopicOptions

SLOW_CLIENTS = (Fault.EOD_WHILE_HELD, Fault.LOST_TAIL, Fault.RESUME_ELSEWHERE)
"""What these need is that something is held, or waits, for a while."""


def for_fault(seed: int, options: Options, fault: Fault) -> Options:
    """A bug must have the occasion to show: what it needs is switched on, and what would excuse or hide it is off or rarer.

    A message left out is invisible where it was a publisher's duplicate, one not sent again where its acknowledgement was only lost,
    acknowledged ones left out where the run begins with them, having gone further back than it had to; a pull subscription that stands
    still looks like one from which nobody pulls, unless pulls that wait are recorded.
    """
    random = Random(f"occasion {seed}")
    service = options.service
    return replace(
        options,
        second=None,
        short_memory=False,
        bounds=replace(
            options.bounds,
            delay_max_s=max(0.3, options.bounds.delay_max_s) if fault is Fault.SPLIT_RACING else options.bounds.delay_max_s,
            retention_s=inf,
            backoff_s=min(5.0, options.bounds.backoff_s),
        ),
        topic=_topic(options.topic, fault),
        client=_client(options, fault, random),
        session=replace(
            options.session,
            break_every_s=_break_every_s(options, fault, random),
            batch_max=max(3, options.session.batch_max),
            loss=0.0 if fault is Fault.EOD_SKIP else options.session.loss,
            pulls=PullRecord.COMPLETE if options.session.pulls is PullRecord.ANSWERED else options.session.pulls,
        ),
        service=replace(
            service,
            deeper_rewind=0.0,
            spontaneous_every_s=NEVER
            if fault is Fault.REDELIVER_UNACKED_ONLY or fault in EXACTLY_ONCE
            else service.spontaneous_every_s,
            forget_every_s=random.uniform(3, 10) if fault is Fault.RESUME_ELSEWHERE else NEVER,
            neighbour_delay=0.0,
            seek=False,
            exactly_once=fault in EXACTLY_ONCE
            or (service.exactly_once and fault is not Fault.RESUME_ELSEWHERE and random.random() < 0.3),
            dead_letter=0,
            leaves_out=0.0,
            poison=0.0,
            pace=1 if fault is Fault.LOST_TAIL else max(3, service.pace),
            limit_messages=0,
            limit_bytes=0,
        ),
        record=replace(options.record, excerpt=False, hole=False),
    )


def _topic(topic: TopicOptions, fault: Fault) -> TopicOptions:
    return replace(
        topic,
        request_loss=0.3 * topic.request_loss,
        reply_loss=0.3 * topic.reply_loss,
        partial=0.3 * topic.partial,
        zombie=0.3 * topic.zombie,
        bursts=max(4, min(10, topic.bursts)),
        burst_max=max(3, topic.burst_max),
        burst_gap_s=min(8.0, topic.burst_gap_s),
        restart=topic.restart or fault is Fault.LOST_TAIL,
        epoch_per_burst=False,
        failover=0.5 if fault is Fault.REGION_SWAP else 0.0,
    )


def _client(options: Options, fault: Fault, random: Random) -> ClientOptions:
    client = options.client
    nack = 0.0 if options.service.dead_letter else client.nack
    return replace(
        client,
        ack_loss=0.3 * client.ack_loss,
        clients=max(2, client.clients),
        nack=max(nack, random.uniform(0.02, 0.2)),
        late_ack=max(client.late_ack, 0.3) if fault in SLOW_CLIENTS else client.late_ack,
        away_s=0.0,
    )


def _break_every_s(options: Options, fault: Fault, random: Random) -> float:
    if fault is Fault.EOD_SKIP:
        return NEVER
    return random.uniform(5, 40) if fault is Fault.RESUME_PAST else options.session.break_every_s
