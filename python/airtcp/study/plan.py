"""From experiments to runs: which simulations a study needs, each exactly once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from airtcp.study.definition import Experiment, Key, Study, Variant
from airtcp.study.testbed import Testbed, testbed_of

FIRST_SEED = 1
"""Seeds of a study are 1, 2, …, so that variants are paired by seed."""


@dataclass(frozen=True)
class Job:
    """One run: everything its result depends on, except the simulator itself.

    Attributes:
        file: The scenario file, for error messages.
        text: Its contents.
        overrides: As `--set`.
        series: Names of the series to record, sorted.
        testbed: What measures it instead of the simulator; then `text` is the case.
    """

    file: str
    text: str
    overrides: Key
    seed: int
    series: tuple[str, ...]
    testbed: Testbed | None = None

    @cached_property
    def _content(self) -> str:
        # The scenario's name defaults to the file's, so the file is part of the content.
        command = [] if self.testbed is None else [self.testbed.command]
        return json.dumps([self.file, self.text, self.overrides, self.seed, self.series, *command])

    def address(self, simulator: str) -> str:
        """Name of the result among the kept runs: a hash of the job and the simulator's build."""
        return hashlib.sha256(f"{simulator}\n{self._content}".encode()).hexdigest()[:32]

    def __str__(self) -> str:
        if self.testbed is not None:
            return f"{self.file}={self.text!r}, run {self.seed}"
        overrides = "".join(f" --set {key}={value}" for key, value in self.overrides)
        return f"{self.file}{overrides} --seed {self.seed}"


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
    )


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
