"""google.pubsub.v1 and google.iam.v1.IAMPolicy over HTTP and JSON, for clients without gRPC: the unary methods of `calls`.

A request is transcoded by its rule (`http_rules`, google.api.HttpRule): path, query and body contain fields of the request message. Field
names in the query and in the body may be those of JSON (`maxMessages`) or of the message (`max_messages`).
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import web
from google.api_core.exceptions import from_grpc_status
from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor
from google.pubsub_v1.services.publisher.transports import rest_base as publisher
from google.pubsub_v1.services.schema_service.transports import rest_base as schemas
from google.pubsub_v1.services.subscriber.transports import rest_base as subscriber

from prober.embedded import errors, protobuf
from prober.embedded.calls import METHODS, Calls

_STOP_GRACE_S: Final = 0.2


class Listener:
    """Server of one application. A request whose client has disconnected is cancelled."""

    def __init__(self, application: web.Application, *, auto_decompress: bool = True) -> None:
        self._runner = web.AppRunner(
            application,
            access_log=None,
            handler_cancellation=True,
            shutdown_timeout=_STOP_GRACE_S,
            auto_decompress=auto_decompress,
        )

    async def start(self, host: str, port: int) -> str:
        """Listen; return the address. Port 0 takes a free port. Raises OSError if the port is in use."""
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, host, port).start()
        except OSError as error:
            why = os.strerror(error.errno) if error.errno else str(error)
            raise OSError(f"cannot listen on {join_address(host, port)}: {why}") from error
        return join_address(*self._runner.addresses[0][:2])

    async def stop(self) -> None:
        """Stop listening; open requests get a short time to end."""
        await self._runner.cleanup()


def join_address(host: str, port: int) -> str:
    """Return HOST:PORT, with an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


BODY_BYTES_MAX: Final = 16 << 20  # above the service's own limit in base64, so that it is the service that refuses
_GZIP_OR_ZLIB: Final = zlib.MAX_WBITS | 32
_BASE64: Final = re.compile(r"([A-Za-z0-9+/]*|[A-Za-z0-9_-]*)={0,2}")
_INTEGER_ENUMS: Final = "enum-encoding=int"

# Query parameters of every Google API (https://cloud.google.com/apis/docs/system-parameters); of these only `$alt` has an effect here.
_SYSTEM_PARAMETERS: Final = frozenset(
    {
        "$.xgafv",
        "$alt",
        "$fields",
        "$httpMethod",
        "$key",
        "$prettyPrint",
        "$userProject",
        "access_token",
        "alt",
        "callback",
        "fields",
        "key",
        "oauth_token",
        "prettyPrint",
        "quotaUser",
        "uploadType",
        "upload_protocol",
    }
)


class RestEndpoint(Listener):
    """Server of REST requests for `calls`. Errors have the form {"error": {"code", "message", "status", "details"}}."""

    def __init__(self, calls: Calls) -> None:
        application = web.Application(client_max_size=BODY_BYTES_MAX)
        application.router.add_route("*", "/{path:.*}", self._handle)
        super().__init__(application, auto_decompress=False)  # aiohttp answers a wrong encoding with a traceback
        self._calls = calls

    async def _handle(self, request: web.Request) -> web.Response:
        try:
            rule, fields = _rule(request)
            message = METHODS[rule.method]()
            _fill(message, rule, await _body(request), fields, request.query)
            response = await self._calls.call(rule.method, message)
        except errors.ServiceError as error:
            return _error(error)
        integers = _INTEGER_ENUMS in request.query.get("$alt", "")
        return web.json_response(json_format.MessageToDict(response, use_integers_for_enums=integers))


def _rule(request: web.Request) -> tuple[HttpRule, Mapping[str, str]]:
    found = find_rule(request.method, request.path)
    if found is None:
        raise errors.ServiceError(errors.Code.NOT_FOUND, f"No method of Pub/Sub is {request.method} {request.path}.")
    return found


async def _body(request: web.Request) -> bytes:
    try:
        body = await request.read()
    except web.HTTPRequestEntityTooLarge:
        raise _too_large() from None
    encoding = request.headers.get("Content-Encoding", "identity")
    return body if encoding == "identity" else _decompressed(body, encoding)


def _decompressed(body: bytes, encoding: str) -> bytes:
    if encoding not in ("gzip", "deflate"):
        raise _malformed(f"The Content-Encoding {encoding} is not supported; gzip and deflate are.")
    decompressor = zlib.decompressobj(_GZIP_OR_ZLIB)
    try:
        found = decompressor.decompress(body, BODY_BYTES_MAX + 1)
    except zlib.error as error:
        raise _malformed(f"The payload is not {encoding}.") from error
    if len(found) > BODY_BYTES_MAX:
        raise _too_large()
    if not decompressor.eof:
        raise _malformed(f"The payload ends before its {encoding} data does.")
    return found


def _fill(message: Any, rule: HttpRule, body: bytes, fields: Mapping[str, str], query: Any) -> None:
    """Fill a request message from the body, the query and the path; the path takes precedence."""
    try:
        if rule.body and body:
            document = json.loads(body)
            if not isinstance(document, dict):
                raise ValueError("The body must be an object.")
            given = document if rule.body == "*" else {rule.body: document}
            json_format.ParseDict(given, message)
            _check_base64(message.DESCRIPTOR, given)
        for name in dict.fromkeys(query):
            if name not in _SYSTEM_PARAMETERS:
                json_format.ParseDict(_nested(message.DESCRIPTOR, name, query.getall(name)), message)
        for name, value in fields.items():
            json_format.ParseDict(_nested(message.DESCRIPTOR, name, [value]), message)
    except (ValueError, RecursionError, SystemError, json_format.ParseError) as error:  # SystemError: half a character as a name
        raise _malformed(str(error)) from error


def _check_base64(descriptor: Any, document: Mapping[str, Any]) -> None:
    """Check that each field of bytes is base64, standard or for URLs; json_format skips other characters. Raises ValueError."""
    for field in descriptor.fields:
        for name in {field.name, field.json_name} & document.keys():
            values = document[name] if isinstance(document[name], list) else [document[name]]
            for value in values:
                if field.type == FieldDescriptor.TYPE_BYTES and value is not None and not _BASE64.fullmatch(value):
                    raise ValueError(f"{field.full_name} is not base64.")
                if field.message_type is not None and isinstance(value, dict):
                    _check_base64(field.message_type, value)


def _nested(descriptor: Any, name: str, texts: Sequence[str]) -> Any:
    """Return a field of a path or a query, such as `topic.name`, as JSON of the message with this descriptor."""
    own, _, rest = name.partition(".")
    field = next((one for one in descriptor.fields if own in (one.name, one.json_name)), None)
    if field is None or (rest and field.message_type is None):
        raise ValueError(f"{descriptor.full_name} has no field {name}.")
    if rest:
        return {own: _nested(field.message_type, rest, texts)}
    values = [_value(field, text) for text in texts]
    return {own: values if field.is_repeated else values[-1]}


def _value(field: Any, text: str) -> object:
    """Return a text as a value in JSON, where numbers, enums, durations, times and masks may be strings too."""
    if field.type == FieldDescriptor.TYPE_BOOL and text in ("true", "false"):
        return text == "true"
    return text


def _malformed(problem: str) -> errors.ServiceError:
    return errors.ServiceError(errors.Code.INVALID_ARGUMENT, f"Invalid JSON payload received. {problem}")


def _too_large() -> errors.ServiceError:
    return _malformed(f"The payload exceeds {BODY_BYTES_MAX} bytes.")


def _error(error: errors.ServiceError) -> web.Response:
    """Return the response to a failed request; google/rpc/code.proto maps each code to an HTTP status."""
    status = protobuf.status(error)
    code = from_grpc_status(status.code, "").code  # type: ignore[no-untyped-call]
    document = json_format.MessageToDict(status) | {"code": code, "status": error.code}
    return web.json_response({"error": document}, status=code)


# --- the public HTTP rules of Pub/Sub: method by verb and path, and the request fields in the path ----------------------------


_TRANSPORTS: Final = (
    publisher._BasePublisherRestTransport,
    subscriber._BaseSubscriberRestTransport,
    schemas._BaseSchemaServiceRestTransport,
)
_VARIABLE: Final = re.compile(r"\{([^=}]+)=([^}]+)\}")  # {topic.name=projects/*/topics/*}


@dataclass(frozen=True, slots=True)
class HttpRule:
    """One binding of google.api.HttpRule.

    The rules come from the REST transports of google-cloud-pubsub, which are generated from the `google.api.http` annotations of
    google.pubsub.v1. The message classes of that package carry no annotations.

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
