#!/bin/sh
# agenet 1.0.0 (PyPI), which simulates the age of information in wireless networks, gets the error rate of short blocks
# wrong in two ways (blkerr.py). By the normal approximation (Polyanskiy, Poor and Verdu, IEEE Trans. Inf. Theory 56,
# 2010) it is Q((nC - k) / sqrt(nV)). It takes the capacity of the complex channel, C = log2(1 + SNR), with half of that
# channel's dispersion, which is (1 - 1 / (1 + SNR)^2) log2(e)^2. So wherever blocks get through it tells too few
# errors, ten times at 2 %, 300 times at 0.05 %. And its Q is 1 for every negative number, where it goes from 0.5 to 1:
# just below capacity every block is lost, just above every other. Nothing is said; path loss and mean SNR are right.
#
# Seen, 400 symbols, 350 bits: SNR of -0.9 dB 1.0e+00, right 6.1e-01; 0.0 dB 2.3e-03, right 2.3e-02; 0.5 dB 1.5e-06,
# right 4.7e-04.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check numpy==2.2.6 scipy==1.15.3 pandas==2.2.3
# Without the packages for its command.
env/bin/pip install --quiet --disable-pip-version-check --no-deps agenet==1.0.0
cat >run.py <<'END'
import math
import sys

from agenet import block_error

SYMBOLS, BITS = 400, 350
changed = False
for decibels, expected in ((-0.9, 1.0), (0.0, 2.3e-3), (0.5, 1.5e-6)):
    ratio = 10 ** (decibels / 10)
    dispersion = (1 - 1 / (1 + ratio) ** 2) * math.log2(math.e) ** 2
    excess = (SYMBOLS * math.log2(1 + ratio) - BITS) / math.sqrt(SYMBOLS * dispersion)
    told, right = block_error(ratio, SYMBOLS, BITS), 0.5 * math.erfc(excess / math.sqrt(2))
    print(f"SNR {decibels} dB: {told:.1e}, right {right:.1e}")
    changed |= not 0.9 < told / expected < 1.1
sys.exit(changed)
END
env/bin/python run.py
