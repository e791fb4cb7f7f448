#!/bin/sh
# Satellite of ootk 7.0.3 (npm), and of ootk-core 1.3.1, cuts the epoch of an OMM to whole seconds: it hands the seconds
# with their fraction to Date.UTC, which keeps whole numbers only. OMMs have microseconds, as CelesTrak offers them. So
# a satellite in low orbit is up to 7.6 km ahead of its place, 3.8 on average, and its passes come up to a second
# early; with the same elements as a TLE the same class is right. Nothing is said. An epoch has a fraction of any number
# of digits (CCSDS 301.0-B-4, 3.5.1, which OMMs, CCSDS 502.0-B, follow). satellite.js 7.1.0 (json2satrec) and skyfield
# 1.55 (from_omm) keep it.
#
# Seen, OMM and TLE of the same elements, 20 minutes after the epoch: epoch at 12:00:00, 0.0 km apart; at 12:00:00.9,
# ootk and ootk-core 6.9 km, satellite.js 0.0 km.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true, "type": "module"}' >package.json
npm install --silent --no-audit --no-fund ootk@7.0.3 ootk-core@1.3.1 satellite.js@7.1.0
cat >run.js <<'END'
import * as ootk from 'ootk'
import * as core from 'ootk-core'
import { json2satrec, propagate, twoline2satrec } from 'satellite.js'

const AT = new Date(Date.UTC(2024, 0, 1, 12, 20))

/** The same elements as a TLE and as an OMM, with an epoch so many tenths of a second after noon. */
function elements (tenths) {
  const day = (1.5 + tenths / 864000).toFixed(8).padStart(12, '0')
  const first = `1 99999U 24001A   24${day}  .00016717  00000-0  10270-3 0  999`
  const second = '2 99999  51.6400 208.9163 0006317  69.9862  25.2906 15.50000000    0'
  const sum = line => [...line].reduce((sum, char) => sum + (char === '-' ? 1 : Number(char) || 0), 0) % 10
  const omm = {
    OBJECT_NAME: 'EXAMPLE',
    OBJECT_ID: '2024-001A',
    EPOCH: `2024-01-01T12:00:00.${tenths}00000`,
    MEAN_MOTION: '15.5',
    ECCENTRICITY: '.0006317',
    INCLINATION: '51.64',
    RA_OF_ASC_NODE: '208.9163',
    ARG_OF_PERICENTER: '69.9862',
    MEAN_ANOMALY: '25.2906',
    EPHEMERIS_TYPE: '0',
    CLASSIFICATION_TYPE: 'U',
    NORAD_CAT_ID: '99999',
    ELEMENT_SET_NO: '999',
    REV_AT_EPOCH: '0',
    BSTAR: '.1027E-3',
    MEAN_MOTION_DOT: '.16717E-3',
    MEAN_MOTION_DDOT: '0'
  }
  return { tle: [first + sum(first), second + sum(second)], omm }
}

/** How far the satellite of the OMM is from that of the TLE, in km. */
function apart (fromTle, fromOmm, tenths) {
  const { tle, omm } = elements(tenths)
  const [a, b] = [fromTle(...tle), fromOmm(omm)]
  return Math.hypot(a.x - b.x, a.y - b.y, a.z - b.z).toFixed(1)
}

const of = ({ Satellite }) => [
  (tle1, tle2) => new Satellite({ tle1, tle2 }).eci(AT).position,
  omm => new Satellite({ omm }).eci(AT).position
]
const others = [twoline2satrec, json2satrec].map(read => (...given) => propagate(read(...given), AT).position)
let changed = false
for (const [name, pair, expected] of [
  ['ootk', of(ootk), '6.9'], ['ootk-core', of(core), '6.9'], ['satellite.js', others, '0.0']
]) {
  const [whole, fraction] = [0, 9].map(tenths => apart(...pair, tenths))
  console.log(`${name}: OMM ${whole} km from TLE, ${fraction} km with a fraction of a second`)
  changed = changed || whole !== '0.0' || fraction !== expected
}
process.exit(changed ? 1 : 0)
END
node run.js
