"""Which senders fill the link, and what they send again: one flow over 80 paths each.

    .venv/bin/python benches/senders.py

Every congestion control with every recovery that it may have, over links of 5 to 1000 Mbit/s, round
trips of 10 to 300 ms, and queues of 0.1 to 4 products of bandwidth and delay (BDP). Nothing is lost
at random. What counts is 40 s from when slow start is over, 10 s and twenty round trips after the
start. With a queue of a BDP, a sender has to fill 90 % of the link, with less than 3 % sent
again. Prints the smallest share of the link and the largest share sent again of each sender and
queue in Markdown, then the paths on which a sender misses these bounds. Half an hour on two cores.
Exit status: 0 no sender misses, 1 some do.
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product

import airtcp

LOSS_BASED = ("reno", "cubic", "westwood")
# BBR needs the delivery rates that RACK measures.
RATE_BASED = ("bbr", "bbr3")
SENDERS = [*product(LOSS_BASED, ("newreno", "sack", "rack")), *product(RATE_BASED, ("rack",))]
RATES = (5, 20, 100, 300, 1000)
"""Mbit/s."""
ROUND_TRIPS = (10, 40, 100, 300)
"""ms."""
QUEUES = (0.1, 0.5, 1.0, 4.0)
"""BDP."""
MEASURED = 40
"""Seconds."""
FULL, AGAIN = 0.9, 0.03
"""The least share of the link, and the largest share of segments sent again."""


@dataclass(frozen=True)
class Path:
    """A link of so many Mbit/s, with a round trip in ms and a queue in BDP."""

    rate: int
    round_trip: int
    queue: float

    def scenario(self, sender: tuple[str, str], seconds: float) -> airtcp.Scenario:
        """One flow over this path."""
        congestion, recovery = sender
        # At least two packets, without which no queue is one.
        packets = max(2, round(self.queue * self.rate * self.round_trip / 12))
        return airtcp.Scenario.parse(f"""
            duration = "{seconds} s"
            node = [{{ name = "A" }}, {{ name = "B" }}]
            flow = [{{ from = "A", to = "B" }}]
            [[link]]
            between = ["A", "B"]
            rate = "{self.rate} Mbit/s"
            delay = "{self.round_trip / 2} ms"
            queue = {{ limit = "{packets} packets" }}
            [tcp]
            congestion = "{congestion}"
            recovery = "{recovery}"
            receive-buffer = "512 MB"
            send-buffer = "512 MB"
        """)


def measure(job: tuple[tuple[str, str], Path]) -> tuple[float, float]:
    """The share of the link that a sender fills, and the share of segments that it sends again."""
    sender, path = job
    start = 10 + 20 * path.round_trip / 1000
    before, after = (
        path.scenario(sender, seconds).run(1).flows.iloc[0] for seconds in (start, start + MEASURED)
    )
    delivered = after["delivered_bytes"] - before["delivered_bytes"]
    sent = after["data_segments_sent"] - before["data_segments_sent"]
    again = (
        after["retransmission_ratio"] * after["data_segments_sent"]
        - before["retransmission_ratio"] * before["data_segments_sent"]
    )
    return delivered * 8 / MEASURED / (path.rate * 1e6), max(again, 0) / max(sent, 1)


def main() -> int:
    """Prints the tables."""
    paths = [Path(*path) for path in product(RATES, ROUND_TRIPS, QUEUES)]
    jobs = list(product(SENDERS, paths))
    found = {}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for number, (job, result) in enumerate(zip(jobs, pool.map(measure, jobs), strict=True), 1):
            found[job] = result
            print(f"\r{number} of {len(jobs)} paths", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    print("| congestion | recovery |", *(f"{queue} BDP |" for queue in QUEUES))
    print("|---|---|" + "---|" * len(QUEUES))
    for sender in SENDERS:
        cells = []
        for queue in QUEUES:
            cell = [found[sender, path] for path in paths if path.queue == queue]
            least, most = min(share for share, _ in cell), max(again for _, again in cell)
            cells.append(f"{least:.3f}, {100 * most:.2f} % |")
        print(f"| {sender[0]} | {sender[1]} |", *cells)
    print()
    is_missed = False
    for ((congestion, recovery), path), (share, again) in found.items():
        if path.queue == 1.0 and (share < FULL or again >= AGAIN):
            is_missed = True
            print(
                f"{congestion}, {recovery}: {path.rate} Mbit/s, {path.round_trip} ms: "
                f"{share:.3f} of the link, {100 * again:.2f} % sent again"
            )
    return 1 if is_missed else 0


if __name__ == "__main__":
    sys.exit(main())
