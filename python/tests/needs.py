"""Skipping a test where the machine lacks something that it needs, as `crates/testing` does."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from airtcp.__main__ import native_binary

ABSENT = Path(__file__).parents[2] / ".ci" / "absent"


def need(there: bool, what: str) -> None:
    """Skips the calling test without `what`; on CI, it fails unless `.ci/absent` lists that."""
    if there:
        return
    listed = [line for line in ABSENT.read_text().splitlines() if line and line[0] != "#"]
    if os.environ.get("CI") == "true" and not any(what.startswith(line) for line in listed):
        pytest.fail(f"this test needs {what}; with CI=true it is skipped only if .ci/absent has it")
    pytest.skip(f"needs {what}")


def native() -> Path:
    """The native `airtcp`, which knows all commands; skips the calling test without it."""
    binary = native_binary()
    need(binary is not None and binary.is_file(), "the native airtcp (make build)")
    assert binary is not None
    return binary
