"""Dead letters: the copy that is published to the dead-letter topic (documentation, "Handle message failures").

The copy keeps data, attributes and ordering key, and gets attributes that say where it comes from.
"""

from __future__ import annotations

from typing import Final

from prober.embedded import clock_text
from prober.embedded.feed import Feed
from prober.embedded.lanes import Entry
from prober.embedded.messages import Draft

_PREFIX: Final = "CloudPubSubDeadLetterSource"


def dead_letter(feed: Feed, entry: Entry) -> Draft:
    """The message to publish on the dead-letter topic."""
    _, project, _, subscription = feed.name.split("/")
    attributes = {
        **entry.message.attributes,
        f"{_PREFIX}DeliveryCount": str(entry.failures),
        f"{_PREFIX}Subscription": subscription,
        f"{_PREFIX}SubscriptionProject": project,
        f"{_PREFIX}TopicPublishTime": clock_text.rfc3339(entry.message.publish_time),
    }
    return Draft(entry.message.data, attributes, entry.message.ordering_key)
