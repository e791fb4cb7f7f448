#!/bin/sh
# sumo-output-parsers 0.51 (PyPI; the newest for Python 3.11) makes matrices of what the traffic simulator SUMO writes,
# a row for each vehicle and a column for each time. They tell what SUMO did not (fcd_parser.py and models/parser.py). A
# vehicle that has not departed or has arrived is at position 0 with speed 0, and on the first lane, whose number is 0
# too; a last column of nothing else follows. With skip_intervals the columns left out are there, as zeros, and
# interval_begins has only the times of the others, so no column but the first has its time. The begins of the intervals
# of detectors are repeated for each detector, and do not go with the columns either. So distances for a radio link are
# to where nobody is. Nothing is said. By its documentation it is to "obtain matrix form from SUMO xml files"; in those
# there is no element for a vehicle that is not there (SUMO's FCDOutput).
#
# Seen, vehicle b from 2 s on at 200 m, lane B_0: x 0 0 200 201 202 203 0, lane as that of a vehicle on A_0. Each second
# time: 0 0 200 0 202 0 0 with the times 0, 2 and 4 s. Two detectors at 0 and 60 s: two columns, begins 0 0 60 60.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
# Not what its drawing needs, and the last numpy that it runs with.
env/bin/pip install --quiet --disable-pip-version-check --no-deps sumo-output-parsers==0.51
env/bin/pip install --quiet --disable-pip-version-check \
    numpy==1.23.5 scipy==1.11.4 pandas==1.5.3 lxml==5.3.0 more-itertools==10.5.0 tqdm==4.66.5 requests==2.32.3 \
    2>log || { cat log >&2; exit 2; }
cat >run.py <<'END'
import sys
import types
from pathlib import Path

for module, name in ("traffic_animation", "TrafficAnimation"), ("detector_positions", "DetectorPosition"):
    module = f"sumo_output_parsers.visualizer.{module}"
    sys.modules[module] = types.ModuleType(module)
    setattr(sys.modules[module], f"{name}Visualizer", None)

from sumo_output_parsers import FCDFileParser, LoopDetectorParser


def vehicle(name, x):
    return f'<vehicle id="{name}" x="{x}.00" y="0.00" speed="1.00" lane="{name.upper()}_0" pos="{x}.00"/>'


steps = [vehicle("a", 100 + time) + (vehicle("b", 198 + time) if time >= 2 else "") for time in range(6)]
steps = [f'<timestep time="{time}.00">{vehicles}</timestep>' for time, vehicles in enumerate(steps)]
Path("fcd.xml").write_text(f"<fcd-export>{''.join(steps)}</fcd-export>")
loops = [
    f'<interval begin="{time}.00" end="{time + 60}.00" id="{name}" flow="{flow}.00"/>'
    for time, name, flow in ((0, "one", 60), (0, "two", 120), (60, "one", 180), (60, "two", 240))
]
Path("loops.xml").write_text(f"<detector>{''.join(loops)}</detector>")


def show(name, matrix):
    rows = ", ".join(" ".join(f"{value:g}" for value in row) for row in matrix.matrix.toarray())
    print(f"{name}: {rows}; at {' '.join(f'{float(time):g}' for time in matrix.interval_begins)}")


fcd = FCDFileParser(Path("fcd.xml"), is_caching=False)
show("x", fcd.xml2matrix("x"))
show("lane", fcd.xml2matrix("lane"))
show("x, each second time", fcd.xml2matrix("x", skip_intervals=2))
show("flow", LoopDetectorParser(Path("loops.xml"), is_caching=False).xml2matrix("flow"))
END
env/bin/python run.py 2>log | tee told
cat >expected <<'END'
x: 100 101 102 103 104 105 0, 0 0 200 201 202 203 0; at 0 1 2 3 4 5
lane: 0 0 0 0 0 0 0, 0 0 1 1 1 1 0; at 0 1 2 3 4 5
x, each second time: 100 0 102 0 104 0 0, 0 0 200 0 202 0 0; at 0 2 4
flow: 60 180, 120 240; at 0 0 60 60
END
diff expected told || { cat log >&2; exit 1; }
