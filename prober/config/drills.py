"""The section about fire drills."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field, ValidationError

from prober.config.cron import Cron
from prober.config.problems import did_you_mean, from_pydantic, report
from prober.config.values import Cronline, Host, HttpUrl, Port, Positive, Section, Written, write_duration
from prober.errors import ConfigError

CONTROL: Final = "control"
"""The drill that plants nothing."""
GAP_MAX: Final = timedelta(days=7)
"""The alert for overdue drills waits a day longer."""


def _drill(name: str) -> str:
    # Here and not above: who configures no drill, such as the API in a process of its own, needs nothing of the server.
    from prober.embedded.catalogue import CATALOGUE

    known = {*CATALOGUE, CONTROL}
    if name not in known:
        raise ValueError(f"{name!r} is not a drill; {did_you_mean(name, known, 'see ordering-prober faults')}")
    return name


def _often(cron: Cron) -> Cron:
    if cron.longest_gap() > GAP_MAX:
        raise ValueError(f"must come at least every {write_duration(GAP_MAX)}, or PubsubProberDrillOverdue would fire")
    return cron


DrillName = Annotated[str, AfterValidator(_drill), Written("`control`, or a fault; see `ordering-prober faults`")]


class Drills(Section):
    """Fire drills: promises broken on purpose, on a server of their own in this process, to see that somebody would get a page."""

    cron: Annotated[Cronline, AfterValidator(_often)] | None = None
    """When the service runs the drills, at least once a week; without it, it runs none."""
    faults: tuple[DrillName, ...] = ()
    """Which faults are planted, one after the other; `control` plants none. By default one of each sort, and the control."""
    prometheus: HttpUrl | None = None
    """The Prometheus that evaluates the rules of this project; without it, the drill does not check that the alert fires."""
    alertmanager: HttpUrl | None = None
    """The Alertmanager that Prometheus sends its alerts to; without it, the drill does not check that the alert arrives there."""
    host: Host = "127.0.0.1"
    """Address to listen on for Alertmanager's webhook; 0.0.0.0 for all."""
    port: Annotated[Port, Field(ge=0, le=65535)] | None = None
    """Port for that webhook, `http://HOST:PORT/pages`. Without it, the drill does not check that a page arrives."""
    deadline: Positive = timedelta(minutes=2)
    """How long after the finding its alert and page may come."""
    silence: Positive = timedelta(minutes=1)
    """How long the drill checks that no alert fires where nothing may be found: longer than Prometheus takes to scrape and evaluate."""


def overlaid(settings: Drills, given: Mapping[str, Any]) -> Drills:
    """Settings with what the command line gives in their place. Raises ConfigError."""
    try:
        return Drills.model_validate({**dict(settings), **given})
    except ValidationError as error:
        raise ConfigError(report(from_pydantic(error, Drills), "drills", {})) from error
