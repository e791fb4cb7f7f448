"""The compiled part of airtcp: scenarios and the simulator."""

from collections.abc import Callable, Sequence

__version__: str

SERIES: tuple[str, ...]
"""Names of the time series a run can record."""

class ScenarioError(ValueError):
    """A scenario that cannot be used: malformed, unknown or contradictory keys, impossible values.

    Its `str()` lists every problem found; the attributes describe the first.
    """

    file: str
    """File name, or the name given to `parse`."""
    line: int | None
    """1-based line, where there is one (an override has none)."""
    column: int | None
    """1-based column, where there is one."""
    key: str
    """Dotted path of the key, e.g. `link.BS-MH.rate`; empty for a syntax error."""

class Scenario:
    """A resolved scenario."""

    @staticmethod
    def parse(source_name: str, text: str, overrides: Sequence[tuple[str, str]]) -> Scenario:
        """Parses TOML text. Raises ScenarioError."""

    @property
    def name(self) -> str:
        """Short name of the scenario."""

    @property
    def duration(self) -> float:
        """Simulated time of a run, seconds."""

    def run(
        self,
        seed: int,
        series: Sequence[str],
        between_slices: Callable[[], object] | None = None,
    ) -> tuple[str, dict[str, tuple[bytearray, bytearray, bytearray]]]:
        """Simulates to the end: metrics as JSON, and for each series its columns.

        The columns are time (`float64`, seconds), flow (`uint32`) and value (`float64`), as NumPy
        keeps them in memory.

        The GIL is released while simulating. `between_slices` is called every few dozen
        milliseconds of wall-clock time; an exception it raises ends the run.
        """

def cli_main(arguments: Sequence[str]) -> int:
    """Runs the command line; `arguments[0]` is the program's name. Returns the exit code."""
