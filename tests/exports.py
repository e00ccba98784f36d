"""Exports as Pub/Sub writes them: Avro files with metadata, and stand-ins for Cloud Storage and BigQuery that give out what is in files.

The stand-ins answer the requests that Google's client libraries make to read, and refuse everything else: nothing is ever written.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatch
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

import fastavro

SUBSCRIPTION: Final = "projects/p/subscriptions/exported"
SCHEMA: Final = {
    "type": "record",
    "namespace": "com.google.pubsub",
    "name": "PubsubMessage",
    "fields": [
        {"name": "subscription_name", "type": "string"},
        {"name": "message_id", "type": "string"},
        {"name": "publish_time", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "attributes", "type": {"type": "map", "values": "string"}},
        {"name": "data", "type": "bytes"},
    ],
}
BEGIN_MICROS: Final = 1_795_161_600_000_000


def exported(number: str, key: str = "k") -> dict[str, Any]:
    """A row with metadata; the message of a number was published so many times ten seconds after the first."""
    return {
        "subscription_name": SUBSCRIPTION,
        "message_id": f"{key}-{number}",
        "publish_time": BEGIN_MICROS + int(number) * 10_000_000,
        "attributes": {"ordering_key": key, "n": number},
        "data": json.dumps({"n": int(number), "customer": key}).encode(),
    }


def write_avro(path: Path, numbers: Sequence[str], key: str = "k") -> Path:
    """A file with these messages, in this order."""
    with path.open("wb") as stream:
        fastavro.writer(stream, SCHEMA, [exported(number, key) for number in numbers], codec="deflate")
    return path


class _Answering(BaseHTTPRequestHandler):
    """What both stand-ins have in common. `refused`: answer everything with 403."""

    refused = False
    asked: list[str]

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""

    def do_GET(self) -> None:
        self.asked.append(f"GET {self.path}")
        self._answer(self.get(urlsplit(self.path).path, parse_qs(urlsplit(self.path).query)))

    def do_POST(self) -> None:
        self.asked.append(f"POST {self.path}")
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._answer(self.post(urlsplit(self.path).path, body))

    def get(self, path: str, query: Mapping[str, Sequence[str]]) -> object:
        raise NotImplementedError

    def post(self, path: str, body: Mapping[str, Any]) -> object:
        return None

    def _answer(self, content: object) -> None:
        status = 403 if self.refused else 404 if content is None else 200
        body = content if isinstance(content, bytes) and status == 200 else b""
        if not isinstance(content, bytes) or status != 200:
            body = json.dumps(content if status == 200 else {"error": {"code": status, "message": "not for you"}}).encode()
        if status == 200 and "Range" in self.headers:
            first, _, final = self.headers["Range"].removeprefix("bytes=").partition("-")
            status, body = 206, body[int(first) : int(final) + 1 if final else None]
        self.send_response(status)
        self.send_header("Content-Type", "application/octet-stream" if isinstance(content, bytes) else "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def _served(handler: type[_Answering]) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def cloud_storage(folder: Path, asked: list[str], *, refused: bool = False) -> Iterator[str]:
    """A service whose buckets are the subfolders of a folder; its address, for `STORAGE_EMULATOR_HOST`."""

    class Handler(_Answering):
        def get(self, path: str, query: Mapping[str, Sequence[str]]) -> object:
            bucket, _, name = path.partition("/b/")[2].partition("/o")
            if not name:
                return {"items": [self._object(bucket, file) for file in self._matching(bucket, query)]}
            file = folder / bucket / unquote(name[1:])
            if not file.is_file():
                return None
            return file.read_bytes() if query.get("alt") == ["media"] else self._object(bucket, file)

        def _matching(self, bucket: str, query: Mapping[str, Sequence[str]]) -> Iterator[Path]:
            for file in sorted((folder / bucket).rglob("*")):
                name = str(file.relative_to(folder / bucket))
                if name.startswith(query.get("prefix", [""])[0]) and fnmatch(name, query.get("matchGlob", ["*"])[0]):
                    yield file

        def _object(self, bucket: str, file: Path) -> object:
            name = str(file.relative_to(folder / bucket))
            return {"name": name, "bucket": bucket, "size": str(file.stat().st_size), "generation": "1"}

    Handler.asked, Handler.refused = asked, refused
    with _served(Handler) as address:
        yield address


@contextmanager
def big_query(rows: Sequence[Mapping[str, Any]], asked: list[str], *, refused: bool = False) -> Iterator[str]:
    """A service with one table of these rows; its address, for `BIGQUERY_EMULATOR_HOST`. The text of each query is in `asked`, too."""
    types = {"publish_time": "TIMESTAMP", "data": "BYTES"}
    names = ("subscription_name", "message_id", "publish_time", "attributes")
    fields = [{"name": name, "type": types.get(name, "STRING")} for name in (*names, "data")]

    class Handler(_Answering):
        def get(self, path: str, query: Mapping[str, Sequence[str]]) -> object:
            project, dataset, table = path.split("/")[4:9:2]
            return {
                "tableReference": {"projectId": project, "datasetId": dataset, "tableId": table},
                "schema": {"fields": fields},
            }

        def post(self, path: str, body: Mapping[str, Any]) -> object:
            asked.append(body["query"])
            shown = [{**row, "publish_time": str(row["publish_time"]), "attributes": json.dumps(row["attributes"])} for row in rows]
            values = [[row[name] for name in names] for row in shown]
            return {
                "jobComplete": True,
                "jobReference": {"projectId": "p", "jobId": "j", "location": "EU"},
                "schema": {"fields": fields[: len(names)]},
                "rows": [{"f": [{"v": value} for value in row]} for row in values],
                "totalRows": str(len(values)),
            }

    Handler.asked, Handler.refused = asked, refused
    with _served(Handler) as address:
        yield address
