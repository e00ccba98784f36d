"""What a platform team checks is right for every values file, and a check notices what is wrong."""

from __future__ import annotations

import pytest

from tests.helm.chart import CASES, Values, merged
from tests.helm.checklist import CHECKS, COLUMNS, Check, answer
from tests.helm.test_refusals import at


@pytest.mark.parametrize("case", COLUMNS)
@pytest.mark.parametrize("check", CHECKS, ids=[check.question for check in CHECKS])
def test_the_answer_is_not_no(check: Check, case: str) -> None:
    assert answer(check, case) in {"yes", "-"}


def test_every_question_is_answered_somewhere() -> None:
    assert not [check.question for check in CHECKS if {answer(check, case) for case in COLUMNS} == {"-"}]


TOO_FREE = {"name": "a", "image": "a:1", "resources": {"requests": {}, "limits": {}}, "securityContext": {"runAsUser": 0}}
WRONG = [
    ("restricted", at("podSecurityContext.runAsUser", 1) | at("prober.extraContainers", [TOO_FREE])),
    ("left to the platform", at("prober.extraContainers", [TOO_FREE])),
    ("memory is limited", at("prober.extraContainers", [TOO_FREE])),
    ("Scratch space", at("prober.extraVolumes", [{"name": "a", "emptyDir": {}}])),
    ("budgets let a pod go", at("podDisruptionBudget.enabled", False)),
    ("guards every pod", at("networkPolicy.enabled", False)),
    ("metadata server is reached", at("serviceAccounts.prober.keySecret.name", "key")),
    ("No key", at("serviceAccounts.prober.keySecret.name", "key")),
    ("is scraped", at("serviceMonitor.enabled", True)),
]


@pytest.mark.parametrize(("question", "values"), WRONG, ids=[question for question, _ in WRONG])
def test_a_check_notices_what_is_wrong(question: str, values: Values, monkeypatch: pytest.MonkeyPatch) -> None:
    (check,) = (check for check in CHECKS if question in check.question)
    monkeypatch.setitem(CASES, "wrong", merged(CASES["test"], values))
    assert answer(check, "wrong").startswith("**no**: ")
