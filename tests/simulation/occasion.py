"""What a bug needs to show."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from tests.simulation.faults import Fault
from tests.simulation.options import NEVER, Options


def for_fault(seed: int, options: Options, fault: Fault) -> Options:
    """A bug must have the occasion to show: what it needs is switched on, and what would excuse or hide it is off or rarer.

    A message left out is invisible where it was a publisher's duplicate, one not sent again where its acknowledgement was only lost,
    acknowledged ones left out where the run begins with them, having gone further back than it had to.
    """
    random = Random(f"occasion {seed}")
    topic, client, session, service = options.topic, options.client, options.session, options.service
    return replace(
        options,
        second=None,
        bounds=replace(options.bounds, retention_s=float("inf"), backoff_s=min(5.0, options.bounds.backoff_s)),
        topic=replace(
            topic,
            request_loss=0.3 * topic.request_loss,
            reply_loss=0.3 * topic.reply_loss,
            partial=0.3 * topic.partial,
            zombie=0.3 * topic.zombie,
            bursts=max(4, min(10, topic.bursts)),
            burst_max=max(3, topic.burst_max),
            burst_gap_s=min(8.0, topic.burst_gap_s),
            epoch_per_burst=False,
            failover=0.0,
        ),
        client=replace(
            client,
            ack_loss=0.3 * client.ack_loss,
            clients=max(2, client.clients),
            nack=max(client.nack, random.uniform(0.02, 0.2)) if not service.dead_letter else random.uniform(0.02, 0.2),
            away_s=0.0,
        ),
        session=replace(
            session,
            break_every_s=random.uniform(5, 40) if fault is Fault.RESUME_PAST else session.break_every_s,
            batch_max=max(3, session.batch_max),
        ),
        service=replace(
            service,
            deeper_rewind=0.0,
            spontaneous_every_s=NEVER if fault is Fault.REDELIVER_UNACKED_ONLY else service.spontaneous_every_s,
            forget_every_s=NEVER,
            neighbour_delay=0.0,
            seek=False,
            exactly_once=service.exactly_once and random.random() < 0.3,
            dead_letter=0,
            leaves_out=0.0,
            poison=0.0,
            pace=max(3, service.pace),
            limit_messages=0,
            limit_bytes=0,
        ),
        record=replace(options.record, excerpt=False, hole=False),
    )
