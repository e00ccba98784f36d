"""Push subscriptions that google-cloud-pubsub created: order, retries, another endpoint."""

from __future__ import annotations

import base64
import json
import threading

import pytest
from google.api_core import exceptions

from tests.integration.embedded import Clients, Collected, endpoint


def test_push_is_one_message_of_a_key_at_a_time_and_never_passes_a_failed_one(clients: Clients) -> None:
    got = Collected()
    open_now = threading.Semaphore(1)

    def answer(_: dict[str, str], body: bytes) -> int:
        document = json.loads(body)
        assert open_now.acquire(blocking=False), "two requests of one key at a time"
        try:
            text = base64.b64decode(document["message"]["data"]).decode()
            count = got.add((text, document["message"]["orderingKey"], document["subscription"]))
            return 500 if count == 2 else 204
        finally:
            open_now.release()

    with endpoint(answer) as url:
        clients.create(push_config={"push_endpoint": url})
        clients.publish("1", "2", "3", "4")
        items = got.wait(5)
    assert [text for text, _, _ in items] == ["1", "2", "2", "3", "4"]
    assert {(key, name) for _, key, name in items} == {("k", clients.subscription)}
    with pytest.raises(exceptions.FailedPrecondition):
        clients.pull()


def test_push_to_nobody_is_tried_again(clients: Clients) -> None:
    got = Collected()
    with endpoint(lambda _, body: 102 if got.add(body) else 500) as url:
        dead = url.replace("/push", "").rpartition(":")[0] + ":1/"
        clients.create(push_config={"push_endpoint": dead})
        clients.publish("1")
        request = {
            "subscription": clients.subscription,
            "push_config": {"push_endpoint": url, "no_wrapper": {"write_metadata": True}},
        }
        clients.subscriber.modify_push_config(request=request)
        assert got.wait(1) == [b"1"]
