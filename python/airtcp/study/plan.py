"""From experiments to runs: which simulations a study needs, each exactly once."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from airtcp.runs.job import FIRST_SEED, Job
from airtcp.runs.testbed import testbed_of
from airtcp.scenario import Files, files_of
from airtcp.study.definition import Experiment, Study, Variant


def job(study: Study, experiment: Experiment, variant: Variant, seed: int) -> Job:
    """The run of one variant of an experiment with one seed."""
    scenario = experiment.scenario
    testbed = testbed_of(study.testbeds, variant.key)
    if testbed is not None:
        return Job(testbed.variable, testbed.case_of(variant.key), (), seed, (), testbed)
    return Job(
        file=scenario,
        text=study.scenarios[scenario],
        overrides=variant.overrides,
        seed=seed,
        series=study.series[scenario, variant.overrides],
        files=_files(str(study.folder / scenario), study.scenarios[scenario], variant.overrides),
    )


@cache
def _files(path: str, text: str, overrides: tuple[tuple[str, str], ...]) -> Files:
    """The files that a scenario names; none if it is wrong, which is found when it is checked."""
    try:
        return files_of(path, text, overrides)
    except ValueError:
        return ()


def seeds(experiment: Experiment, runs: int) -> range:
    """The seeds of an experiment in a study with this many runs per variant."""
    return range(FIRST_SEED, FIRST_SEED + min(runs, experiment.runs))


def jobs(study: Study, experiments: Iterable[Experiment], runs: int) -> list[Job]:
    """All runs of the experiments, without repetition, in a fixed order.

    A variant that a model computes needs none.
    """
    wanted = {
        job(study, experiment, variant, seed): None
        for experiment in experiments
        for variant in experiment.variants
        if study.model is None or not study.model.computes(variant.key)
        for seed in seeds(experiment, runs)
    }
    return list(wanted)
