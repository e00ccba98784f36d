"""The configuration: `load` it, `show` it; everything else about it is a value."""

from prober.brokers.base import Vantage
from prober.config.loading import load, show
from prober.config.models import (
    Api,
    Config,
    Deadlines,
    Embedded,
    Maintenance,
    ProbeSettings,
    Schedule,
    Slo,
    TargetSettings,
)
from prober.config.sections import HistorySettings, LogFormat, LogLevel, StatusSettings, Telemetry

__all__ = [
    "Api",
    "Config",
    "Deadlines",
    "Embedded",
    "HistorySettings",
    "LogFormat",
    "LogLevel",
    "Maintenance",
    "ProbeSettings",
    "Schedule",
    "Slo",
    "StatusSettings",
    "TargetSettings",
    "Telemetry",
    "Vantage",
    "load",
    "show",
]
