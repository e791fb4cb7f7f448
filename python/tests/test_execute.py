from __future__ import annotations

from pathlib import Path

import pytest

from airtcp.runs.execute import DamagedRunError, Outcome, Store, Threads, execute
from airtcp.runs.job import Job
from airtcp.study import definition, plan
from tests.fakes import FakeSimulator, write_study


@pytest.fixture
def jobs(tmp_path: Path) -> list[Job]:
    study = definition.load(write_study(tmp_path))
    return plan.jobs(study, study.experiments, 4)


def run(jobs: list[Job], store: Store, simulator: FakeSimulator, stop_at: int = -1) -> Outcome:
    def on_progress(finished: int) -> None:
        if finished == stop_at:
            raise KeyboardInterrupt

    with Threads(1, simulator, store) as workers:
        return execute(jobs, store, workers, on_progress)


def test_experiments_that_need_the_same_run_share_it(jobs: list[Job]) -> None:
    assert len(jobs) == 2 * 4


def test_a_second_execution_simulates_nothing(tmp_path: Path, jobs: list[Job]) -> None:
    store = Store(tmp_path / "runs", "1")
    first = run(jobs, store, FakeSimulator())
    again = FakeSimulator()
    second = run(jobs, store, again)
    assert (first.kept, first.simulated) == (0, 8)
    assert (second.kept, second.simulated, again.jobs) == (8, 0, [])


def test_a_new_build_runs_everything_again(tmp_path: Path, jobs: list[Job]) -> None:
    run(jobs, Store(tmp_path / "runs", "1"), FakeSimulator())
    outcome = run(jobs, Store(tmp_path / "runs", "2"), FakeSimulator())
    assert outcome.simulated == 8


def test_the_address_depends_on_everything_the_result_does() -> None:
    job = Job("a.toml", "text", (("k", "v"),), 1, ("cwnd",))
    others = [
        Job("b.toml", "text", (("k", "v"),), 1, ("cwnd",)),
        Job("a.toml", "other", (("k", "v"),), 1, ("cwnd",)),
        Job("a.toml", "text", (("k", "w"),), 1, ("cwnd",)),
        Job("a.toml", "text", (("k", "v"),), 2, ("cwnd",)),
        Job("a.toml", "text", (("k", "v"),), 1, ()),
    ]
    addresses = {job.address("1"), job.address("2"), *(other.address("1") for other in others)}
    assert len(addresses) == 7


def test_a_failed_run_is_reported_and_the_others_are_kept(tmp_path: Path, jobs: list[Job]) -> None:
    outcome = run(jobs, Store(tmp_path / "runs", "1"), FakeSimulator(fail=frozenset({3})))
    assert outcome.simulated == 6
    assert [job.seed for job, _ in outcome.failed] == [3, 3]
    assert "cursed" in str(outcome.failed[0][1])


def test_ctrl_c_keeps_what_is_finished_and_the_next_execution_does_the_rest(
    tmp_path: Path, jobs: list[Job]
) -> None:
    store = Store(tmp_path / "runs", "1")
    simulator = FakeSimulator()
    outcome = run(jobs, store, simulator, stop_at=0)
    assert isinstance(outcome.stopped, KeyboardInterrupt)
    assert simulator.stopped
    kept = sum(map(store.has, jobs))
    assert kept == outcome.simulated < len(jobs)
    rest = run(jobs, store, FakeSimulator())
    assert (rest.kept, rest.simulated) == (kept, len(jobs) - kept)


def test_nothing_half_written_is_left(tmp_path: Path, jobs: list[Job]) -> None:
    store = Store(tmp_path / "runs", "1")
    run(jobs, store, FakeSimulator(fail=frozenset({1})), stop_at=3)
    assert all(file.suffix == ".run" for file in (tmp_path / "runs").iterdir())


def test_a_damaged_run_is_named(tmp_path: Path, jobs: list[Job]) -> None:
    store = Store(tmp_path / "runs", "1")
    run(jobs, store, FakeSimulator())
    file = tmp_path / "runs" / f"{jobs[0].address('1')}.run"
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(DamagedRunError, match=rf"{file.name}: not a stored run.*delete it"):
        store.get(jobs[0])
