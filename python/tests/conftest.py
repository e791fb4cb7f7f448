"""What all tests share."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="session")
def _ctrl_c_reaches_children() -> Iterator[None]:
    # A script's background job ignores SIGINT and its children inherit that, but not a handler.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
