"""Makes a site of pages that stay where they are in the repository.

A page has the same path in the site as in the repository, so its relative links work in both. What
pages link to (pictures, examples, scenarios) comes along.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
PAGES = (
    "*.md",
    "docs/**/*.md",
    "studies/*/README.md",
    "benches/*/README.md",
    "crates/linux/bpf/README.md",
    "fuzz/README.md",
    "python/README.md",
    "dist/README.md",
)
LINK = re.compile(r"\]\(([^()\s#]+)(?:#[^()\s]*)?\)")
PYTHON = (
    "Scenario",
    "Run",
    "Series",
    "sweep",
    "plot",
    "CongestionControl",
    "ScenarioError",
    "SERIES",
    "EXAMPLES",
)
"""What `airtcp` exports, in the order of its page."""
FENCE = re.compile(r" *(```|~~~)")
ITEM = re.compile(r"( *)([-*+]|\d+\.)( +)(?=\S)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Takes the pages, and what they link to, instead of all that `docs` has."""
    chosen = Files([file for file in files if file.src_dir != config.docs_dir])
    pages = sorted({path for pattern in PAGES for path in ROOT.glob(pattern)})
    linked = {
        (page.parent / target).resolve()
        for page in pages
        for target in LINK.findall(page.read_text())
        if ":" not in target
    }
    for path in [*pages, *sorted(linked - set(pages))]:
        if path.is_file():
            # Browsers show what they know as text.
            uri = path.relative_to(ROOT).as_posix()
            chosen.append(File.generated(config, uri, abs_src_path=str(path)))
    script = "docs/site/iframe-worker.js"
    chosen.append(File.generated(config, script, abs_src_path=str(ROOT / script)))
    chosen.append(File.generated(config, "docs/python.md", content=python_page()))
    return chosen


def python_page() -> str:
    """A page of what `airtcp` exports; mkdocstrings fills it with the docstrings."""
    module = ast.parse((ROOT / "python/airtcp/__init__.py").read_text())
    home = {
        alias.name: f"{statement.module}.{alias.name}"
        for statement in ast.walk(module)
        if isinstance(statement, ast.ImportFrom) and (statement.module or "").startswith("airtcp.")
        for alias in statement.names
        if alias.name != "__version__"
    } | {"EXAMPLES": "airtcp.EXAMPLES"}
    if set(PYTHON) != set(home):
        raise ValueError(f"docs/site/hooks.py: {set(home) ^ set(PYTHON)}: in airtcp or in PYTHON")
    parts = ["# Python", ast.get_docstring(module) or ""]
    parts[1] = parts[1].partition(">>>")[0].strip()
    parts += [f"::: {home[name]}" for name in PYTHON]
    return "\n\n".join(parts)


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Python-Markdown wants four columns for a list inside a list, and a blank line before one."""
    return reindented(markdown)


def reindented(markdown: str) -> str:
    """The same text with lists as Python-Markdown reads them; GitHub reads both alike."""
    lines: list[str] = []
    columns: list[int] = []  # where the text of each open item begins
    fenced = ""
    for line in markdown.splitlines():
        indent = len(line) - len(line.lstrip(" "))
        fence = FENCE.match(line)
        if not line.strip():
            lines.append("")
            continue
        if not fenced:
            item = ITEM.match(line)
            previous = lines[-1] if lines else ""
            if item or not previous:
                while columns and indent < columns[-1]:
                    columns.pop()
            if item:
                begins = not columns or not ITEM.match(previous)
                if previous and begins and not inside_item(lines, len(columns)):
                    lines.append("")
                margin = "    " * len(columns)
                lines.append(margin + line.lstrip(" "))
                columns.append(item.end())
                continue
        top = columns[-1] if columns else 0
        lines.append("    " * len(columns) + line[min(indent, top) :])
        if fence:
            fenced = "" if fenced == fence[1] else fenced or fence[1]
    return "\n".join(lines) + "\n"


def inside_item(lines: list[str], depth: int) -> bool:
    """Whether the lines since the last blank one have an item of a list of this depth."""
    for line in reversed(lines):
        if not line:
            return False
        item = ITEM.match(line)
        if item and len(item[1]) == 4 * depth:
            return True
    return False
