"""The result of one simulation run, in memory and on disk."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pandas as pd

# NumPy and pandas take a second to load, and a command that only runs things needs neither.


class Series(NamedTuple):
    """A recorded time series: three columns of equal length, ordered by time.

    Attributes:
        time: Simulated time, s.
        flow: Index of the flow in the scenario.
        value: Bytes, seconds or a count, depending on the series (`airtcp.SERIES`).
    """

    time: npt.NDArray[np.float64]
    flow: npt.NDArray[np.uint32]
    value: npt.NDArray[np.float64]

    @classmethod
    def from_buffers(cls, time: bytearray, flow: bytearray, value: bytearray) -> Series:
        """The columns of `_native.Scenario.run`, not copied."""
        import numpy as np  # noqa: PLC0415

        return cls(
            np.frombuffer(time, np.float64),
            np.frombuffer(flow, np.uint32),
            np.frombuffer(value, np.float64),
        )

    def of_flow(self, flow: int) -> Series:
        """The part of one flow, by its index in the scenario; empty if there is none."""
        chosen = self.flow == flow
        return Series(self.time[chosen], self.flow[chosen], self.value[chosen])


@dataclass(frozen=True)
class Run:
    """Metrics and time series of one run.

    Attributes:
        metrics: What `airtcp run --json` prints, as a dictionary: SI units (s, bit/s, bytes); see
            `docs/metrics.md`.
        series: The recorded time series by name.
    """

    metrics: dict[str, Any]
    series: Mapping[str, Series] = field(default_factory=dict)

    @property
    def flows(self) -> pd.DataFrame:
        """One row per TCP flow, indexed by its name; a column per metric, in SI units."""
        return self._frame("flows")

    @property
    def quic(self) -> pd.DataFrame:
        """One row per QUIC flow, indexed by its name; a column per metric, in SI units."""
        return self._frame("quic")

    @property
    def links(self) -> pd.DataFrame:
        """One row per unidirectional link, indexed by its name, such as `AP>phone`."""
        return self._frame("links")

    @property
    def stations(self) -> pd.DataFrame:
        """One row per station of a wireless cell, indexed by its name, such as `cell/AP`."""
        return self._frame("stations")

    @property
    def udp(self) -> pd.DataFrame:
        """One row per source of cross traffic, indexed by its name."""
        return self._frame("udp")

    @property
    def transfers(self) -> pd.DataFrame:
        """One row per flow with requests or arriving transfers, indexed by the flow's name."""
        return self._frame("transfers")

    @property
    def videos(self) -> pd.DataFrame:
        """One row per flow with a video, indexed by the flow's name."""
        return self._frame("videos")

    @property
    def calls(self) -> pd.DataFrame:
        """One row per call, indexed by its name."""
        return self._frame("calls")

    @property
    def middleboxes(self) -> pd.DataFrame:
        """One row per node with a middlebox, indexed by the node's name; a column per counter.

        A counter that a mechanism does not have is NaN.
        """
        return self._frame("middleboxes")

    def _frame(self, part: str) -> pd.DataFrame:
        import pandas as pd  # noqa: PLC0415

        rows = self.metrics[part]
        frame = pd.DataFrame(rows) if rows else pd.DataFrame(columns=["name"])
        return frame.set_index("name")

    def array(self, name: str) -> Series:
        """A recorded series as NumPy columns, all flows together, ordered by time.

        Raises:
            KeyError: The run did not record it; the message says what it did record.
        """
        try:
            return self.series[name]
        except KeyError:
            recorded = ", ".join(sorted(self.series)) or "none"
            raise KeyError(
                f"series {name!r} was not recorded (recorded: {recorded}); "
                f"ask for it with run(trace={name!r})"
            ) from None

    def trace(self, name: str) -> pd.DataFrame:
        """A recorded series as a frame, a row for each point of any flow, ordered by time.

        Args:
            name: That of the series.

        Returns:
            The columns `time` (s), `flow` (its name, categorical) and `value` (in the unit that
            `airtcp.SERIES` says).

        Raises:
            KeyError: The run did not record it; the message says what it did record.
        """
        import numpy as np  # noqa: PLC0415
        import pandas as pd  # noqa: PLC0415

        series = self.array(name)
        names = pd.Index([str(flow["name"]) for flow in self.metrics["flows"]])
        return pd.DataFrame(
            {
                "time": series.time,
                "flow": pd.Categorical.from_codes(series.flow.astype(np.int64), names),
                "value": series.value,
            }
        )

    def to_bytes(self) -> bytes:
        """Serialises the run; equal runs give equal bytes.

        With series it is an `.npz` archive. Without, which is how most runs are kept, it is the
        metrics in JSON: an archive takes as long as a short run does.
        """
        metrics = json.dumps(self.metrics, separators=(",", ":")).encode()
        if not self.series:
            return metrics
        import numpy as np  # noqa: PLC0415

        columns: dict[str, npt.NDArray[Any]] = {"metrics": np.frombuffer(metrics, np.uint8)}
        for name, series in sorted(self.series.items()):
            for column, values in series._asdict().items():
                columns[f"{name}/{column}"] = values
        buffer = io.BytesIO()
        np.savez_compressed(buffer, allow_pickle=False, **columns)
        return buffer.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> Run:
        """Reads what `to_bytes` wrote.

        Raises:
            ValueError: The bytes are not a stored run.
        """
        try:
            if not is_archive(data):
                return cls(_metrics(data))
            import numpy as np  # noqa: PLC0415

            with np.load(io.BytesIO(data), allow_pickle=False) as archive:
                metrics = _metrics(archive["metrics"].tobytes())
                names = sorted({name.split("/")[0] for name in archive.files} - {"metrics"})
                series = {
                    name: Series(*(archive[f"{name}/{column}"] for column in Series._fields))
                    for name in names
                }
        except Exception as error:  # zipfile, numpy and json each raise their own
            raise ValueError(f"not a stored run: {error}") from error
        return cls(metrics, series)

    def __repr__(self) -> str:
        """The numbers of each flow that are asked for most, as a table."""
        known = self.metrics
        counts = (
            f"{len(known[part])} {words[len(known[part]) > 1]}"
            for part, words in _PARTS.items()
            if known.get(part)
        )
        name = f"Run of {known['scenario']!r}" if "scenario" in known else "Run"
        seed = f"seed {known['seed']}" if "seed" in known else ""
        time = f"{known['duration']:g} s" if "duration" in known else ""
        lines = [", ".join(filter(None, (name, seed, time, *counts)))]
        flows = known.get("flows", [])
        if flows:
            rows = [["flow", *(title for title, _, _ in _COLUMNS)], *map(_row, flows[:_SHOWN])]
            widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
            for flow, *numbers in rows:
                cells = [text.rjust(n) for text, n in zip(numbers, widths[1:], strict=True)]
                lines.append("  ".join([flow.ljust(widths[0]), *cells]))
        if len(flows) > _SHOWN:
            lines.append(f"… and {len(flows) - _SHOWN} more flows")
        return "\n".join(lines)


def is_archive(data: bytes) -> bool:
    """Whether what `Run.to_bytes` made has series."""
    return data.startswith(_ARCHIVE)


def _metrics(text: bytes) -> dict[str, Any]:
    metrics = json.loads(text)
    if not isinstance(metrics, dict):
        raise TypeError("no object of metrics")
    return metrics


_PARTS = {
    "flows": ("flow", "flows"),
    "quic": ("QUIC flow", "QUIC flows"),
    "links": ("link", "links"),
    "stations": ("station", "stations"),
    "udp": ("UDP source", "UDP sources"),
    "transfers": ("flow of transfers", "flows of transfers"),
    "videos": ("video", "videos"),
    "calls": ("call", "calls"),
    "middleboxes": ("middlebox", "middleboxes"),
}
"""The parts of a run's metrics, and what one and several of it are called."""

_ARCHIVE = b"PK"
"""How every zip archive begins, and no JSON."""

_SHOWN = 10
"""How many flows `repr` shows."""

_COLUMNS = (
    ("goodput Mbit/s", "goodput", 1e-6),
    ("download s", "download_time", 1.0),
    ("retransmitted %", "retransmission_ratio", 100.0),
    ("time-outs", "timeouts", 1.0),
)
"""What `repr` shows of a flow: title, metric, factor."""


def _row(flow: Mapping[str, Any]) -> list[str]:
    values = ((flow.get(metric), factor) for _, metric, factor in _COLUMNS)
    return [
        str(flow["name"]),
        *("–" if value is None else f"{value * factor:.4g}" for value, factor in values),
    ]
