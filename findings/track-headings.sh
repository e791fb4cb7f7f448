#!/bin/sh
# Two packages for GPS tracks give directions as they would be on the equator. gpxo 0.3.0 (PyPI) turns degrees into
# radians twice for its compass (_calculate_compass in track.py does, and so does compass in general.py). vectorize
# 0.1.1 (npm) takes differences of latitude and longitude as they are (velocityVector in index.js): its velocities and
# positions have the right length and the wrong direction, and so have accelerations and the filters of gps-filter
# 0.2.0, which go by them. Away from the equator a degree of longitude is shorter, by the cosine of the latitude. At 60
# degrees north, as in Oslo or Helsinki, a vehicle that goes north-east heads for 63 degrees by gpxo, and is twice as
# fast to the east as to the north by vectorize. Who points beams or foretells handovers by them turns to the wrong
# cell. Along the four points of the compass both are right, and nothing is said.
#
# Seen, 20 m/s to 45 degrees at 60 degrees north: gpxo 63.4 degrees; vectorize 17.9 m/s to the east and 8.9 to the
# north, where 14.1 and 14.1 are right. On the equator 45.0 degrees, 14.1 and 14.1 m/s.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check gpxo==0.3.0
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund vectorize@0.1.1
cat >run.py <<'END'
import json
import math
from datetime import datetime, timedelta

import gpxo

SPEED, BEARING = 20, 45  # m/s, degrees
DEGREE = 6_371_000 * math.pi / 180  # m, of latitude

tracks = []
for latitude in 0, 60:
    north = SPEED * math.cos(math.radians(BEARING)) / DEGREE
    east = SPEED * math.sin(math.radians(BEARING)) / DEGREE / math.cos(math.radians(latitude))
    points = []
    for second in range(5):
        time = datetime(2026, 3, 23, 12) + timedelta(seconds=second)
        points.append({"lat": latitude + second * north, "lng": 10 + second * east, "time": f"{time.isoformat()}Z"})
    tracks.append(points)
    lines = [f'<trkpt lat="{p["lat"]:.7f}" lon="{p["lng"]:.7f}"><time>{p["time"]}</time></trkpt>' for p in points]
    with open("track.gpx", "w") as file:
        file.write('<gpx version="1.1" creator="finding" xmlns="http://www.topografix.com/GPX/1/1"><trk><trkseg>')
        file.write("".join(lines) + "</trkseg></trk></gpx>")
    data = gpxo.Track("track.gpx").data.iloc[-1]
    print(f"gpxo, {latitude} degrees north: {data['compass (°)']:.1f} degrees, {data['velocity (km/h)'] / 3.6:.1f} m/s")
with open("tracks.json", "w") as file:
    json.dump(tracks, file)
END
cat >run.js <<'END'
const vectorize = require('vectorize')
for (const points of require('./tracks.json')) {
  const [{ x, y }] = vectorize.toVelocities(points)
  const speed = Math.hypot(x, y).toFixed(1)
  console.log(`vectorize, ${points[0].lat} degrees north: ${x.toFixed(1)} and ${y.toFixed(1)} m/s, in all ${speed}`)
}
END
{ env/bin/python -W ignore run.py && node --no-warnings run.js; } | tee told
cat >expected <<'END'
gpxo, 0 degrees north: 45.0 degrees, 20.0 m/s
gpxo, 60 degrees north: 63.4 degrees, 20.1 m/s
vectorize, 0 degrees north: 14.1 and 14.1 m/s, in all 20.0
vectorize, 60 degrees north: 17.9 and 8.9 m/s, in all 20.0
END
diff expected told
