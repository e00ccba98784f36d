"""The pages: what they say in each state, that they need nobody else, and that nothing from outside becomes markup."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from api.formatting import why
from api.templates import STATIC
from prober.core.findings import Finding, Kind, Status
from prober.core.verdict import Verdict
from prober.slo.objectives import SliCounts
from tests.unit.api.asking import EUROPE, NOON, STUCK, US, StubView, ask, end, view
from tests.unit.api.pages import Page

EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>&amp;"


def page(asked: StubView, path: str = "/") -> Page:
    response = ask(asked, path)
    assert (response.status_code, response.headers["content-type"]) == (200, "text/html; charset=utf-8")
    return Page(response.text)


def full() -> StubView:
    """A service in which everything is going on."""
    instances = [replace(EUROPE, target=f"t{number}") for number in range(5)]
    asked = view(*instances, US)
    end(asked, instances[0], Verdict.PASS)
    end(asked, instances[1], Verdict.FAIL, STUCK, reason="STUCK")
    end(asked, instances[2], Verdict.UNKNOWN, reason="nobody answers")
    end(asked, instances[3], Verdict.FAIL, STUCK, at=NOON - 20.0)
    end(asked, instances[3], Verdict.PASS)
    end(asked, instances[4], Verdict.PASS)
    asked.live.under_maintenance(instances[4], "network works", NOON)
    asked.live.started(US, NOON - 7.0)
    asked.live.counted("t0", "publish_latency", SliCounts(900, 100))
    return asked


def states(found: Page) -> list[str]:
    """How each probe instance is shown, as classes of its row."""
    return [
        attributes["class"] for tag, attributes in found.elements if tag == "tr" and attributes.get("class") not in (None, "target")
    ][:6]


class TestStates:
    def test_pass(self) -> None:
        asked = view(EUROPE)
        end(asked, EUROPE, Verdict.PASS)
        found = page(asked)
        assert "PASS All probes pass Probes: 1 PASS · since 2026-03-01 11:59:55 UTC" in found.said()
        assert "PASS · ordering-keys-prober" in found.said()
        assert "Open incidents None." in found.said()
        assert "static/pass.svg" in found.values("href")

    def test_fail_names_the_cause_and_explains_the_finding(self) -> None:
        asked = view(EUROPE)
        end(asked, EUROPE, Verdict.FAIL, STUCK, replace(STUCK, t=4.0), reason="STUCK")
        said = page(asked).said()
        assert (
            "FAIL Confirmed messages are not delivered on europe since 11:59 UTC 2 findings in 1 of 1 verified run of 1 probe; "
            in said
        )
        assert any(link.startswith("runbooks/PubsubDeliveryOverdue?target=europe") for link in page(asked).values("href"))
        assert "ordering (wire), last seen 5 s ago; closes by 12:59 UTC if not seen again." in said

    def test_trouble_of_the_prober_itself_is_distinguished(self) -> None:
        asked = view(EUROPE)
        end(asked, EUROPE, Verdict.PASS)
        assert "Trouble" not in page(asked).said()
        asked.troubles = ("the history cannot be written: no space left",)
        said = page(asked).said()
        assert "PASS All probes pass" in said
        assert "Problems of the prober the history cannot be written: no space left" in said

    def test_nothing_is_known_yet(self) -> None:
        found = page(view(EUROPE))
        assert "STARTING 0 of 1 probe have a verdict Probes: 1 STARTING" in found.said()
        assert "no run has ended yet" in found.said()
        assert "static/starting.svg" in found.values("href")

    def test_a_run_that_ended_and_is_not_stored_yet(self) -> None:
        asked = view(EUROPE)
        end(asked, EUROPE, Verdict.FAIL)
        (instance,) = asked.snapshot().probe_instances
        assert why(replace(instance, last_run=None)) == "the first run has just ended, and is not stored yet"

    def test_unknown_never_looks_like_pass(self) -> None:
        asked = view(EUROPE)
        assert {"starting", "hero", "chip"} <= page(asked).classes()
        assert "proven" not in page(asked).classes()
        looks = [attributes.get("class", "") for _, attributes in page(asked).elements if "title" in attributes]
        assert not [look for look in looks if "pass" in look or "fail" in look]

    def test_a_pass_that_is_overdue_is_shown_as_unknown(self) -> None:
        asked = view(EUROPE)
        end(asked, EUROPE, Verdict.PASS)
        asked.now += 100.0
        found = page(asked)
        assert states(found)[0] == "unknown"
        assert "stale: the last run passed, but a run is overdue by 1 min" in found.said()

    def test_all_at_once(self) -> None:
        found = page(full())
        assert states(found) == ["pass", "fail", "unknown", "pass", "maintenance", "starting"]
        said = found.said()
        assert "1 FAIL, 1 UNKNOWN, 1 STARTING, 2 PASS, 1 MAINTENANCE, 5 of 6 probes have a verdict" in said
        assert "MAINTENANCE was PASS" in said
        assert "network works" in said
        assert "running for 7 s" in said
        assert re.search(r"publish_latency on t0 99 % over 30 d missed 10 % \S+ % to \S+ % 900 good, 100 bad ", said)
        assert re.search(r"0\.\d+ % of the budget spent", said)
        assert {"frame", "spent"} <= found.classes()

    def test_objectives_that_need_no_attention_are_counted(self) -> None:
        said = page(view(EUROPE)).said()
        assert "No objective is missed, no error budget burns too fast, and none is spent by half." in said
        assert re.search(r"europe: \d+ unknown All objectives", said)

    def test_the_timeline_is_described_in_words_too(self) -> None:
        asked = view(EUROPE)
        for number, verdict in enumerate((Verdict.PASS, Verdict.FAIL, Verdict.UNKNOWN, Verdict.PASS)):
            end(asked, EUROPE, verdict, number=number, reason="why")
        assert "4 runs: 1 FAIL, 1 UNKNOWN, 2 PASS" in page(asked).values("aria-label")

    def test_a_cell_of_the_timeline_leads_to_the_newest_of_its_worst_runs(self) -> None:
        asked = view(EUROPE)
        runs = ((7300.0, Verdict.PASS), (60.0, Verdict.FAIL), (30.0, Verdict.FAIL), (10.0, Verdict.UNKNOWN))
        for number, (ago_s, verdict) in enumerate(runs):
            end(asked, EUROPE, verdict, number=number, at=NOON - ago_s, reason="" if verdict is Verdict.PASS else "why")
        cells = [found for tag, found in page(asked).elements if tag == "a" and found.get("class", "").startswith("cell ")]
        assert [(one["class"], one["href"], one["title"]) for one in cells] == [
            ("cell pass", "runs/run-0", "2026-03-01 09:30:00 UTC: 1 run: 1 PASS"),
            ("cell fail", "runs/run-2", "2026-03-01 11:30:00 UTC: 3 runs: 2 FAIL, 1 UNKNOWN; why"),
        ]

    def test_open_incidents_come_in_the_order_of_their_beginnings(self) -> None:
        asked = view(EUROPE, US)
        ghost = replace(STUCK, kind=Kind.GHOST, facts={"seq": 4})
        end(asked, EUROPE, Verdict.FAIL, ghost, number=1, at=NOON - 40.0)
        end(asked, US, Verdict.FAIL, STUCK, number=2, at=NOON - 30.0)
        end(asked, EUROPE, Verdict.FAIL, ghost, replace(ghost, t=4.0), number=3, at=NOON - 10.0)
        said = page(asked).said()
        said = said[said.index("Open incidents") :]
        assert said.index("published on europe") < said.index("Confirmed messages are not delivered on us")
        assert (
            "3 findings in 2 of 2 verified runs of 1 probe since 2026-03-01 11:59:20 UTC , last seen 10 s ago ; closes by 12:59 UTC"
            in said
        )

    def test_what_is_over_is_not_shown(self) -> None:
        asked = view(EUROPE)
        ghost = replace(STUCK, kind=Kind.GHOST, facts={"seq": 4})
        end(asked, EUROPE, Verdict.FAIL, ghost, at=NOON - 5_000.0)
        for number in range(60):
            end(asked, EUROPE, Verdict.PASS, at=NOON - 600.0 + 10.0 * number)
        said = page(asked).said()
        assert "PASS All probes pass Probes: 1 PASS" in said
        assert "Open incidents None." in said

    def test_when_the_next_run_comes(self) -> None:
        asked = view(EUROPE, US)
        asked.live.planned(EUROPE, NOON + 7.0)
        asked.live.planned(US, NOON - 9.0)
        said = page(asked).said()
        assert "in 7 s" in said
        assert "due 9 s ago" in said

    def test_a_page_stays_short_however_much_is_found(self) -> None:
        instances = [replace(EUROPE, target=f"t{number}") for number in range(30)]
        asked = view(*instances)
        for instance in instances:
            end(asked, instance, Verdict.FAIL, *(replace(STUCK, t=float(number)) for number in range(25)), reason="STUCK")
        found = page(asked)
        assert sum("finding" in attributes.get("class", "").split() for _, attributes in found.elements) == 20
        assert "and 25 more" in found.said()


class TestMarkup:
    @pytest.mark.parametrize("path", ["/", "/docs"])
    def test_nothing_comes_from_elsewhere_or_is_inline(self, path: str) -> None:
        found = page(full(), path)
        links = list(found.values("href", "src", "action", "srcset"))
        assert links
        assert [link for link in links if "//" in link or ":" in link] == []
        assert list(found.values("style", "onclick", "onload", "onerror")) == []
        scripts = [attributes for tag, attributes in found.elements if tag == "script"]
        assert [one["src"] for one in scripts] == ["static/reader.js", *(["static/page.js"] if path == "/" else [])]
        assert all("defer" in one for one in scripts)

    @pytest.mark.parametrize("path", ["/", "/docs"])
    def test_every_local_link_leads_somewhere(self, path: str) -> None:
        asked = full()
        found = page(asked, path)
        ids = list(found.values("id"))
        assert len(ids) == len(set(ids))
        named = {name for value in found.values("aria-labelledby", "for") for name in value.split()}
        assert named | {link[1:] for link in found.values("href") if link.startswith("#")} <= set(ids)
        kept = ("runs/", "findings/", "api/")  # what is kept is not in this store
        links = {link for link in found.values("href", "src") if not link.startswith(("#", *kept))}
        for link in {link.rpartition("/")[0] or link: link for link in sorted(links)}.values():  # one of a kind
            assert ask(asked, f"/{link.removeprefix('.')}").status_code == 200, link

    def test_tables_are_read_as_tables(self) -> None:
        found = page(full())
        cells = [attributes for tag, attributes in found.elements if tag in ("th", "td")]
        assert {attributes["role"] for attributes in cells} == {"columnheader", "rowheader", "cell"}
        assert all(attributes.get("scope") for tag, attributes in found.elements if tag == "th")

    def test_it_reloads_without_a_script(self) -> None:
        assert {"http-equiv": "refresh", "content": "10"} in [
            attributes for tag, attributes in page(full()).elements if tag == "meta"
        ]

    def test_the_script_finds_what_it_looks_for(self) -> None:
        script = (STATIC / "page.js").read_text(encoding="utf-8")
        wanted = set(re.findall(r'getElementById\("([^"]+)"\)', script))
        assert wanted == {"main", "news", "summary", "silence", "silent-since"}
        assert wanted <= set(page(full()).values("id"))

    def test_what_comes_from_outside_is_only_text(self) -> None:
        instance = replace(
            EUROPE,
            target=EVIL,
            probe=EVIL,
            vantage=EVIL,
            environment=EVIL,
            region=EVIL,
            endpoint=EVIL,
            guarantee=EVIL,
            interval_s=1e6,
        )
        asked = view(instance, replace(instance, vantage="other"))
        finding = Finding(Kind.GHOST, Status.VIOLATION, EVIL, EVIL, 1.0, (1,), {"seq": EVIL})
        end(asked, instance, Verdict.FAIL, finding, reason=EVIL)
        asked.live.under_maintenance(replace(instance, vantage="other"), EVIL, NOON)
        found = page(asked)
        tags = [tag for tag, _ in found.elements]
        assert (tags.count("script"), tags.count("img")) == (2, 0)
        assert not any(name.startswith("on") for _, attributes in found.elements for name in attributes)
        assert found.text.count(EVIL) >= 10


class TestReference:
    def test_every_operation_and_every_field_is_explained(self) -> None:
        document = ask(view(EUROPE), "/openapi.json").json()
        said = page(view(EUROPE), "/docs").said()
        assert {"/api/v1/status", "/api/v1/findings/{finding_id}", "/healthz"} <= set(document["paths"])
        for path, methods in document["paths"].items():
            for method in methods:
                assert f"{method.upper()} {path}" in said
        for name, schema in document["components"]["schemas"].items():
            assert f"{name} {schema.get('description', '')}".replace("`", " ").split()[0] in said
            for field, of in schema.get("properties", {}).items():
                assert of.get("description"), f"{name}.{field} is not described"
                assert field in said

    def test_every_parameter_is_explained(self) -> None:
        said = page(view(EUROPE), "/docs").said()
        assert "limit in the query integer Maximum number of items. Example: 20" in said
        assert "run_id in the path string" in said

    def test_what_needs_a_parameter_is_no_link(self) -> None:
        links = set(page(view(EUROPE), "/docs").values("href"))
        assert {"api/v1/runs", "metrics"} < links
        assert not {"api/v1/keys", "api/v1/runs/{run_id}"} & links

    def test_the_body_of_a_request_is_explained(self) -> None:
        said = page(view(EUROPE), "/docs").said()
        assert 'Body: RunOrder application/json ; may be left out. Everywhere: {} At one target: {"target": "europe"}' in said
        assert "RunOrder Selection of the probe instances to run now" in said

    def test_types_are_in_words(self) -> None:
        said = page(view(EUROPE), "/docs").said()
        assert "since time or null Time since which verdict has this value. Example: 2026-03-01T12:00:00Z" in said
        assert "probe_instances list of ProbeInstance All probes on all targets from all vantages." in said
        assert "counters map to integer Counters of the checker." in said
        assert "503 Service Unavailable Not ready; says why. Readiness application/json" in said
        assert "any other An error, as problem details (RFC 9457). application/problem+json" in said
        assert "One of PASS , FAIL , UNKNOWN ." in said


class TestLinks:
    def test_what_the_store_has_is_linked_and_there(self) -> None:
        asked = full()
        links = {link for link in page(asked).values("href") if link.startswith(("runs/", "findings/", "incidents/"))}
        assert {link.partition("/")[0] for link in links} == {"runs", "incidents"}
        assert {link: ask(asked, f"/{link}").status_code for link in links} == dict.fromkeys(links, 200)

    @pytest.mark.parametrize("is_written", [True, False])
    def test_what_the_store_may_not_have_is_named_and_not_linked(self, is_written: bool) -> None:
        """While it is not written; and before a run is, of which only a heartbeat tells."""
        asked = full()
        asked.stored = is_written
        asked.writer = None
        found = page(asked)
        assert [link for link in found.values("href") if link.startswith(("runs/", "findings/", "incidents/"))] == []
        assert is_written or "Confirmed messages are not delivered on t1" in found.said()

    @pytest.mark.parametrize("made", [full, view], ids=["full", "nothing at all"])
    def test_no_page_that_the_navigation_shows_is_absent(self, made: Callable[[], StubView]) -> None:
        """Whether there are reports, probes, runs or not."""
        asked = made()
        start = ask(asked, "/").text
        links = re.findall(r'href="([^"]+)"', start.partition("<nav")[2].partition("</nav>")[0])
        assert len(links) == 12
        assert {link: ask(asked, f"/{link.removeprefix('.')}").status_code for link in links} == dict.fromkeys(links, 200)
