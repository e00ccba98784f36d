"""The pages of the documentation site in the layout of this repository, so that links work in both; `make docs` builds it.

Pages are those of docs/ and what they link to, files of the source included.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Final

from tests.commands import ROOT

PAGES: Final = ROOT / "build" / "pages"
_LINK: Final = re.compile(r"\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^)#\s]+)(#[^)\s]*)?\)")


def gather(folder: Path) -> None:
    """Write all pages and what they link to into a folder, which is emptied first. Links to folders of the source become text."""
    shutil.rmtree(folder, ignore_errors=True)
    waiting = set((ROOT / "docs").glob("**/*.md"))
    gathered: set[Path] = set()
    while waiting:
        path = waiting.pop()
        gathered.add(path)
        copy = folder / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix != ".md":
            shutil.copyfile(path, copy)
            continue
        text = path.read_text(encoding="utf-8")
        waiting |= {target for _, link, _ in _LINK.findall(text) if (target := (path.parent / link).resolve()).is_file()} - gathered
        copy.write_text(_without_folders(text, path.parent), encoding="utf-8")


def _without_folders(text: str, base: Path) -> str:
    return _LINK.sub(lambda link: link[1] if (base / link[2]).is_dir() else link[0], text)


if __name__ == "__main__":
    gather(PAGES)
