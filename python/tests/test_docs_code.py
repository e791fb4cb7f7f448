"""Code in pages: configurations pass `airtcp check`, commands have the options that are shown."""

from __future__ import annotations

import re
import shlex
import subprocess
from functools import cache
from pathlib import Path

import pytest

from airtcp.__main__ import native_binary
from tests.needs import need
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
    return None


CONFIGURATIONS = [
    (page, kind, text) for page, text in blocks("toml") if (kind := kind_of(text)) is not None
]
COMMANDS = sorted(
    {
        (str(page.relative_to(ROOT)), command)
        for page, text in blocks("sh", "console", "")
        for line in text.replace("\\\n", " ").splitlines()
        for command in re.findall(r"^(?:\$ |sudo )*airtcp ([a-z].*)", line.strip())
    }
)


def binary() -> Path:
    """The native `airtcp`, which knows all commands."""
    found = native_binary()
    need(found is not None, "the native airtcp (make build)")
    assert found is not None
    return found


def test_there_are_some_of_each() -> None:
    assert {kind for _, kind, _ in CONFIGURATIONS} == {"scenario", "gateway"}
    assert len(COMMANDS) > 50


@pytest.mark.parametrize(
    ("page", "kind", "text"),
    CONFIGURATIONS,
    ids=[f"{page.stem}-{index}" for index, (page, _, _) in enumerate(CONFIGURATIONS)],
)
def test_a_configuration_passes_the_check(page: Path, kind: str, text: str, tmp_path: Path) -> None:
    file = tmp_path / f"{page.stem}.toml"
    file.write_text(text)
    checked = subprocess.run(
        [str(binary()), "check", "--as", kind, str(file)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


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
        [str(binary()), *path, "--help"], capture_output=True, text=True, check=False
    )
    return shown.stdout if shown.returncode == 0 else ""
