from __future__ import annotations

import copy
import json
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import airtcp
from tests.fakes import kept, started

SCENARIO = """
duration = "5 s"
[[node]]
name = "A"
[[node]]
name = "B"
[[link]]
between = ["A", "B"]
rate = "1 Mbit/s"
delay = "20 ms"
loss = { kind = "bernoulli", p = 0.01 }
[[flow]]
name = "ftp"
from = "A"
to = "B"
"""

LONG = SCENARIO.replace('"5 s"', '"100000 s"').replace("1 Mbit/s", "100 Mbit/s")


def test_a_run_gives_metrics_and_traces() -> None:
    run = airtcp.Scenario.parse(SCENARIO).run(seed=3, trace=("cwnd", "delivered", "ack_received"))
    assert run.metrics["seed"] == 3
    assert run.metrics["duration"] == 5.0
    delivered = run.array("delivered")
    assert delivered.value[-1] == run.metrics["flows"][0]["delivered_bytes"] > 0
    assert np.all(np.diff(delivered.time) >= 0)
    assert delivered.time.dtype == delivered.value.dtype == np.float64
    assert delivered.flow.dtype == np.uint32
    assert set(run.trace("ack_received")["flow"]) == {"ftp"}
    assert list(run.links.index) == ["A>B", "B>A"]


def pickled(one: object) -> object:
    return pickle.loads(pickle.dumps(one))


WIRELESS = """
duration = "10 s"
node = [
  { name = "FH" },
  { name = "AP", middlebox = { mechanism = "m-tcp-plus", mobiles = ["MH"] } },
  { name = "MH", outage = { listed = [["4 s", "5 s"]] } },
]
link = [{ between = ["FH", "AP"], rate = "100 Mbit/s", delay = "1 ms" }]
wlan = [{ name = "cell", stations = ["AP", "MH"] }]
flow = [{ from = "FH", to = "MH" }]
tcp = { preset = "rfc" }
udp = [{ name = "noise", from = "MH", to = "AP", rate = "100 kbit/s", size = "1250 B" }]
"""


def test_a_wireless_run_has_stations_cross_traffic_and_dead_times() -> None:
    run = airtcp.Scenario.parse(WIRELESS).run(seed=1, trace=("outage_dead_time", "persist"))
    assert list(run.stations.index) == ["cell/AP", "cell/MH"]
    assert run.stations["data_frames_sent"]["cell/AP"] > 1000
    assert run.udp.loc["noise", "packets_sent"] == 101
    flow = run.flows.loc["FH-MH"]
    assert list(run.array("outage_dead_time").value) == [flow["outage_dead_time"]]
    assert set(run.array("persist").value) == {0.0, 1.0}
    assert run.middleboxes.loc["AP", "freezes"] == 1


def test_a_series_can_be_asked_for_by_its_name_alone() -> None:
    assert set(airtcp.Scenario.parse(SCENARIO).run(trace="cwnd").series) == {"cwnd"}


def test_sequence_numbers_are_positions_in_the_stream() -> None:
    run = airtcp.Scenario.parse(SCENARIO).run(trace=("seq_sent", "ack_received"))
    assert run.array("seq_sent").value[0] == 0
    assert run.array("ack_received").value[-1] <= run.metrics["flows"][0]["delivered_bytes"]
    assert "Sequence number" in airtcp.SERIES["seq_sent"]
    assert all(about.endswith(".") for about in airtcp.SERIES.values())


def test_an_impossible_seed_is_refused() -> None:
    with pytest.raises(ValueError, match="seed -1: expected a number from 0"):
        airtcp.Scenario.parse(SCENARIO).run(seed=-1)


def test_the_package_shows_what_it_has() -> None:
    assert dir(airtcp) == sorted(airtcp.__all__)
    assert {"Run", "Scenario", "plot", "sweep"} <= set(dir(airtcp))
    assert all(hasattr(airtcp, name) for name in dir(airtcp))


@pytest.mark.parametrize("through", [copy.copy, copy.deepcopy, pickled])
def test_scenarios_and_runs_pickle_and_copy(through: Callable[[Any], Any]) -> None:
    scenario = airtcp.Scenario.parse(SCENARIO, set={"duration": "2 s"}, name="x.toml")
    other = through(scenario)
    assert (other.source, other.duration) == (scenario.source, 2.0)
    run = scenario.run(trace="cwnd")
    assert through(run).to_bytes() == run.to_bytes() == other.run(trace="cwnd").to_bytes()


@pytest.mark.parametrize("through", [copy.copy, copy.deepcopy, pickled])
def test_an_error_pickles_and_copies_with_its_place(through: Callable[[Any], Any]) -> None:
    with pytest.raises(airtcp.ScenarioError) as caught:
        airtcp.Scenario.parse(SCENARIO + 'byts = "1 MB"\n', name="x.toml")
    error = through(caught.value)
    assert repr(type(error)) == "<class 'airtcp.ScenarioError'>"
    assert (str(error), error.file, error.line) == (str(caught.value), "x.toml", 16)


def test_goodput_is_bytes_delivered_over_the_time_active() -> None:
    flow = airtcp.Scenario.parse(SCENARIO).run(seed=1).flows.loc["ftp"]
    assert flow["goodput"] == pytest.approx(8 * flow["delivered_bytes"] / 5)


def test_the_same_seed_gives_the_same_run_and_another_seed_another() -> None:
    scenario = airtcp.Scenario.parse(SCENARIO)
    runs = [scenario.run(seed=seed, trace=("seq_sent",)).to_bytes() for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]


def test_threads_give_the_same_runs_as_one_after_the_other() -> None:
    scenario = airtcp.Scenario.parse(SCENARIO)
    one = [scenario.run(seed=seed).metrics for seed in range(8)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda seed: scenario.run(seed=seed).metrics, range(8))) == one


def test_slices_do_not_change_the_trajectory() -> None:
    scenario = airtcp.Scenario.parse(SCENARIO)
    slices: list[None] = []
    sliced = scenario.run(seed=5, trace=("seq_sent",), between_slices=lambda: slices.append(None))
    assert len(slices) > 5
    # A scenario with another duration is sliced at other times.
    longer = airtcp.Scenario.parse(SCENARIO, set={"duration": "7.7 s"})
    segments = longer.run(seed=5, trace=("seq_sent",)).array("seq_sent")
    upto = segments.time <= 5.0
    assert np.array_equal(segments.time[upto], sliced.array("seq_sent").time)
    assert np.array_equal(segments.value[upto], sliced.array("seq_sent").value)


def test_a_run_warns_of_what_makes_its_numbers_doubtful() -> None:
    short = {"duration": "2 s", "link.s-R1.queue.limit": "5 packets"}
    scenario = airtcp.Scenario.load(airtcp.EXAMPLES / "dumbbell.toml", set=short)
    with pytest.warns(UserWarning, match="overflowed in bursts"):
        run = scenario.run()
    assert len(run.metrics["warnings"]) == 1


def test_overrides_are_applied() -> None:
    scenario = airtcp.Scenario.parse(
        SCENARIO, set={"duration": "2 s", "tcp.timestamps": True, "link.A-B.loss.p": 0.5}
    )
    assert scenario.duration == 2.0


def test_load_reads_a_file_and_names_the_scenario_after_it(tmp_path: Path) -> None:
    file = tmp_path / "tiny.toml"
    file.write_text(SCENARIO)
    assert airtcp.Scenario.load(file).name == "tiny"
    with pytest.raises(FileNotFoundError):
        airtcp.Scenario.load(tmp_path / "none.toml")


def test_a_wrong_scenario_says_where() -> None:
    with pytest.raises(airtcp.ScenarioError) as caught:
        airtcp.Scenario.parse(SCENARIO + 'byts = "1 MB"\n', name="x.toml")
    error = caught.value
    assert isinstance(error, ValueError)
    assert (error.file, error.key.split(".")[-1]) == ("x.toml", "byts")
    assert (error.line, error.column) == (len(SCENARIO.splitlines()) + 1, 1)
    assert "did you mean `bytes`?" in str(error)


def test_a_wrong_override_is_a_scenario_error() -> None:
    with pytest.raises(airtcp.ScenarioError) as caught:
        airtcp.Scenario.parse(SCENARIO, set={"tcp.recovery": "nwreno"})
    assert caught.value.file == "--set"
    assert "newreno" in str(caught.value)


def test_an_unknown_series_is_refused() -> None:
    with pytest.raises(ValueError, match=r"unknown series 'cwn': .*did you mean 'cwnd'"):
        airtcp.Scenario.parse(SCENARIO).run(trace=("cwn",))


def test_every_series_can_be_recorded() -> None:
    run = airtcp.Scenario.parse(SCENARIO).run(trace=airtcp.SERIES)
    assert set(run.series) == set(airtcp.SERIES)
    assert len(run.array("rto").time) > 0


def test_the_caller_can_end_a_run() -> None:
    def stop() -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        airtcp.Scenario.parse(LONG).run(between_slices=stop)


def test_ctrl_c_ends_a_run() -> None:
    code = f"import airtcp\nprint('go', flush=True)\nairtcp.Scenario.parse('''{LONG}''').run()"
    with started(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "go\n"
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=20)
    assert "KeyboardInterrupt" in error
    assert process.returncode != 0


def test_other_threads_go_on_while_a_run_simulates() -> None:
    ticks = 0

    def stop() -> None:
        if ticks >= 100:
            raise InterruptedError

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(airtcp.Scenario.parse(LONG).run, between_slices=stop)
        while not future.done():
            ticks += 1
            time.sleep(0.001)
    assert isinstance(future.exception(), InterruptedError)


def test_a_run_is_captured_at_the_chosen_nodes(tmp_path: Path) -> None:
    folder = tmp_path / "captures"
    scenario = airtcp.Scenario.parse(SCENARIO)
    scenario.run(pcap=folder)
    assert sorted(file.name for file in folder.iterdir()) == ["A.pcapng", "B.pcapng"]
    whole = (folder / "A.pcapng").stat().st_size
    scenario.run(pcap=tmp_path / "A only", pcap_nodes="A", snaplen=96)
    (only,) = (tmp_path / "A only").iterdir()
    assert only.name == "A.pcapng"
    assert only.stat().st_size < whole / 3
    for arguments, message in (
        ({"pcap": folder, "pcap_nodes": "a1"}, "no node 'a1'|no node \"a1\""),
        ({"pcap": folder, "pcap_nodes": ["B", "A"], "snaplen": 0}, "from 1 to"),
        ({"pcap": tmp_path / "x.pcapng"}, "expected a folder"),
        ({"pcap": folder, "pcap_nodes": "A"}, "B.pcapng"),
        ({"snaplen": 96}, "no effect"),
        ({"pcap_monitor": True}, "no effect"),
        ({"pcap": tmp_path / "air", "pcap_monitor": True}, r"pcap_monitor: .*\[\[wlan\]\]"),
    ):
        with pytest.raises(ValueError, match=message):
            scenario.run(**arguments)


def test_the_command_runs_a_scenario(tmp_path: Path) -> None:
    file = tmp_path / "tiny.toml"
    file.write_text(SCENARIO)
    done = subprocess.run(
        [sys.executable, "-m", "airtcp", "run", str(file), "--seed", "2", "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    scenario = airtcp.Scenario.load(file)
    assert json.loads(done.stdout) == scenario.run(seed=2).metrics


def test_ctrl_c_during_a_study_keeps_what_is_finished(tmp_path: Path) -> None:
    folder = tmp_path / "long"
    (folder / "scenarios").mkdir(parents=True)
    (folder / "scenarios" / "long.toml").write_text(LONG)
    (folder / "study.toml").write_text(
        """
title = "Long"
paper = "None"
runs = 3
[[axis.duration]]
key = { duration = ["1 s", "100000 s"] }
set = { "duration" = "$duration" }
[metric.goodput]
unit = "bit/s"
from = "flow.goodput"
definition = "goodput"
[[experiment]]
id = "E"
title = "E"
scenario = "scenarios/long.toml"
grid = [["duration"]]
metrics = ["goodput"]
"""
    )
    command = [sys.executable, "-m", "airtcp", "study", "run", str(folder), "--jobs", "2"]
    with started(
        [*command, "--out", str(tmp_path / "out")], stderr=subprocess.PIPE, env=os.environ
    ) as process:
        runs = tmp_path / "out" / "runs"
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and len(kept(runs)) < 3:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=60)
    assert "interrupted; 3 of 6 runs are kept" in error
    assert process.returncode == 1
    assert len(kept(runs)) == 3
