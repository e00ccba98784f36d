"""`limits`: ordering keys of 1 to 1,024 bytes keep their order; requests beyond the documented limits are refused.

Messages are published on the shortest and the longest keys allowed, including keys with characters of several bytes. Requests that the
service has to refuse are sent, too: with longer keys, and with two keys in one request. Messages without a key are published as well; they
have no order. Neither refused requests nor messages without a key are verified.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

from prober.brokers.base import Outcome, Outgoing, Rejected, Unknown
from prober.probes.context import Delivery, ProbeContext, comes_within
from prober.probes.experiment import CHECK_TARGET, NOTHING_DELIVERED, Experiment, Workload, opportunities_of_order

KEY_BYTES_MAX: Final = 1024
EDGES: Final = (
    "l",
    " ",
    "li",
    "/limits?key=1&of=#%",
    "l" * (KEY_BYTES_MAX // 4),
    "l" * (KEY_BYTES_MAX - 1),
    "l" * KEY_BYTES_MAX,
    "é" * (KEY_BYTES_MAX // 2),
    "€" * (KEY_BYTES_MAX // 3) + "l",
    "🔑" * (KEY_BYTES_MAX // 4),
)
"""Keys used first; all further keys have the greatest length."""
TOO_LONG: Final = ("l" * (KEY_BYTES_MAX + 1), "é" * (KEY_BYTES_MAX // 2) + "l", "l" * (2 * KEY_BYTES_MAX))
"""Keys to refuse. The second has fewer characters than the limit has bytes."""
UNORDERED: Final = 3
"""Number of messages published without a key."""
COMES_S: Final = 10.0
"""Longest wait for the first message without a key, in seconds."""
CONTENT: Final = b"limits"
ATTEMPTS_MAX: Final = 3
"""Attempts of a request that has to be refused, while the service does not answer."""
NOT_REJECTED: Final = (
    "the target accepted {}, or did not answer, so that limit was not verified; if this persists, publish it yourself: emulators "
    "often enforce no limits"
)


async def act(context: ProbeContext, workload: Workload) -> None:
    """Publish on keys of all lengths, then send requests that have to be refused."""
    for _ in range(workload.subscribers):
        await context.subscribe(Delivery.ack)
    await _offer(context, [Outgoing("", CONTENT)] * UNORDERED)
    taken = await asyncio.gather(*(_bursts(context, key_of(number), workload) for number in workload.numbers))
    if all(taken):
        context.count("every_key_taken")
    await _refuses(context, "long_keys", ([Outgoing(key, CONTENT)] for key in TOO_LONG))
    await _refuses(context, "mixed_keys", ([Outgoing("l", CONTENT), Outgoing(other, CONTENT)] for other in ("li", "")))
    await comes_within(COMES_S, context.unordered_came)


async def _bursts(context: ProbeContext, key: str, workload: Workload) -> int:
    """Publish on one key. Return the number of confirmed messages."""
    return sum([await context.publish(key, workload.burst_messages, workload.sizes) for _ in range(workload.bursts)])


async def _refuses(context: ProbeContext, what: str, requests: Iterable[Sequence[Outgoing]]) -> None:
    """Count `what` as refused if the service rejects each of the requests."""
    outcomes = [outcome for request in requests for outcome in await _answered(context, request)]
    if all(isinstance(outcome, Rejected) for outcome in outcomes):
        context.count(f"{what}_refused")


async def _answered(context: ProbeContext, messages: Sequence[Outgoing]) -> Sequence[Outcome]:
    """Return the outcomes of a request; send it again while the service does not answer."""
    outcomes = await _offer(context, messages)
    for _ in range(1, ATTEMPTS_MAX):
        if not any(isinstance(outcome, Unknown) for outcome in outcomes):
            break
        outcomes = await _offer(context, messages)
    return outcomes


async def _offer(context: ProbeContext, messages: Sequence[Outgoing]) -> Sequence[Outcome]:
    """Publish messages in one request, without recording them."""
    return await context.publishing.attempt("", (), beside=messages)


def key_of(number: int) -> str:
    """Return the key of a number."""
    return EDGES[number] if number < len(EDGES) else f"{number}-".ljust(KEY_BYTES_MAX, "l")


PROBE = Experiment(
    name="limits",
    guarantee="Ordering keys of 1 to 1,024 bytes keep their order; longer ones, and two in one request, are refused.",
    act=act,
    workload=Workload(keys=len(EDGES), bursts=2, burst_messages=30, subscribers=2),
    interval_s=600.0,
    wire_only=True,  # a client library puts the messages of each key into a request of their own
    opportunities=opportunities_of_order,
    requires={
        "deliveries_first": NOTHING_DELIVERED,
        "every_key_taken": (
            "the target confirmed no message on one of the ordering keys of 1 to 1,024 bytes, so that length was not verified; "
            "if this persists, publish on such a key yourself"
        ),
        "deliveries_unordered": f"no message without an ordering key was delivered, so that case was not verified; {CHECK_TARGET}",
        "long_keys_refused": NOT_REJECTED.format("an ordering key of more than 1,024 bytes"),
        "mixed_keys_refused": NOT_REJECTED.format("a request with two ordering keys"),
    },
)
