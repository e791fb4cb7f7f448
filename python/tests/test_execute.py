from __future__ import annotations

import errno
from pathlib import Path

import pytest

from airtcp.runs import store as store_module
from airtcp.runs.execute import Outcome, Threads, execute
from airtcp.runs.job import Job
from airtcp.runs.store import BATCH, DamagedRunError, Store
from airtcp.study import definition, plan
from tests.fakes import FakeSimulator, fake_run, kept, write_study


@pytest.fixture
def jobs(tmp_path: Path) -> list[Job]:
    study = definition.load(write_study(tmp_path))
    return plan.jobs(study, study.experiments, 4)


def run(jobs: list[Job], store: Store, simulator: FakeSimulator, stop_at: int = -1) -> Outcome:
    def on_progress(finished: int) -> None:
        if finished == stop_at:
            raise KeyboardInterrupt

    with Threads(1, simulator) as workers:
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
    assert {file.suffix for file in (tmp_path / "runs").iterdir()} <= {".npz", ".gz"}


def without_series(count: int) -> list[Job]:
    return [Job("a.toml", "text", (), seed, ()) for seed in range(count)]


def metrics(store: Store, jobs: list[Job]) -> list[object]:
    return [store.get(job).metrics for job in jobs]


def test_runs_without_series_share_a_file(tmp_path: Path) -> None:
    jobs = without_series(50)
    store = Store(tmp_path, "1")
    run(jobs, store, FakeSimulator())
    assert len(list(tmp_path.iterdir())) < 5
    expected = [fake_run(job).metrics for job in jobs]
    assert metrics(store, jobs) == expected
    assert metrics(Store(tmp_path, "1"), jobs) == expected


def test_a_batch_is_written_when_it_is_large_or_old(tmp_path: Path) -> None:
    store = Store(tmp_path, "1")
    one, two, three = without_series(3)
    store.put(one, b'{"x":1}')
    store.flush(after=60)
    assert (store.waiting, kept(tmp_path)) == (1, {})
    store.put(two, b'{"x":"%s"}' % (b"x" * BATCH))
    store.flush(after=60)
    assert (store.waiting, len(kept(tmp_path))) == (0, 2)
    store.put(three, b'{"x":3}')
    store.flush()
    assert metrics(Store(tmp_path, "1"), [one, three]) == [{"x": 1}, {"x": 3}]


def test_a_damaged_archive_is_named(tmp_path: Path, jobs: list[Job]) -> None:
    store = Store(tmp_path / "runs", "1")
    run(jobs, store, FakeSimulator())
    file = tmp_path / "runs" / f"{jobs[0].address('1')}.npz"
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(DamagedRunError, match=rf"{file.name}: not a stored run.*delete it"):
        store.get(jobs[0])
    assert store.drop_damaged(jobs) == [file]
    assert [store.has(job) for job in jobs] == [False] + [True] * (len(jobs) - 1)


@pytest.mark.parametrize("place", [0, 30, -6, -1])
def test_a_damaged_batch_is_dropped_and_run_again(tmp_path: Path, place: int) -> None:
    jobs = without_series(3)
    first = Store(tmp_path, "1")
    run(jobs, first, FakeSimulator())
    (file,) = tmp_path.iterdir()
    data = bytearray(file.read_bytes())
    data[place] ^= 0x55
    file.write_bytes(data)
    # It may be damaged before a store looks at it, or after.
    with pytest.raises(DamagedRunError, match=file.name):
        first.get(jobs[0])
    assert not first.has(jobs[2])
    later = Store(tmp_path, "1")
    assert not any(map(later.has, jobs))
    assert later.drop_damaged(jobs) == [file]
    assert run(jobs, later, FakeSimulator()).simulated == 3
    assert metrics(later, jobs) == [fake_run(job).metrics for job in jobs]


def test_an_empty_batch_is_damaged(tmp_path: Path) -> None:
    jobs = without_series(2)
    run(jobs, Store(tmp_path, "1"), FakeSimulator())
    (file,) = tmp_path.iterdir()
    file.write_bytes(b"")
    later = Store(tmp_path, "1")
    assert later.drop_damaged(jobs) == [file]
    assert run(jobs, later, FakeSimulator()).simulated == 2
    assert metrics(later, jobs) == [fake_run(job).metrics for job in jobs]


def test_what_cannot_be_written_is_not_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = without_series(3)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(store_module, "write_atomically", full)
    outcome = run(jobs, Store(tmp_path, "1"), FakeSimulator())
    assert (outcome.simulated, str(outcome.stopped)) == (
        0,
        f"cannot write to {tmp_path}: No space left on device",
    )
