"""The ten-minute story: ordinary publishers with Google's library on the embedded server, and what `observe` says of their stream."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from prober.cli.observe import ALONE, ENDPOINT_VARIABLE, Beside, observe_once
from prober.cli.observe_report import StreamObservation
from prober.cli.process import ExitCode
from prober.client import RecordedPublisher, recorded
from prober.config.sections import Observe, OwnSubscription
from prober.core.findings import Kind, Status
from prober.core.verdict import Verdict
from prober.embedded import protobuf
from prober.embedded.faults import parse_fault
from prober.errors import ConfigError
from prober.monitoring.comparison import Late
from prober.probes.observe import KeysKept
from prober.slo.hot_keys import HotKeyClass
from prober.traces.trace import read_trace
from prober.traces.verification import verify_trace
from tests.cloud_monitoring import AGE, Recorded, cloud_monitoring
from tests.integration.embedded import WAIT_S, Clients, Running, running
from tests.nightly import nightly_but

pytestmark = pytest.mark.timeout(240)

KEYS = 300
AT_ONCE = 25
HOT_MESSAGES = 300
HOT, SWAPPED = "acct-7", "acct-42"
"""The account with most messages, and the one whose messages 3 and 4 its publisher exchanges."""


class Calls:
    """What the server is asked, as text: the log of its calls."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[str] = []
        self._came = threading.Condition()
        decoded = protobuf.decoded

        def logged(kind: Any, data: bytes) -> Any:
            message = decoded(kind, data)
            with self._came:
                self.asked.append(f"{type(message).__name__} {message}")
                self._came.notify_all()
            return message

        monkeypatch.setattr(protobuf, "decoded", logged)

    def wait_for(self, *words: str) -> None:
        """Waits for a call in which all these words occur."""
        with self._came:
            assert self._came.wait_for(lambda: any(all(word in call for word in words) for call in self.asked), WAIT_S)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    return Calls(monkeypatch)


@pytest.fixture
def server(calls: Calls) -> Iterator[Running]:
    with running() as server:
        yield server


@pytest.fixture
def clients(server: Running) -> Iterator[Clients]:
    clients = Clients(server.address)
    clients.create()
    yield clients
    clients.close()


def settings(clients: Clients, **settings: Any) -> Observe:
    known = {"topic": clients.topic, "group": "attributes.account", "sequence": "attributes.seq", "duration": "200s"}
    return Observe.model_validate(known | settings)


def clock_passes(seconds: float) -> None:
    """Lets real time pass: what a record shows begins when the clocks can differ no more."""
    threading.Event().wait(seconds)


def observed(
    clients: Clients,
    calls: Calls,
    wanted: Observe,
    publish: Callable[[], None],
    trace: str = "",
    beside_it: Beside = ALONE,
    environ: Mapping[str, str] | None = None,
) -> StreamObservation:
    """What is observed while somebody publishes, from when the observer listens until all of it has come."""
    address = clients._address

    async def both() -> StreamObservation:
        stop = asyncio.Event()
        observing = asyncio.create_task(observe_once(wanted, address, environ or {}, trace, stop, beside_it))

        def story() -> None:
            calls.wait_for("StreamingPullRequest", "okp-observe")
            publish()

        publishing = asyncio.create_task(asyncio.to_thread(story))
        await asyncio.wait([observing, publishing], return_when=asyncio.FIRST_COMPLETED)
        while not observing.done() and not stop.is_set():
            count = sum("ack_ids" in call for call in calls.asked)
            await asyncio.sleep(1.0)  # until nothing is acknowledged any more
            if count == sum("ack_ids" in call for call in calls.asked):
                stop.set()
        await publishing
        return await observing

    return asyncio.run(both())


def send(clients: Clients, account: str, seq: object, key: str | None = None) -> Any:
    return clients.publisher.publish(
        clients.topic, b"{}", ordering_key=account if key is None else key, account=account, seq=str(seq)
    )


def orders(clients: Clients) -> None:
    """Many accounts, one of them hot, and one publisher with a mistake; few at once, since all of it is one process here."""
    messages = [(f"acct-{account}", turn) for turn in (1, 2, 3) for account in range(KEYS) if f"acct-{account}" != SWAPPED]
    messages += [(HOT, seq) for seq in range(4, HOT_MESSAGES + 1)]
    for at in range(0, len(messages), AT_ONCE):
        for one in [send(clients, *message) for message in messages[at : at + AT_ONCE]]:
            one.result(WAIT_S)
    for seq in (1, 2, 4, 3, 5):
        send(clients, SWAPPED, seq).result(WAIT_S)  # each is confirmed before the next is sent


def test_the_story(clients: Clients, calls: Calls, tmp_path: Path) -> None:
    """Their consumer is slow on one account, as Cloud Monitoring says; the observer gets the same messages in time."""
    trace = tmp_path / "observed.jsonl"
    name = clients.subscription.rpartition("/")[2]
    own = OwnSubscription(name=clients.subscription)
    with cloud_monitoring(Recorded({(AGE, name): [301, 240]}, newest_s=1.0)) as address:
        environ = {ENDPOINT_VARIABLE: address}
        seen = observed(clients, calls, settings(clients), lambda: orders(clients), str(trace), Beside(own=own), environ)

    assert seen.own is not None
    assert seen.own.late is Late.ONLY_YOURS
    assert "Only yours is late: its oldest message waits for 5m1s" in seen.as_text()
    assert json.loads(seen.as_json())["own_subscription"]["late"] == "only_yours"

    (swap,) = [made.finding for made in seen.result.findings if made.finding.status is not Status.INFO or made.finding.kind in OUT]
    assert (swap.kind, swap.key) == (Kind.PUBLISHED_OUT_OF_ORDER, SWAPPED)
    assert (swap.facts["seq"], swap.facts["after"]) == (3, 4)
    assert swap.facts["after_stored_at"] < swap.facts["stored_at"]  # type: ignore[operator]
    assert (seen.result.verdict, seen.outcome[0], seen.exit_code) == (Verdict.PASS, Verdict.FAIL, ExitCode.FAIL)
    text = seen.as_text()
    assert "FAIL after" in text
    assert "publishers sent 1 pair of messages to Pub/Sub out of order; Pub/Sub kept the order of arrival" in text
    assert "Message 4" in text
    assert "Pub/Sub kept the order" in text
    assert f"hot key {HOT}: {HotKeyClass.SKEWED}" in text
    assert json.loads(seen.as_json())["keys"][0]["class"] == "skewed"
    assert seen.stream.counts["received"] == 3 * (KEYS - 2) + HOT_MESSAGES + 5

    with read_trace(trace) as reader:
        verified = verify_trace(str(trace), reader.header, reader)
    assert [made.finding.kind for made in verified.findings if made.finding.kind in OUT] == [Kind.PUBLISHED_OUT_OF_ORDER]
    theirs = clients.subscription
    assert [call.split()[0] for call in calls.asked if theirs in call] == ["Subscription"], "only they created it"
    assert not any(clients.topic in call and "Delete" in call for call in calls.asked)
    left = clients.subscriber.list_subscriptions(request={"project": "projects/test"})
    assert [one.name for one in left] == [theirs], "ours is gone"


OUT = {Kind.PUBLISHED_OUT_OF_ORDER, Kind.DELIVERED_OUT_OF_ORDER}


@pytest.mark.parametrize(
    ("theirs", "slow", "late"),
    nightly_but(  # the others in `tests/unit/monitoring/test_comparison.py`
        [(300, False, Late.ONLY_YOURS), (0, True, Late.SERVICE)],
        [
            (300, False, Late.ONLY_YOURS),
            (0, True, Late.SERVICE),
            (300, True, Late.BOTH),
            (0, False, Late.NOBODY),
            (None, False, Late.UNKNOWN),
        ],
    ),
)
def test_whose_fault_the_age_is(
    server: Running, clients: Clients, calls: Calls, theirs: int | None, slow: bool, late: Late
) -> None:
    """The service is slow on one account, or their consumer is; late is who has a message that waits for a second."""
    own = OwnSubscription(name=clients.subscription, late_after=timedelta(seconds=1))

    def publish() -> None:
        if slow:
            server.call(lambda: server.server.arm(parse_fault("slow_delivery:key=a")))
        for seq in range(1, 6):
            send(clients, "a", seq).result(WAIT_S)
        clock_passes(3.0)
        send(clients, "b", 1).result(WAIT_S)

    with cloud_monitoring(Recorded({(AGE, own.name.rpartition("/")[2]): [theirs]}, newest_s=0.0)) as address:
        seen = observed(clients, calls, settings(clients), publish, beside_it=Beside(own=own), environ={ENDPOINT_VARIABLE: address})
    assert seen.own is not None
    assert seen.own.late is late, seen.own.sentence


def test_the_service_exchanges_them(server: Running, clients: Clients, calls: Calls) -> None:
    def publish() -> None:
        for seq in range(1, 30):
            if seq == 10:
                server.call(lambda: server.server.arm(parse_fault("swap_across_batches:p=1,count=1")))
            send(clients, "a", seq).result(WAIT_S)

    seen = observed(clients, calls, settings(clients, publish_time_error="0s"), publish)
    kinds = {made.finding.kind for made in seen.result.findings if made.finding.status is Status.VIOLATION}
    assert kinds == {Kind.DELIVERED_OUT_OF_ORDER}
    assert seen.exit_code is ExitCode.FAIL
    assert "(the service), key a" in seen.as_text()


def test_what_one_request_published_may_leave_it_undecided_who_exchanged_it(
    server: Running, clients: Clients, calls: Calls
) -> None:
    """The messages of one request have one publish time, so verdict, exit code and finding say that nothing is decided."""

    def publish() -> None:
        server.call(lambda: server.server.arm(parse_fault("swap_in_batch:p=1,count=1")))
        for one in [send(clients, "a", seq) for seq in range(1, 30)]:
            one.result(WAIT_S)
        send(clients, "a", 30).result(WAIT_S)

    seen = observed(clients, calls, settings(clients), publish)
    text, document = seen.as_text(), json.loads(seen.as_json())
    assert (seen.outcome[0], seen.exit_code) == (Verdict.UNKNOWN, ExitCode.UNKNOWN)
    assert (document["verdict"], document["service_verdict"]) == ("UNKNOWN", "PASS")
    assert "UNKNOWN after" in text
    assert "1 pair of messages arrived out of order, and the cause is undecided" in text
    assert "DELIVERED_OUT_OF_ORDER (undecided), key a" in text
    assert "equal publish times" in text


def test_a_wrong_path_names_a_message_and_what_it_has(clients: Clients, calls: Calls) -> None:
    def publish() -> None:
        for seq in range(1, 20):
            send(clients, "a", seq)

    with pytest.raises(
        ConfigError, match=r"none of the first 10 messages .* message \d+ has no attribute acount \(it has: account, seq\)"
    ):
        observed(clients, calls, settings(clients, group="attributes.acount"), publish)


def test_what_cannot_be_verified_is_counted_and_keys_may_be_hashed(clients: Clients, calls: Calls) -> None:
    def publish() -> None:
        sent = [send(clients, "ann", seq) for seq in (1, 2, 3, "four", 900)]
        sent += [send(clients, "bob", seq, key="") for seq in (1, 2)]
        for one in sent:
            one.result(WAIT_S)

    wanted = settings(clients, keys_kept=KeysKept.HASHED, maximum=100, unordered=True)
    seen = observed(clients, calls, wanted, publish)
    counts = seen.stream.counts
    assert (counts["unnumbered"], counts["above_maximum"], counts["without_key"]) == (1, 1, 2)
    assert seen.exit_code is ExitCode.PASS
    assert "ann" not in seen.as_text() + seen.as_json()
    assert sum(stream.arrivals.deliveries for stream in seen.stream.order_without_ordering().streams) == 6


def recorded_by(clients: Clients, path: Path) -> RecordedPublisher:
    """Their publisher with a record; whoever stops that stops both."""
    clients._closing.remove(clients.publisher.stop)
    return recorded(clients.publisher, clients.topic, path)


def test_a_publisher_s_record_shows_what_is_lost(server: Running, clients: Clients, calls: Calls, tmp_path: Path) -> None:
    """Two publishers, one with a record that begins in the middle, and a service that loses one of its messages."""
    record, trace = tmp_path / "publishes.jsonl", tmp_path / "observed.jsonl"
    other = clients.new_publisher()
    lost: list[str] = []

    def publish() -> None:
        ours = recorded_by(clients, record)
        for seq in range(1, 40):
            if seq == 20:
                server.call(lambda: server.server.arm(parse_fault("drop:p=1,count=2")))
            sent = ours.publish(clients.topic, b"{}", ordering_key="a", account="a", seq=str(2 * seq)).result(WAIT_S)
            lost.extend([sent] if seq == 20 else [])  # on their subscription and on ours
            other.publish(clients.topic, b"{}", ordering_key="a", account="a", seq=str(2 * seq + 1)).result(WAIT_S)
            clock_passes(0.1)  # some of it begins later than the clocks may differ
        ours.stop()
        assert ours.dropped == 0

    records = Beside((str(record),), 0.5)
    seen = observed(clients, calls, settings(clients), publish, str(trace), records)
    assert seen.recorded is not None
    assert seen.recorded.verdict is Verdict.FAIL
    gaps = [made.finding for made in seen.recorded.findings if made.finding.kind is Kind.ORDER_GAP]
    assert [gap.status for gap in gaps] == [Status.VIOLATION]
    assert seen.recorded.counts["confirmed"] - seen.recorded.counts["received"] == 1
    assert seen.exit_code is ExitCode.FAIL
    assert lost[0] in seen.as_text()
    proofs = [line.partition("; also")[0] for line in seen.as_text().splitlines() if "by message id" in line]
    assert len(set(proofs)) == len(proofs), "each pair once"
    assert json.loads(seen.as_json())["recorded"]["verdict"] == "FAIL"
    beside = trace.with_suffix(".record.jsonl")
    with read_trace(beside) as reader:
        assert Kind.ORDER_GAP in {made.finding.kind for made in verify_trace(str(beside), reader.header, reader).findings}


def test_a_publisher_s_record_of_a_service_that_does_nothing_wrong(clients: Clients, calls: Calls, tmp_path: Path) -> None:
    record = tmp_path / "publishes.jsonl"

    def publish() -> None:
        ours = recorded_by(clients, record)
        for batch in range(12):
            sent = [
                ours.publish(clients.topic, b"{}", ordering_key=f"k{seq % 7}", account="a", seq=str(100 * batch + seq))
                for seq in range(50)
            ]
            for one in sent:
                one.result(WAIT_S)
            clock_passes(0.1)
        ours.stop()

    wanted = settings(clients, keys_kept=KeysKept.HASHED, share=0.7)
    seen = observed(clients, calls, wanted, publish, beside_it=Beside((str(record),), 0.5))
    assert seen.recorded is not None
    assert (seen.recorded.verdict, seen.recorded.reason, seen.recorded.findings) == (Verdict.PASS, "", ())
    assert seen.recorded.counts["confirmed"] > 0
    assert "by the publishers' record: PASS" in seen.as_text()
