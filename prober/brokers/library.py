"""The library vantage: Google's own client library, the view of a customer.

For the control plane and unary pull the library contains no logic that could change the result, so the wire's code is used, over a
connection of its own. Publishing uses Google's PublisherClient, with message ordering on and all other settings at their defaults.

Properties of that client, and their handling:

* With ordering on it retries an ordered publish for ever, whatever its deadline. Every publish has a timeout here: without an answer in
  time its outcome is unknown, and the later result of its future is ignored. The client continues to retry, and later messages of the key
  wait behind the publish.
* When a publish fails for good, the messages waiting behind it fail first, while the client holds its locks. Resuming the key from a
  callback then deadlocks the client. Here callbacks only put the outcome into a mailbox, and all calls of the client are made in one
  thread that never runs a callback.
* Between two attempts it sleeps up to a minute, in a thread of its own. Here the same pauses can be interrupted, so that closing ends
  them.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final

import grpc
from google.api_core.retry import Retry, exponential_sleep_generator

from prober.brokers.base import Confirmed, FlowControlSettings, Outcome, Outgoing, Publisher, Rejected, Subscriber, Tap, Unknown
from prober.brokers.connection import Connection
from prober.brokers.library_calls import AttemptCounter
from prober.brokers.library_client import (
    Mailbox,
    Worker,
    future_outcome,
    is_retried,
    is_stop,
    publishing_client,
    refusal_to_publish,
)
from prober.brokers.library_pull import LibraryPull, subscriber_names
from prober.brokers.subscriber import ReopeningSubscriber
from prober.brokers.wire import WireBroker
from prober.errors import BrokerError


@dataclass(slots=True)
class _Key:
    """One key of a publisher: pending publishes, whether a publish failed since the last resume, and whether one was stopped."""

    under_way: int = 0
    failed: bool = False
    stopped: bool = False


class KeyStops:
    """Counts the unexplained stops of the keys of one client. For use in any thread; makes no call of the client.

    The library pauses a key when a publish on it fails for good, and cancels the publishes behind it until the key is resumed. Their
    futures fail before the future of the failed publish. So a stop is verified when no publish of its key is pending: by then a publish
    that explains it has failed.

    A publish without an answer stays pending, and stops of its key stay unverified: its outcome is counted as unknown.

    unexplained   stops without a failed publish, since the client was created; including a key that stays stopped after a resume.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._keys: dict[str, _Key] = {}
        self.unexplained = 0

    def handed_over(self, ordering_key: str) -> None:
        """Count a publish before it is passed to the client."""
        with self._lock:
            self._keys.setdefault(ordering_key, _Key()).under_way += 1

    def answered(self, ordering_key: str, error: BaseException | None) -> None:
        """Count the end of a publish: confirmed, or failed with this error of the client."""
        with self._lock:
            key = self._keys[ordering_key]
            key.under_way -= 1
            key.stopped |= error is not None and is_stop(error)
            key.failed |= error is not None and not is_stop(error)
            if not key.under_way:
                self.unexplained += key.stopped and not key.failed
                key.stopped = False
            self._forget_idle(ordering_key)

    def resumed(self, ordering_key: str) -> None:
        """Record that a key was resumed. Earlier failures explain no later stop, unless publishes are pending."""
        with self._lock:
            key = self._keys.get(ordering_key)
            if key is not None and not key.under_way:
                key.failed = False
                self._forget_idle(ordering_key)

    def _forget_idle(self, ordering_key: str) -> None:
        if self._keys[ordering_key] == _Key():
            del self._keys[ordering_key]


RESUME_TIMEOUT_S: Final = 10.0
CLOSE_TIMEOUT_S: Final = 3.0
ANSWERS_MAX: Final = 1_000_000

# The library's own pauses between attempts, in seconds.
PAUSE_INITIAL_S: Final = 0.1
PAUSE_MAX_S: Final = 60.0
PAUSE_FACTOR: Final = 4.0

# Attributes are keyword arguments of the client's `publish`, beside these.
RESERVED_ATTRIBUTES: Final = frozenset({"self", "topic", "data", "ordering_key", "retry", "timeout"})

_Waiter = asyncio.Future[Outcome]


class LibraryPublisher:
    """Publishes to one topic with a client of its own, which sends one batch of a key at a time."""

    keeps_order = True

    def __init__(self, connection: Connection, topic: str) -> None:
        self._connection = connection
        self._topic = topic
        self._attempts = AttemptCounter()
        self._pauses = threading.local()
        self._channel = connection.open_threaded_channel()
        retry = Retry(is_retried, initial=0.001, maximum=0.001, on_error=self._before_next_attempt)
        self._client = publishing_client(grpc.intercept_channel(self._channel, self._attempts), retry)
        self._answers: Mailbox[tuple[_Waiter, Outcome]] = Mailbox(_settle, ANSWERS_MAX)
        self._unanswered: set[concurrent.futures.Future[str]] = set()
        self._stops = KeyStops()
        self._worker = Worker("publisher")
        self._closed = False
        connection.opened(self)

    @property
    def unexplained_stops(self) -> int:
        """Number of times that the client stopped a key without a failed publish."""
        return self._stops.unexplained

    async def publish(self, messages: Sequence[Outgoing], timeout_s: float) -> Sequence[Outcome]:
        """Make one `publish` call per message, in order; see the port. The client batches them at will."""
        if self._closed:
            return [Rejected("the publisher was closed before")] * len(messages)
        if not messages:
            return []
        loop = asyncio.get_running_loop()
        waiters: list[_Waiter] = [loop.create_future() for _ in messages]
        handed_over = self._worker.call(partial(self._hand_over, messages, waiters))
        try:
            await asyncio.wait(waiters, timeout=timeout_s)
        finally:
            handed_over.cancel()
            for waiter in waiters:
                waiter.cancel()  # a late answer has no waiter
        return [Unknown(f"no answer within {timeout_s:g} s") if waiter.cancelled() else waiter.result() for waiter in waiters]

    async def resume(self, ordering_key: str) -> None:
        """Resume a key that the client has paused; do nothing if it has not. Raises BrokerError if the client hangs."""
        try:
            async with asyncio.timeout(RESUME_TIMEOUT_S):
                await self._worker.call(partial(self._resume, ordering_key))
        except TimeoutError:
            raise BrokerError(f"resuming a key on {self._topic}: the client library does not answer") from None

    async def close(self) -> None:
        """Stop the client. Unanswered publishes are unknown; the client sends no further messages."""
        if self._closed:
            return
        self._closed = True
        self._attempts.stop()
        try:
            # Unfinished work continues in threads that keep no process alive and end with their last attempt.
            with suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_TIMEOUT_S):
                    await self._worker.call(self._shut_down)
        finally:
            self._worker.stop()
            self._connection.closed(self)

    def _hand_over(self, messages: Sequence[Outgoing], waiters: Sequence[_Waiter]) -> None:
        for message, waiter in zip(messages, waiters, strict=True):
            if waiter.done():
                return  # the caller has gone
            if reserved := RESERVED_ATTRIBUTES & message.attributes.keys():
                self._answers.post((waiter, Rejected(f"never sent: the client library takes no attribute named {min(reserved)}")))
                continue
            self._stops.handed_over(message.ordering_key)
            try:
                future = self._client.publish(self._topic, message.data, ordering_key=message.ordering_key, **message.attributes)
            except Exception as error:  # whatever the error, the message was not accepted
                self._stops.answered(message.ordering_key, None)
                self._answers.post((waiter, refusal_to_publish(error)))
            else:
                self._unanswered.add(future)
                future.add_done_callback(partial(self._answered, waiter, message.ordering_key))

    def _answered(self, waiter: _Waiter, ordering_key: str, future: concurrent.futures.Future[str]) -> None:
        """Post the outcome of a publish. Runs in the thread of the batch, perhaps under the client's locks: must not call the client."""
        self._unanswered.discard(future)
        error = future.exception()
        self._stops.answered(ordering_key, error)
        if error is not None:
            outcome: Outcome = future_outcome(error, self._attempts.in_this_thread())
        else:
            message_id = future.result()
            outcome = Confirmed(message_id) if message_id else Unknown("an empty message id came back")
        self._answers.post((waiter, outcome))

    def _before_next_attempt(self, error: Exception) -> None:
        """Wait before the next attempt, like the library; raise the error instead if no other attempt follows."""
        pauses = getattr(self._pauses, "of_thread", None)
        if pauses is None:
            pauses = self._pauses.of_thread = exponential_sleep_generator(PAUSE_INITIAL_S, PAUSE_MAX_S, PAUSE_FACTOR)
        if not self._attempts.pause(next(pauses)):
            raise error

    def _resume(self, ordering_key: str) -> None:
        with suppress(RuntimeError):  # "Ordering key is not paused."
            self._client.resume_publish(self._topic, ordering_key)
        self._stops.resumed(ordering_key)

    def _shut_down(self) -> None:
        self._client.stop()
        self._channel.close()
        concurrent.futures.wait(list(self._unanswered), timeout=CLOSE_TIMEOUT_S)


def _settle(answer: tuple[_Waiter, Outcome]) -> None:
    waiter, outcome = answer
    if not waiter.done():
        waiter.set_result(outcome)


class LibraryBroker(WireBroker):
    """The library vantage on one target. Each publisher and each subscriber has a client of its own; pushes do not go through one."""

    def publisher(self, topic: str) -> Publisher:
        """Return a publisher to a topic."""
        return LibraryPublisher(self._connection, topic)

    def subscriber(self, subscription: str, client_id: str, flow: FlowControlSettings, ack_deadline_s: int) -> Subscriber:
        """Return a subscriber; `client_id` is the prober's name for it, the client creates its own."""
        names = subscriber_names(client_id)

        def new_pull(tap: Tap) -> LibraryPull:
            return LibraryPull(self._connection, subscription, next(names), flow, ack_deadline_s, tap)

        return ReopeningSubscriber(self._connection, subscription, client_id, new_pull)
