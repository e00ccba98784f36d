"""The section of the configuration about what probing may cost."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from prober.config.values import Section


class Budget(Section):
    """What probing may cost."""

    usd_per_month: Annotated[float, Field(ge=0)] = 250.0
    """The most that all probes together may cost a month on the real service, in US dollars at list price. A configuration that may cost
    more is refused. Embedded servers and emulators cost nothing."""
