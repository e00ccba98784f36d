"""The rule files of a configuration: what is in them, and whether what lies in a folder is that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from prober.alerting import objectives as about_objectives
from prober.alerting import prober as about_prober
from prober.alerting import service as about_service
from prober.alerting.rules import Options, RuleGroup, as_yaml
from prober.slo.objectives import Objective

OBJECTIVES: Final = "objectives.rules.yaml"
SERVICE: Final = "service.rules.yaml"
PROBER: Final = "prober.rules.yaml"


def groups_by_file(objectives: Iterable[Objective], options: Options) -> Mapping[str, tuple[RuleGroup, ...]]:
    """All rules, by the name of their file."""
    promises = tuple(objectives)
    return {
        OBJECTIVES: about_objectives.objective_groups(promises),
        SERVICE: about_service.service_groups(promises, options),
        PROBER: about_prober.prober_groups(options),
    }


def rule_files(objectives: Iterable[Objective], options: Options | None = None) -> Mapping[str, str]:
    """The text of each file by its name; the same every time."""
    chosen = options or Options()
    return {name: as_yaml(groups, chosen) for name, groups in groups_by_file(objectives, chosen).items()}
