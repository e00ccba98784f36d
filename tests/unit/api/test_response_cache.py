"""How answers are made: once a moment, few at a time, and not again for those who have them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest
from fastapi import Request

from api import response_cache, threads
from api.app import create_app
from api.models.base import Answer
from api.response_cache import EncodedAnswer, ResponseCache, encode_answer
from api.threads import Busy
from prober.core.verdict import Verdict
from tests.unit.api.asking import EUROPE, US, StubView, archive_at, ask, client_of, copy_of, end, view
from tests.unit.api.kept import full_view

POLLED = ("/api/v1/status", "/api/v1/probes", "/api/v1/slos", "/api/v1/findings", "/api/v1/runs", "/api/v1/runs/run-1")


class Said(Answer):
    """An answer."""

    text: str


def request(path: str = "/", query: str = "", headers: dict[str, str] | None = None) -> Request:
    raw = [(name.lower().encode(), value.encode()) for name, value in (headers or {}).items()]
    return Request({"type": "http", "method": "GET", "path": path, "query_string": query.encode(), "headers": raw})


class TestETags:
    @pytest.mark.parametrize("path", POLLED)
    def test_who_has_the_answer_is_not_sent_it_again(self, path: str) -> None:
        asked = full_view()
        first = ask(asked, path)
        tag = first.headers["etag"]
        assert tag.startswith('W/"')
        for known in (tag, tag.removeprefix("W/"), f'"other", {tag}', "*"):
            again = ask(asked, path, headers={"If-None-Match": known})
            assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
            assert again.headers["cache-control"] == "no-cache"
        for unknown in ('"other"', 'W/"0"', "", tag[:-2] + '"'):
            assert ask(asked, path, headers={"If-None-Match": unknown}).content == first.content

    def test_of_the_status_it_tells_what_changed_and_not_that_time_passed(self) -> None:
        asked = view(EUROPE)
        end(asked, EUROPE, Verdict.PASS)
        before = ask(asked, "/api/v1/status").headers["etag"]
        asked.live.skipped(EUROPE, "overlap", asked.now)
        assert ask(asked, "/api/v1/status").headers["etag"] != before

    def test_of_the_status_it_stays_while_nothing_happens(self) -> None:
        asked = view(EUROPE, US)
        end(asked, EUROPE, Verdict.FAIL)
        asked.now += 200.0
        first = ask(asked, "/api/v1/status")
        asked.now += 3.0  # a heartbeat, and runs are overdue for longer
        again = ask(asked, "/api/v1/status", headers={"If-None-Match": first.headers["etag"]})
        assert again.status_code == 304
        later = ask(asked, "/api/v1/status").json()
        assert later["at"] != first.json()["at"]
        assert later["probers"][0]["last_heartbeat_at"] != first.json()["probers"][0]["last_heartbeat_at"]
        assert later["sites"][1]["overdue_s"] != first.json()["sites"][1]["overdue_s"] is not None

    def test_of_the_status_it_changes_when_a_run_becomes_overdue(self) -> None:
        asked = view(EUROPE)
        end(asked, EUROPE, Verdict.FAIL)
        before = ask(asked, "/api/v1/status")
        assert before.json()["sites"][0]["overdue_s"] is None
        asked.now += 60.0
        asked.tell()
        after = ask(asked, "/api/v1/status")
        assert (after.json()["sites"][0]["status"], after.json()["sites"][0]["overdue_s"] is None) == ("FAIL", False)
        assert after.headers["etag"] != before.headers["etag"]


class TestThreads:
    def test_the_same_question_is_answered_once(self) -> None:
        made: list[str] = []

        async def asking() -> list[bytes]:
            desk = ResponseCache()

            def make(text: str) -> Callable[[], Said]:
                def made_now() -> Said:
                    made.append(text)
                    return Said(text=text)

                return made_now

            asked = [desk.answer(request("/a", "x=1"), make("a")) for _ in range(20)]
            asked += [desk.answer(request("/a", "x=2"), make("b")) for _ in range(3)]
            answers = await asyncio.gather(*asked)
            return [bytes(one.body) for one in answers]

        answers = asyncio.run(asking())
        assert sorted(made) == ["a", "b"]
        assert answers == [b'{"text":"a"}'] * 20 + [b'{"text":"b"}'] * 3

    def test_a_mistake_is_not_remembered(self) -> None:
        async def asking() -> bytes:
            desk = ResponseCache()

            def fail() -> Said:
                raise ValueError("twice")

            for _ in range(2):
                with pytest.raises(ValueError, match="twice"):
                    await desk.answer(request(), fail)
            return bytes((await desk.answer(request(), lambda: Said(text="well"))).body)

        assert asyncio.run(asking()) == b'{"text":"well"}'

    def test_what_is_remembered_is_bounded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(response_cache, "REMEMBERED_MAX", 2)

        async def asking() -> int:
            desk, made = ResponseCache(), 0

            def make() -> Said:
                nonlocal made
                made += 1
                return Said(text="")

            for query in ("1", "2", "3", "3", "1"):
                await desk.answer(request(query=query), make)
            return made

        assert asyncio.run(asking()) == 4  # the first was forgotten

    def test_who_waits_for_too_long_is_sent_away(self, monkeypatch: pytest.MonkeyPatch) -> None:
        begun, release = threading.Semaphore(0), threading.Event()

        def keep() -> None:
            begun.release()
            release.wait()

        async def asking() -> None:
            desk = ResponseCache(store_is_server=True)
            busy = [asyncio.create_task(desk.ask(keep)) for _ in range(threads.THREADS_MAX)]
            for _ in busy:
                await asyncio.to_thread(begun.acquire)
            monkeypatch.setattr(threads, "WAIT_MAX_S", 0.0)
            with pytest.raises(Busy) as refused:
                await desk.ask(lambda: None)
            assert (refused.value.status_code, refused.value.headers) == (503, {"Retry-After": "5"})
            release.set()
            await asyncio.gather(*busy)
            monkeypatch.setattr(threads, "WAIT_MAX_S", 60.0)
            assert await desk.ask(lambda: 3) == 3

        asyncio.run(asking())


class TestStoreThatIsNotThere:
    LISTS = (
        "/api/v1/runs",
        "/api/v1/runs/run-1",
        "/api/v1/findings",
        "/api/v1/findings/f/trace",
        "/api/v1/keys?key=k",
        "/api/v1/subscriptions",
    )

    def missing(self) -> StubView:
        """A service whose store was taken away."""
        asked = view(EUROPE)
        asked.archive = archive_at(copy_of("empty"))
        with asked.archive.queries.database.writing() as connection:
            connection.exec_driver_sql("DROP TABLE runs")
            connection.exec_driver_sql("DROP TABLE findings")
            connection.exec_driver_sql("DROP TABLE evidence")
        return asked

    @pytest.mark.parametrize("path", LISTS)
    def test_it_is_told_and_when_to_come_again(self, path: str) -> None:
        response = ask(self.missing(), path)
        assert (response.status_code, response.headers["retry-after"]) == (503, "5")
        assert response.json()["detail"] == "the status store cannot be reached at the moment"

    @pytest.mark.parametrize("path", ["/", "/api/v1/status", "/api/v1/probes", "/healthz", "/metrics"])
    def test_what_this_process_knows_is_still_told(self, path: str) -> None:
        assert ask(self.missing(), path).status_code == 200


def test_the_status_is_written_once_for_all_who_ask_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Answer] = []

    def counted(answer: Answer) -> EncodedAnswer:
        made.append(answer)
        return encode_answer(answer)

    monkeypatch.setattr("api.routes.status.encode_answer", counted)
    asked = view(EUROPE)

    async def asking() -> set[bytes]:
        async with client_of(create_app(asked, asked.archive, asked.settings)) as client:
            return {response.content for response in await asyncio.gather(*(client.get("/api/v1/status") for _ in range(20)))}

    assert len(asyncio.run(asking())) == len(made) == 1
