"""Connections that wait for their client: not for long, and never so many that somebody else cannot connect.

uvicorn closes only a connection that is silent after an answer; one over which nothing, half a request or a request without its body
comes, and one from which nobody reads an answer, would stay for ever. A connection *waits* while it depends on its client alone: before a
request, while headers or body come, and while an answer cannot be sent on.
"""

from __future__ import annotations

import asyncio
from typing import Final, cast

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

WAIT_MAX_S: Final = 10.0
"""So long a connection may be idle, and so long the headers of a request may take. How long a body may take, the app says."""
READ_MIN_BYTES: Final = 10 << 10
"""Whoever reads less of an answer than this in `WAIT_MAX_S` is not waited for."""
CONNECTIONS_MAX: Final = 512
"""More than requests at a time, so that there is always one that waits; file descriptors are often limited to 1,024."""


class Connection(H11Protocol):
    """A connection. When there are more than `CONNECTIONS_MAX`, the one that has been waiting longest is closed for the new one."""

    _waits_since: float | None = None
    _timer: asyncio.TimerHandle | None = None
    _asks = False
    _unsent = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Someone has connected."""
        super().connection_made(transport)
        self._wait()
        if len(self.connections) > CONNECTIONS_MAX:
            _longest_waiting(self)._close()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is no more."""
        self._do_not_wait()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Bytes have come. The first ones of a request give it its time; further ones do not."""
        if not self._asks:
            self._asks = True
            self._wait()
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        """An answer has been handed over, though perhaps not sent."""
        self._asks = False
        self._wait()
        super().on_response_complete()  # which begins with the next request, if that is there already
        self._look()

    def pause_writing(self) -> None:
        """The client does not read as fast as the answer is made."""
        super().pause_writing()
        self._wait()

    def resume_writing(self) -> None:
        """The client has read on."""
        super().resume_writing()
        self._look()

    def shutdown(self) -> None:
        """The server ends. A request whose body is not there by now is not answered any more."""
        super().shutdown()
        if self._is_under_way() and self.cycle.more_body:
            self._close()

    def _is_under_way(self) -> bool:
        """Whether a request is being answered, or will be as soon as its body is there."""
        cycle = cast(RequestResponseCycle | None, self.cycle)  # None before the first request
        return cycle is not None and not cycle.response_complete

    def _look(self) -> None:
        """Ends waiting while a request is being answered. Until its body is there it may still be closed for another one."""
        if not self._is_under_way() or self.flow.write_paused:
            return
        if self.cycle.more_body:
            self._cancel_timer()
        else:
            self._do_not_wait()

    def _wait(self) -> None:
        self._waits_since = self.loop.time()
        self._arm_timer()

    def _do_not_wait(self) -> None:
        self._waits_since = None
        self._cancel_timer()

    def _arm_timer(self) -> None:
        self._cancel_timer()
        self._unsent = self.transport.get_write_buffer_size()
        self._timer = self.loop.call_later(WAIT_MAX_S, self._waited)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _waited(self) -> None:
        if self._unsent - self.transport.get_write_buffer_size() >= READ_MIN_BYTES:
            self._arm_timer()
        else:
            self._close()

    def _close(self) -> None:
        """At once: what is not sent by now will not be read."""
        self._do_not_wait()
        self.transport.abort()


def _longest_waiting(newest: Connection) -> Connection:
    """Among all of its server; the newest one itself, if all others are being answered."""
    waiting = {one: one._waits_since for one in newest.connections if isinstance(one, Connection) and one._waits_since is not None}
    return min(waiting, key=lambda one: waiting[one], default=newest)
