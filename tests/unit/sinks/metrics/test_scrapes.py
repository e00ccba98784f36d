"""Pages of metrics are written beside the event loop, one at a time, and given again for a moment."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from prometheus_client.parser import text_string_to_metric_families

from prober.config.loading import load
from prober.runs.backlog import Backlog
from prober.service import Service
from prober.sinks.metrics import Metrics, Scrapes, families
from prober.sinks.metrics.service import FRESH_S
from prober.sinks.metrics.store import content_type_for
from tests.unit.sinks.metrics.scraping import OPENMETRICS, PATIENCE_S, Renderings, embedded, samples


@pytest.fixture
def renderings(monkeypatch: pytest.MonkeyPatch) -> Renderings:
    return Renderings(monkeypatch)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0)


def run(scenario: Coroutine[None, None, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, PATIENCE_S))


def test_the_loop_of_the_service_turns_while_a_page_is_written(renderings: Renderings) -> None:
    async def scenario() -> None:
        service = Service(load(None, {}), {}, "1.2.3")
        answer = asyncio.create_task(service.metrics(""))
        await until(renderings.begun.is_set)
        renderings.may_go_on.set()  # only a loop that turns gets here before the rendering has given up
        _, body = await answer
        assert b"pubsub_prober_build_info" in body

    run(scenario())
    assert renderings.went_on == [True]
    assert threading.get_ident() not in renderings.threads


def test_who_asks_meanwhile_gets_the_page_that_is_being_made(renderings: Renderings) -> None:
    async def scenario() -> None:
        pages = Scrapes(Metrics())
        answers = [asyncio.create_task(pages.page("")) for _ in range(20)]
        await until(renderings.begun.is_set)
        answers[0].cancel()  # a client that goes away takes nobody's answer along
        renderings.may_go_on.set()
        with suppress(asyncio.CancelledError):
            await answers[0]
        assert len({await answer for answer in answers[1:]}) == 1

    run(scenario())
    assert len(renderings.threads) == 1


def test_a_page_is_given_again_for_a_moment_and_then_made_anew(renderings: Renderings) -> None:
    renderings.may_go_on.set()
    now = 100.0

    async def scenario() -> None:
        nonlocal now
        pages = Scrapes(Metrics(), lambda: now)
        for later_s in (0.0, FRESH_S / 2, FRESH_S / 4):
            now += later_s
            await pages.page("text/plain")
        assert len(renderings.threads) == 1
        now += FRESH_S
        await pages.page("")
        assert len(renderings.threads) == 2

    run(scenario())


def test_formats_are_not_mixed_up_and_share_the_thread(renderings: Renderings) -> None:
    renderings.may_go_on.set()

    async def scenario() -> None:
        pages = Scrapes(Metrics())
        text, openmetrics = await asyncio.gather(pages.page(""), pages.page(OPENMETRICS))
        assert text[0].startswith("text/plain")
        assert openmetrics[0].startswith(OPENMETRICS)
        assert openmetrics[1].endswith(b"# EOF\n")
        assert not text[1].endswith(b"# EOF\n")

    run(scenario())


def test_a_page_that_failed_is_made_again(renderings: Renderings, monkeypatch: pytest.MonkeyPatch) -> None:
    renderings.may_go_on.set()

    async def scenario() -> None:
        metrics = Metrics()
        pages = Scrapes(metrics)
        with monkeypatch.context() as broken:
            broken.setattr(metrics, "look", lambda: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                await pages.page("")
        assert b"build_info" in (await pages.page(""))[1]

    run(scenario())


def test_what_is_pending_is_asked_on_the_loop_alone(renderings: Renderings) -> None:
    """It changes there: a thread that went through it at the same time would meet mappings that change their size."""
    renderings.may_go_on.set()
    asked: list[int] = []

    def pending() -> dict[str, Backlog]:
        asked.append(threading.get_ident())
        return {"s": Backlog(61.5, 5, 2)}

    async def scenario() -> None:
        metrics = Metrics()
        metrics.watch(embedded(), ["t"], ["s"], pending)
        _, body = await Scrapes(metrics).page("")
        assert b'num_undelivered_messages{environment="test",region="local",subscription="s",target="embedded"} 5.0' in body

    run(scenario())
    assert set(asked) == {threading.get_ident()}
    assert set(renderings.threads).isdisjoint(asked)


def test_pages_are_whole_while_series_come_and_are_counted() -> None:
    metrics = Metrics()
    target = metrics.watch(embedded())
    pages: list[bytes] = []

    def render() -> None:
        while b'subscription="s19"' not in (pages[-1] if pages else b""):
            pages.append(metrics.render(content_type_for("")))

    with ThreadPoolExecutor(1) as thread:
        rendering = thread.submit(render)
        for number in range(20):
            target.subscription(f"s{number}").took(families.END_TO_END_LATENCY, 0.1)
            metrics.look()
        rendering.result(PATIENCE_S)
    for page in pages:
        for family in text_string_to_metric_families(page.decode()):
            assert family.type != "unknown"


def test_a_page_says_how_the_process_and_its_interpreter_are() -> None:
    names = {sample.name for sample in samples(Metrics())}
    assert {"process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds", "process_start_time_seconds"} <= names
    assert {"python_info", "python_gc_collections_total"} <= names
