"""Whether every violation has its proof: findings of a running service, verified and read again.

`prove` takes a sample of the violations and passed deadlines, as many of each kind as there are, downloads the trace of each, lets
`ordering-prober verify` verify it, and reads the drawing on its page. It says what is missing.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError
from urllib.parse import quote
from xml.etree.ElementTree import Element, fromstring

from prober.traces.trace import FIRST_EVENT_LINE
from tests.commands import run
from tests.integration.programs import get

FAILING: Final = ("violation", "liveness")
FAULTS: Final = ("redeliver_unacked_only", "stall_key:key=ordering-3", "swap_in_batch:p=0.05,key=affinity-*")
"""One for each probe: a run in which a guarantee is violated ends before a key is stuck."""
INTERVAL: Final = "10s"
DRAIN: Final = "60s"
"""Longer than any run waits: it never waits longer than a message can be pending."""
VERIFIED_AT_ONCE: Final = 50
SEED: Final = 14
SHOWN: Final = (("smallest", ""), ("key", "-key"))
SKIPS: Final = ("REDELIVERY_SKIP", "PULL_BATCH_ORDER")
_SVG: Final = "{http://www.w3.org/2000/svg}"
_LINE: Final = re.compile(r"line (\d+) of the trace")

Event = Mapping[str, Any]


def settings(deadline_s: float) -> dict[str, str]:
    """The environment of a service whose runs end soon although a message is pending."""
    deadlines = dict.fromkeys(("delivery", "stall", "unacked"), f"{deadline_s:g}s") | {"drain": DRAIN}
    probe = {"schedule": {"interval": INTERVAL}, "jitter": "0s", "deadlines": deadlines}
    probes = json.dumps({"ordering": probe, "redelivery": probe, "affinity": probe})
    return {"ORDERING_PROBER_EMBEDDED__FAULTS": json.dumps(FAULTS), "ORDERING_PROBER_PROBES": probes}


@dataclass(frozen=True, slots=True)
class Drawing:
    """What stands in a drawing: the lines of the trace that have a row, and all that is written."""

    lines: frozenset[int]
    wrong: str
    wrong_line: int
    words: str

    @classmethod
    def on(cls, page: str) -> Drawing:
        """The one on a page; AssertionError if there is none."""
        found = re.search(r"<svg[^>]* class=\"lanes.*?</svg>", page, re.DOTALL)
        assert found, "no drawing"
        rows = [one for one in fromstring(found[0]).iter(f"{_SVG}g") if one.get("class", "").startswith("row")]
        wrong = [_words(row) for row in rows if "wrong" in row.get("class", "").split()]
        assert len(wrong) == 1, f"{len(wrong)} rows are wrong"
        words = "\n".join(map(_words, rows))
        return cls(frozenset(map(int, _LINE.findall(words))), wrong[0], int(_LINE.findall(wrong[0])[0]), words)


def _words(row: Element) -> str:
    return " ".join(" ".join(row.itertext()).split())


@dataclass(slots=True)
class Outcome:
    """What came of it: how many of each kind there were and were looked at, what was missing by finding, and events of the proofs."""

    found: Counter[str] = field(default_factory=Counter)
    looked_at: Counter[str] = field(default_factory=Counter)
    missing: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    events: list[int] = field(default_factory=list)

    def wrong(self) -> dict[str, list[str]]:
        """What is missing, of those of which something is."""
        return {name: why for name, why in self.missing.items() if why}


def prove(url: str, sample: int, folder: Path) -> Outcome:
    """Looks at so many findings of the service there; their traces are put into the folder."""
    outcome = Outcome()
    every = [one for status in FAILING for one in listed(url, status)]
    outcome.found.update(one["kind"] for one in every)
    chosen = [json.loads(get(f"{url}/api/v1/findings/{quote(one['finding_id'])}")) for one in sampled(every, sample)]
    outcome.looked_at.update(one["kind"] for one in chosen)
    saved = []
    for finding in chosen:
        name = finding["finding_id"]
        address = f"{url}/api/v1/findings/{quote(name)}"
        try:
            proof, on_key = (_saved(folder / f"{name}{end}.jsonl", get(f"{address}/trace?show={show}")) for show, end in SHOWN)
            page, other = (get(f"{url}/findings/{quote(name)}?show={show}") for show, _ in SHOWN)
            saved.append(finding)
            outcome.events.append(len(proof))
            Drawing.on(other)
            outcome.missing[name] += lacks(finding, proof, on_key, Drawing.on(page))
        except (HTTPError, AssertionError) as error:
            outcome.missing[name].append(f"{error}: {finding['unproven_because']}")
    for finding, verified in verified_again(saved, folder):
        again = {(one["kind"], one["status"]) for one in verified["findings"]}
        if verified["verdict"] != "FAIL" or (finding["kind"], finding["status"]) not in again:
            outcome.missing[finding["finding_id"]].append(f"verified again: {verified['verdict']}, {sorted(again)}")
    return outcome


def _saved(path: Path, trace: str) -> list[Event]:
    """The events of a trace, which is put into a file."""
    path.write_text(trace, encoding="utf-8")
    return [json.loads(line) for line in trace.splitlines()[FIRST_EVENT_LINE - 1 :]]


def listed(url: str, status: str) -> Iterator[dict[str, Any]]:
    """Every finding of a status."""
    cursor = ""
    while True:
        page = json.loads(get(f"{url}/api/v1/findings?status={status}&limit=200{cursor}"))
        yield from page["items"]
        if page["next_cursor"] is None:
            return
        cursor = f"&cursor={quote(page['next_cursor'])}"


def sampled(every: Sequence[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """So many of them: in turn one of each kind, at random."""
    dice = random.Random(SEED)
    kinds: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for one in sorted(every, key=lambda one: str(one["finding_id"])):
        kinds[one["kind"]].append(one)
    for ones in kinds.values():
        dice.shuffle(ones)
    turns = [(turn, kind, one) for kind, ones in kinds.items() for turn, one in enumerate(ones)]
    return [one for *_, one in sorted(turns, key=lambda each: each[:2])[:count]]


def verified_again(findings: Sequence[dict[str, Any]], folder: Path) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """What `verify` says of the trace of each."""
    for start in range(0, len(findings), VERIFIED_AT_ONCE):
        some = findings[start : start + VERIFIED_AT_ONCE]
        done = run("verify", "--format", "json", *(str(folder / f"{one['finding_id']}.jsonl") for one in some))
        yield from zip(some, map(json.loads, done.stdout.splitlines()), strict=True)


def lacks(finding: Mapping[str, Any], proof: Sequence[Event], on_key: Sequence[Event], drawing: Drawing) -> list[str]:
    """What belongs to a finding of this kind and does not stand in its drawing, as everything on its key shows."""
    if finding["status"] == "liveness":
        return [] if "the deadline passed" in drawing.wrong else [f"the passed deadline: {drawing.wrong}"]
    if finding["kind"] not in SKIPS:
        return []
    drawn = [proof[line - FIRST_EVENT_LINE] for line in drawing.lines]
    wrong = proof[drawing.wrong_line - FIRST_EVENT_LINE]
    before = on_key[: on_key.index(wrong)]
    skipped = {one["message_id"] for one in before if one["event"] == "delivered" and one["seq"] in finding["facts"]["skipped"]}
    answers = {one["message_id"]: one for one in before if one["event"] in ("acked", "nacked") and one["message_id"] in skipped}
    missing = [f"{one['event']} of the skipped {name}" for name, one in answers.items() if one not in drawn]
    return missing + _cause_missing(before, drawn, drawing)


def _cause_missing(before: Sequence[Event], drawn: Sequence[Event], drawing: Drawing) -> list[str]:
    """The refusal or the end of a stream that caused the redelivery; a lease that passed is seen by nobody, so words say that it may."""
    delivered = [(index, one) for index, one in enumerate(before) if one["event"] == "delivered"]
    again = [
        at for at, (_, one) in enumerate(delivered) if any(one["message_id"] == past["message_id"] for _, past in delivered[:at])
    ]
    starts = [at for at in again if delivered[at][1]["seq"] <= delivered[at - 1][1]["seq"]]
    if not starts:
        return []
    end, first = delivered[starts[-1]]
    begin, held = next((index, one) for index, one in reversed(delivered[: starts[-1]]) if one["message_id"] == first["message_id"])
    causes = [one for one in before[begin:end] if _ends_holding(one, held)]
    if not causes:
        return [] if re.search(r"leases? .*may end", drawing.words) else ["a lease that may end"]
    return [] if any(one in drawn for one in causes) else [f"what caused the redelivery: {causes[-1]}"]


def _ends_holding(one: Event, held: Event) -> bool:
    if one["event"] == "closed":
        return bool(one["session"] == held["session"])
    return bool(one["event"] == "nacked" and one["message_id"] == held["message_id"])
