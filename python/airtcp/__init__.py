"""Simulate TCP mechanisms for wireless networks.

>>> import airtcp
>>> run = airtcp.Scenario.load("examples/quickstart.toml").run(seed=1, trace=("cwnd",))
>>> run.flows["goodput"], run.trace("cwnd")
"""

from airtcp._native import SERIES, ScenarioError, __version__, cli_main
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
