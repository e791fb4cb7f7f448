#!/bin/sh
# AIMM-simulator 2.0.3 (PyPI), which simulates 5G cells, gives every mobile a noise of -140 dBm (UE.__init__ in
# AIMM_simulator.py), whatever the bandwidth. Thermal noise is -174 dBm in each hertz (ITU-R P.372, 2: k times 290 K),
# so that is the noise of 2.5 kHz; a cell of 10 MHz, its default, has -104 dBm and one of 100 MHz -94, without what the
# receiver adds. So the SNR where no other cell interferes, at the edge of a network or in its first cell, is 36 or 46
# dB too good, and on paths whose loss grows with the fourth power of the distance a cell reaches 8 or 14 times as far.
# More bandwidth never costs SNR. No argument of Sim, make_cell or make_UE sets it, and nothing is said; the attribute
# noise_power_dBm can be set. Path loss (TR 36.873, table 7.2-1) and interference are right.
#
# Seen, one cell of 30 dBm, line of sight at 3.5 GHz, mobile at 20 km: SNR 12.1 dB and CQI 8 with 10 MHz as with 100;
# right are -23.9 and -33.9 dB, both CQI 0. With the right noise the SNR of 10 MHz is 12.1 dB at 2.52 km.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check AIMM-simulator==2.0.3 numpy==2.2.6 matplotlib==3.10.3
cat >run.py <<'END'
import contextlib
import io
import math
import sys

from AIMM_simulator import Sim


def edge(bandwidth: int, distance: float, thermal: bool) -> tuple[float, int]:
    """SNR in dB and CQI of a mobile in a single cell, with its own noise or that of its temperature."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        simulator = Sim()
    cell = simulator.make_cell(xyz=(0.0, 0.0, 25.0), bw_MHz=bandwidth)
    mobile = simulator.make_UE(xyz=(distance, 0.0, 2.0))
    mobile.attach(cell)
    if thermal:
        mobile.noise_power_dBm = 10 * math.log10(1.380649e-23 * 290 * bandwidth * 1e6 * 1000)
    mobile.send_subband_cqi_report()
    told = round(float(mobile.get_SINR_dB()[0]), 1), int(mobile.get_CQI()[0])
    print(f"{bandwidth} MHz at {distance / 1000:.2f} km{', thermal noise' * thermal}: SNR {told[0]} dB, CQI {told[1]}")
    return told


cases = (10, 20_000, False), (100, 20_000, False), (10, 20_000, True), (100, 20_000, True), (10, 2_520, True)
sys.exit([edge(*case) for case in cases] != [(12.1, 8), (12.1, 8), (-23.9, 0), (-33.9, 0), (12.1, 8)])
END
MPLBACKEND=agg env/bin/python run.py
