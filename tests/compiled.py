"""Whether the checker under test was compiled (`make compiled`), and whether of the source that is here."""

from __future__ import annotations

import prober.core.verifier
from tests.commands import ROOT

COMPILED = not (prober.core.verifier.__file__ or "").endswith(".py")


def outdated() -> list[str]:
    """The modules of the core whose source is newer than what was compiled of it, or whose source is gone."""
    folder = ROOT / "prober" / "core"
    modules = {path: folder / f"{path.name.partition('.')[0]}.py" for path in folder.glob("*.so") if "__mypyc" not in path.name}
    return [source.name for path, source in modules.items() if not source.exists() or source.stat().st_mtime > path.stat().st_mtime]
