#!/bin/sh
# pyPhyNR 0.3.0 (PyPI), "Python toolkit for 5G NR physical layer simulations", makes signals in which no phone finds a
# cell. Phones look for the primary and the secondary synchronisation signal: 127 subcarriers with a sequence that says
# which cell it is. pyPhyNR has the feedback of the shift registers the wrong way round (x[n] = x[n-4] + x[n-7] in
# pss.py, the like in sss.py), and reads them from their second value on (x[m + 1]). So its sequences are those of no
# cell. Nothing is said; comments name TS 38.211. By its 7.4.2.2.1 and 7.4.2.3.1 it is x(i + 7) = x(i + 4) + x(i), which
# is x[n-3] + x[n-7], and d(n) = 1 - 2 x(m). py3gpp 0.6.0 (PyPI) has both right.
#
# Seen, cell 500, correlation with the sequences of cell 500, and the best with any other cell: pyPhyNR's primary signal
# 11 and 15, its secondary -9 and 39 (of cell 250), of 127; right, and py3gpp's, is 127 with cell 500.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check pyPhyNR==0.3.0 numpy==2.2.6 scipy==1.15.3 matplotlib==3.10.3
env/bin/pip install --quiet --disable-pip-version-check --no-deps py3gpp==0.6.0 importlib_resources==6.5.2
cat >run.py <<'END_PYTHON'
import sys

import numpy as np
from py3gpp import nrPSS, nrSSS
from pyPhyNR.core.channels.pss import PSS
from pyPhyNR.core.channels.sss import SSS

CELL, CELLS, LENGTH = 500, 1008, 127


def register(first: list, tap: int) -> np.ndarray:
    """x(i + 7) = x(i + tap) + x(i)"""
    values = list(first)
    while len(values) < LENGTH:
        values.append((values[-7 + tap] + values[-7]) % 2)
    return 1 - 2 * np.array(values)


PRIMARY = register([0, 1, 1, 0, 1, 1, 1], 4)
SECONDARY = register([1, 0, 0, 0, 0, 0, 0], 4), register([1, 0, 0, 0, 0, 0, 0], 1)


def primary(cell: int) -> np.ndarray:
    return np.roll(PRIMARY, -43 * (cell % 3))


def secondary(cell: int) -> np.ndarray:
    shift = 15 * (cell // 3 // 112) + 5 * (cell % 3)
    return np.roll(SECONDARY[0], -shift) * np.roll(SECONDARY[1], -(cell // 3 % 112))


def told(name: str, values: np.ndarray, right, cells: range) -> tuple:
    values = values[values != 0].real
    found = {cell: round(float(values @ right(cell))) for cell in cells}
    own = found.pop(CELL)
    best = max(found, key=found.get)
    print(f"{name}: {own} of {LENGTH} with cell {CELL}, {found[best]} with cell {best}")
    return own, found[best]


near = range(CELL - 2, CELL + 1)  # The primary signal tells apart three kinds of cells.
seen = [
    told("pyPhyNR, primary", PSS(CELL, 0, 0, [0]).data[:, 0], primary, near),
    told("pyPhyNR, secondary", SSS(CELL, 0, 0, [0]).data[:, 0], secondary, range(CELLS)),
    told("py3gpp, primary", np.array(nrPSS(CELL)), primary, near),
    told("py3gpp, secondary", np.array(nrSSS(CELL)), secondary, range(CELLS)),
]
sys.exit(seen[:2] != [(11, 15), (-9, 39)] or [own for own, _ in seen[2:]] != [127, 127])
END_PYTHON
MPLCONFIGDIR="$dir" env/bin/python run.py
