#!/bin/sh
# The npm package jspredict 1.2.0, with the satellite.js 3.0.1 that it asks for, takes the range rate's
# absolute value for its Doppler factor, which is therefore never below 1: a satellite that recedes at
# 5.3 km/s has the factor of one that approaches. It also leaves out that the station turns with the
# Earth, here 0.26 km/s at most. Nothing is said, and the range beside it is right. On a carrier of
# 12 GHz the frequency is 424 kHz off at the end of this pass. The factor is 1 - range rate / c:
# skyfield 1.55 and satellite.js 7.1.0 both give 1.000014065, 0.999996007 and 0.999982289.
#
# Seen at three minutes of a pass: range rate -4.22, 1.20 and 5.31 km/s by the range, factor 1.000014915,
# 1.000003474 and 1.000017599.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --silent --no-fund --no-audit jspredict@1.2.0 satellite.js@3.0.1 >/dev/null
cat >run.js <<'END'
const assert = require("assert");
const jspredict = require("jspredict");

// The elements of Spacetrack Report No. 3.
const satellite = `88888
1 88888U          80275.98708465  .00073094  13844-3  66816-4 0    8
2 88888  72.8435 115.9689 0086731  52.6988 110.5714 16.05824518  105`;
const station = [50, 10, 0.1];
const told = [12, 13, 14].map((minute) => {
  const observe = (second) => jspredict.observe(satellite, station, Date.UTC(1980, 9, 2, 8, minute, second));
  const rate = ((observe(1).rangeSat - observe(-1).rangeSat) / 2).toFixed(2);
  const factor = observe(0).doppler.toFixed(9);
  console.log(`08:${minute} range rate ${rate} km/s, factor ${factor}`);
  return [rate, factor];
});
const expected = [["-4.22", "1.000014915"], ["1.20", "1.000003474"], ["5.31", "1.000017599"]];
assert.deepStrictEqual(told, expected);
END
node run.js
