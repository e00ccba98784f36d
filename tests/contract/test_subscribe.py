"""Consuming: every message once it is there, in order, as it was published; and what becomes of it when it is answered or not."""

from __future__ import annotations

import asyncio

import pytest

from prober.brokers.base import BrokerSession, Confirmed, FlowControlSettings, Outgoing, Received, Vantage
from prober.brokers.endpoint import Endpoint
from prober.errors import BrokerUnavailable, NotThere
from tests.contract.conftest import Service
from tests.contract.context import LABELS, PROJECT, WAIT_S, Closed, Got, Notebook, Opened, OwnBroker, connect
from tests.contract.places import dead_server

QUIET_S = 1.5  # longer than a lease of one second that was not heeded


async def test_each_key_arrives_in_order(service: Service, vantage: Vantage) -> None:
    async with service.context(vantage) as context:
        notebook = Notebook()
        await context.subscribe(notebook)
        publisher = context.broker.publisher(context.topic)
        for n in range(20):
            results = await asyncio.gather(*(publisher.publish([Outgoing(f"k{key}", b"%d" % n)], WAIT_S) for key in range(5)))
            assert all(isinstance(outcome, Confirmed) for (outcome,) in results)
        await notebook.until(lambda: len(notebook.messages) >= 100)
        for key in range(5):
            assert notebook.texts(f"k{key}") == [str(n) for n in range(20)]


async def test_a_message_arrives_as_it_was_published(service: Service, vantage: Vantage) -> None:
    async with service.context(vantage) as context:
        notebook = Notebook()
        await context.subscribe(notebook)
        publisher = context.broker.publisher(context.topic)
        data = bytes(range(256))
        (outcome,) = await publisher.publish([Outgoing("schlüssel", data, {"a": "ä", "b": ""})], WAIT_S)
        await notebook.until(lambda: len(notebook.messages) == 1)
        received = notebook.messages[0]
        assert outcome == Confirmed(received.message_id)
        assert (received.ordering_key, received.data, dict(received.attributes)) == ("schlüssel", data, {"a": "ä", "b": ""})
        assert received.ack_id
        assert received.publish_time is not None
        assert 1_600_000_000 * 10**9 < received.publish_time < 10_000_000_000 * 10**9


async def test_when_a_message_was_stored_is_the_same_each_time_and_from_each_vantage(service: Service, vantage: Vantage) -> None:
    """Two messages with one id are distinguished by it."""
    async with service.context(vantage) as context:
        other_vantage = await connect(Endpoint(context.address, secure=False), next(other for other in Vantage if other != vantage))
        refused = Notebook(lambda session, received: session.nack(received))
        subscriber = await context.subscribe(refused)
        ids = await context.publish("k", [str(n) for n in range(10)])
        await refused.until(lambda: len(refused.messages) > 20)
        await subscriber.close()
        acked = Notebook()
        await other_vantage.subscriber(context.subscription, "two", FlowControlSettings(), 10).start(acked)
        await acked.until(lambda: {message.message_id for message in acked.messages} == set(ids))
        await other_vantage.close()
        times = {(message.message_id, message.publish_time) for message in (*refused.messages, *acked.messages)}
        assert len(times) == len(ids), times
        assert None not in {publish_time for _, publish_time in times}


async def test_a_session_tells_how_much_may_be_outstanding_on_it(service: Service, vantage: Vantage) -> None:
    async with service.context(vantage) as context:
        notebook = Notebook()
        await context.subscribe(notebook, flow=FlowControlSettings(messages_max=3, bytes_max=5_000))
        assert [session.flow for session in notebook.sessions] == [FlowControlSettings(3, 5_000)]


async def test_what_is_acknowledged_is_not_redelivered(service: Service, vantage: Vantage) -> None:
    """The stream is cut after the acknowledgement: what was not acknowledged would be redelivered on the next one."""
    async with service.context(vantage) as context:
        notebook = Notebook()
        subscriber = await context.subscribe(notebook)
        await context.publish("k", ["1", "2", "3"])
        await notebook.until(lambda: len(notebook.messages) == 3)
        await asyncio.sleep(0.3)
        await subscriber.break_stream()
        await delivering_again(context, notebook, sessions=2)
        assert notebook.texts("k") == ["1", "2", "3"]


async def delivering_again(context: OwnBroker, notebook: Notebook, sessions: int) -> None:
    """Publishes until something arrives on the latest session. A service may go on sending to a stream that is gone for a while."""
    await notebook.until(lambda: len(notebook.sessions) == sessions)
    latest = notebook.sessions[-1]
    for number in range(80):
        if any(isinstance(what, Got) and what.session is latest for what in notebook.reported):
            return
        await context.publish(f"after the break {number}", ["x"])
        await asyncio.sleep(0.1)
    raise AssertionError(f"nothing arrives: {notebook.summary()}")


async def test_what_is_nacked_is_redelivered_with_what_follows_it(service: Service, vantage: Vantage) -> None:
    refused: list[str] = []

    def refuse_the_second_once(session: BrokerSession, received: Received) -> None:
        if received.data == b"2" and not refused:
            refused.append(received.message_id)
            session.nack(received)
        else:
            session.ack(received)

    async with service.context(vantage) as context:
        notebook = Notebook(refuse_the_second_once)
        await context.publish("k", ["1", "2", "3"])
        await context.subscribe(notebook)
        await notebook.until(lambda: notebook.texts("k").count("2") == 2)
        if service.is_emulator:
            # Not as documented: it sends the refused message alone when what follows it was acknowledged meanwhile.
            await asyncio.sleep(0.5)
            assert notebook.texts("k") == ["1", "2", "3", "2"]
        else:
            await notebook.until(lambda: notebook.texts("k")[-2:] == ["2", "3"] and len(notebook.messages) > 3)
            assert notebook.texts("k") in (["1", "2", "2", "3"], ["1", "2", "3", "2", "3"])
        assert {message.message_id for message in notebook.messages if message.data == b"2"} == set(refused)


async def test_what_is_left_to_expire_is_redelivered(service: Service, vantage: Vantage) -> None:
    """With a lease of one second and nobody who extends it."""

    def leave_the_first(session: BrokerSession, received: Received) -> None:
        if len(notebook.messages) == 1:
            session.modify_lease(received, 1)
            session.let_expire(received)
        else:
            session.ack(received)

    async with service.context(vantage) as context:
        notebook = Notebook(leave_the_first)
        await context.subscribe(notebook)
        await context.publish("k", ["1"])
        await notebook.until(lambda: len(notebook.messages) == 2)
        assert notebook.texts("k") == ["1", "1"]
        assert len({message.message_id for message in notebook.messages}) == 1


async def test_a_lease_can_be_made_longer(service: Service, vantage: Vantage) -> None:
    def lengthen(session: BrokerSession, received: Received) -> None:
        session.modify_lease(received, 1)
        session.modify_lease(received, 60)

    async with service.context(vantage) as context:
        notebook = Notebook(lengthen)
        await context.subscribe(notebook)
        await context.publish("k", ["1"])
        await notebook.until(lambda: len(notebook.messages) == 1)
        await asyncio.sleep(QUIET_S)
        assert notebook.texts("k") == ["1"]


async def test_confirmed_acknowledgements_are_reported(service: Service, vantage: Vantage) -> None:
    async with service.context(vantage) as context:
        await context.with_subscription(exactly_once=True, ack_deadline_s=60)
        notebook = Notebook()
        await context.subscribe(notebook, ack_deadline_s=60)
        ids = await context.publish("k", ["1", "2"])
        await notebook.until(lambda: len(notebook.messages) == 2)
        if service.is_emulator and vantage is not Vantage.LIBRARY:
            return  # the emulator confirms nothing on a stream
        await notebook.until(lambda: len(notebook.confirmations) == 2)
        assert notebook.confirmations == ids


async def test_without_exactly_once_nothing_is_confirmed(service: Service, vantage: Vantage) -> None:
    async with service.context(vantage) as context:
        notebook = Notebook()
        await context.subscribe(notebook)
        await context.publish("k", ["1"])
        await notebook.until(lambda: len(notebook.messages) == 1)
        await asyncio.sleep(0.3)
        assert notebook.confirmations == []


async def test_flow_control_limits_what_is_outstanding(service: Service, vantage: Vantage) -> None:
    held: list[tuple[BrokerSession, Received]] = []
    async with service.context(vantage) as context:
        for key in range(6):
            await context.publish(f"k{key}", ["x"])
        notebook = Notebook(lambda session, received: held.append((session, received)))
        await context.subscribe(notebook, flow=FlowControlSettings(messages_max=2))
        if service.is_emulator and vantage is not Vantage.LIBRARY:  # the program of the external vantage is on the wire, too
            # Not as documented: it does not look at the limits of a stream. The client library keeps them itself.
            await notebook.until(lambda: len(held) == 6)
            return
        await notebook.until(lambda: len(held) == 2)
        await asyncio.sleep(0.3)
        assert len(held) == 2
        while len(notebook.messages) < 6:
            await notebook.until(lambda: bool(held))
            session, received = held.pop(0)
            session.ack(received)
            await asyncio.sleep(0.02)
        await notebook.until(lambda: len(notebook.messages) >= 6)


async def test_a_session_is_opened_before_it_delivers_and_closed_after(service: Service, vantage: Vantage) -> None:
    async with service.context(vantage) as context:
        notebook = Notebook()
        began = asyncio.get_running_loop().time()
        subscriber = await context.subscribe(notebook)
        assert [type(what) for what in notebook.reported] == [Opened]
        await context.publish("k", ["1", "2"])
        await notebook.until(lambda: len(notebook.messages) == 2)
        await subscriber.close()
        await subscriber.close()
        assert [type(what) for what in notebook.reported] == [Opened, Got, Got, Closed]
        opened = notebook.reported[0]
        assert isinstance(opened, Opened)
        assert opened.invoked_t is None or opened.invoked_t >= began
        assert {what.session.name for what in notebook.reported} == {opened.session.name}
        assert opened.session.subscriber == "one"


async def test_after_the_end_a_session_can_be_answered_without_harm(service: Service, vantage: Vantage) -> None:
    held: list[tuple[BrokerSession, Received]] = []
    async with service.context(vantage) as context:
        notebook = Notebook(lambda session, received: held.append((session, received)))
        subscriber = await context.subscribe(notebook)
        await context.publish("k", ["1"])
        await notebook.until(lambda: len(held) == 1)
        await subscriber.close()
        session, received = held[0]
        assert session.is_over == (vantage is Vantage.WIRE)  # a client library would pass an answer on
        session.ack(received)
        session.nack(received)
        session.modify_lease(received, 10)
        session.let_expire(received)


async def test_a_broken_stream_is_opened_again_as_a_new_session(service: Service, vantage: Vantage) -> None:
    async with service.context(vantage) as context:
        notebook = Notebook()
        subscriber = await context.subscribe(notebook)
        await context.publish("k", ["1"])
        await notebook.until(lambda: len(notebook.messages) == 1)
        await subscriber.break_stream()
        await notebook.until(lambda: len(notebook.closings) == 1 and len(notebook.sessions) == 2)
        first, second = notebook.sessions
        assert notebook.closings[0].session is first
        assert "cut by the prober" in notebook.closings[0].reason
        assert second.name != first.name
        assert second.subscriber == first.subscriber
        await delivering_again(context, notebook, sessions=2)
        reported = [(type(what), what.session) for what in notebook.reported]
        assert reported.index((Closed, first)) == max(at for at, what in enumerate(reported) if what[1] is first)
        assert reported.index((Opened, second)) == min(at for at, what in enumerate(reported) if what[1] is second)


async def test_what_was_outstanding_when_a_stream_broke_is_redelivered(service: Service, vantage: Vantage) -> None:
    """After a lease of one second, because a service need not notice a break."""

    def answer_only_later(session: BrokerSession, received: Received) -> None:
        if len(notebook.sessions) == 1:
            session.modify_lease(received, 1)
            session.let_expire(received)
        else:
            session.ack(received)

    async with service.context(vantage) as context:
        notebook = Notebook(answer_only_later)
        subscriber = await context.subscribe(notebook)
        await context.publish("k", ["1"])
        await notebook.until(lambda: len(notebook.messages) == 1)
        await asyncio.sleep(0.2)
        await subscriber.break_stream()
        await notebook.until(lambda: len(notebook.messages) >= 2)
        assert set(notebook.texts("k")) == {"1"}


async def test_two_client_ids_are_two_subscribers(service: Service, vantage: Vantage) -> None:
    async with service.context(vantage) as context:
        one, other = Notebook(), Notebook()
        await context.subscribe(one, "one")
        await context.subscribe(other, "other")
        for n in range(30):
            await context.publish(f"k{n}", ["1", "2"])
        await Notebook.all_until((one, other), lambda: len(one.messages) + len(other.messages) >= 60)
        assert {session.subscriber for session in one.sessions} == {"one"}
        assert {session.subscriber for session in other.sessions} == {"other"}
        assert {session.name for session in one.sessions}.isdisjoint(session.name for session in other.sessions)
        for n in range(30):
            assert sorted([one.texts(f"k{n}"), other.texts(f"k{n}")]) in ([[], ["1", "2"]], [["1"], ["2"]])


@pytest.mark.usefixtures("refused_late")
async def test_a_missing_subscription_is_not_there(service: Service, vantage: Vantage) -> None:
    async with service.context(vantage) as context:
        notebook = Notebook()
        subscriber = context.broker.subscriber(f"{PROJECT}/subscriptions/nowhere", "one", FlowControlSettings(), 10)
        with pytest.raises(NotThere):
            await subscriber.start(notebook)
        assert len(notebook.closings) == len(notebook.sessions)


async def test_a_deleted_subscription_closes_the_session(service: Service, vantage: Vantage) -> None:
    async with service.context(vantage) as context:
        notebook = Notebook()
        await context.subscribe(notebook)
        assert await context.broker.admin.delete(context.subscription, LABELS)
        await notebook.until(lambda: bool(notebook.closings))


async def test_nobody_answers(vantage: Vantage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prober.brokers.subscriber.OPEN_TIMEOUT_S", 0.5)
    async with dead_server() as address:
        broker = await connect(Endpoint(address, secure=False), vantage)
        notebook = Notebook()
        with pytest.raises(BrokerUnavailable, match="no connection within"):
            await broker.subscriber(f"{PROJECT}/subscriptions/any", "one", FlowControlSettings(), 10).start(notebook)
        await broker.close()
        assert notebook.reported == []


async def test_a_cancelled_start_leaves_nothing_behind(service: Service, vantage: Vantage) -> None:
    async with service.context(vantage) as context:
        for delay_s in (0, 0.01, 0.05, 0.2):
            notebook = Notebook()
            starting = asyncio.create_task(context.subscribe(notebook))
            await asyncio.sleep(delay_s)
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
            await context.broker.subscriber(context.subscription, "unused", FlowControlSettings(), 10).close()
