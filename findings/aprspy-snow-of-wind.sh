#!/bin/sh
# aprspy 0.6.0 (PyPI) reads APRS, in which trackers and weather stations send positions and values by packet radio and
# LoRa, and tells wrong ones. It looks for each value of a weather report by its letter, anywhere, and for snow by s
# or S (parse_weather_data in packets/weather.py); but in a report without a position s is the wind speed, so it snows
# as many inches as the wind has miles an hour, and in one with a position the snow is the wind speed. Luminosity from
# 1000 W/m2 on, "l", loses the 1000. Of the compression type it takes the first of each list, as it joins bits with
# "or" where "and" belongs (packets/position.py): every fix is old, from no sentence. And a "!" within 40 characters
# makes a packet one without a timestamp that takes no messages (offset), though "!" is a digit of compressed
# positions and begins and ends the !DAO! of precise ones. Nothing is said; there are warnings for other things. By
# APRS 1.01, 12, s is the sustained wind in a report without a position and snow in others, and l is "1000 and above";
# by 9, "[" is a current fix, RMC, of a program.
#
# Seen, wind of 4 mph: snow 4. Wind of 4 and 2 inches of snow with a position: wind 2. l043: 43. The compressed
# example of the specification: old, other, compressed and no messages; right is current, RMC, software and messages.
# With and without "!W12!": no messages, messages.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check aprspy==0.6.0
cat >run.py <<'END'
from aprspy import APRS


def parse(information):
    return APRS.parse_packet(f"N0CALL>APRS,WIDE1-1:{information}")


wind = parse("_10090556c220s004g005t077r000p000P000h50b09900wRSW")
snow = parse("=4903.50N/07201.75W_220/004g005t-07r000p000P000h50b09900s002")
sun = parse("=4903.50N/07201.75W_220/004g005t077r000p000P000h50b09900l043")
weather = wind.wind_speed, wind.snowfall, snow.wind_speed, snow.snowfall, sun.luminosity
print("wind 4, no snow: {}, {}; wind 4, snow 2: {}, {}; sun 1043: {}".format(*weather))

compressed = parse("=/5L!!<*e7>7P[Test")
kind = [getattr(compressed, f"compression_{part}").name for part in ("fix", "source", "origin")]
print("compressed:", *kind, "messages", compressed.messaging_capable)

plain, precise = parse("=4903.50N/07201.75W-Test"), parse("=4903.50N/07201.75W-Test !W12!")
messages = compressed.messaging_capable, plain.messaging_capable, precise.messaging_capable
print("messages: {}, with !DAO! {}".format(*messages[1:]))
assert weather == (4, 4, 2, 2, 43)
assert kind == ["OLD", "OTHER", "COMPRESSED"] and messages == (False, True, False)
END
env/bin/python run.py
