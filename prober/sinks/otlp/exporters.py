"""OpenTelemetry exporters, selected by the standard environment variables.

An endpoint alone (`OTEL_EXPORTER_OTLP_ENDPOINT`, or that of one signal) selects OTLP. `OTEL_TRACES_EXPORTER` and `OTEL_METRICS_EXPORTER`
select `otlp`, `console` or `none`. The exporters of the SDK read the other variables: headers, certificates, compression, timeouts
(opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection
from functools import partial
from importlib.metadata import entry_points
from math import isfinite, nan
from threading import local
from typing import Any, Final

from opentelemetry.sdk.resources import SERVICE_INSTANCE_ID, SERVICE_NAME, SERVICE_VERSION, OTELResourceDetector, Resource

from prober.errors import ConfigError
from prober.sinks.metrics import families
from prober.sinks.metrics.health import ProberHealth
from prober.sinks.metrics.label_values import Signal

EXPORTERS: Final = ("otlp", "console", "none")
PROTOCOLS: Final = {"grpc": "otlp_proto_grpc", "http/protobuf": "otlp_proto_http"}
"""Entry points of the exporters by the value of `OTEL_EXPORTER_OTLP_PROTOCOL`. The first is the default, as in the SDK."""
BATCHES: Final = {Signal.TRACES: {}, Signal.METRICS: {"max_export_batch_size": 4000}}
"""Arguments of the OTLP exporters. A collector accepts 4 MB a message by default; 4000 data points take about 2 MB."""
LOGGERS: Final = (
    "opentelemetry.exporter.otlp.proto.grpc.exporter",
    "opentelemetry.exporter.otlp.proto.http.trace_exporter",
    "opentelemetry.exporter.otlp.proto.http.metric_exporter",
)
"""The loggers of the exporters."""

_log = logging.getLogger(__name__)


def exporter_of(signal: Signal) -> Any:
    """Return the SpanExporter or MetricExporter that the environment selects; None if it selects none.

    Imports an exporter only if it is selected. Raises ConfigError for a wrong value of a variable.
    """
    variable, endpoint = _of_signal(signal, "ENDPOINT", "")
    name = _choice(f"OTEL_{signal.upper()}_EXPORTER", "otlp" if endpoint else "none", EXPORTERS)
    if name == "none" or _value("OTEL_SDK_DISABLED").lower() == "true":
        return None
    if name == "otlp":
        if endpoint and not endpoint.startswith(("http://", "https://")):
            raise ConfigError(f"{variable} must begin with http:// or https://")
        name = PROTOCOLS[_checked(*_of_signal(signal, "PROTOCOL", next(iter(PROTOCOLS))), PROTOCOLS)]
    arguments = BATCHES[signal] if name in PROTOCOLS.values() else {}
    (found,) = entry_points(group=f"opentelemetry_{signal}_exporter", name=name)
    _causes.take()
    try:
        exporter, cause = found.load()(**arguments), _causes.take()
    except Exception as error:  # each exporter raises its own type
        raise ConfigError(f"the variables OTEL_* make no exporter of {signal}: {error}") from error
    if cause:
        raise ConfigError(f"the variables OTEL_* make no exporter of {signal}: {cause}")
    return exporter


def sampled_share(default: float) -> float:
    """Return the share of passed runs to trace, by `OTEL_TRACES_SAMPLER` and `OTEL_TRACES_SAMPLER_ARG`."""
    shares = {"always_on": 1.0, "always_off": 0.0, "traceidratio": nan}
    known = [f"{prefix}{name}" for prefix in ("", "parentbased_") for name in shares]  # a run has no parent
    name = _choice("OTEL_TRACES_SAMPLER", "", ("", *known)).removeprefix("parentbased_")
    if name != "traceidratio":
        return shares.get(name, default)
    return _number("OTEL_TRACES_SAMPLER_ARG", 1.0, "a share from 0 to 1", lambda share: 0.0 <= share <= 1.0)


def export_interval_s() -> float:
    """Return the time between two exports of metrics, by `OTEL_METRIC_EXPORT_INTERVAL`."""
    return _number("OTEL_METRIC_EXPORT_INTERVAL", 60_000.0, "a number of milliseconds above 0", lambda ms: ms > 0.0) / 1000.0


def resource_of(instance: str, version: str) -> Resource:
    """Return the resource of a prober. `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` take precedence."""
    ours = Resource.create({SERVICE_NAME: "ordering-prober", SERVICE_VERSION: version, SERVICE_INSTANCE_ID: instance})
    return ours.merge(OTELResourceDetector().detect())


def _value(variable: str) -> str:
    return os.environ.get(variable, "").strip()


def _of_signal(signal: Signal, name: str, default: str) -> tuple[str, str]:
    """Return the variable of a signal with its value, or else the variable of all signals."""
    of_signal, of_all = f"OTEL_EXPORTER_OTLP_{signal.upper()}_{name}", f"OTEL_EXPORTER_OTLP_{name}"
    return (of_signal, _value(of_signal)) if _value(of_signal) else (of_all, _value(of_all) or default)


def _choice(variable: str, default: str, known: Collection[str]) -> str:
    return _checked(variable, _value(variable) or default, known)


def _checked(variable: str, value: str, known: Collection[str]) -> str:
    if value not in known:
        raise ConfigError(f"{variable} must be {', '.join(filter(None, known))}, not {value!r}")
    return value


def _number(variable: str, default: float, words: str, is_right: Callable[[float], bool]) -> float:
    try:
        number = float(_value(variable) or default)
    except ValueError:
        number = nan
    if not isfinite(number) or not is_right(number):
        raise ConfigError(f"{variable} must be {words}, not {_value(variable)!r}")
    return number


class _Causes(logging.Filter):
    """Filter that suppresses the log records of the exporters, which log each attempt, and keeps the first as cause of a failure."""

    def __init__(self) -> None:
        super().__init__()
        self._thread = local()
        for name in LOGGERS:
            logging.getLogger(name).addFilter(self)

    def filter(self, record: logging.LogRecord) -> bool:
        """Keep the text of the first record; suppress all records."""
        self._thread.first = getattr(self._thread, "first", "") or record.getMessage()
        return False

    def take(self) -> str:
        """Return the first text of this thread since the last call, empty if there is none."""
        first, self._thread.first = getattr(self._thread, "first", ""), ""
        return first


_causes: Final = _Causes()


class Exports:
    """Exports of one signal, with a log record for the first failure, with its cause, and for the recovery.

    failed   called for each failed export, in the thread of `export`.
    """

    def __init__(self, signal: Signal, exporter: Any, failed: Callable[[], None]) -> None:
        self._signal, self._exporter, self._failed = signal, exporter, failed
        self._failures = 0
        self._is_ending = False

    def export(self, data: Any) -> bool:
        """Export data; return whether it succeeded. Blocks for the exporter's timeout, 10 s by default. One thread at a time."""
        if self._failures and self._is_ending:
            return False
        _causes.take()
        try:
            succeeded, cause = bool(self._exporter.export(data).name == "SUCCESS"), _causes.take()
        except Exception as error:
            succeeded, cause = False, repr(error)
        if not succeeded:
            if not self._failures:
                _log.warning("OpenTelemetry %s cannot be exported and are lost: %s", self._signal, cause)
            self._failures += 1
            self._failed()
        elif self._failures:
            _log.warning("OpenTelemetry %s are exported again; failed exports: %d", self._signal, self._failures)
            self._failures = 0
        return succeeded

    def hurry(self) -> None:
        """Prepare for the end of the prober: stop waiting for a collector that does not answer. Any thread."""
        self._is_ending = True
        if self._failures:
            self._exporter.shutdown()

    def close(self) -> None:
        """Close the exporter, which ends a current retry. Any thread."""
        self._exporter.shutdown()


def exports_of(signal: Signal, health: ProberHealth) -> Exports | None:
    """Return the exports of a signal that the environment configures; failures are counted. Raises like `exporter_of`."""
    exporter = exporter_of(signal)
    return None if exporter is None else Exports(signal, exporter, partial(health.count, families.EXPORT_FAILURES, signal))
