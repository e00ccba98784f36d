"""google.pubsub.v1 and google.iam.v1.IAMPolicy over HTTP and JSON, for clients without gRPC: the unary methods of `calls`.

A request is transcoded by its rule (`http_rules`, google.api.HttpRule): path, query and body contain fields of the request message. Field
names in the query and in the body may be those of JSON (`maxMessages`) or of the message (`max_messages`).
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from aiohttp import web
from google.api_core.exceptions import from_grpc_status
from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor

from prober.embedded import errors, protobuf
from prober.embedded.calls import METHODS, Calls
from prober.embedded.http_rules import HttpRule, find_rule
from prober.embedded.listener import Listener

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
    """Return the rule of a request and the fields in its path."""
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
