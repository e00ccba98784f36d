"""The rule files of a configuration: what is in them, and whether what lies in a folder is that."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from prober.alerting.catalogue import groups_of
from prober.alerting.findings import age_group, finding_group, late_kinds
from prober.alerting.objectives import objective_groups
from prober.alerting.options import Options
from prober.alerting.rules import RuleGroup, as_yaml
from prober.slo.objectives import Objective

OBJECTIVES: Final = "objectives.rules.yaml"
SERVICE: Final = "service.rules.yaml"
PROBER: Final = "prober.rules.yaml"
_NOTHING_WRITTEN: Final[Mapping[str, Any]] = MappingProxyType({})


def groups_by_file(objectives: Iterable[Objective], options: Options) -> Mapping[str, tuple[RuleGroup, ...]]:
    """All rules, by the name of their file."""
    declared, late = tuple(objectives), late_kinds()
    return {
        OBJECTIVES: (*objective_groups(declared), age_group(declared)),
        SERVICE: (finding_group(options), *groups_of("service", options, late)),
        PROBER: groups_of("prober", options, late),
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
