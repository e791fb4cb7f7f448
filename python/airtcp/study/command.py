"""`airtcp study`: list and run studies."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table as Grid

from airtcp.errors import BAD_INPUT, FAILED, OK, answer, complain
from airtcp.runs.command import ERRORS, IncompleteError, Parser, Runner, add_options, positive
from airtcp.runs.execute import Simulator, SimulatorLike
from airtcp.runs.job import FIRST_SEED, Job
from airtcp.runs.store import Store, write_atomically
from airtcp.runs.testbed import NotHereError
from airtcp.study import claims, claims_page, definition, figures, listing, outputs, plan, report
from airtcp.study.cells import Cell, Results, measure_all, score
from airtcp.study.claims import Judgement, Verdict
from airtcp.study.definition import Experiment, Study
from airtcp.study.listing import EXIT_CODES
from airtcp.study.schema import study_schema

UNDECIDED, REFUTED = 3, 4
"""More exit codes; `UNDECIDED`: no claim is refuted, and some are neither shown nor refuted."""

_VERDICT_CODES = (
    "Exit codes: 0 all claims hold (with --quick: none is refuted); 1 a run failed or was "
    "interrupted; 2 bad input; 3 claims are undecided; 4 claims are refuted"
)


def main(arguments: Sequence[str], simulator: SimulatorLike | None = None) -> int:
    """Runs `airtcp study` with these arguments; returns the exit code."""

    def action() -> int:
        options = _parser().parse_args(arguments)
        code: int = options.action(options, simulator)
        return code

    return answer("airtcp study", action, *ERRORS)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="airtcp study",
        description="Reproduce papers: run a study and test its claims.",
        epilog="Exit codes: see each command's --help",
    )
    actions = parser.add_subparsers(
        required=True, metavar="list | check | schema | run | all | claims"
    )
    listed = actions.add_parser(
        "list", help="list the studies and their experiments", epilog=EXIT_CODES
    )
    listing.add_options(listed)
    listed.set_defaults(action=listing.show)
    check = actions.add_parser(
        "check", help="check a study: say ok, or what is wrong", epilog=EXIT_CODES
    )
    check.add_argument("study", metavar="STUDY", help="name, or path of its folder or study.toml")
    check.set_defaults(action=_check)
    schema = actions.add_parser(
        "schema", help="print the JSON Schema of study.toml, for editors", epilog=EXIT_CODES
    )
    schema.set_defaults(action=_schema)
    run = actions.add_parser("run", help="run a study", epilog=_VERDICT_CODES)
    run.add_argument("study", metavar="STUDY", help="name, or path of its folder")
    run.add_argument("--only", metavar="ID,…", help="only these experiments")
    run.add_argument("--quick", action="store_true", help="fewer runs, main experiments only")
    run.add_argument("--runs", type=positive, metavar="N", help="runs (seeds) per variant")
    add_options(run)
    run.add_argument("--out", type=Path, metavar="DIR", help="default: results/STUDY")
    shown = run.add_mutually_exclusive_group()
    shown.add_argument(
        "--claims", action="store_true", help="show each claim, and the paper's numbers beside ours"
    )
    shown.add_argument("--json", action="store_true", help="one JSON object a line")
    run.set_defaults(action=_run)
    every = actions.add_parser(
        "all", help="run all studies, into results/STUDY", epilog=_VERDICT_CODES
    )
    every.add_argument("--quick", action="store_true", help="fewer runs, main experiments only")
    add_options(every)
    every.set_defaults(action=_all)
    pages = actions.add_parser(
        "claims", help="write a page a study: each claim and its verdict", epilog=EXIT_CODES
    )
    pages.add_argument(
        "--take",
        type=Path,
        metavar="DIR",
        help="first take the verdicts of the runs in DIR/STUDY into the studies' claims.csv",
    )
    pages.add_argument("--out", type=Path, metavar="DIR", required=True, help="folder of the pages")
    pages.set_defaults(action=_claims)
    return parser


def _check(options: argparse.Namespace, simulator: SimulatorLike | None) -> int:
    path = Path(options.study)
    named = path.parent if path.name == "study.toml" else path
    study = definition.load(definition.find(str(named)))
    _check_variants(plan.jobs(study, study.experiments, 1), simulator or Simulator())
    print(f"{study.name}: ok")
    return OK


def _schema(_options: argparse.Namespace, _simulator: SimulatorLike | None) -> int:
    print(json.dumps(study_schema(), indent=2))
    return OK


def _all(options: argparse.Namespace, simulator: SimulatorLike | None) -> int:
    """Runs every study that can run here. One that fails does not keep the others from running.

    The exit code is that of a study that failed, or else the highest.
    """
    codes = [OK]
    how = ["--quick"] if options.quick else []
    how += ["--jobs", str(options.jobs)] if options.jobs else []
    how += ["--dask", options.dask] if options.dask else []
    how += ["--quiet"] if options.quiet else []
    for name in definition.names():
        print(f"\n{name}", flush=True)
        try:
            codes.append(_run(_parser().parse_args(["run", name, *how]), simulator))
        except NotHereError as error:
            print(f"airtcp study: {name} is left out: {error}", file=sys.stderr)
        except BrokenPipeError:
            raise
        except ERRORS as error:
            if isinstance(error, IncompleteError) and error.interrupted:
                raise
            codes.append(complain(f"airtcp study: {name}", error))
    return max((code for code in codes if code in (FAILED, BAD_INPUT)), default=max(codes))


def _claims(options: argparse.Namespace, _simulator: SimulatorLike | None) -> int:
    studies = [definition.load(definition.find(name)) for name in definition.names()]
    for study in studies if options.take else ():
        if not claims_page.take(study, options.take):
            print(f"airtcp study: {options.take} has no run of {study.name}", file=sys.stderr)
    claims_page.write(studies, options.out)
    return OK


def _run(options: argparse.Namespace, simulator: SimulatorLike | None) -> int:
    study = definition.load(definition.find(options.study), quick=options.quick)
    experiments = _chosen(study, options)
    runs = options.runs or (study.quick_runs if options.quick else study.runs)
    out = options.out or Path("results") / study.name
    simulator = simulator or Simulator()
    jobs = plan.jobs(study, experiments, runs)
    _check_variants(jobs, simulator)
    try:
        store = Store(out / "runs", simulator.build)
        (out / "figures").mkdir(exist_ok=True)
    except OSError as error:
        print(f"airtcp study: cannot write to {out}: {error.strerror}", file=sys.stderr)
        return BAD_INPUT

    how = ["--quick"] if options.quick else []
    how += ["--only", options.only] if options.only is not None else []
    command = " ".join(["airtcp study run", study.name, *how, f"--runs {runs}"])
    runner = Runner("airtcp study", store, simulator, options.jobs, options.dask, options.quiet)
    results, judgements = runner.run_and_read(
        jobs, lambda: write_all(study, experiments, store, runs, out, command)
    )
    if options.json:
        _print_json(study, results, judgements, out)
    else:
        _print_results(study, experiments, results, judgements, out, all_claims=options.claims)
    verdicts = {judgement.verdict for judgement in judgements}
    if Verdict.REFUTED in verdicts:
        return REFUTED
    # The few runs of the quick form are expected to leave claims undecided.
    return UNDECIDED if Verdict.UNDECIDED in verdicts and not options.quick else OK


def _check_variants(jobs: Iterable[Job], simulator: SimulatorLike) -> None:
    """Checks each variant among the jobs, which differ in seeds."""
    for job in jobs:
        if job.seed == FIRST_SEED:
            simulator.check(job)


def _chosen(study: Study, options: argparse.Namespace) -> tuple[Experiment, ...]:
    if options.only is not None:
        return study.choose(filter(None, options.only.split(",")))
    return study.choose(study.quick_experiments) if options.quick else study.experiments


def write_all(
    study: Study,
    experiments: tuple[Experiment, ...],
    store: Store,
    runs: int,
    out: Path,
    command: str,
) -> tuple[Results, list[Judgement]]:
    """Measures the kept runs and writes the tables, figures and report into `out`.

    The report names the `command` that does so again.

    Raises:
        OSError: A file cannot be written.
        ValueError: A kept run is damaged, or a metric needs something that runs do not have.
    """
    results = measure_all(study, experiments, store, runs)
    judgements = claims.judge_all(study, experiments, results)
    charts = list(figures.chart_all(study, experiments, results))
    outputs.write_tables(out, study.name, results, judgements)
    for chart in charts:
        # Matplotlib is slow to load, and who only lists, prints or measures does without.
        from airtcp.study.picture import FORMATS, draw  # noqa: PLC0415

        for suffix, drawn in draw(chart, *FORMATS).items():
            write_atomically(out / "figures" / f"{chart.id}{suffix}", drawn)
    origin = report.Origin(store.build, command)
    page = out / "report.html"
    report.write_report(page, study, experiments, results, judgements, charts, origin)
    return results, judgements


def _print_json(study: Study, results: Results, judgements: Sequence[Judgement], out: Path) -> None:
    for cell in results.cells:
        print(json.dumps({"type": "cell", **outputs.cell_json(study.name, cell)}))
    for judgement in judgements:
        row = {**outputs.claim_row(study.name, judgement), "runs": judgement.runs}
        print(json.dumps({"type": "claim", **row}, ensure_ascii=False))
    print(json.dumps({"type": "report", "path": str(out / "report.html")}))


_COLOURS = {Verdict.HOLDS: "green", Verdict.UNDECIDED: "yellow", Verdict.REFUTED: "red"}


def _print_results(
    study: Study,
    experiments: Sequence[Experiment],
    results: Results,
    judgements: Sequence[Judgement],
    out: Path,
    *,
    all_claims: bool,
) -> None:
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    if all_claims:
        _print_rows(console, results, judgements)
    apart = ["calibrated"] if any(judgement.calibrated for judgement in judgements) else []
    grid = Grid("", study.title, *_COLOURS, *apart, box=box.SIMPLE)
    for experiment in experiments:
        own = [judgement for judgement in judgements if judgement.experiment == experiment.id]
        counts = claims.count(own)
        cells = [
            f"[{colour}]{counts[verdict]}[/]" if counts[verdict] else ""
            for verdict, colour in _COLOURS.items()
        ]
        cells += [str(counts[name] or "") for name in apart]
        grid.add_row(experiment.id, experiment.title, *cells)
    console.print(grid)
    if study.summary:
        console.print(study.summary, markup=False)
    runs = claims.runs_text(results.sizes)
    print(f"{claims.summary(judgements)} ({runs} per variant)")
    met = score(results.cells)
    if met.predicted:
        print(met)
    drawn = [figure for experiment in experiments for figure in experiment.figures]
    for figure in sorted(drawn, key=lambda figure: figure.id != study.headline)[:1]:
        print(f"figure: {out / 'figures' / figure.id}.svg ({figure.title})")
    print(f"report: {out / 'report.html'} (every claim; --claims prints them)")


def _print_rows(console: Console, results: Results, judgements: Sequence[Judgement]) -> None:
    known = [cell for cell in results.cells if cell.paper]
    if known:
        grid = Grid("experiment", "variant", "metric", "ours", "paper")
        for cell in known:
            grid.add_row(
                cell.experiment,
                cell.text.replace(";", " "),
                cell.metric,
                claims.interval(cell.ours, cell.unit),
                _paper_number(cell),
            )
        console.print(grid)
    grid = Grid("experiment", "the paper's claim", "", "our numbers")
    for judgement in judgements:
        verdict = judgement.verdict
        mark = f"[{_COLOURS[verdict]}]{verdict}[/]"
        brief = "; ".join(filter(None, (judgement.brief, judgement.needed)))
        grid.add_row(judgement.experiment, judgement.claim.text, mark, brief)
    console.print(grid)


def _paper_number(cell: Cell) -> str:
    number = f"{cell.paper.value} {cell.unit}" if cell.paper else ""
    return f"{number} (calibrated)" if cell.calibrated else number
