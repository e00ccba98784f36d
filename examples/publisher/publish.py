"""A publisher that records its publishes, for `ordering-prober observe --record`.

    python examples/publisher/publish.py projects/shop/topics/orders orders.publishes.jsonl

It publishes 100 messages on five ordering keys. With PUBSUB_EMULATOR_HOST it uses an emulator or the embedded server.
"""

from __future__ import annotations

import sys

from google.cloud.pubsub_v1 import PublisherClient
from google.cloud.pubsub_v1.types import PublisherOptions

from prober.client import recorded

MESSAGES = 100
KEYS = 5


def main(topic: str, record: str) -> None:
    """Publishes to a topic that exists, and writes what happened to each publish into the file `record`."""
    client = PublisherClient(publisher_options=PublisherOptions(enable_message_ordering=True))
    publisher = recorded(client, topic, record)
    sent = [
        publisher.publish(topic, f"order {number}".encode(), ordering_key=f"account-{number % KEYS}", seq=str(number))
        for number in range(MESSAGES)
    ]
    confirmed = sum(bool(one.result()) for one in sent)  # before stop, which cancels pending messages with a key
    publisher.stop()
    print(f"{confirmed} of {MESSAGES} messages confirmed; the record is in {record}")


if __name__ == "__main__":
    main(*sys.argv[1:])
