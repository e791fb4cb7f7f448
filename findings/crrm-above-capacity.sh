#!/bin/sh
# CRRM 2.0.2 (PyPI), a simulator of 5G cells, spreads the fifteen CQIs evenly over the MCS indices, 28 for 15 (MCS in
# CRRM_core_08.py). But a CQI names the modulation and code rate that loses at most one block of ten (TS 38.214,
# 5.2.2.1 and table 5.2.2.1-3), and an MCS has those of another index. So CQI 5, which carries 1.914 bit/s/Hz, or 0.877
# by the table without 256QAM, is sent with 2.406. Just above the threshold of each CQI, between 1 and 9 dB, a user gets
# more than the capacity of the channel by Shannon, which CRRM computes beside it. So throughputs at the edge of a
# cell, and what a scheduler or power control gains there, are too good. Its README calls throughputs of single devices
# not accurate; that no channel carries them it does not say. AIMM_simulator 2.0.3, its predecessor, does the same
# with the MCS of 64QAM; isaac-net 0.2.0 takes modulation and code of a CQI from the tables.
#
# Seen, one user, 20 MHz: at 1, 3, 5 and 10 dB 29.5, 38.3, 48.1 and 66.4 Mbit/s; the capacity is 23.5, 31.7, 41.1 and
# 69.2, the CQIs carry 17.5, 29.5, 38.3 and 54.6. With default parameters 284 of 1000 users are above the capacity.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet CRRM==2.0.2 numpy==2.2.6 scipy==1.15.3 matplotlib==3.10.3
cat >"$dir/run.py" <<'END'
import math
import sys

from CRRM import Parameters, Simulator

BANDWIDTH = 20  # MHz
CARRIED = {3: 0.8770, 4: 1.4766, 5: 1.9141, 7: 2.7305}  # bit/s/Hz, of each CQI


def simulate(**parameters) -> Simulator:
    cell = Simulator(Parameters(bw_MHz=BANDWIDTH, **parameters))
    cell.update()
    return cell


def alone(power: float) -> Simulator:
    """A cell with a power in W, and a user at 1 km."""
    return simulate(cell_locations=[[0, 0, 20]], ue_initial_locations=[[1000, 0, 1.8]], p_W=power)


watt = alone(1).sinr.data[0, 0]
told = []
for decibels in (1, 3, 5, 10):
    cell = alone(10 ** (decibels / 10) / watt)
    throughput = cell.get_UE_throughputs()[0, 0]
    capacity = BANDWIDTH * math.log2(1 + 10 ** (decibels / 10))
    cqi = int(cell.cqi.data[0, 0])
    told.append((cqi, round(float(throughput), 1)))
    carried = BANDWIDTH * CARRIED[cqi]
    print(f"{decibels} dB: {throughput:.1f} Mbit/s, capacity {capacity:.1f}, CQI {cqi} carries {carried:.1f}")
many = simulate(n_ues=1000, rng_seeds=1)
above = int((many.se_from_mcs.data > many.get_spectral_efficiency()).sum())
print(f"{above} of 1000 users above the capacity")
sys.exit(told != [(3, 29.5), (4, 38.3), (5, 48.1), (7, 66.4)] or not 270 < above < 300)
END
MPLCONFIGDIR="$dir" "$dir/venv/bin/python" "$dir/run.py"
