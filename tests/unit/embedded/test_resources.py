"""Topics, subscriptions, snapshots: names, limits, updates, lists; seek; retention and expiration."""

from __future__ import annotations

import pytest

from prober.embedded import errors, resources
from prober.embedded.messages import PublishDraft, check_drafts
from prober.embedded.state import State
from tests.unit.embedded.notation import SUBSCRIPTION, TOPIC, Play, ordered

SNAPSHOT = "projects/p/snapshots/snap"


def refused(draft: PublishDraft) -> str:
    with pytest.raises(errors.ServiceError) as caught:
        check_drafts([draft])
    return str(caught.value)


def test_the_limits_of_a_message() -> None:
    fits = PublishDraft(b"x", {"k" * 256: "v" * 1024, **{f"a{n}": "" for n in range(99)}}, "k" * 1024)
    check_drafts([fits])
    assert "ordering_key_size" in refused(PublishDraft(b"x", {}, "k" * 1025))
    assert "ordering_key_size" in refused(PublishDraft(b"x", {}, "é" * 513))
    assert "num_attributes" in refused(PublishDraft(b"x", {f"a{n}": "" for n in range(101)}))
    assert "attribute_key_size" in refused(PublishDraft(b"x", {"k" * 257: ""}))
    assert "attribute_value_size" in refused(PublishDraft(b"x", {"k": "v" * 1025}))
    assert "must not begin with 'goog'" in refused(PublishDraft(b"x", {"googclient": ""}))
    assert "must be non-empty" in refused(PublishDraft(b"x", {"": "v"}))
    assert "message_size" in refused(PublishDraft(b"x" * 10_000_001))
    assert "is empty" in refused(PublishDraft(b"", {}, "k"))
    check_drafts([PublishDraft(b"", {"a": ""})])
    check_drafts([PublishDraft(b"x", {"googclient_traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"})])


def test_the_limits_of_a_request() -> None:
    check_drafts([PublishDraft(b"x")] * 1000)
    with pytest.raises(errors.ServiceError, match="You passed 1001 in the request, but the maximum value is 1000"):
        check_drafts([PublishDraft(b"x")] * 1001)
    with pytest.raises(errors.ServiceError, match="You passed 0 in the request, but the minimum value is 1"):
        check_drafts([])
    with pytest.raises(errors.ServiceError, match="request_size"):
        check_drafts([PublishDraft(b"x" * 6_000_000)] * 2)
    with pytest.raises(errors.ServiceError, match="FAILED_PRECONDITION: In a single publish request"):
        check_drafts([PublishDraft(b"x", {}, "a"), PublishDraft(b"x", {}, "b")])
    with pytest.raises(errors.ServiceError, match="FAILED_PRECONDITION"):
        check_drafts([PublishDraft(b"x", {}, "a"), PublishDraft(b"x")])


@pytest.mark.parametrize(
    "bad", ["top", "projects/p/topics/1a", "projects/p/topics/ab", "projects/p/topics/googt", "projects/p/subs/top"]
)
def test_names(bad: str) -> None:
    with pytest.raises(errors.ServiceError, match="Invalid resource name given"):
        State().registry.create_topic(resources.Topic(bad))


@pytest.mark.parametrize("good", ["projects/my-p1/topics/a.b_c~d+e%f-1", "projects/p/topics/" + "a" * 255])
def test_names_that_are_fine(good: str) -> None:
    assert State().registry.create_topic(resources.Topic(good)).name == good


def test_what_exists_and_what_does_not() -> None:
    registry = Play().state.registry
    with pytest.raises(errors.ServiceError, match=r"ALREADY_EXISTS: Resource already exists in the project \(resource=top\)\."):
        registry.create_topic(resources.Topic(TOPIC))
    with pytest.raises(errors.ServiceError, match=r"ALREADY_EXISTS.*resource=sub"):
        registry.create_subscription(ordered(), 0.0)
    with pytest.raises(errors.ServiceError, match=r"NOT_FOUND: Resource not found \(resource=other\)\."):
        registry.topic("projects/p/topics/other")
    with pytest.raises(errors.ServiceError, match="NOT_FOUND"):
        registry.create_subscription(resources.Subscription("projects/p/subscriptions/new", "projects/p/topics/other"), 0.0)
    with pytest.raises(errors.ServiceError, match="NOT_FOUND"):
        Play().state.publish("projects/p/topics/other", [PublishDraft(b"x")], 0.0)


@pytest.mark.parametrize(
    "changes",
    [
        {"ack_deadline_s": 9},
        {"ack_deadline_s": 601},
        {"message_retention_s": 599.0},
        {"message_retention_s": 32 * 86_400.0},
        {"expiration_s": 3_600.0},
        {"labels": {"Upper": "x"}},
        {"dead_letter_policy": resources.DeadLetterPolicy(TOPIC, 4)},
        {"dead_letter_policy": resources.DeadLetterPolicy(TOPIC, 101)},
        {"retry_policy": resources.RetryPolicy(20.0, 10.0)},
        {"retry_policy": resources.RetryPolicy(0.0, 601.0)},
        {"push_config": resources.PushConfig("ftp://x")},
        {"push_config": resources.PushConfig("http://x"), "enable_exactly_once_delivery": True},
        {"filter": "nonsense"},
    ],
)
def test_settings_out_of_bounds(changes: dict[str, object]) -> None:
    with pytest.raises(errors.ServiceError, match="INVALID_ARGUMENT"):
        Play(ordered(**changes))


def test_updates() -> None:
    registry = Play().state.registry
    wanted = ordered(labels={"a": "b"}, ack_deadline_s=20)
    assert registry.update_subscription(wanted, ["labels", "ack_deadline_seconds"], 0.0) == wanted
    registry.detach_subscription(SUBSCRIPTION, 0.0)
    assert registry.update_subscription(wanted, ["labels"], 0.0).detached
    with pytest.raises(errors.ServiceError, match="'enable_message_ordering' field in the Subscription is immutable"):
        registry.update_subscription(wanted, ["enable_message_ordering"], 0.0)
    with pytest.raises(errors.ServiceError, match="'ackDeadline' is not a known Subscription field"):
        registry.update_subscription(wanted, ["ackDeadline"], 0.0)
    with pytest.raises(errors.ServiceError, match="must contain a non-empty paths list"):
        registry.update_subscription(wanted, [], 0.0)
    assert registry.update_topic(resources.Topic(TOPIC, {"x": "y"}), ["labels"]).labels == {"x": "y"}


def test_pages() -> None:
    registry = Play().state.registry
    names = [f"projects/p/topics/t{n:02}" for n in range(5)]
    first, token = registry.page(names, 2, "")
    second, _ = registry.page(names[2:], 2, token)  # what a page showed may be deleted before the next one
    assert (first, second) == (names[:2], names[2:4])
    assert registry.page(names, 0, "") == (names, "")
    assert registry.page(names, 5, "") == (names, "")
    assert registry.in_project([*names, "projects/q/topics/t"], "projects/p") == names


def test_a_deleted_topic_leaves_its_subscriptions_with_what_they_have() -> None:
    play = Play()
    play("+k:1")
    play.state.registry.delete_topic(TOPIC)
    assert play("open:A") == "A<k1"
    assert play.state.registry.subscription(SUBSCRIPTION).settings.topic == "_deleted-topic_"


def test_ids_are_unique_and_ascending_and_start_where_asked() -> None:
    state = State(first_serial=1000)
    state.registry.create_topic(resources.Topic(TOPIC))
    ids = state.publish(TOPIC, [PublishDraft(b"x")] * 3, 0.0) + state.publish(TOPIC, [PublishDraft(b"x")], 0.0)
    assert ids == sorted(set(ids))
    assert int(ids[0]) > 1000


def test_a_subscription_gets_what_is_published_after_it_exists() -> None:
    play = Play()
    play("+k:1")
    play.state.registry.delete_subscription(SUBSCRIPTION, 0.0)
    play.state.registry.create_subscription(ordered(), 0.0)
    assert play("open:A +k:2") == "A<k2"


def test_seek_back_needs_retention() -> None:
    play = Play()
    play("open:A @1 +k:1 @2 +k:2 ack:k1,k2")
    play.state.registry.seek_to_time(SUBSCRIPTION, 0.0, 3.0)
    assert play("@3") == ""
    play.state.registry.update_subscription(ordered(retain_acked_messages=True), ["retain_acked_messages"], 3.0)
    play("@4 +k:3 @5 +k:4 ack:k3 ack:k4")
    play.state.registry.seek_to_time(SUBSCRIPTION, 5.0, 6.0)
    assert play("@6") == "A<k4"
    play.state.registry.seek_to_time(SUBSCRIPTION, 0.0, 7.0)
    assert play("@7") == "A<k3,k4"


def test_seek_forward_acknowledges() -> None:
    play = Play()
    play("@1 +k:1 +k:2 @2 +k:3")
    play.state.registry.seek_to_time(SUBSCRIPTION, 2.0, 3.0)
    assert play("open:A") == "A<k3"


def test_seek_takes_back_what_is_outstanding() -> None:
    play = Play()
    play("open:A/2 @1 +k:1,2,3")
    play.state.registry.seek_to_time(SUBSCRIPTION, 0.0, 2.0)
    assert play("@2") == "A<k1,k2"
    assert play("ack:k1") == "A<k3"


def test_a_topic_that_retains_gives_a_new_subscription_the_past() -> None:
    play = Play()
    play.state.registry.update_topic(resources.Topic(TOPIC, {}, 600.0), ["message_retention_duration"])
    play("@1 +k:1 @2 +k:2")
    play.state.registry.delete_subscription(SUBSCRIPTION, 2.0)
    play.state.registry.create_subscription(ordered(), 2.0)
    play("open:A")
    play.state.registry.seek_to_time(SUBSCRIPTION, 0.0, 3.0)
    assert play("@3") == "A<k1,k2"
    play("@700 +j:1")
    play.state.registry.seek_to_time(SUBSCRIPTION, 0.0, 700.0)
    assert "j1" in play("@701")


def test_a_snapshot_lives_seven_days_less_the_age_of_its_oldest_message() -> None:
    play = Play()
    play("+k:1 open:A")
    snapshot = play.state.registry.create_snapshot(SNAPSHOT, SUBSCRIPTION, {}, 3600.0)
    assert snapshot.expire_time == pytest.approx(7 * 86_400.0)
    with pytest.raises(errors.ServiceError, match="ALREADY_EXISTS"):
        play.state.registry.create_snapshot(SNAPSHOT, SUBSCRIPTION, {}, 3600.0)
    with pytest.raises(errors.ServiceError, match="FAILED_PRECONDITION"):
        play.state.registry.create_snapshot("projects/p/snapshots/late", SUBSCRIPTION, {}, 7 * 86_400.0 - 60)
    play(f"@{7 * 86_400 + 61}")
    assert play.state.registry.snapshots == {}


def test_messages_expire_with_the_retention() -> None:
    play = Play(ordered(message_retention_s=600.0))
    play("+k:1 @500 +k:2")
    assert play("@601 open:A") == "A<k2"


def test_a_subscription_that_nobody_uses_expires() -> None:
    play = Play(ordered(expiration_s=86_400.0))
    play("@10 @86300")
    assert SUBSCRIPTION in play.state.registry.subscriptions
    play("@86400")
    assert SUBSCRIPTION not in play.state.registry.subscriptions


def test_a_subscription_with_a_stream_does_not_expire() -> None:
    play = Play(ordered(expiration_s=86_400.0))
    play("open:A @86300 @86400 @100000")
    assert SUBSCRIPTION in play.state.registry.subscriptions


@pytest.mark.parametrize("labels", [{"équipe": "zürich"}, {"チーム": "東京_1"}, {"a": ""}, {"a" * 63: "0" * 63}])
def test_labels_may_be_in_any_script(labels: dict[str, str]) -> None:
    assert State().registry.create_topic(resources.Topic(TOPIC, labels)).labels == labels


@pytest.mark.parametrize(
    "labels", [{"": "a"}, {"1a": "a"}, {"Équipe": "a"}, {"a": "A"}, {"a": "a b"}, {"a" * 64: "a"}, {"a": "é" * 64}]
)
def test_labels_that_are_refused(labels: dict[str, str]) -> None:
    with pytest.raises(errors.ServiceError, match="labels"):
        State().registry.create_topic(resources.Topic(TOPIC, labels))
