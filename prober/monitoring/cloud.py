"""Read-only access to Cloud Monitoring: no subscription is used, changed or created.

Four requests per project and read, one for each metric, for any number of subscriptions. They need `roles/monitoring.viewer` on it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from itertools import pairwise
from typing import Any, Final, NamedTuple

import grpc
from google.api_core.exceptions import Forbidden, GoogleAPIError, NotFound, ServerError, Unauthorized
from google.auth.exceptions import GoogleAuthError

from prober.brokers.endpoint import Endpoint
from prober.errors import ProberError
from prober.monitoring.comparison import Point, ReadFailure, Reading

SPAN_S: Final = 900
"""The period before now for which points are requested, in seconds."""
TIMEOUT_S: Final = 10.0
SAMPLE_S: Final = 60
LINE_LENGTH_MAX: Final = 200

_PREFIX: Final = "pubsub.googleapis.com/subscription/"
_GAUGES: Final = {"oldest_unacked_age": "oldest_unacked_message_age", "undelivered": "num_undelivered_messages"}
_DELTAS: Final = {"acked": "ack_message_count", "expired": "expired_ack_deadlines_count"}


class MonitoringError(ProberError):
    """Cloud Monitoring does not return the requested data; `failure` is the cause in one word."""

    def __init__(self, failure: ReadFailure, text: str) -> None:
        super().__init__(text)
        self.failure = failure


class CloudMonitoring:
    """Cloud Monitoring at an endpoint. Its calls block; any thread may call it, one at a time."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._client: Any = None

    def read(self, names: Iterable[str], now: float) -> Mapping[str, Reading]:
        """Return the newest points of subscriptions of one project, by full name. Raises `MonitoringError`; at most four times 10 s."""
        wanted = {name.rpartition("/")[2]: name for name in names}
        project = "/".join(next(iter(wanted.values())).split("/")[:2])
        try:
            client = self._connected()
            found = {
                field: self._points(client, project, metric, wanted, now, summed=field in _DELTAS)
                for field, metric in (*_GAUGES.items(), *_DELTAS.items())
            }
        except (Forbidden, Unauthorized) as error:
            text = f"no permission to read Cloud Monitoring: it takes roles/monitoring.viewer on {project} ({_line(error)})"
            raise MonitoringError(ReadFailure.PERMISSION, text) from None
        except GoogleAuthError as error:
            text = f"no credentials for Cloud Monitoring ({_line(error)})"
            raise MonitoringError(ReadFailure.CREDENTIALS, text) from None
        except GoogleAPIError as error:
            failure = ReadFailure.UNAVAILABLE if isinstance(error, ServerError) else ReadFailure.REFUSED
            words = "does not answer" if failure is ReadFailure.UNAVAILABLE else "refuses what was asked"
            raise MonitoringError(failure, f"Cloud Monitoring {words} ({_line(error)})") from None
        return {name: _reading(short, found) for short, name in wanted.items()}

    def close(self) -> None:
        """Close the connection."""
        if self._client is not None:
            self._client.transport.close()

    def _connected(self) -> Any:
        if self._client is None:
            self._client = _client(self._endpoint)
        return self._client

    def _points(
        self, client: Any, project: str, metric: str, wanted: Iterable[str], now: float, *, summed: bool
    ) -> dict[str, list[Point]]:
        """Return the points by subscription, the newest first. Counters are per minute, summed over all labels."""
        names = ", ".join(f'"{name}"' for name in wanted)
        request: dict[str, Any] = {
            "name": project,
            "filter": f'metric.type = "{_PREFIX}{metric}" AND resource.labels.subscription_id = one_of({names})',
            "interval": {"start_time": {"seconds": int(now) - SPAN_S}, "end_time": {"seconds": int(now)}},
            "view": "FULL",
        }
        if summed:
            request["aggregation"] = {
                "alignment_period": {"seconds": SAMPLE_S},
                "per_series_aligner": "ALIGN_DELTA",
                "cross_series_reducer": "REDUCE_SUM",
                "group_by_fields": ["resource.labels.subscription_id"],
            }
        try:
            series = list(client.list_time_series(request=request, timeout=TIMEOUT_S, retry=None))
        except NotFound:  # a project in which nothing was ever written for this metric
            return {}
        return {one.resource.labels["subscription_id"]: _sorted(map(_point, one.points)) for one in series}


def _client(endpoint: Endpoint) -> Any:
    """Return the client of Google's library; other addresses than Google's get no credentials, as with targets."""
    try:
        monitoring = import_module("google.cloud.monitoring_v3")
    except ImportError:
        text = "google-cloud-monitoring is not installed: pip install google-cloud-monitoring"
        raise MonitoringError(ReadFailure.NOT_INSTALLED, text) from None
    if endpoint.secure:
        return monitoring.MetricServiceClient(client_options={"api_endpoint": endpoint.address})
    transport = monitoring.MetricServiceClient.get_transport_class("grpc")
    return monitoring.MetricServiceClient(transport=transport(channel=grpc.insecure_channel(endpoint.address)))


def _point(point: Any) -> Point:
    value = point.value
    kind = type(value).pb(value).WhichOneof("value")
    return Point(float(getattr(value, kind)), point.interval.end_time.timestamp())


def _sorted(points: Iterable[Point]) -> list[Point]:
    return sorted(points, key=lambda point: -point.at)


def _reading(subscription: str, found: Mapping[str, Mapping[str, Sequence[Point]]]) -> Reading:
    newest = {field: next(iter(by_name.get(subscription, ())), None) for field, by_name in found.items()}
    ages = found["oldest_unacked_age"].get(subscription, ())
    return Reading(**newest, gap_s=max((later.at - earlier.at for later, earlier in pairwise(ages)), default=0.0))


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:LINE_LENGTH_MAX]


# --- which subscriptions of a project a rule chooses, by name and labels. Pure ------------------------------------------------


PREFIX_PARTS: Final = 3
"""Number of parts before the name in `projects/PROJECT/subscriptions/NAME`."""


class Chosen(NamedTuple):
    """The full names of the chosen subscriptions, and the number of further matches beyond the limit."""

    names: tuple[str, ...]
    left_out: int


@dataclass(frozen=True, slots=True)
class Rule:
    """The conditions for a subscription: the whole name after `subscriptions/` (None: any), and labels with their values."""

    matching: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)

    def choose(self, found: Mapping[str, Mapping[str, str]], known: Collection[str], room: int) -> Chosen:
        """Return at most `room` of the matching subscriptions, given all with their labels.

        Those `known` come first, then the order is by name.
        """
        matching = [name for name, labels in found.items() if self._matches(name, labels)]
        matching.sort(key=lambda name: (name not in known, name))
        names = tuple(matching[: max(0, room)])
        return Chosen(names, len(matching) - len(names))

    def _matches(self, name: str, labels: Mapping[str, str]) -> bool:
        short = name.split("/", PREFIX_PARTS)[PREFIX_PARTS]
        is_named_so = self.matching is None or re.fullmatch(self.matching, short) is not None
        return is_named_so and self.labels.items() <= labels.items()

    def __str__(self) -> str:
        labels = [f"{name}={value}" for name, value in self.labels.items()]
        return " and ".join([*([self.matching] if self.matching is not None else []), *labels])
