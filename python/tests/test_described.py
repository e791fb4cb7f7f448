"""What the native binary knows of the commands in Python, for completions and manual pages."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from airtcp.__main__ import IN_PYTHON

DESCRIBED = Path(__file__).parents[2] / "crates/cli/src/python_commands.json"


def arguments(parser: argparse.ArgumentParser) -> Iterator[dict[str, object]]:
    for action in parser._actions:
        if isinstance(action, argparse._HelpAction | argparse._SubParsersAction):
            continue
        long = next((name[2:] for name in action.option_strings if name.startswith("--")), None)
        takes_value = action.nargs != 0
        yield {
            "long": long,
            "value": (action.metavar or action.dest.upper()) if takes_value else None,
            "choices": list(map(str, action.choices or ())),
            "help": (action.help or "").replace("%%", "%"),
        }


def described(name: str, parser: argparse.ArgumentParser, about: str | None) -> dict[str, object]:
    commands: list[dict[str, object]] = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            abouts = {choice.dest: choice.help for choice in action._choices_actions}
            commands += [described(of, sub, abouts.get(of)) for of, sub in action.choices.items()]
    return {
        "name": name,
        "about": about,
        "after_help": parser.epilog,
        "arguments": list(arguments(parser)),
        "commands": commands,
    }


def test_the_native_binary_describes_the_commands_in_python() -> None:
    """Renew the file with AIRTCP_BLESS=1."""
    parsers = {name: import_module(module)._parser() for name, module in IN_PYTHON.items()}
    all_of_them = [described(name, parser, None) for name, parser in parsers.items()]
    text = json.dumps(all_of_them, indent=2, ensure_ascii=False) + "\n"
    if os.environ.get("AIRTCP_BLESS"):
        DESCRIBED.write_text(text)
    assert DESCRIBED.read_text() == text
