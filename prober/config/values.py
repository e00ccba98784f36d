"""Types of configuration values: how each is written, parsed and shown; and the base class of a section.

Every reader accepts its own output, so that a shown configuration can be read again. Readers raise ValueError with the correction, and
never show a possible secret.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, InstanceOf, PlainSerializer, SecretStr

from prober.brokers.base import Vantage
from prober.brokers.endpoint import parse_endpoint
from prober.config.cron import Cron, parse_cron
from prober.durations import read_duration, write_duration
from prober.errors import ConfigError


class Section(BaseModel):
    """Base of sections: frozen; an unknown key is an error; values never appear in pydantic's own messages."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, use_attribute_docstrings=True, validate_by_name=True
    )


DEFAULT_PROJECT: Final = "ordering-prober"
DEFAULT_ENVIRONMENT: Final = "test"
EMBEDDED: Final = "embedded"
NAME_LENGTH_MAX: Final = 63

_BINARY_SIZES: Final = {"TiB": 2**40, "GiB": 2**30, "MiB": 2**20, "KiB": 2**10}
_SIZES: Final = {**_BINARY_SIZES, "TB": 10**12, "GB": 10**9, "MB": 10**6, "kB": 10**3, "B": 1}
_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?(TiB|GiB|MiB|KiB|TB|GB|MB|kB|B)")
_SIZE_ALMOST = re.compile(r"(\d+(?:\.\d+)?) ?([tgmkTGMK])([iI]?)[bB]?")
_BARE = re.compile(r"\d+(?:\.\d+)?")
_SQLITE_WITHOUT_FILE = re.compile(r"sqlite(\+\w+)?:(?!///[^:?])")
_PERCENT = re.compile(r"(\d+(?:\.\d+)?) ?%")
_MASK: Final = "**********"


@dataclass(frozen=True, slots=True)
class Written:
    """Notation of a type, for the reference page."""

    how: str


def needs_unit(unit: str) -> BeforeValidator:
    """Refuse a bare number that hardly means seconds.

    An example is `30` for a retention. `unit` is the likely unit.
    """

    def check(value: object) -> object:
        text = str(value).strip()
        if not isinstance(value, bool) and _BARE.fullmatch(text) and float(text):
            raise ValueError(f"{text} what? write {text}{unit}, or another of the units d, h, m, s and ms")
        return value

    return BeforeValidator(check)


def at_least(least: timedelta, why: str) -> AfterValidator:
    """Refuse a shorter duration, with the reason."""

    def check(value: timedelta) -> timedelta:
        if value < least:
            raise ValueError(f"{write_duration(value)} is too short: write {write_duration(least)} or more, {why}")
        return value

    return AfterValidator(check)


def _not_zero(value: timedelta) -> timedelta:
    if not value:
        raise ValueError("must be longer than 0")
    return value


def read_size(value: object) -> int:
    """Return the bytes of `10GiB`, `512MB` or a whole number. Raises ValueError for anything else."""
    text = str(value).strip() if isinstance(value, int | str) and not isinstance(value, bool) else ""
    if found := _SIZE.fullmatch(text):
        return round(float(found[1]) * _SIZES[found[2]])
    if re.fullmatch(r"-?\d{1,18}", text):
        return int(text)
    raise ValueError(f"{value!r} is not a size: {_close_size(text)}write it like 10GiB, 512MB, 4kB, or as a number of bytes")


def _close_size(text: str) -> str:
    """Return the probable meaning of a size with a wrong unit; empty if there is none.

    It is the first part of a message.
    """
    found = _SIZE_ALMOST.fullmatch(text)
    if found is None:
        return ""
    number, prefix, binary = found[1], found[2].upper(), bool(found[3])
    unit = f"{prefix}iB" if binary else f"{'k' if prefix == 'K' else prefix}B"
    return f"did you mean {number}{unit}? "


def write_size(value: int) -> str | int:
    """Return a size in the largest binary unit that divides it."""
    return next((f"{value // size}{unit}" for unit, size in _BINARY_SIZES.items() if value and value % size == 0), value)


def read_ratio(value: object) -> object:
    """Return the share 0.999 of `99.9%`. Numbers pass unchanged: pydantic validates them. Raises ValueError for other text."""
    if not isinstance(value, str):
        return value
    if found := _PERCENT.fullmatch(value.strip()):
        # Through the decimal places, so that 99.9% is the float 0.999.
        return round(float(found[1]) / 100, len(found[1]) + 2)
    if _BARE.fullmatch(value.strip()):
        return float(value)
    raise ValueError(f"{value!r} is not a share: write 99.9% or 0.999")


def _attainable(value: float) -> float:
    if not 0.0 < value < 1.0:
        raise ValueError(f"must be more than 0 and less than 1, not {value:g}: write 99.9% or 0.999")
    return value


def name_of_host(host: str) -> str:
    """Return a host name in the form for names of topics and labels: small letters, digits, hyphens."""
    return re.sub("[^a-z0-9]+", "-", host.lower()).strip("-")[:NAME_LENGTH_MAX].rstrip("-") or "prober"


def _cron(value: object) -> object:
    return parse_cron(value) if isinstance(value, str) else value


def _fault(value: str) -> str:
    # Here and not above: who configures no fault, such as the API in a process of its own, needs nothing of the server.
    from prober.embedded.faults import FaultError, parse_fault

    try:
        return str(parse_fault(value))
    except FaultError as error:
        raise ValueError(str(error)) from None


def _lasting(value: object) -> object:
    """Refuse the external vantage: only `check` has a program for it."""
    if value not in (Vantage.WIRE, Vantage.LIBRARY):
        raise ValueError(f"must be 'wire' or 'library', not {value!r}")
    return value


def _endpoint(value: str) -> str:
    text = value.strip()
    if text != EMBEDDED:
        try:
            parse_endpoint(text)
        except ConfigError as error:
            raise ValueError(f"{error}; or embedded") from None
    return text


def _without_credentials(value: str) -> str:
    if "@" in urlsplit(value).netloc:
        raise ValueError("must not hold a user or password; put them into the environment of the client library")
    return value


def _host(value: str) -> str:
    if not value or "/" in value or value.count(":") == 1:
        raise ValueError(
            f"{value!r} must be an address or a name alone, such as 127.0.0.1 or 0.0.0.0; the port has a key of its own"
        )
    return value


def _http(value: str) -> str:
    if urlsplit(value).scheme not in {"http", "https"} or not urlsplit(value).hostname:
        raise ValueError("must be a URL that begins with http:// or https://")
    return _without_credentials(value)


def _folder(value: str) -> str:
    scheme = urlsplit(value).scheme
    if not value or (scheme and scheme not in {"gs", "s3", "hdfs", "file"}):
        raise ValueError("must be a path, or a URI that begins with gs://, s3:// or hdfs://")
    if scheme in {"gs", "s3"} and not urlsplit(value).netloc:
        raise ValueError(f"{value!r} names no bucket: write {scheme}://BUCKET/FOLDER")
    return _without_credentials(value)


def _database(value: SecretStr) -> SecretStr:
    if urlsplit(value.get_secret_value()).scheme == "postgres":
        raise ValueError("begins with postgres://; write postgresql://")
    if urlsplit(value.get_secret_value()).scheme.partition("+")[0] not in {"sqlite", "postgresql"}:
        raise ValueError("must be a database URL that begins with sqlite:// or postgresql://")
    if _SQLITE_WITHOUT_FILE.match(value.get_secret_value()):
        raise ValueError("names no file: write sqlite:///FILE with three slashes, four if the path is absolute")
    return value


def mask_password(url: SecretStr) -> str:
    """Return a URL with a masked password."""
    text = url.get_secret_value()
    password = urlsplit(text).password
    return text if password is None else text.replace(f":{password}@", f":{_MASK}@", 1)


def named_like(expression: str, what: str) -> AfterValidator:
    """Refuse text that the expression does not match as a whole; `what` states the problem and the correction."""
    compiled = re.compile(expression)

    def check(value: str) -> str:
        if not compiled.fullmatch(value):
            raise ValueError(f"{value!r} {what}")
        return value

    return AfterValidator(check)


Duration = Annotated[
    timedelta,
    BeforeValidator(read_duration),
    PlainSerializer(write_duration, when_used="json"),
    Written("duration"),
]
Positive = Annotated[Duration, AfterValidator(_not_zero)]
_WITH_UNIT: Final = Written("duration with unit")
Days = Annotated[Positive, needs_unit("d"), _WITH_UNIT]
"""A duration of days; for this and the next two types a bare number is refused instead of read as seconds."""
Hours = Annotated[Positive, needs_unit("h"), _WITH_UNIT]
Milliseconds = Annotated[Positive, needs_unit("ms"), _WITH_UNIT]
Size = Annotated[int, BeforeValidator(read_size), PlainSerializer(write_size, when_used="json"), Written("bytes")]
Share = Annotated[float, BeforeValidator(read_ratio), AfterValidator(_attainable), Written("share")]
Cronline = Annotated[
    InstanceOf[Cron],
    BeforeValidator(_cron),
    PlainSerializer(str, when_used="json"),
    Written("crontab line"),
]
FaultSpec = Annotated[str, AfterValidator(_fault), Written("`NAME:p=0.1,count=3`; see `ordering-prober faults`")]
EndpointText = Annotated[
    str, AfterValidator(_endpoint), Written("`embedded`, `global`, a region such as `europe-west1`, or `HOST:PORT`")
]
LastingVantage = Annotated[Vantage, BeforeValidator(_lasting), Written("`wire`, `library`")]
"""Vantage of a service; the external vantage is for `check` only."""
DnsLabel = Annotated[
    str,
    named_like("[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", "is not a name: write small letters, digits and hyphens, at most 63"),
    Written("name"),
]
ObjectiveName = Annotated[
    str,
    named_like("[a-z][a-z0-9]*(_[a-z0-9]+)*", "is not a name of an objective: write small letters, digits and single underscores"),
    Written("name with underscores"),
]
Project = Annotated[
    str,
    named_like("[a-z0-9][a-z0-9.:-]{0,98}[a-z0-9]", "is not a project id: write 2 to 100 small letters, digits and hyphens"),
    Written("project id"),
]
Word = Annotated[
    str,
    named_like("[A-Za-z0-9][A-Za-z0-9._-]{0,62}", "must be one word of at most 63 letters, digits, dots and hyphens"),
    Written("word"),
]
LabelName = Annotated[str, named_like("(?!__)[a-zA-Z_][a-zA-Z0-9_]*", "is not a label name: write letters, digits and underscores")]
Host = Annotated[str, AfterValidator(_host)]
HttpUrl = Annotated[str, AfterValidator(_http), Written("URL")]
Email = Annotated[
    str, named_like(r"[^@\s]+@[^@\s]+\.[^@\s]+", "is not the e-mail address of a service account"), Written("e-mail address")
]
Folder = Annotated[str, AfterValidator(_folder), Written("path or URI")]
DatabaseUrl = Annotated[
    SecretStr,
    AfterValidator(_database),
    PlainSerializer(mask_password, when_used="json"),
    Written("`sqlite:///FILE` or `postgresql://USER:PASSWORD@HOST/NAME`"),
]
Port = Annotated[int, Written("port")]
