"""The section `observe`: a stream that others publish, and what of its messages says their order."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from prober.brokers.fields import FieldPath, parse_path
from prober.config.values import Duration, Positive, Section, Share, Written
from prober.errors import ConfigError


def _path(text: str) -> str:
    try:
        return str(parse_path(text))
    except ConfigError as error:
        raise ValueError(str(error)) from None


Path = Annotated[str, AfterValidator(_path), Written("`ordering_key`, `attributes.NAME` or `json.FIELD.FIELD`")]


class KeysKept(StrEnum):
    """In which form ordering keys and groups are kept, since they may name people."""

    PLAIN = "plain"
    HASHED = "hashed"


class Observe(Section):
    """A stream that others publish. It is read through a subscription of the prober's own; theirs are left alone."""

    topic: Annotated[str, Field(pattern=r"^(projects/[^/]+/topics/)?[A-Za-z][A-Za-z0-9._~+%-]{2,254}$")]
    """The topic: its name, or `projects/PROJECT/topics/NAME`."""
    group: Path = "ordering_key"
    """What messages are numbered by."""
    sequence: Path | None = None
    """Their number within the group. Without it only redelivery, age and load are observed."""
    initial: int | None = None
    """The first number of every group; by default the first that comes."""
    maximum: int | None = None
    """The last number of every group; higher ones are counted and not judged."""
    duration: Positive = timedelta(minutes=1)
    """For how long a run observes."""
    wait_timeout: Positive = timedelta(seconds=10)
    """How long a missing number is waited for before it is given up."""
    idle_timeout: Positive = timedelta(minutes=15)
    """After how long without a message a group begins anew with the number that comes next."""
    publish_time_error: Duration | None = None
    """How far publish times may be from the order in which the service stored the messages of a key: the longest that a publish may hang.
    Only if all publishers of the topic publish in one region; without it the service is never certainly to blame for a wrong order. By
    default 1s for an address that is not Google's."""
    share: Annotated[Share, Field(gt=0, lt=1)] | None = None
    """The share of the ordering keys that is observed, chosen by their hash; by default all."""
    keys_max: Annotated[int, Field(ge=1_000)] = 100_000
    """How many ordering keys a run remembers. Beyond it those seen least recently are forgotten, which is counted; what comes on keys
    that are new from then on proves less. 100,000 take about 200 MB."""
    keys_kept: KeysKept = KeysKept.PLAIN
    """`hashed`: ordering keys and groups are hashed before anything is recorded."""
    unordered: bool = False
    """Also read a second subscription of the prober's own without ordering, and measure what order it has."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.sequence is None and (self.initial is not None or self.maximum is not None or self.unordered):
            raise ValueError("write sequence too: without it there is nothing to count from or to measure")
        if self.initial is not None and self.maximum is not None and self.maximum < self.initial:
            raise ValueError("maximum must not be below initial")
        return self

    @property
    def group_path(self) -> FieldPath:
        """The path of the group."""
        return parse_path(self.group)

    @property
    def sequence_path(self) -> FieldPath | None:
        """The path of the number, if there is one."""
        return None if self.sequence is None else parse_path(self.sequence)

    def topic_in(self, project: str) -> str:
        """The full name of the topic."""
        return self.topic if "/" in self.topic else f"projects/{project}/topics/{self.topic}"
