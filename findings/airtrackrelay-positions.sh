#!/bin/sh
# airtrackrelay 1.0.4 (PyPI) relays the positions of GPS trackers. Its "Beaker" trackers send them as integers, degrees
# and minutes as in NMEA 0183 without the point; it takes the degrees by division and the minutes from fixed digits of
# what is printed, from the third on for latitude, the fourth for longitude (_beaker). But that has no leading zeros, so
# this is right from 10° of latitude and 100° of longitude on alone, as in Australia. In Europe and Africa the minutes
# of longitude lack their first digit and are ten times what is left: up to 1° off, and a way east goes on six times as
# fast and leaps back every ten minutes. An IMEI that begins with 0, as those of the README do, is never known, for the
# same reason. The speed of these trackers is given in miles an hour (1.151 times knots), in the field where GL300
# trackers have km/h.
#
# Seen, 48° 8.1' N 11° 34.5' E: 11.750000 (11.575 is right); 38° 25.5' S 144° 30.6' E: right. 5° 39.9' N: 6.650000, 5°
# 40' N: 5.000000. 10 knots: 11.5. With an IMEI of 012345678901237: ignored.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check airtrackrelay==1.0.4 metarace==2.1.35 pycryptodomex==3.24.2 \
    paho-mqtt==2.1.0
cat >run.py <<'END'
from struct import pack

import airtrackrelay
from Cryptodome.Cipher import AES

sent = []


class Telegraph:
    def publish_json(self, topic, obj):
        sent.append(obj)


airtrackrelay.telegraph = Telegraph
relay = airtrackrelay.app()
relay._imeis = {"990000862471854": "bob", "012345678901237": "gem"}


def report(imei: int, latitude: str, longitude: str) -> dict | None:
    """What is relayed of a report at these degrees and minutes, DDMM.mmmmm as in NMEA 0183, at 10 knots."""
    whole = [round(float(value) * 100_000) for value in (latitude, longitude)]
    plain = pack("<QLLllHHL", imei, 12_000_000, 10_524, *whole, 1000, 90, 0)
    code = AES.new(airtrackrelay._KEY1, AES.MODE_CBC, bytes(16)).encrypt(plain)[-16:]
    sent.clear()
    relay._recvmsg(bytes(16) + AES.new(airtrackrelay._KEY2, AES.MODE_CBC, bytes(16)).encrypt(plain + code))
    print(imei, latitude, longitude, sent)
    return sent[0] if sent else None


bob = 990000862471854
there = report(bob, "-3825.5", "14430.6")
assert (there["lat"], there["lng"]) == ("-38.425000", "144.510000")
there = report(bob, "4808.1", "01134.5")
assert (there["lat"], there["lng"]) == ("48.135000", "11.750000")
assert there["speed"] == "11.5"  # 18.5 km/h
for north, told in ("0539.9", "6.650000"), ("0540.0", "5.000000"):
    assert report(bob, north, "14430.6")["lat"] == told
assert report(12345678901237, "-3825.5", "14430.6") is None
END
env/bin/python run.py
