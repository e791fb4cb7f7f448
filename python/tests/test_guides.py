"""Pages in Markdown: short paragraphs, short guides, and links that lead somewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
GUIDES = [
    path for path in sorted(DOCS.rglob("*.md")) if "<!-- Generated" not in path.read_text()[:200]
]
"""Those of docs/ that are written by hand."""
FOLDERS = (
    ".",
    "docs/**",
    "studies/*",
    "benches/*",
    "crates/*/*",
    "fuzz",
    "python",
    "dist",
    "dist/openwrt",
)
LINKING = sorted({path for folder in FOLDERS for path in ROOT.glob(f"{folder}/*.md")})

SITE = (ROOT / "mkdocs.yml").read_text()

MOST_WORDS = 90
MOST_LINES = 150

FENCED = re.compile(r"^ *(```|~~~).*?^ *\1[^\n]*$", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
ITEM = re.compile(r" *([-*+]|\d+\.) ")
LINK = re.compile(r"\]\(([^()\s]+)\)")
CODE = ("crates", "python", "scripts", "examples", "studies", "benches", "dist", "Makefile")
PAGE_IN_CODE = re.compile(r"\bdocs/[\w/-]+\.md\b")


MERGE_CONFLICT = re.compile(r"^(<{7}|>{7}) ", re.MULTILINE)


@pytest.mark.parametrize("path", LINKING, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_page_has_an_unresolved_merge_conflict(path: Path) -> None:
    assert not MERGE_CONFLICT.search(path.read_text())


def prose(path: Path) -> str:
    """The text without code blocks and comments."""
    return COMMENT.sub("", FENCED.sub("", path.read_text()))


def paragraphs(text: str) -> Iterator[str]:
    """Paragraphs and list items, without tables and headings."""
    lines: list[str] = []
    for line in [*text.splitlines(), ""]:
        begins = ITEM.match(line)
        ends = not line.strip() or line.lstrip().startswith(("|", "#"))
        if (ends or begins) and lines:
            yield " ".join(lines)
            lines = []
        if not ends:
            lines.append(line.strip())


def words(paragraph: str) -> int:
    """Words as read: of a link, its text."""
    return len(re.sub(r"\]\([^()]*\)", "]", paragraph).split())


def anchors(path: Path) -> set[str]:
    """The anchors that GitHub gives the headings of a page."""
    seen: set[str] = set()
    for heading in re.findall(r"^#+ +(.*?) *$", prose(path), re.MULTILINE):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        count = 0
        while (numbered := f"{slug}-{count}" if count else slug) in seen:
            count += 1
        seen.add(numbered)
    return seen


def test_a_paragraph_is_counted_as_it_is_read() -> None:
    text = "# Not this\n\none [two](a/b.md)\nthree\n- four five\n- six\n\n| not | this |\n\nseven\n"
    assert [words(paragraph) for paragraph in paragraphs(text)] == [3, 3, 2, 1]


@pytest.mark.parametrize("path", GUIDES, ids=lambda path: str(path.relative_to(DOCS)))
def test_no_paragraph_is_long(path: Path) -> None:
    long = [
        f"{words(paragraph)} words: {paragraph[:70]}…"
        for paragraph in paragraphs(prose(path))
        if words(paragraph) > MOST_WORDS
    ]
    assert not long, "\n".join(long)


@pytest.mark.parametrize("name", ["gateway.md", "wake.md"])
def test_a_guide_is_short(name: str) -> None:
    assert len((DOCS / name).read_text().splitlines()) <= MOST_LINES


def test_every_link_leads_somewhere() -> None:
    broken = []
    for page in LINKING:
        for target in LINK.findall(prose(page)):
            if re.match(r"[a-z]+:", target):
                continue
            file, _, anchor = target.partition("#")
            path = (page.parent / file).resolve() if file else page
            there = path.exists() and ROOT in path.parents
            if not there or (anchor and anchor not in anchors(path)):
                broken.append(f"{page.relative_to(ROOT)}: {target}")
    assert not broken, "\n".join(broken)


def test_every_page_that_code_names_exists() -> None:
    missing = []
    for name in CODE:
        files = sorted((ROOT / name).rglob("*")) if (ROOT / name).is_dir() else [ROOT / name]
        for file in files:
            if file.suffix not in {"", ".rs", ".c", ".py", ".toml", ".sh", ".service"}:
                continue
            if any(part.startswith(".") for part in file.relative_to(ROOT).parts):
                continue  # caches of tools
            if file.is_file():
                pages = PAGE_IN_CODE.findall(file.read_text(errors="replace"))
                missing += [
                    f"{file.relative_to(ROOT)}: {p}" for p in pages if not (ROOT / p).exists()
                ]
    assert not missing, "\n".join(missing)


@pytest.mark.parametrize("path", LINKING, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_page_has_a_place_on_the_site(path: Path) -> None:
    assert f" {path.relative_to(ROOT)}" in re.sub(r"[\[\],]", " ", SITE), "add it to nav"
