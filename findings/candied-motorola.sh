#!/bin/sh
# candied 2.2.0 (npm) decodes CAN frames, as a car on a drive test has them, by a DBC file. Of signals in Motorola's
# order (@0 in the file) it takes the start bit for the last one of the signal and reads the bits before it
# (extractBitRange in BitUtils.js). In a DBC file the start bit of such a signal is its most significant one, from which
# it goes on into the next byte (Vector's description of the format). So a signal at the start of a frame is NaN, and
# the others are made of what stands before them. Nothing is said. Signals in Intel's order (@1) are right. cantools
# 45.1.0 (PyPI) has all of them.
#
# Seen, a frame with a speed of 100 km/h, 3000 turns a minute and -10 degrees Celsius in Motorola's order and the speed
# again in Intel's: NaN, 20000, 113 and 100; cantools 100, 3000, -10 and 100.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check cantools==45.1.0
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund candied@2.2.0
cat >car.dbc <<'END'
VERSION ""

BU_: ECU

BO_ 256 MOTION: 8 ECU
 SG_ Speed : 7|16@0+ (0.01,0) [0|0] "km/h" ECU
 SG_ Turns : 23|16@0+ (1,0) [0|0] "1/min" ECU
 SG_ Outside : 39|8@0- (1,0) [0|0] "C" ECU
 SG_ SpeedIntel : 40|16@1+ (0.01,0) [0|0] "km/h" ECU
END
cat >run.mjs <<'END'
import { readFileSync } from 'fs'
import { Can, Dbc } from 'candied'

const can = new Can()
can.database = new Dbc().load(readFileSync('car.dbc', 'utf8'))
const frame = can.createFrame(256, [...Buffer.from(process.argv[2], 'hex')])
console.log('candied: ' + [...can.decode(frame).boundSignals.values()].map(({ value }) => value).join(' '))
END
cat >run.py <<'END'
import sys

import cantools

values = cantools.database.load_file("car.dbc").decode_message(256, bytes.fromhex(sys.argv[1]))
print("cantools:", *(f"{values[name]:.0f}" for name in ("Speed", "Turns", "Outside", "SpeedIntel")))
END
frame=27100bb8f6102700
{ node run.mjs $frame && env/bin/python run.py $frame; } | tee told
cat >expected <<'END'
candied: NaN 20000 113 100
cantools: 100 3000 -10 100
END
diff expected told
