"""What a snapshot comes to: outages of a target, and targets of which nothing can be verified."""

from __future__ import annotations

from prober.core.verdict import Verdict
from prober.sinks.live.condition import Condition
from prober.slo.indicators import Indicator
from prober.slo.objectives import SliCounts
from tests.unit.sinks.live.test_state import LIBRARY, OTHER, START, WIRE, end, live

PASS, UNKNOWN = Verdict.PASS, Verdict.UNKNOWN


class TestStatus:
    def test_one_unreachable_run_is_an_outage_of_all_instances_since_the_last_success(self) -> None:
        """Also of a probe instance whose run is under way, and of one that passed."""
        reported, unsent = live(WIRE, LIBRARY, OTHER), {Indicator.PUBLISH_AVAILABILITY: SliCounts(bad=70)}
        for instance in (WIRE, LIBRARY, OTHER):
            end(reported, PASS, START + 5, instance)
        reported.started(LIBRARY, START + 6)
        for at in (9, 20):
            end(reported, UNKNOWN, START + at, unreachable=True, checks=unsent)
        shown = reported.snapshot(START + 21)
        (outage,) = shown.incidents
        assert (outage.target, outage.first_at, outage.runs, outage.unsent) == ("europe", START + 5, 2, 140)
        assert (shown.status, shown.verdict) == (Condition.OUTAGE, UNKNOWN)
        assert [instance.status for instance in shown.probe_instances] == [Condition.OUTAGE, Condition.OUTAGE, Condition.PASS]

    def test_an_outage_ends_with_the_first_run_that_reaches_the_target(self) -> None:
        reported = live(WIRE, LIBRARY)
        for instance in (WIRE, LIBRARY):
            end(reported, UNKNOWN, START + 9, instance, unreachable=True)
        end(reported, PASS, START + 20)
        assert reported.snapshot(START + 21).incidents == ()
        assert [instance.status for instance in reported.snapshot(START + 21).probe_instances] == [
            Condition.PASS,
            Condition.UNKNOWN,
        ]
        end(reported, UNKNOWN, START + 22, LIBRARY, unreachable=True, started_at=START + 10)
        assert reported.snapshot(START + 23).incidents == ()  # that run began in the outage

    def test_an_outage_of_one_vantage_leaves_the_others_alone(self) -> None:
        reported = live(WIRE, LIBRARY)
        end(reported, PASS, START + 5)
        end(reported, UNKNOWN, START + 9, LIBRARY, unreachable=True)
        end(reported, PASS, START + 15)
        shown = reported.snapshot(START + 16)
        assert [instance.status for instance in shown.probe_instances] == [Condition.PASS, Condition.OUTAGE]
        assert len(shown.incidents) == 1

    def test_a_target_whose_runs_cannot_be_verified_is_blind(self) -> None:
        reported = live(WIRE, LIBRARY)
        for at in (5, 15):
            for instance in (WIRE, LIBRARY):
                end(reported, UNKNOWN, START + at, instance, reason="PERMISSION_DENIED")
            expected = Condition.UNKNOWN if at == 5 else Condition.BLIND
            assert reported.snapshot(START + at).status is expected
        end(reported, PASS, START + 25)
        assert reported.snapshot(START + 26).status is Condition.UNKNOWN
