"""Simulate TCP mechanisms for wireless networks.

>>> import airtcp
>>> run = airtcp.Scenario.load("examples/quickstart.toml").run(seed=1, trace=("cwnd",))
>>> run.flows["goodput"], run.trace("cwnd")
"""

from typing import TYPE_CHECKING

from airtcp._native import SERIES, ScenarioError, __version__, cli_main

if TYPE_CHECKING:
    from airtcp.run import Run, Series
    from airtcp.scenario import Scenario

__all__ = [
    "SERIES",
    "Run",
    "Scenario",
    "ScenarioError",
    "Series",
    "__version__",
    "cli_main",
]


def __getattr__(name: str) -> object:
    # NumPy and pandas take a second to load, for which the commands need not wait.
    if name in ("Run", "Series"):
        from airtcp import run  # noqa: PLC0415

        return getattr(run, name)
    if name == "Scenario":
        from airtcp.scenario import Scenario  # noqa: PLC0415

        return Scenario
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
