"""Code in pages: configurations pass `airtcp check`, commands have the options that are shown, and
Python has only what there is.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections import defaultdict
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

import airtcp
from tests.needs import native
from tests.test_guides import LINKING, ROOT

BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
OPTION = re.compile(r"--[a-z][a-z-]*")


def blocks(*languages: str) -> list[tuple[Path, str]]:
    """The code blocks in these languages, with their page."""
    found = []
    for page in LINKING:
        for indent, language, text in BLOCK.findall(page.read_text()):
            if language in languages:
                found.append((page, re.sub(f"^{indent}", "", text, flags=re.MULTILINE)))
    return found


def kind_of(text: str) -> str | None:
    """Which kind of file it is in whole."""
    if re.search(r"^duration = ", text, re.MULTILINE) and "[[flow]]" in text:
        return "scenario"
    if "[[mobile]]" in text and "addresses" in text and "…" not in text:
        return "gateway"
    if re.match(r"(rate|delay|loss) = ", text):
        return "link"
    return None


CONFIGURATIONS = [
    (page, kind, text) for page, text in blocks("toml") if (kind := kind_of(text)) is not None
]
FRAGMENTS = [
    (page, text)
    for page, text in blocks("toml")
    # Those of studies have a reader of their own.
    if kind_of(text) is None and page.name != "studies.md"
]
TRACE = """time (s),rate (Mbit/s),delay (ms),loss (%)
0,180,24,0.1
15,140,31,0.4
"""
"""What a file of a page that is not here may hold."""
COMMANDS = sorted(
    {
        (str(page.relative_to(ROOT)), command)
        for page, text in blocks("sh", "console", "")
        for line in text.replace("\\\n", " ").splitlines()
        for command in re.findall(r"^(?:\$ |sudo )*airtcp ([a-z].*)", line.strip())
    }
)


def test_there_are_some_of_each() -> None:
    assert {kind for _, kind, _ in CONFIGURATIONS} == {"scenario", "gateway", "link"}
    assert len(COMMANDS) > 50
    assert len(FRAGMENTS) > 10
    assert {page.name for page in PYTHON} > {"README.md", "captures.md", "sweeps.md"}
    assert ("strategies.md", "airtcp.CongestionControl") in {
        (page.name, name) for page, name in NAMES
    }


@pytest.mark.parametrize(
    ("page", "kind", "text"),
    CONFIGURATIONS,
    ids=[f"{page.stem}-{index}" for index, (page, _, _) in enumerate(CONFIGURATIONS)],
)
def test_a_configuration_passes_the_check(page: Path, kind: str, text: str, tmp_path: Path) -> None:
    for name in re.findall(r'file = "([^"]*\.csv)"', text):
        (tmp_path / name).write_text(TRACE)
    code, said = checked(text, kind, tmp_path / f"{page.stem}.toml")
    assert code == 0, said


def checked(text: str, kind: str, file: Path) -> tuple[int, str]:
    """The exit code of `airtcp check`, and what it says."""
    file.write_text(text)
    done = subprocess.run(
        [str(native()), "check", "--as", kind, str(file)],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


LACKING = re.compile(
    r":1:1: \S+: missing |: there is no such file|: no link \"|: the node is in no cell "
)
"""What may be wrong with a part of a file."""


def mistakes(text: str, file: Path) -> str:
    """What is wrong with a part of a file; empty if it is right in a file of some kind."""
    found = []
    for kind in ("scenario", "gateway", "link"):
        _, said = checked(text, kind, file)
        wrong = [
            line
            for line in said.splitlines()
            if re.match(rf"{re.escape(str(file))}:\d", line) and not LACKING.search(line)
        ]
        if not wrong:
            return ""
        found += wrong
    return "\n".join(found)


@pytest.mark.parametrize(
    ("page", "text"),
    FRAGMENTS,
    ids=[f"{page.stem}-{index}" for index, (page, _) in enumerate(FRAGMENTS)],
)
def test_a_part_of_a_configuration_has_only_keys_that_there_are(
    page: Path, text: str, tmp_path: Path
) -> None:
    found = mistakes(text, tmp_path / f"{page.stem}.toml")
    assert not found, f"{page.name}:\n{found}"


def test_a_wrong_key_or_value_in_a_part_is_found(tmp_path: Path) -> None:
    file = tmp_path / "part.toml"
    right = '[[link]]\nbetween = ["A", "B"]\nrate = "1 Mbit/s"\ndelay = { file = "x.csv" }\n'
    assert not mistakes(right, file)
    assert "rat: unknown key" in mistakes(right.replace("rate", "rat"), file)
    assert mistakes(right.replace("Mbit/s", "Mbits"), file)


PYTHON: dict[Path, list[str]] = defaultdict(list)
"""The Python of each page; its blocks are read one after another."""
for _page, _text in blocks("python"):
    PYTHON[_page].append(_text)

CHECKED = """
[mypy]
check_untyped_defs = true
# It is about names and arguments; lists of several types are beyond what it infers.
disable_error_code = arg-type, union-attr
[mypy-scapy.*,dask_jobqueue.*,distributed.*]
ignore_missing_imports = true
"""


def typed(pages: dict[Path, list[str]], folder: Path) -> str:
    """What mypy says of the Python of the pages."""
    (folder / "mypy.ini").write_text(CHECKED)
    names = []
    for page, texts in pages.items():
        name = re.sub(r"\W", "_", str(page.relative_to(ROOT).with_suffix(""))) + ".py"
        (folder / name).write_text("\n".join(texts))
        names.append(name)
    package = Path(airtcp.__file__).parents[1]
    done = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "--no-error-summary"),
            *("--cache-dir", str(package / ".mypy_cache" / "pages"), *names),
        ],
        cwd=folder,
        env=os.environ | {"MYPYPATH": str(package)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def test_python_has_only_names_and_arguments_that_there_are(tmp_path: Path) -> None:
    assert not typed(PYTHON, tmp_path)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("Scenario.load", "Scenario.lod"),
        ("snaplen=", "snaplength="),
        ("import airtcp", "import airtpc as airtcp"),
    ],
)
def test_a_wrong_name_in_python_is_found(right: str, wrong: str, tmp_path: Path) -> None:
    page = ROOT / "docs" / "captures.md"
    texts = [text.replace(right, wrong) for text in PYTHON[page]]
    assert texts != PYTHON[page]
    assert re.match(r"docs_captures\.py:\d+: error: ", typed({page: texts}, tmp_path))


CLASSES = ("Scenario", "Run", "Series", "CongestionControl")
NAME = re.compile(rf"`(?:help\()?((?:airtcp|{'|'.join(CLASSES)})(?:\.\w+)+)")
NAMES = [
    (page, name)
    for page in LINKING
    if page.parent.name != "openwrt" and page.name != "CHANGELOG.md"
    for name in NAME.findall(page.read_text())
]
"""The names in the prose of pages that begin as the package's do."""


def resolve(name: str) -> object:
    """What the package has by this name.

    Raises:
        AttributeError: It has nothing.
    """
    first, *rest = name.split(".")
    thing: object = airtcp if first == "airtcp" else getattr(airtcp, first)
    for part in rest:
        if isinstance(thing, type) and part in thing.__annotations__:
            return part  # a field, which only an instance has
        if isinstance(thing, ModuleType) and find_spec(f"{thing.__name__}.{part}"):
            thing = import_module(f"{thing.__name__}.{part}")
        else:
            thing = getattr(thing, part)
    return thing


def test_prose_has_only_names_that_there_are() -> None:
    wrong = []
    for page, name in NAMES:
        try:
            resolve(name)
        except AttributeError as error:
            wrong.append(f"{page.relative_to(ROOT)}: {name}: {error}")
    assert not wrong, "\n".join(wrong)


def test_a_wrong_name_in_prose_is_found() -> None:
    resolve("Scenario.load")
    for name in ("airtcp.Scenario.lod", "Run.tracee", "airtcp.runs.cluste"):
        with pytest.raises(AttributeError):
            resolve(name)


def test_commands_have_the_options_that_pages_show() -> None:
    wrong = []
    for page, command in COMMANDS:
        try:
            words = shlex.split(command, comments=True)
        except ValueError:
            continue  # a quotation that goes on in the next line
        if not words or words[0].startswith("-"):
            continue
        words = words[: words.index("--")] if "--" in words else words
        stop = next((i for i, word in enumerate(words) if word in ("|", ">", "&", "&&", ";")), None)
        words = words[:stop]
        options = [word.partition("=")[0] for word in words if OPTION.match(word)]
        text = ""
        # The longest path of subcommands that has a help.
        for depth in (2, 1):
            path = tuple(words[:depth])
            if len(path) == depth and all(re.fullmatch(r"[a-z-]+", word) for word in path):
                text = help_of(path)
                if text:
                    break
        if not text:
            wrong.append(f"{page}: airtcp {command}: no such command")
        wrong += [
            f"{page}: airtcp {command}: no option {option}"
            for option in options
            if not re.search(rf"{option}\b(?!-)", text)
        ]
    assert not wrong, "\n".join(wrong)


@cache
def help_of(path: tuple[str, ...]) -> str:
    """What `--help` says; empty if there is no such command."""
    shown = subprocess.run(
        [str(native()), *path, "--help"], capture_output=True, text=True, check=False
    )
    return shown.stdout if shown.returncode == 0 else ""
