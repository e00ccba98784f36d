"""The state machine's heart-beat in an asyncio loop: when something was asked, or the time has come, it advances the state and carries
out the effects.

Everything happens in one loop, so the state needs no lock. A request only asks for a beat, and all that arrive within a millisecond
share it: a response costs as much as the handling of fifty messages, so few big ones are worth the wait.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Final

from prober.embedded.errors import Code, ServiceError
from prober.embedded.messages import AnswerPull, CancelPush, Confirm, DeadLettered, Delivery, Effect, EndStream, Lost, Push, Send
from prober.embedded.state import State

_OUTLET_MAX: Final = 10_000  # responses waiting for a client that does not read
_GATHER_S: Final = 0.001
_SLEEP_MAX_S: Final = 60.0  # a beat at least this often, for what the state does by the way


class Outlet:
    """What waits to be written on one stream, bounded: a client that does not read loses its stream."""

    def __init__(self) -> None:
        self._waiting: deque[Send | Confirm] = deque()
        self._wake = asyncio.Event()
        self._over = False
        self.error: ServiceError | None = None

    def put(self, effect: Send | Confirm) -> None:
        """Something to write."""
        if len(self._waiting) >= _OUTLET_MAX:
            self.end(ServiceError(Code.UNAVAILABLE, "The client does not read what it is sent."))
        elif not self._over:
            self._waiting.append(effect)
            self._wake.set()

    def end(self, error: ServiceError | None = None) -> None:
        """Nothing more will come, and the stream ends with this error, once what waits is written."""
        if not self._over:
            self._over, self.error = True, error
            self._wake.set()

    async def take(self, idle_s: float | None) -> AsyncIterator[Send | Confirm | None]:
        """What comes, in order, until the end; None whenever nothing came for `idle_s`."""
        while True:
            while self._waiting:
                yield self._waiting.popleft()
            if self._over:
                return
            self._wake.clear()
            try:
                await asyncio.wait_for(self._wake.wait(), idle_s)
            except TimeoutError:
                yield None


class Pump:
    """Drives one state. `now` gives seconds since the epoch and never goes back."""

    def __init__(self, state: State, now: Callable[[], float], push: Callable[[Push | CancelPush], None]) -> None:
        self.state = state
        self.now = now
        self._push = push
        self._outlets: dict[str, Outlet] = {}
        self._pulls: dict[str, asyncio.Future[list[Delivery]]] = {}
        self._loop = asyncio.get_running_loop()
        self._asked = False
        self._stopped = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = math.inf

    def ask(self) -> None:
        """Something has changed: beat soon."""
        if not self._asked:
            self._asked = True
            self._loop.call_later(_GATHER_S, self._beat)

    def open_outlet(self, stream: str) -> Outlet:
        """Where a stream's messages will appear."""
        outlet = self._outlets[stream] = Outlet()
        return outlet

    def close_outlet(self, stream: str) -> None:
        """The stream is gone."""
        self._outlets.pop(stream, None)

    def await_pull(self, pull: str) -> asyncio.Future[list[Delivery]]:
        """Where a pull's answer will appear; cancelled or done, it is forgotten."""
        answer: asyncio.Future[list[Delivery]] = self._loop.create_future()
        self._pulls[pull] = answer
        answer.add_done_callback(lambda _: self._pulls.pop(pull, None))
        return answer

    def stop(self) -> None:
        """No beat after this; whoever waits is told that the service goes away."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
        gone = ServiceError(Code.UNAVAILABLE, "The service is shutting down.")
        for outlet in self._outlets.values():
            outlet.end(gone)
        for answer in list(self._pulls.values()):
            answer.cancel()

    def _beat(self) -> None:
        self._asked = False
        if self._stopped:
            return
        now = self.now()
        for effect in self.state.advance(now):
            self._carry_out(effect)
        self._sleep(now)

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case Send(stream) | Confirm(stream):
                if stream in self._outlets:
                    self._outlets[stream].put(effect)
            case AnswerPull(pull, deliveries, error):
                self._answer(pull, deliveries, error)
            case EndStream(stream, error):
                if stream in self._outlets:
                    self._outlets[stream].end(error)
            case Push() | CancelPush():
                self._push(effect)
            case Lost() | DeadLettered():
                pass

    def _answer(self, pull: str, deliveries: list[Delivery], error: ServiceError | None) -> None:
        answer = self._pulls.get(pull)
        if answer is None or answer.done():
            return
        if error is None:
            answer.set_result(deliveries)
        else:
            answer.set_exception(error)

    def _sleep(self, now: float) -> None:
        at = min(self.state.next_wakeup(now), now + _SLEEP_MAX_S)
        if self._timer is not None:
            if self._timer_at <= at and not self._timer.cancelled() and self._timer_at > now:
                return  # it rings early enough; whatever is due later is looked at then
            self._timer.cancel()
        self._timer_at = at
        self._timer = self._loop.call_later(max(at - now, 0.0), self.ask)
