"""Reads Pub/Sub messages with ordering keys in an Apache Beam pipeline, restores their order, and checks their sequence numbers.

Beam gives no order: elements are processed in parallel and shuffled. So the pipeline groups the messages of a key within a window of their
publish time, sorts them by the number that the publisher wrote into an attribute, and writes one JSON object a line: `key`, `number`,
`message_id`, `publish_time`. `ordering-prober export` reads these files (docs/dataflow.md).

    python pipeline.py --subscription projects/PROJECT/subscriptions/NAME --output out --number sequence
    python pipeline.py --file messages.jsonl --output out --number sequence

`--file` reads messages as the pipeline gets them, one JSON object a line: `ordering_key`, `attributes`, `message_id`, `publish_time`
(seconds since 1970). Other options are Beam's, such as `--runner` and `--streaming`.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import apache_beam as beam
from apache_beam.io import fileio
from apache_beam.io.gcp.pubsub import PubsubMessage, ReadFromPubSub
from apache_beam.metrics import Metrics
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.transforms.window import FixedWindows, TimestampedValue
from sequences import Row, in_order

WINDOW_S = 60
NAMESPACE = "sequences"


class Message(NamedTuple):
    """What the pipeline needs of a message. `published_s`: publish time in seconds since 1970."""

    key: str
    attributes: dict[str, str]
    message_id: str
    published_s: float


def of_pubsub(message: PubsubMessage) -> Message:
    """A message as Beam reads it from Pub/Sub: ordering key and publish time are fields beside its attributes."""
    return Message(message.ordering_key or "", message.attributes or {}, message.message_id, message.publish_time.timestamp())


def of_line(line: str) -> Message:
    """A message from a line of a file."""
    fields = json.loads(line)
    return Message(fields["ordering_key"], fields["attributes"], fields["message_id"], fields["publish_time"])


class Numbered(beam.DoFn):
    """Gives each message its key and number; counts and leaves out those that have none."""

    def __init__(self, attribute: str) -> None:
        super().__init__()
        self._attribute = attribute
        self._without = Metrics.counter(NAMESPACE, "without_key_or_number")

    def process(self, message: Message) -> Iterator[Any]:
        """Yields a pair of the key and a row, at the publish time of the message."""
        number = message.attributes.get(self._attribute, "")
        if not message.key or not number.isdecimal():
            self._without.inc()
            return
        row = Row(message.key, int(number), message.message_id, message.published_s)
        yield TimestampedValue((message.key, row), message.published_s)


class InOrder(beam.DoFn):
    """Sorts the rows of a key in a window, counts what the sequence numbers say, and yields all lines as one element.

    One element stays in one piece; two elements may be written in any order.
    """

    def process(self, keyed: tuple[str, Iterable[Row]]) -> Iterator[str]:
        """Yields the lines of a key."""
        rows, seen = in_order(keyed[1])
        for name, count in seen._asdict().items():
            Metrics.counter(NAMESPACE, name).inc(count)
        yield "\n".join(json.dumps(row._asdict()) for row in rows)


def build(messages: beam.PCollection, attribute: str, output: str) -> None:
    """Appends the pipeline to a collection of messages; writes files under the folder `output`."""
    (
        messages
        | "number" >> beam.ParDo(Numbered(attribute))
        | "window" >> beam.WindowInto(FixedWindows(WINDOW_S))
        | "by key" >> beam.GroupByKey()
        | "in order" >> beam.ParDo(InOrder())
        | "write" >> fileio.WriteToFiles(path=output, shards=1, file_naming=fileio.default_file_naming("rows", ".jsonl"))
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the pipeline, and prints what it counted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--subscription", help="a subscription without message ordering")
    source.add_argument("--file", help="a file of messages")
    parser.add_argument("--output", required=True, help="the folder to write to")
    parser.add_argument("--number", default="sequence", help="the attribute that has the number")
    parser.add_argument("--seconds", type=float, default=0.0, help="stop after so long; 0: when everything is read")
    chosen, others = parser.parse_known_args(arguments)
    pipeline = beam.Pipeline(options=PipelineOptions(others, streaming=chosen.subscription is not None))
    if chosen.subscription:
        read = pipeline | ReadFromPubSub(subscription=chosen.subscription, with_attributes=True) | beam.Map(of_pubsub)
    else:
        read = pipeline | beam.io.ReadFromText(chosen.file) | beam.Map(of_line)
    build(read, chosen.number, chosen.output)
    result = pipeline.run()
    if chosen.seconds:  # not every runner takes a duration to wait for
        time.sleep(chosen.seconds)  # noqa: TID251  # an example stands alone
        result.cancel()
    else:
        result.wait_until_finish()
    for counter in result.metrics().query()["counters"]:
        if counter.key.metric.namespace == NAMESPACE:
            print(f"{counter.key.metric.name}: {counter.result}")


if __name__ == "__main__":
    main()
