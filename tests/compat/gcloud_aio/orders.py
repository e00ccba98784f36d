"""Publish 500 messages with keys by gcloud-aio-pubsub, and pull them until all arrived; prints the numbers of each key as JSON."""

import asyncio
import json
from collections import defaultdict

from gcloud.aio.pubsub import PublisherClient, PubsubMessage, SubscriberClient  # type: ignore[import-not-found]

MESSAGES = 500
KEYS = 10
BATCH = 100
TOPIC, SUBSCRIPTION = "projects/test/topics/aio", "projects/test/subscriptions/aio"


async def publish() -> None:
    """The topic, the subscription, the messages in batches of one key."""
    async with PublisherClient() as publisher, SubscriberClient() as subscriber:
        await publisher.create_topic(TOPIC)
        await subscriber.create_subscription(SUBSCRIPTION, TOPIC, {"enableMessageOrdering": True})
        for first in range(0, MESSAGES, BATCH):
            for key in range(KEYS):
                numbers = range(first + key, first + BATCH, KEYS)
                messages = [PubsubMessage(str(number), ordering_key=f"k{key}", key=f"k{key}") for number in numbers]
                await publisher.publish(TOPIC, messages)


async def pull() -> dict[str, list[int]]:
    """The numbers of each key in the order in which they arrived."""
    received: dict[str, list[int]] = defaultdict(list)
    async with SubscriberClient() as subscriber:
        while sum(map(len, received.values())) < MESSAGES:
            messages = await subscriber.pull(SUBSCRIPTION, max_messages=30)
            for message in messages:
                received[message.attributes["key"]].append(int(message.data))
            if messages:
                await subscriber.acknowledge(SUBSCRIPTION, [message.ack_id for message in messages])
    return received


async def main() -> None:
    """Publish, then pull."""
    await publish()
    print(json.dumps(await pull()))


asyncio.run(main())
