"""The public HTTP rules of Pub/Sub: method by verb and path, and the request fields in the path.

The rules come from the REST transports of google-cloud-pubsub, which are generated from the `google.api.http` annotations of
google.pubsub.v1. The message classes of that package carry no annotations.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from google.pubsub_v1.services.publisher.transports import rest_base as publisher
from google.pubsub_v1.services.schema_service.transports import rest_base as schemas
from google.pubsub_v1.services.subscriber.transports import rest_base as subscriber

_TRANSPORTS: Final = (
    publisher._BasePublisherRestTransport,
    subscriber._BaseSubscriberRestTransport,
    schemas._BaseSchemaServiceRestTransport,
)
_VARIABLE: Final = re.compile(r"\{([^=}]+)=([^}]+)\}")  # {topic.name=projects/*/topics/*}


@dataclass(frozen=True, slots=True)
class HttpRule:
    """One binding of google.api.HttpRule.

    body  request field in the body; "*": the whole request; "": no body.
    """

    method: str
    verb: str
    path: re.Pattern[str]
    fields: tuple[str, ...]
    body: str


def find_rule(verb: str, path: str) -> tuple[HttpRule, Mapping[str, str]] | None:
    """Return the rule for a verb and a decoded path, and the request fields in the path (`topic.name`, ...); None: no rule."""
    for rule in HTTP_RULES:
        found = rule.path.fullmatch(path) if rule.verb == verb else None
        if found is not None:
            return rule, dict(zip(rule.fields, found.groups(), strict=True))
    return None


def _rules() -> Iterator[HttpRule]:
    for transport in _TRANSPORTS:
        for name, method in vars(transport).items():
            if hasattr(method, "_get_http_options"):  # StreamingPull has none
                for option in method._get_http_options():
                    path, fields = _template(option["uri"])
                    yield HttpRule(name.removeprefix("_Base"), option["method"].upper(), path, fields, option.get("body", ""))


def _template(uri: str) -> tuple[re.Pattern[str], tuple[str, ...]]:
    """Return a path template as a pattern with one group per field. `*` is one segment."""
    literals, fields, values = (_VARIABLE.split(uri)[start::3] for start in range(3))
    groups = [f"({re.escape(value).replace(re.escape('*'), '[^/]+')})" for value in values]
    pattern = "".join(re.escape(literal) + group for literal, group in zip(literals, [*groups, ""], strict=True))
    return re.compile(pattern), tuple(fields)


HTTP_RULES: Final = tuple(sorted(_rules(), key=lambda rule: ":" not in rule.path.pattern))
"""Rules with a custom verb such as `:publish` first: a segment of the other rules may contain a colon too."""
