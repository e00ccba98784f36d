"""Every subscription of a probe is named where its runs are shown: as the provisioner names it."""

from __future__ import annotations

import pytest

from prober.core.rules import Rules
from prober.probes.catalogue import PROBES
from prober.runs.probe_instance import ProbeInstance, Target, subscriptions_of
from prober.runs.resources import Provisioner


@pytest.mark.parametrize("probe", PROBES)
def test_they_are_those_that_are_made(probe: str) -> None:
    made = Provisioner(Target("t", "p", "wire", Rules()), "t-probe-wire", PROBES[probe].subscriptions, lasting=True).resources
    names = subscriptions_of(probe, made.subscription)
    assert names[0] == made.subscription
    assert set(names) == set(made.subscriptions)
    assert len(names) == len(PROBES[probe].subscriptions)


@pytest.mark.parametrize("first", ["projects/p/subscriptions/s", "s"])
def test_a_name_that_is_not_ours_stands_alone(first: str) -> None:
    assert subscriptions_of("publish", first) == (first,)


def test_an_unknown_probe_has_one_and_an_instance_without_a_name_none() -> None:
    ours = "projects/p/subscriptions/okp-x-0123abcd-012345"
    assert subscriptions_of("gone", ours) == (ours,)
    assert ProbeInstance("t", "publish", "wire", 1.0).subscriptions == ()
    assert len(ProbeInstance("t", "publish", "wire", 1.0, subscription=ours).subscriptions) == 3
