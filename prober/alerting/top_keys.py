"""Alerts about the top keys of observed streams: near the limit per key, and falling behind.

Ranks change places from scrape to scrape, so each alert is about the highest value of all ranks. A stream is not observed between two
runs, and for the first seconds of a run; those samples are left out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from prober.alerting.promql import binary, max_by, outside_maintenance, percent, prom_duration, prom_number, series
from prober.alerting.rules import (
    DURATION,
    INTERVAL_S,
    ON_TARGET,
    AlertingRule,
    Dashboard,
    RuleGroup,
    Severity,
    Summary,
    measured_alert,
    value_of,
)
from prober.sinks.metrics import families
from prober.sinks.metrics.families import SUBSCRIPTION
from prober.sinks.metrics.family import Family
from prober.slo.hot_keys import LIMIT_BYTES_PER_S, NEAR_LIMIT
from prober.slo.objectives import MINUTE_S

NEAR_WINDOW_S: Final = 5 * MINUTE_S
NEAR_SAMPLES_MIN: Final = 8
"""Of the samples of the window, so many must be known."""
BEHIND_WINDOW_S: Final = 5 * MINUTE_S
BEHIND_FOR_S: Final = 10 * MINUTE_S
RISING_MIN: Final = 0.05
"""Seconds of age per second: three a minute. Where the service delivers nothing new of a key it is nearly 1."""
RATE: Final = "{{ $value | humanize }}B/s"
OBSERVED: Final = f"the stream that subscription {{{{ $labels.subscription }}}} observes on {ON_TARGET}"


def top_key_group() -> RuleGroup:
    """The rules about observed streams; nothing fires where no stream is observed."""
    return RuleGroup("pubsub-prober-top-keys", INTERVAL_S, (_near_limit(), _falling_behind()))


def _near_limit() -> AlertingRule:
    limit = NEAR_LIMIT * LIMIT_BYTES_PER_S
    lowest, known = (_over(how, families.TOP_KEY_BYTES, NEAR_WINDOW_S) for how in ("min_over_time", "count_over_time"))
    return _alert(
        "PubsubKeyNearLimit",
        binary("and", f"{lowest} >= {prom_number(limit)}", f"{known} >= {NEAR_SAMPLES_MIN}"),
        Summary("An ordering key is near the publish limit of 1 MB/s per key.", RATE),
        f"A key of {OBSERVED} has carried at least {{{{ $value | humanize }}}}B/s for {prom_duration(NEAR_WINDOW_S)}: "
        f"{percent(NEAR_LIMIT)} of the limit per key or more. The page of hot keys names the key.",
    )


def _falling_behind() -> AlertingRule:
    rising = f"{_over('deriv', families.TOP_KEY_AGE, BEHIND_WINDOW_S)} > {prom_number(RISING_MIN)}"
    return _alert(
        "PubsubKeyFallingBehind",
        binary("and", _known(families.TOP_KEY_AGE), rising),
        Summary("The messages of an ordering key with much load arrive ever later.", DURATION),
        f"Messages of a top key of {OBSERVED} are {{{{ $value | humanizeDuration }}}} old on delivery, and their age has grown for "
        f"{prom_duration(BEHIND_FOR_S)}. The page of hot keys names the key.",
        BEHIND_FOR_S,
    )


def _known(family: Family) -> str:
    """The highest known value of all ranks, outside maintenance: NaN is in no comparison."""
    return f"{max_by(SUBSCRIPTION, outside_maintenance(series(family)))} >= 0"


def _over(how: str, family: Family, window_s: float) -> str:
    return f"{how}(({_known(family)})[{prom_duration(window_s)}:{prom_duration(INTERVAL_S)}])"


def _alert(name: str, expression: str, summary: Summary, description: str, for_s: float = 0.0) -> AlertingRule:
    alert = measured_alert(name, expression, Severity.WARNING, summary, description, Dashboard.KEYS, SUBSCRIPTION, for_s)
    return replace(alert, page=f"hot-keys?target={value_of('target')}")
