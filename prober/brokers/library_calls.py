"""What Google's client library does with its connection, seen from between the two.

The library opens streams again and repeats requests silently. Interceptors, a public interface of gRPC, see each of these: which stream a
message came on, when a stream began and how it ended, and in how many attempts a batch was sent. They also give us the two things that the
library has no call for: to cut a stream as a network would, and to make it stop trying.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, NoReturn, Protocol, TypeVar

import grpc
from google.pubsub_v1 import types

from prober.brokers.wire_messages import publish_time_of


class CallEnded(grpc.RpcError):
    """A call that ended by our doing, dressed as gRPC would: the library acts on its status."""

    def __init__(self, code: grpc.StatusCode, details: str) -> None:
        super().__init__(details)
        self._code, self._details = code, details

    def code(self) -> grpc.StatusCode:
        """UNAVAILABLE makes the library try again, CANCELLED makes it stop."""
        return self._code

    def details(self) -> str:
        """Why we ended it."""
        return self._details

    def trailing_metadata(self) -> tuple[()]:
        """There is none."""
        return ()

    def result(self) -> NoReturn:
        """What the library's own interceptor, which comes before ours, gets for an answer."""
        raise self


class AttemptCounter(grpc.UnaryUnaryClientInterceptor):
    """Counts publish requests per thread: the library sends each batch, with all its attempts, in a thread made for it."""

    def __init__(self) -> None:
        self._of_thread = threading.local()
        self._stopped = threading.Event()

    def in_this_thread(self) -> int:
        """How many publish requests were sent by the running thread; 0 in a thread that sent none."""
        return getattr(self._of_thread, "count", 0)

    def stop(self) -> None:
        """From now on no request goes out.

        The library gets an error on which it gives up.
        """
        self._stopped.set()

    def pause(self, seconds: float) -> bool:
        """Waits before the next attempt; False if there shall be none."""
        return not self._stopped.wait(seconds)

    def intercept_unary_unary(self, continuation: Callable[..., Any], client_call_details: Any, request: Any) -> Any:
        """Called by gRPC for each request."""
        if self._stopped.is_set():
            raise CallEnded(grpc.StatusCode.CANCELLED, "the publisher was closed")
        self._of_thread.count = self.in_this_thread() + 1
        outcome = continuation(client_call_details, request)
        if self._stopped.is_set() and isinstance(outcome.exception(), ValueError):
            # The channel was closed meanwhile: the library does not know that error, and its thread would die of it.
            raise CallEnded(grpc.StatusCode.CANCELLED, "the publisher was closed")
        return outcome


Tag = TypeVar("Tag")


class StreamWatcher(Protocol[Tag]):
    """Callbacks for streams, which they tell apart by tags of their own.

    Called in the library's threads; must not block or raise.
    """

    def stream_began(self, call: WatchedCall[Tag]) -> Tag:
        """A stream is about to be asked for."""

    def stream_answered(self) -> None:
        """The other side has answered for the first time."""

    def stream_delivered(self, tag: Tag, publish_times: Mapping[str, int | None]) -> None:
        """These messages came, by acknowledgement id, in this order; the library has not seen them yet.

        The library rounds what the service says about when it stored a message; here is the time as it came, in nanoseconds.
        """

    def stream_failed(self, error: grpc.RpcError) -> None:
        """A stream failed; called before the library gets the error."""

    def stream_ended(self, tag: Tag, reason: str) -> None:
        """The stream is over."""


class WatchedCall(Generic[Tag]):
    """One stream of the library: a gRPC call that tells what comes through it, and can be cut."""

    def __init__(self, watcher: StreamWatcher[Tag]) -> None:
        self._watcher = watcher
        self._call: Any = None
        self._cut = False
        self._answered = False
        self.tag = watcher.stream_began(self)

    def attach(self, call: Any) -> WatchedCall[Tag]:
        """Wraps the real call."""
        self._call = call
        call.add_done_callback(self._done)
        return self

    def cut(self) -> None:
        """Ends the stream without a goodbye, and lets the library believe that the network did it."""
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
        """The library's own callback, which decides on the status whether to open the stream again."""
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
    """What the library gets instead of a stream when there shall be no more: a call that has ended for good."""

    _error = CallEnded(grpc.StatusCode.CANCELLED, "the subscriber was closed")

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        raise self._error

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        """Has ended already."""
        callback(self._error)

    def is_active(self) -> bool:
        """Never was."""
        return False

    def cancel(self) -> bool:
        """There is nothing to cancel."""
        return False


class Streams(grpc.StreamStreamClientInterceptor):
    """Tells a watcher about every stream that the library opens, from when it may until it is stopped."""

    def __init__(self, watcher: StreamWatcher[Any]) -> None:
        self._watcher = watcher
        self._may_begin = threading.Event()
        self._stopped = False

    def begin(self) -> None:
        """Lets the library open its first stream, which waits until then.

        The library's threads are started one after the other, the one that opens the stream first. If a stream failed before the others are
        there, the library would end the threads that have not begun, and then start them: threads that run for ever.
        """
        self._may_begin.set()

    def stop(self) -> None:
        """From now on no stream is opened.

        The library gets an error on which it gives up.
        """
        self._stopped = True

    def intercept_stream_stream(self, continuation: Callable[..., Any], client_call_details: Any, request_iterator: Any) -> Any:
        """Called by gRPC for each stream, in a thread of the library."""
        self._may_begin.wait()
        if self._stopped:
            return RefusedCall()
        watched = WatchedCall(self._watcher)
        return watched.attach(continuation(client_call_details, request_iterator))
