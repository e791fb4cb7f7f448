#!/bin/sh
# idpmodem 2.3.9 (PyPI; of the operator of the IsatData Pro satellite service) reads a modem's NMEA sentences into a
# Location. It keeps the satellites in view by their number alone (_update_satellites_info), but the numbers of GPS,
# Galileo and BeiDou all begin at 1, told apart by the talker, GP, GA or GB (NMEA 0183 from 4.10 on; gpsd's "NMEA
# Revealed" has a table). So a Galileo satellite takes the place of the GPS satellite of that number, with its signal.
# The number "in view" is that of the system with the most, not the sum. The status of RMC is not read, nor the quality
# of GGA: a position marked V, which a receiver without a fix gives as the last or an estimate, is one as any other. And
# serialize() removes the satellites from the location itself: the second time it raises.
#
# Seen, GPS 1 to 4 at 40 dB and Galileo 1, 2 at 20: 4 satellites listed, 1 and 2 at 20 dB, 4 in view; 6 are right. RMC
# with V: the position, as with A. serialize() twice: KeyError.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check idpmodem==2.3.9 aioserial==1.3.0 pyserial==3.5 \
    pyserial-asyncio==0.6
cat >run.py <<'END'
from functools import reduce

from idpmodem.location import location_from_nmea


def read(*sentences: str):
    return location_from_nmea([f"${text}*{reduce(lambda a, b: a ^ ord(b), text, 0):02X}" for text in sentences])


location = read(
    "GPGSV,1,1,04,01,40,083,40,02,17,308,40,03,07,344,40,04,22,228,40,1",
    "GAGSV,1,1,02,01,60,120,20,02,30,200,20,7",
)
signals = {satellite.prn: satellite.snr for satellite in location.satellites_info}
print("satellites", signals, "in view", location.satellites)
assert signals == {1: 20, 2: 20, 3: 40, 4: 40} and location.satellites == 4

places = []
for status in "AV":
    fix = read(f"GPRMC,120000.00,{status},4808.10,N,01134.50,E,0.0,,010524,,,N")
    places.append((fix.latitude, fix.longitude, fix.fix_type))
print("places", places)
assert places[0] == places[1] == (48.135, 11.575, 1)

location.serialize()
try:
    location.serialize()
    raise SystemExit("serialized again")
except KeyError as error:
    print("KeyError", error)
END
env/bin/python run.py
