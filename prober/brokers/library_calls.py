"""Observation of Google's client library on its connection, by interceptors between the two.

The library reopens streams and repeats requests silently. Interceptors, a public interface of gRPC, observe each of these: the stream of a
message, the start and end of a stream, and the number of attempts of a batch. They also provide two functions that the library lacks: to
cut a stream as a network would, and to stop its retries.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, NoReturn, Protocol, TypeVar

import grpc
from google.pubsub_v1 import types

from prober.brokers.wire_messages import publish_time_of


class CallEnded(grpc.RpcError):
    """A call ended by the prober, presented as gRPC would: the library acts on its status."""

    def __init__(self, code: grpc.StatusCode, details: str) -> None:
        super().__init__(details)
        self._code, self._details = code, details

    def code(self) -> grpc.StatusCode:
        """Return the status: UNAVAILABLE makes the library retry, CANCELLED makes it stop."""
        return self._code

    def details(self) -> str:
        """Return the reason of the end."""
        return self._details

    def trailing_metadata(self) -> tuple[()]:
        """Return no metadata."""
        return ()

    def result(self) -> NoReturn:
        """Raise the error to the library's own interceptor, which precedes this one."""
        raise self


class AttemptCounter(grpc.UnaryUnaryClientInterceptor):
    """Counts publish requests per thread: the library sends each batch, with all attempts, in a thread created for it."""

    def __init__(self) -> None:
        self._of_thread = threading.local()
        self._stopped = threading.Event()

    def in_this_thread(self) -> int:
        """Return the number of publish requests sent by the running thread; 0 in a thread that sent none."""
        return getattr(self._of_thread, "count", 0)

    def stop(self) -> None:
        """Stop all further requests.

        The library receives an error on which it gives up.
        """
        self._stopped.set()

    def pause(self, seconds: float) -> bool:
        """Wait before the next attempt. Return False if no attempt may follow."""
        return not self._stopped.wait(seconds)

    def intercept_unary_unary(self, continuation: Callable[..., Any], client_call_details: Any, request: Any) -> Any:
        """Count a request; called by gRPC."""
        if self._stopped.is_set():
            raise CallEnded(grpc.StatusCode.CANCELLED, "the publisher was closed")
        self._of_thread.count = self.in_this_thread() + 1
        outcome = continuation(client_call_details, request)
        if self._stopped.is_set() and isinstance(outcome.exception(), ValueError):
            # The channel was closed meanwhile: the library does not handle that error, and its thread would die of it.
            raise CallEnded(grpc.StatusCode.CANCELLED, "the publisher was closed")
        return outcome


Tag = TypeVar("Tag")


class StreamWatcher(Protocol[Tag]):
    """Callbacks for streams, which are distinguished by tags of the watcher.

    Called in the library's threads; must not block or raise.
    """

    def stream_began(self, call: WatchedCall[Tag]) -> Tag:
        """Return the tag of a stream that is about to be requested."""

    def stream_answered(self) -> None:
        """Report the first answer of the other side."""

    def stream_delivered(self, tag: Tag, publish_times: Mapping[str, int | None]) -> None:
        """Report messages, by acknowledgement id, in order of receipt, before the library sees them.

        The library rounds the publish time reported by the service; these are the original times, in nanoseconds.
        """

    def stream_failed(self, error: grpc.RpcError) -> None:
        """Report a failed stream; called before the library receives the error."""

    def stream_ended(self, tag: Tag, reason: str) -> None:
        """Report the end of a stream."""


class WatchedCall(Generic[Tag]):
    """One stream of the library: a gRPC call that reports its messages and its end, and can be cut."""

    def __init__(self, watcher: StreamWatcher[Tag]) -> None:
        self._watcher = watcher
        self._call: Any = None
        self._cut = False
        self._answered = False
        self.tag = watcher.stream_began(self)

    def attach(self, call: Any) -> WatchedCall[Tag]:
        """Wrap the real call."""
        self._call = call
        call.add_done_callback(self._done)
        return self

    def cut(self) -> None:
        """End the stream without a goodbye, as if the network had failed."""
        self._cut = True
        if self._call is not None:
            self._call.cancel()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        try:
            response = next(self._call)
        except grpc.RpcError as error:
            if self._cut:
                raise self._as_broken() from error
            self._watcher.stream_failed(error)
            raise
        if not self._answered:
            self._answered = True
            self._watcher.stream_answered()
        raw = types.StreamingPullResponse.pb(response)
        if raw.received_messages:
            times = {delivery.ack_id: publish_time_of(delivery.message) for delivery in raw.received_messages}
            self._watcher.stream_delivered(self.tag, times)
        return response

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        """Add the library's own callback, which decides by the status whether to reopen the stream."""
        self._call.add_done_callback(lambda call: callback(self._as_broken() if self._cut else call))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._call, name)

    def _as_broken(self) -> CallEnded:
        return CallEnded(grpc.StatusCode.UNAVAILABLE, "cut by the prober")

    def _done(self, call: Any) -> None:
        if not self._cut:
            self._watcher.stream_failed(call)
        how = "cut by the prober" if self._cut else f"{call.details() or 'ended'} ({call.code().name})"
        self._watcher.stream_ended(self.tag, " ".join(how.split()))


class RefusedCall:
    """A call that has ended for good, which the library receives instead of a stream when no more may be opened."""

    _error = CallEnded(grpc.StatusCode.CANCELLED, "the subscriber was closed")

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        raise self._error

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        """Call the callback at once: the call has ended already."""
        callback(self._error)

    def is_active(self) -> bool:
        """Return False: the call never was active."""
        return False

    def cancel(self) -> bool:
        """Return False: there is no call to cancel."""
        return False


class Streams(grpc.StreamStreamClientInterceptor):
    """Reports every stream that the library opens to a watcher, between `begin` and `stop`."""

    def __init__(self, watcher: StreamWatcher[Any]) -> None:
        self._watcher = watcher
        self._may_begin = threading.Event()
        self._stopped = False

    def begin(self) -> None:
        """Let the library open its first stream, which waits until then.

        The library starts its threads one after the other, first the one that opens the stream. If a stream failed before the others exist,
        the library would end the threads that have not started, and then start them: they would run for ever.
        """
        self._may_begin.set()

    def stop(self) -> None:
        """Prevent all further streams.

        The library receives an error on which it gives up.
        """
        self._stopped = True

    def intercept_stream_stream(self, continuation: Callable[..., Any], client_call_details: Any, request_iterator: Any) -> Any:
        """Watch a stream; called by gRPC in a thread of the library."""
        self._may_begin.wait()
        if self._stopped:
            return RefusedCall()
        watched = WatchedCall(self._watcher)
        return watched.attach(continuation(client_call_details, request_iterator))
