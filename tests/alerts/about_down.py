"""Stories about probers that do not answer."""

from __future__ import annotations

from prober.sinks.metrics import families
from tests.alerts.about_no_data import ASSIGNED, ASSIGNED_J, INFO_J, START, UP
from tests.alerts.stories import HERE, PROCESS, Story, at, named, of

UP_J = named("up", **{**PROCESS, "instance": "j"})
ASSIGNED_U = of(families.PROBE_ASSIGNED, target="u")
SECOND = {UP_J: "1x80", ASSIGNED_J: at("-60x80")}
"""Another prober that runs the same probe."""
ENDS = {UP: "1x40 0x40", START: at("-60x40 stale"), ASSIGNED: at("-60x40 stale")}
"""A prober that dies after ten minutes."""

STORIES = (
    Story(
        "PubsubProberDown",
        "fires after five minutes for each target and ends when it is back",
        {
            UP: "1x40 0x40 1x20",
            ASSIGNED: at("-60x40 stale _x40 1200x20"),
            ASSIGNED_U: at("-60x40 stale _x40 1200x20"),
        },
        {"14m": 0, "16m": 2, "21m": 0},
    ),
    Story(
        "PubsubProberDown",
        "counts the probe instances of the target",
        {**ENDS, of(families.PROBE_ASSIGNED, vantage="library"): at("-60x40 stale")},
        {"16m": 1},
        among={"target": "t", "severity": "critical"},
        reads=(
            "16m",
            {**PROCESS, **HERE},
            "Prober i has not answered for 5m. No prober runs 2 of its probe instances at t (e, r).",
        ),
        summary="t (e, r), ordering-keys-prober/i: A prober does not answer scrapes (probe instances without a prober: 2).",
    ),
    Story(
        "PubsubProberDown",
        "has never answered",
        {UP: "0x40"},
        {"4m": 0, "6m": 1},
        among={"severity": "critical"},
        reads=("6m", PROCESS, "Prober i has not answered for 5m. Prometheus does not know which probes it ran."),
        summary="ordering-keys-prober/i: A prober does not answer scrapes (its probes are unknown).",
    ),
    Story(
        "PubsubProberDown",
        "is no page when another prober runs all its probes",
        {**ENDS, **SECOND},
        {"16m": 0, "19m": 0},
        among={"severity": "critical"},
    ),
    Story(
        "PubsubProberDown",
        "is a ticket when another prober runs all its probes",
        {**ENDS, **SECOND},
        {"14m": 0, "16m": 1},
        among={"severity": "warning"},
        reads=("16m", PROCESS, "Prober i has not answered for 5m. Other probers have taken over every probe instance that it ran."),
        summary="ordering-keys-prober/i: A prober does not answer scrapes.",
    ),
    Story(
        "PubsubProberDown",
        "pages when another prober runs another part of its probe at the target",
        {
            UP: "1x40 0x40",
            of(families.PROBE_ASSIGNED, part="1/2"): at("-60x40 stale"),
            UP_J: "1x80",
            of(families.PROBE_ASSIGNED, part="2/2", instance="j"): at("-60x80"),
            INFO_J: "1x80",
        },
        {"14m": 0, "16m": 1},
        among={"severity": "critical", "target": "t"},
    ),
    Story(
        "PubsubProberDown",
        "is a ticket when it ran no probe",
        {UP: "1x40 0x40", START: at("-60x40 stale"), **SECOND},
        {"14m": 0, "16m": 1},
        among={"severity": "warning"},
    ),
    Story(
        "PubsubProberDown",
        "is no page when it ran no probe",
        {UP: "1x40 0x40", START: at("-60x40 stale"), **SECOND},
        {"16m": 0, "19m": 0},
        among={"severity": "critical"},
    ),
    Story(
        "PubsubProberDown",
        "stays a ticket for as long as it lasts",
        {UP: "1x12 0x200", ASSIGNED: at("-60x12 stale"), UP_J: "1x212", ASSIGNED_J: at("-60x212")},
        {"2h": 1, "7h": 1, "17h": 1},
        every="5m",
        among={"severity": "warning"},
    ),
    Story(
        "PubsubProberDown",
        "stays a page for as long as it lasts",
        {UP: "1x12 0x200", ASSIGNED: at("-60x12 stale")},
        {"2h": 1, "7h": 1, "17h": 1},
        every="5m",
        among={"severity": "critical", "target": "t"},
    ),
    Story(
        "PubsubProberDown",
        "pages for the target at which no other prober runs its probe",
        {**ENDS, ASSIGNED_U: at("-60x40 stale"), **SECOND},
        {"16m": 1},
        among={"severity": "critical", "target": "u"},
    ),
    Story(
        "PubsubProberDown",
        "goes on when it is not even scraped any more",
        {UP: "1x10 0x10 stale", ASSIGNED: at("-60x10 stale")},
        {"16m": 1, "21m": 1, "40m": 1, "5h": 1, "7h": 0},
        every="1m",
    ),
    Story(
        "PubsubProberDown",
        "its successor that does not start is the same page",
        {UP: "1x40 0x40 stale", ASSIGNED: at("-60x40 stale"), UP_J: "_x60 0x60"},
        {"16m": 1, "26m": 1, "29m": 1},
    ),
    Story(
        "PubsubProberDown",
        "its successor that dies too is one page",
        {
            UP: "1x40 0x4 stale",
            ASSIGNED: at("-60x40 stale"),
            UP_J: "_x50 1x40 0x60",
            ASSIGNED_J: at("_x50 750x40 stale"),
        },
        {"16m": 0, "22m": 0, "30m": 1},
    ),
    Story(
        "PubsubProberDown",
        "not for one lost scrape",
        {UP: "1x40 0 1x40", ASSIGNED: at("-60x40 stale -60x40")},
        {"10m15s": 0, "16m": 0},
    ),
)
