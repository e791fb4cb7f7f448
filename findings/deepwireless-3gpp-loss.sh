#!/bin/sh
# deepwireless 0.9.3 (compute_large_scale_fading) has two errors in its path loss "RMa" and "UMa" after
# 3GPP's TR 38.901, table 7.4.1-1. RMa has the height of the base station where that of the buildings
# belongs, 5 m by default: at 1 km 12 dB too much. UMa multiplies by the wavelength where the breakpoint,
# 4 h h f / c, divides by it. So its breakpoint is at 22 m instead of 320 m, and the loss without line of
# sight is wrong with it. Nothing is said. By ns-3 3.37, with line of sight and without shadowing, the four
# losses below are 79.10, 100.60, 78.28 and 88.55 dB.
#
# Seen at 2 GHz, base at 25 m, mobile at 1.5 m: RMa 82.80 dB at 100 m, 112.93 at 1 km; UMa 97.72 dB at
# 100 m, 116.37 at 300 m.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --no-deps deepwireless==0.9.3 numpy==2.2.6 scipy==1.15.3
cat >"$dir/run.py" <<'END'
import math
import sys
from unittest.mock import MagicMock

# What the path loss does not need: plots and machine learning.
for package in (
    "DeepMIMOv3 pandas tqdm tensorflow tensorflow.keras matplotlib matplotlib.colors matplotlib.pyplot "
    "matplotlib.ticker sklearn sklearn.cluster sklearn.ensemble sklearn.linear_model sklearn.model_selection"
).split():
    sys.modules[package] = MagicMock()

from deepwireless.simulator import simulator  # noqa: E402

radio = object.__new__(simulator)
radio.N_sc, radio.Df = 1, 15e3
told = []
for model, distance in (("RMa", 100), ("RMa", 1000), ("UMa", 100), ("UMa", 300)):
    [gain] = radio.compute_large_scale_fading(distance, 2e9, model, D_t_dB=0, D_r_dB=0, h_BS=25, h_UT=1.5)
    told.append(-10 * math.log10(gain))
    print(f"{model} at {distance} m: {told[-1]:.2f} dB")
expected = [82.80, 112.93, 97.72, 116.37]
sys.exit(any(abs(loss - seen) > 0.01 for loss, seen in zip(told, expected)))
END
"$dir/venv/bin/python" "$dir/run.py"
