"""The rule files of a configuration: what is in them, and whether what lies in a folder is that."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from prober.alerting import comparisons as about_comparisons
from prober.alerting import objectives as about_objectives
from prober.alerting import prober as about_prober
from prober.alerting import service as about_service
from prober.alerting.client_library import library_group
from prober.alerting.own_subscriptions import own_group
from prober.alerting.rules import Options, RuleGroup, as_yaml
from prober.alerting.top_keys import top_key_group
from prober.slo.objectives import Objective

OBJECTIVES: Final = "objectives.rules.yaml"
SERVICE: Final = "service.rules.yaml"
PROBER: Final = "prober.rules.yaml"
_NOTHING_WRITTEN: Final[Mapping[str, Any]] = MappingProxyType({})


def groups_by_file(objectives: Iterable[Objective], options: Options) -> Mapping[str, tuple[RuleGroup, ...]]:
    """All rules, by the name of their file."""
    promises = tuple(objectives)
    return {
        OBJECTIVES: (*about_objectives.objective_groups(promises), about_service.age_group(promises)),
        SERVICE: (
            *about_service.service_groups(options),
            about_comparisons.comparison_group(),
            own_group(),
            library_group(),
            top_key_group(),
        ),
        PROBER: about_prober.prober_groups(options),
    }


def rule_files(
    objectives: Iterable[Objective], options: Options | None = None, written: Mapping[str, Any] = _NOTHING_WRITTEN
) -> Mapping[str, str]:
    """The text of each file by its name; the same every time.

    `written` is the section `slos` of the configuration that the objectives come from. The one file that depends on objectives names it
    at its head, so that the Helm chart, which cannot compute rules, can refuse rules of other objectives than those of the configuration.
    """
    chosen = options or Options()
    remarks = {OBJECTIVES: f"# slos: {json.dumps(dict(written), sort_keys=True, default=str)}\n"}
    return {name: as_yaml(groups, chosen, remarks.get(name, "")) for name, groups in groups_by_file(objectives, chosen).items()}
