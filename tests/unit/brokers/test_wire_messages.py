from __future__ import annotations

from google.pubsub_v1 import types

from prober.brokers import wire_messages
from prober.brokers.base import FlowControlSettings, Outgoing, Received
from prober.brokers.wire_messages import Sending


def test_a_publish_request() -> None:
    data = wire_messages.publish_request("t", [Outgoing("k", b"1", {"a": "b"}), Outgoing("", b"2")])
    request = types.PublishRequest.deserialize(data)
    assert request.topic == "t"
    assert [(message.ordering_key, message.data, dict(message.attributes)) for message in request.messages] == [
        ("k", b"1", {"a": "b"}),
        ("", b"2", {}),
    ]


def test_a_stream_begins_with_what_is_wanted() -> None:
    request = types.StreamingPullRequest.deserialize(wire_messages.open_request("s", "c", 30, FlowControlSettings(7, 8)))
    assert (request.subscription, request.client_id, request.stream_ack_deadline_seconds) == ("s", "c", 30)
    assert (request.max_outstanding_messages, request.max_outstanding_bytes) == (7, 8)


def sent(sendings: list[Sending]) -> list[tuple[list[str], list[str], list[int]]]:
    requests = [types.StreamingPullRequest.deserialize(data) for data in wire_messages.stream_requests(sendings)]
    return [
        (list(request.ack_ids), list(request.modify_deadline_ack_ids), list(request.modify_deadline_seconds))
        for request in requests
    ]


def test_acknowledgements_and_leases_keep_their_order() -> None:
    sendings = [Sending("1", None), Sending("2", None), Sending("3", 0), Sending("4", 10), Sending("5", None)]
    assert sent(sendings) == [(["1", "2"], [], []), ([], ["3", "4"], [0, 10]), (["5"], [], [])]
    assert sent([]) == []


def test_a_request_does_not_grow_without_bound() -> None:
    sizes = [len(acks) for acks, _, _ in sent([Sending(str(n), None) for n in range(2500)])]
    assert sizes == [1000, 1000, 500]


def test_unary_requests_have_one_kind_and_one_deadline() -> None:
    sendings = [Sending("1", None), Sending("2", 0), Sending("3", 10), Sending("4", 10), Sending("5", None)]
    requests = list(wire_messages.unary_requests("s", sendings))
    assert [is_ack for is_ack, _ in requests] == [True, False, False, True]
    modified = types.ModifyAckDeadlineRequest.deserialize(requests[2][1])
    assert (modified.subscription, list(modified.ack_ids), modified.ack_deadline_seconds) == ("s", ["3", "4"], 10)
    acknowledged = types.AcknowledgeRequest.deserialize(requests[0][1])
    assert (acknowledged.subscription, list(acknowledged.ack_ids)) == ("s", ["1"])


def test_when_a_message_was_stored_is_reported_to_the_nanosecond_and_only_if_the_service_says_so() -> None:
    response = types.PullResponse.pb()()
    said = response.received_messages.add(ack_id="a").message.publish_time
    said.seconds, said.nanos = 1_767_323_045, 123_456_789
    response.received_messages.add(ack_id="b").message.message_id = "7"
    times = [received.publish_time for received in wire_messages.pulled(response.SerializeToString())]
    assert times == [1_767_323_045_123_456_789, None]


def test_what_comes_off_a_stream() -> None:
    response = types.StreamingPullResponse.pb()()
    response.subscription_properties.exactly_once_delivery_enabled = True
    response.acknowledge_confirmation.ack_ids.append("good")
    response.acknowledge_confirmation.invalid_ack_ids.append("invalid")
    response.acknowledge_confirmation.unordered_ack_ids.append("unordered")
    response.acknowledge_confirmation.temporary_failed_ack_ids.append("temporary")
    delivery = response.received_messages.add(ack_id="a", delivery_attempt=3)
    delivery.message.message_id, delivery.message.ordering_key, delivery.message.data = "7", "k", b"x"
    delivery.message.attributes["p"] = "q"
    delivery.message.publish_time.seconds, delivery.message.publish_time.nanos = 1000, 500_000_001
    reply = wire_messages.stream_reply(response.SerializeToString())
    assert list(reply.received) == [Received("7", "a", "k", b"x", {"p": "q"}, 3, 1_000_500_000_001)]
    assert (reply.exactly_once, reply.confirmed, reply.failed) == (True, ("good",), ("invalid", "unordered", "temporary"))
    assert wire_messages.stream_reply(b"") == wire_messages.StreamReply([], False, (), ())
