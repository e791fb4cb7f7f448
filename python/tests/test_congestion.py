from __future__ import annotations

import copy
import pickle
import re
from pathlib import Path
from typing import Any

import pytest

import airtcp
from airtcp.congestion import Ack, CongestionControl, Loss, Timeout, Window

EXAMPLES = Path(__file__).parents[2] / "examples"
MINE = {"tcp.congestion": "custom", "tcp.control": "mine", "duration": "10 s"}


def is_small(window: Window) -> bool:
    return window.cwnd <= 16 * window.smss


class Scalable(CongestionControl):
    """As in examples/scalable/src/main.rs."""

    credit = 0

    def on_growth(self, window: Window, ack: Ack) -> None:
        if window.in_slow_start:
            window.grow(ack.acked)
        elif is_small(window):
            window.grow(window.smss * min(ack.acked, window.cwnd) // window.cwnd)
        else:
            growth, self.credit = divmod(self.credit + ack.acked, 100)
            window.grow(growth)

    def on_fast_retransmit(self, window: Window, loss: Loss) -> None:
        if is_small(window):
            window.ssthresh = max(loss.flight // 2, 2 * window.smss)
        else:
            window.ssthresh = window.cwnd - window.cwnd // 8
        window.cwnd = window.ssthresh

    def on_timeout(self, window: Window, timeout: Timeout) -> None:
        if timeout.first:
            window.ssthresh = max(timeout.flight // 2, 2 * window.smss)
        window.cwnd = window.smss


def test_the_example_in_the_documentation_is_this_control(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(EXAMPLES.parent)
    text = Path("docs/strategies.md").read_text()
    block = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert block
    namespace: dict[str, Any] = {}
    exec(compile(block[1], "docs/strategies.md", "exec"), namespace)
    assert namespace["run"].flows["delivered_bytes"].item() == 1_384_086_488


def dumbbell(**more: object) -> airtcp.Scenario:
    return airtcp.Scenario.load(EXAMPLES / "dumbbell.toml", set={**MINE, **more})


def test_the_same_control_in_python_and_in_rust_gives_the_same_numbers() -> None:
    scenario = airtcp.Scenario.load(EXAMPLES / "scalable/long.toml")
    run = scenario.run(congestion={"scalable": Scalable})
    assert run.metrics["events"] == 1_475_648
    assert run.flows["delivered_bytes"].item() == 1_384_086_488


def test_a_control_sees_acks_losses_and_marks_and_sets_the_pace() -> None:
    acks: list[Ack] = []
    marks: list[Loss] = []

    class Watching(Scalable):
        def on_ack(self, window: Window, ack: Ack) -> None:
            del window
            acks.append(ack)

        def on_ecn(self, window: Window, loss: Loss) -> None:
            marks.append(loss)
            self.on_fast_retransmit(window, loss)

        def pacing_rate(self, window: Window) -> float | None:
            del window
            return 12e6

    linux = {"tcp.preset": "linux", "tcp.recovery": "rack", "tcp.ecn": "rfc3168"}
    red = {"link.R1-R2.queue": "{ kind = 'red', limit = '100 packets', ecn = true }"}
    run = dumbbell(**linux, **red).run(congestion={"mine": Watching})
    assert run.flows["goodput"].max() < 12e6
    assert all(ack.now > 0 and ack.srtt is not None and ack.srtt > 0.02 for ack in acks)
    rates = [ack.delivery_rate for ack in acks if ack.delivery_rate is not None]
    assert 8e6 < sorted(rates)[len(rates) // 2] < 13e6
    assert len(marks) > 10


def test_each_run_has_controls_of_its_own() -> None:
    scenario = dumbbell()
    first, second = (scenario.run(congestion={"mine": Scalable}).metrics for _ in range(2))
    assert first == second


@pytest.mark.parametrize("when", ["made", "called"])
def test_an_exception_ends_the_run_and_is_passed_on(when: str) -> None:
    class Failing(Scalable):
        def __init__(self) -> None:
            if when == "made":
                raise RuntimeError(when)

        def on_growth(self, window: Window, ack: Ack) -> None:
            del window, ack
            raise RuntimeError(when)

    with pytest.raises(RuntimeError, match=when):
        dumbbell(duration="1000 s").run(congestion={"mine": Failing})


@pytest.mark.parametrize(
    ("value", "error"), [(-1, OverflowError), (1.5, TypeError), (2**32, OverflowError)]
)
def test_a_window_that_cannot_be_is_refused(value: int, error: type[Exception]) -> None:
    class Wrong(Scalable):
        def on_growth(self, window: Window, ack: Ack) -> None:
            del ack
            window.cwnd = value

    with pytest.raises(error):
        dumbbell().run(congestion={"mine": Wrong})


def test_a_pace_of_nothing_is_refused() -> None:
    class Stopping(Scalable):
        def pacing_rate(self, window: Window) -> float | None:
            del window
            return 0.0

    with pytest.raises(ValueError, match=r"pacing_rate: 0 bit/s; expected at least 1"):
        dumbbell().run(congestion={"mine": Stopping})


def test_what_is_no_control_is_refused() -> None:
    with pytest.raises(TypeError, match=r"congestion\['mine'\] made \{\}, expected an airtcp"):
        dumbbell().run(congestion={"mine": dict})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match=r"expected the class: each endpoint has its own"):
        dumbbell().run(congestion={"mine": Scalable()})  # type: ignore[dict-item]


def test_a_control_that_is_not_there_is_named_with_the_nearest() -> None:
    with pytest.raises(airtcp.ScenarioError, match=r"'mine'|\"mine\"") as raised:
        dumbbell().run(congestion={"mina": Scalable})
    assert raised.value.key == "tcp.control"
    assert "did you mean `mina`?" in str(raised.value)
    with pytest.raises(airtcp.ScenarioError, match="expected a program that brings it along"):
        dumbbell().run()


def test_what_a_control_is_told_pickles_and_copies() -> None:
    told: list[Window | Ack | Loss | Timeout] = []

    class Keeping(Scalable):
        def on_growth(self, window: Window, ack: Ack) -> None:
            super().on_growth(window, ack)
            told.extend([window, ack])

        def on_fast_retransmit(self, window: Window, loss: Loss) -> None:
            super().on_fast_retransmit(window, loss)
            told.append(loss)

    dumbbell(duration="10 s").run(congestion={"mine": Keeping})
    told.append(pickle.loads(pickle.dumps(told[-1])))
    kinds = {type(one) for one in told}
    assert kinds == {Window, Ack, Loss}
    for one in told[:10] + told[-1:]:
        names = [name for name in dir(one) if not name.startswith("_") and name != "grow"]
        for other in (pickle.loads(pickle.dumps(one)), copy.copy(one), copy.deepcopy(one)):
            for name in names:
                assert getattr(other, name) == getattr(one, name)


def test_a_control_can_be_tried_without_a_run() -> None:
    window = Window(smss=1000, initial=4000, ssthresh=2000)
    window.cwnd = 8000
    window.grow(500)
    assert (window.cwnd, window.in_slow_start) == (8500, False)


def test_controls_that_nothing_uses_are_refused() -> None:
    scenario = airtcp.Scenario.load(EXAMPLES / "dumbbell.toml")
    with pytest.raises(ValueError, match="nothing uses 'mine'"):
        scenario.run(congestion={"mine": Scalable})
