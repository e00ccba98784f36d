"""The documentation site has every page, and no broken link and nothing from elsewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.commands import ROOT
from tests.site import gather

CONFIGURATION = ROOT / "docs" / "mkdocs.yaml"


def built(folder: Path) -> subprocess.CompletedProcess[str]:
    """Build the pages in a folder into its folder `site`."""
    configuration = folder / "mkdocs.yaml"
    configuration.write_text(f"INHERIT: {CONFIGURATION}\ndocs_dir: {folder}/pages\n", encoding="utf-8")
    command = [sys.executable, "-m", "mkdocs", "build", "--config-file", str(configuration), "--site-dir", str(folder / "site")]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    gather(folder / "pages")
    return folder


def test_the_site_has_no_broken_link_and_loads_nothing_from_elsewhere(pages: Path) -> None:
    done = built(pages)
    assert done.returncode == 0, done.stderr
    texts = [path.read_text(encoding="utf-8") for path in (pages / "site").rglob("*.html")]
    assert len(texts) > 100
    loaded = [tag for text in texts for tag in re.findall(r"<(?:script|img|iframe|link)\b[^>]*>", text)]
    assert [tag for tag in loaded if re.search(r"""(?:src|href)=["']?(?:https?:)?//""", tag)] == []


def test_a_broken_link_ends_the_build(pages: Path) -> None:
    index = pages / "pages" / "docs" / "index.md"
    text = index.read_text(encoding="utf-8")
    index.write_text(f"{text}\n[API](api.md#no-such-section)\n", encoding="utf-8")
    done = built(pages)
    index.write_text(text, encoding="utf-8")
    assert done.returncode == 1
    assert "no-such-section" in done.stderr


def test_the_index_lists_the_pages_of_the_navigation() -> None:
    navigation = yaml.safe_load(re.sub(r"!!python\S+", "", CONFIGURATION.read_text(encoding="utf-8")))["nav"]
    kinds = {
        kind: [page for entry in pages for page in first(entry)]
        for part in navigation
        for kind, pages in part.items()
        if isinstance(pages, list)
    }
    sections = re.findall(r"^## (.*)\n((?:(?!## ).*\n?)*)", (ROOT / "docs" / "index.md").read_text(encoding="utf-8"), re.MULTILINE)
    listed = {
        kind: [resolved(link) for link in re.findall(r"^- \[.*?\]\((.*?)\): \S", text, re.MULTILINE)] for kind, text in sections
    }
    assert listed == kinds
    assert len(listed) == 4


def first(entry: dict[str, str | list[str]]) -> list[str]:
    """The page of an entry of the navigation; the first one of a folder."""
    return [page if isinstance(page, str) else page[0] for page in entry.values()]


def resolved(link: str) -> str:
    return (ROOT / "docs" / link).resolve().relative_to(ROOT).as_posix()
