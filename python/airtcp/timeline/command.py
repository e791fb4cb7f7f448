"""`airtcp plot`: draws what a file says of a connection or a link over time."""

from __future__ import annotations

import argparse
import itertools
import math
import os
import shlex
import signal
import sys
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from airtcp._native import UNITS
from airtcp.errors import FAILED, OK, answer, check_input
from airtcp.runs.command import ERRORS, IncompleteError, Parser
from airtcp.runs.store import check_folder, write_atomically
from airtcp.scenario import Scenario, check_seeds
from airtcp.study.chart import Chart
from airtcp.study.interactive import chart_page
from airtcp.study.picture import FORMATS, draw
from airtcp.sweeps.labels import quantities
from airtcp.timeline.capture import GZIP, MAGIC, read_capture
from airtcp.timeline.events import TRANSFER, read_events
from airtcp.timeline.mahimahi import HEAD, read_mahimahi
from airtcp.timeline.model import Contents, NotPlottableError, Points, Ranges
from airtcp.timeline.panels import (
    CDFS,
    FLOW_VIEWS,
    LINK_VIEWS,
    cdf_chart,
    end_of,
    flow_chart,
    link_chart,
)
from airtcp.timeline.sequence import sequence_svg
from airtcp.words import nearest

COMMAND = "airtcp plot"
_PAGE = ".html"
_FORMATS = (*FORMATS, _PAGE)
_INPUT = (
    "a scenario's .toml, events of `airtcp run --events`, a capture, or a log of `airtcp link` or "
    "Mahimahi"
)


def main(arguments: Sequence[str], _simulator: object = None) -> int:
    """Runs `airtcp plot` with these arguments; returns the exit code."""

    def action() -> int:
        options = _parser().parse_args(arguments)
        options.command = shlex.join([*COMMAND.split(), *arguments])
        _plot(options)
        return OK

    return answer(COMMAND, action, *ERRORS)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog=COMMAND,
        description="Draw a connection or a link over time: sequence numbers, windows, round "
        "trips, rates, queues.",
        epilog="Exit codes: 0 drawn; 1 a file cannot be read or written; 2 bad input",
    )
    parser.add_argument(
        "file",
        type=Path,
        metavar="FILE",
        help="a scenario, which is then run; an event log of `airtcp run --events`; a capture or "
        "a gateway's recording (with tshark); a log of `airtcp link` or Mahimahi",
    )
    views = list(dict.fromkeys([*FLOW_VIEWS, *LINK_VIEWS]))
    parser.add_argument(
        "--views",
        type=lambda text: text.split(","),
        default=[],
        metavar="VIEW,…",
        help=f"of {', '.join(views)}; default: all for which there are data",
    )
    parser.add_argument(
        "--cdf",
        choices=list(CDFS),
        help="cumulative distributions instead: of round trips, of the completion times of "
        "transfers, or of the delays of a link",
    )
    parser.add_argument(
        "--sequence",
        action="store_true",
        help="a sequence diagram of a scenario with three nodes and one flow instead (SVG, with "
        "tshark)",
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--flow", metavar="NAME", help="default: the first flow")
    which.add_argument(
        "--link", metavar="NAME", help="a link of a scenario instead, such as 'AP>phone'"
    )
    parser.add_argument(
        "--from",
        type=_time,
        dest="start",
        metavar="TIME",
        help="start at this time, such as '500 ms'; without a unit, in seconds",
    )
    parser.add_argument("--until", type=_time, metavar="TIME", help="end at this time")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help=f"a name that ends in {', '.join(_FORMATS)} (a page to zoom in); default: FILE's, "
        "with .svg, in this folder",
    )
    parser.add_argument("--seed", type=int, metavar="N", help="of a scenario; default: 1")
    parser.add_argument(
        "--set", action="append", metavar="KEY=VALUE", help="an override of a scenario"
    )
    return parser


def _time(text: str) -> float:
    """Reads a time, s."""
    if known := quantities([text]):
        kind, size = UNITS[known.unit]
        if kind == "duration":
            return known.numbers[0] * size / UNITS["s"][1]
    try:
        return float(text)
    except ValueError:
        expected = "a time, such as '3 s' or '500 ms'"
        raise argparse.ArgumentTypeError(f"{text!r}: expected {expected}") from None


def _plot(options: argparse.Namespace) -> None:
    check_input(options.file, _INPUT)
    out = options.out or Path(f"{options.file.stem}.svg")
    if out.suffix not in _FORMATS:
        raise NotPlottableError(f"{out}: unknown kind of picture (expected {', '.join(_FORMATS)})")
    check_folder(out)
    if options.sequence:
        _plot_sequence(options, out)
        return
    _check_cdf(options)
    contents = _read(options)
    chart = (_distributions if options.cdf else _timeline)(options, contents)
    write_atomically(out, _drawn(chart, out.suffix, options.command))
    print(out)


def _check_cdf(options: argparse.Namespace) -> None:
    """Refuses, before anything is run, distributions that there cannot be."""
    if options.cdf and options.views:
        raise NotPlottableError("--views has no effect with --cdf")
    if options.cdf and options.file.suffix == ".toml":
        _check_kind(options, is_link=options.link is not None)


def _check_kind(options: argparse.Namespace, *, is_link: bool) -> None:
    if is_link and options.cdf != "delay":
        raise NotPlottableError(
            f"{options.file}: --cdf {options.cdf} is of flows: of a link there is --cdf delay"
        )
    if not is_link and options.cdf == "delay":
        raise _of_link(options, "--cdf delay")


def _of_link(options: argparse.Namespace, asked: str) -> NotPlottableError:
    """Why something of a link cannot be drawn, and what can be."""
    if options.file.suffix == ".toml":
        return NotPlottableError(
            f"{options.file}: {asked} is of a link (expected --link NAME beside it)"
        )
    return NotPlottableError(
        f"{options.file}: {asked} is of a link, and this file does not have its packets (expected "
        "the scenario and --link NAME, or a log of `airtcp run --link-logs` or `airtcp link`)"
    )


def _timeline(options: argparse.Namespace, contents: Contents) -> Chart:
    _check_views(options, is_link=contents.link is not None)
    if link := contents.link:
        _refuse_flow(options)
        parts = [link.capacity, link.arrived, link.departed, link.dropped]
        # An outage at the end is drawn, too.
        end = max([end_of(parts), *(until for _, until in link.outages)])
        if not end and not any(map(len, parts)):
            of = "" if options.link is None else f" of {link.name}"
            raise NotPlottableError(f"{options.file}: the log{of} has no packets")
        span = _span(options, end)
        title = options.file.name if options.link is None else f"{link.name}, {options.file.name}"
        return link_chart(link, options.views, span, title)
    if not contents.flows:
        instead = " (--link draws a link)" if options.file.suffix == ".toml" else ""
        raise NotPlottableError(f"{options.file}: no TCP flow sends anything{instead}")
    _check_flow(options, contents.flows)
    name = next(iter(contents.flows)) if options.flow is None else options.flow
    flow = contents.flows[name]
    begin = float(flow.sent.time[0]) if TRANSFER in name and len(flow.sent) else 0.0
    data: list[Points | Ranges] = [flow.sent, flow.retransmitted, flow.acked, flow.delivered]
    if not any(map(len, data)):
        raise NotPlottableError(f"{options.file}: {name} sends no data")
    span = _span(options, end_of(data), begin)
    chart = flow_chart(flow, options.views, span, options.file.name)
    if options.flow is None and (others := len(contents.flows) - 1):
        also = "one other flow" if others == 1 else f"{others} other flows"
        print(f"{name}; --flow shows one of {also}", file=sys.stderr)
    return chart


def _distributions(options: argparse.Namespace, contents: Contents) -> Chart:
    curves: dict[str, list[Points]] = {}
    if contents.link:
        _refuse_flow(options)
    _check_kind(options, is_link=contents.link is not None)
    if contents.link:
        curves[contents.link.name] = [contents.link.delay]
    else:
        # A flow's curve is of all its transfers, unless one of them is named.
        whole = {name.split(TRANSFER)[0] for name in contents.flows}
        if options.flow not in whole:
            _check_flow(options, contents.flows)
        for name, flow in contents.flows.items():
            of = name.split(TRANSFER)[0]
            if options.flow in (None, name, of):
                of_flow = {"rtt": flow.rtt, "completion": flow.completed}
                curve = name if options.flow == name else of
                curves.setdefault(curve, []).append(of_flow[options.cdf])
    known = {name: parts for name, parts in curves.items() if any(map(len, parts))}
    if not known:
        of = ", ".join(itertools.islice(curves, 10)) or "a flow"
        raise NotPlottableError(f"{options.file}: there is no {CDFS[options.cdf]} of {of}")
    span = _span(options, max(end_of(parts) for parts in known.values()))
    only = f"{next(iter(known))}, " if len(known) == 1 else ""
    return cdf_chart(options.cdf, known, span, f"{only}{options.file.name}")


def _refuse_flow(options: argparse.Namespace) -> None:
    if options.flow is not None:
        raise NotPlottableError(f"{options.file}: --flow has no effect: it is the log of a link")


def _check_views(options: argparse.Namespace, *, is_link: bool) -> None:
    known, others = (LINK_VIEWS, FLOW_VIEWS) if is_link else (FLOW_VIEWS, LINK_VIEWS)
    for view in options.views:
        if view not in known and view in others:
            if not is_link:
                raise _of_link(options, f"--views {view}")
            raise NotPlottableError(
                f"{options.file}: --views {view} is of a flow: of a link there are "
                f"{', '.join(known)}"
            )
        if view not in known:
            expected = f"expected one of {', '.join(known)}"
            raise NotPlottableError(f"no view {view!r}: {expected}{nearest(view, known)}")


def _check_flow(options: argparse.Namespace, known: Iterable[str]) -> None:
    transfers = [name for name in known if name.split(TRANSFER)[0] == options.flow]
    if transfers and options.flow not in transfers:
        some = ", ".join(itertools.islice(transfers, 10))
        raise NotPlottableError(
            f"{options.file}: each transfer of {options.flow!r} has a connection of its own "
            f"(expected one of them: {some})"
        )
    _check_name(options, "flow", options.flow, known)


def _check_name(
    options: argparse.Namespace, kind: str, name: str | None, known: Iterable[str]
) -> None:
    if name is not None and name not in known:
        asked = options.flow if kind == "flow" else name
        some = ", ".join(itertools.islice(known, 10)) or "none"
        raise NotPlottableError(
            f"{options.file}: no {kind} {asked!r} (it has: {some}){nearest(name, known)}"
        )


def _drawn(chart: Chart, suffix: str, command: str) -> bytes:
    if suffix == _PAGE:
        from airtcp._native import __version__  # noqa: PLC0415 - only a page names it

        return chart_page(chart, command, __version__)
    return draw(chart, suffix)[suffix]


def _plot_sequence(options: argparse.Namespace, out: Path) -> None:
    if options.file.suffix != ".toml" or out.suffix != ".svg":
        raise NotPlottableError(f"{options.file}: --sequence draws a scenario's .toml, as .svg")
    for given, option in (
        (options.views, "--views"),
        (options.flow, "--flow"),
        (options.link, "--link"),
        (options.cdf, "--cdf"),
    ):
        if given:
            raise NotPlottableError(f"{option} has no effect with --sequence")
    start = 0.0 if options.start is None else options.start
    overrides = dict(_pair(text) for text in options.set or [])
    seed = 1 if options.seed is None else options.seed
    write_atomically(out, sequence_svg(options.file, overrides, seed, (start, options.until)))
    print(out)


def _read(options: argparse.Namespace) -> Contents:
    path: Path = options.file
    if path.suffix == ".toml":
        return _simulate(options)
    for given, option in (
        (options.set, "--set"),
        (options.seed, "--seed"),
        (options.link, "--link"),
    ):
        if given is not None:
            raise NotPlottableError(f"{path}: {option} has no effect: it is not a scenario")
    with path.open("rb") as file:
        # `HEAD` stands below a command line, which may be long.
        head = file.read(1 << 16)
    if head.startswith(MAGIC) or (head.startswith(GZIP) and _unpacked(head).startswith(MAGIC)):
        return read_capture(path)
    if head.startswith(b"{"):
        return read_events(path)
    if HEAD.encode() in head:
        return read_mahimahi(path)
    raise NotPlottableError(f"{path}: unknown contents (expected {_INPUT})")


def _unpacked(head: bytes) -> bytes:
    """The first bytes of what gzip compressed; none if it is damaged."""
    try:
        return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(head, 64)
    except zlib.error:
        return b""


def _simulate(options: argparse.Namespace) -> Contents:
    """The events of a run."""
    from airtcp._native import cli_main, link_log_name  # noqa: PLC0415 - for scenarios only

    # Mistakes are told here, before the run, which itself prints a table.
    path: Path = options.file
    overrides: Sequence[str] = options.set or []
    seed = 1 if options.seed is None else options.seed
    scenario = Scenario.load(path, dict(_pair(text) for text in overrides))
    check_seeds([seed])
    _check_views(options, is_link=options.link is not None)
    flow = None if options.flow is None else options.flow.split(TRANSFER)[0]
    _check_name(options, "flow", flow, scenario.flows)
    _check_name(options, "link", options.link, scenario.links)
    _span(options, scenario.duration)
    with tempfile.TemporaryDirectory() as folder:
        events, logs = Path(folder) / "events.jsonl", Path(folder) / "links"
        output = ["--events", str(events)] if options.link is None else ["--link-logs", str(logs)]
        command = ["airtcp", "run", "--seed", str(seed), *output]
        command += [word for text in overrides for word in ("--set", text)]
        # Its name may begin as an option does.
        command += ["--", str(path)]
        handler = signal.getsignal(signal.SIGINT)
        with _stdout_to_stderr():
            code = cli_main(command)
        # The run has taken Ctrl-C for itself.
        signal.signal(signal.SIGINT, handler)
        if code == FAILED:
            raise IncompleteError(f"{path}: the run was not completed")
        if code:
            raise NotPlottableError(f"{path}: the run failed")
        of_flows, of_links = scenario.outages()
        if options.link is None:
            flows = {
                name: replace(flow, outages=tuple(of_flows[name.split(TRANSFER)[0]]))
                for name, flow in read_events(events).flows.items()
            }
            return Contents(flows)
        link = read_mahimahi(logs / link_log_name(options.link), options.link).link
        assert link is not None
        return Contents(link=replace(link, outages=tuple(of_links[options.link])))


@contextmanager
def _stdout_to_stderr() -> Iterator[None]:
    """The run's table is no answer to a command that asks for a picture."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise NotPlottableError(f"--set {text}: no value (expected KEY=VALUE)")
    return key, value


def _span(options: argparse.Namespace, end: float, begin: float = 0.0) -> tuple[float, float]:
    start = begin if options.start is None else options.start
    until = end if options.until is None else options.until
    if not 0 <= start < until < math.inf or start > end:
        raise NotPlottableError(
            f"nothing from {start:g} s until {until:g} s (the file ends at {end:g} s)"
        )
    return start, until
