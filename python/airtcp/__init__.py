"""Simulate TCP mechanisms for wireless networks.

>>> import airtcp
>>> run = airtcp.Scenario.load("examples/quickstart.toml").run(seed=1, trace="cwnd")
>>> run.flows["goodput"], run.trace("cwnd")
>>> table = airtcp.sweep("examples/quickstart.toml", {"link.AP-phone.loss.p": [0.01, 0.05]})
>>> airtcp.plot(table, x="link.AP-phone.loss.p", y="goodput")

`Scenario` is what is simulated, `Run` its result; `sweep` runs a grid of settings and seeds, and
`plot` draws it. `SERIES` says which time series a run can record and what their values are.
`CongestionControl` is the base class of your own. `EXAMPLES` is where the examples are, also if
only the package is installed.
"""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from airtcp._native import SERIES, ScenarioError, __version__

if TYPE_CHECKING:
    from airtcp.congestion import CongestionControl
    from airtcp.run import Run, Series
    from airtcp.scenario import Scenario
    from airtcp.sweeps.plot import plot
    from airtcp.sweeps.sweep import sweep

__all__ = [
    "EXAMPLES",
    "SERIES",
    "CongestionControl",
    "Run",
    "Scenario",
    "ScenarioError",
    "Series",
    "__version__",
    "plot",
    "sweep",
]

_PACKAGE = Path(__file__).resolve().parent

EXAMPLES = (_PACKAGE if (_PACKAGE / "examples").is_dir() else _PACKAGE.parents[1]) / "examples"
"""The example scenarios: in the package (a wheel) or beside it (a checkout)."""

_LATER = {
    "CongestionControl": "airtcp.congestion",
    "Run": "airtcp.run",
    "Scenario": "airtcp.scenario",
    "Series": "airtcp.run",
    "plot": "airtcp.sweeps.plot",
    "sweep": "airtcp.sweeps.sweep",
}
"""NumPy and pandas take a second to load, for which the commands need not wait."""


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
