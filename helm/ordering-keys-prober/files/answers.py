"""Asks a prober or its API, as `helm test` does: is it ready, and what does it say? Argument: the address. Exit code 0: it answers."""

import json
import os
import sys
import urllib.request

WAIT_S = 10.0


def answer(path: str) -> str:
    """What is answered; urllib raises for anything but success."""
    request = urllib.request.Request(sys.argv[1] + path)
    if token := os.environ.get("TOKEN"):
        request.add_header("Authorization", f"Bearer {token}")
    with urllib.request.urlopen(request, timeout=WAIT_S) as response:
        return response.read().decode()


print(f"/readyz: {answer('/readyz')}")
status = json.loads(answer("/api/v1/status"))
print(f"/api/v1/status: {status['verdict']} since {status['since']}, version {status['version']}")
