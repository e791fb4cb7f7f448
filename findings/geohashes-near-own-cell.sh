#!/bin/sh
# geohashes-near 2.0.1 (npm), "to get all neighbouring geohashes inside a radius", goes outwards from the cells around
# that of the point, as long as their centres are within the radius (getHashesNear in src/index.ts). It does not begin
# with the cell that the point is in. So where the radius is less than the way to the next centre it returns nothing,
# not even that cell, be the point at its very centre; and of a larger circle it leaves out the rim. Who keeps base
# stations or measurements by geohash and looks up those near a phone finds none of those 100 m away, and takes it for a
# hole in the coverage. Nothing is said: an empty list is what a lonely place has. A cell of five letters is 0.044
# degrees high and wide, at 52 degrees north 4.9 by 3 km. What helps: its cells, the point's own, and all their
# neighbours.
#
# Seen, five letters, a point at the centre of its cell: within 1 and 2 km no cells; within 3 km three, with 91 % of the
# circle; within 10 km 19, with 82 %.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund geohashes-near@2.0.1 ngeohash@0.6.3
cat >run.js <<'END'
const getHashesNear = require('geohashes-near').default
const geohash = require('ngeohash')

const LETTERS = 5, STEPS = 100, DEGREE = 6371 * Math.PI / 180 // km
const own = geohash.encode(52.52, 13.405, LETTERS)
const PHONE = geohash.decode(own) // the centre of its cell

/** The share of the circle, in per cent, that these cells have. */
function share (cells, radius) {
  let all = 0
  let found = 0
  for (let x = -STEPS; x <= STEPS; x++) {
    for (let y = -STEPS; y <= STEPS; y++) {
      if (Math.hypot(x, y) > STEPS) continue
      const latitude = PHONE.latitude + radius * y / STEPS / DEGREE
      const east = radius * x / STEPS / DEGREE / Math.cos(PHONE.latitude * Math.PI / 180)
      all++
      if (cells.includes(geohash.encode(latitude, PHONE.longitude + east, LETTERS))) found++
    }
  }
  return Math.round(100 * found / all)
}

for (const radius of [1, 2, 3, 10]) {
  const cells = getHashesNear(PHONE, LETTERS, radius, 'kilometers')
  const found = `${cells.length} cells, ${cells.includes(own) ? 'with' : 'without'} its own`
  console.log(`within ${radius} km: ${found}, ${share(cells, radius)} % of the circle`)
}
END
node run.js | tee told
cat >expected <<'END'
within 1 km: 0 cells, without its own, 0 % of the circle
within 2 km: 0 cells, without its own, 0 % of the circle
within 3 km: 3 cells, with its own, 91 % of the circle
within 10 km: 19 cells, with its own, 82 % of the circle
END
diff expected told
