#!/bin/sh
# Two moving averages of npm that weigh samples by the time between them go wrong where time begins at 0, as on the
# clock of a simulation or on performance.now(). moving-average 1.0.1 takes a time of 0 for none, so the first sample is
# forgotten when the second comes (push in index.js). ewma 2.0.1, told of no first value, is at 0 since time 0 and
# weighs the first sample by its time since then (index.js); its parameter "clock" is for such clocks. So a time-out
# from the average round trip is far too short: with a half-life of 5 s, of a path of 600 ms 8 ms are left after 100 ms
# and half after 5 s. Nothing is said; with Date.now() both are right. RFC 6298, 2.2, sets the average to the first
# sample.
#
# Seen, a time constant of 1 s, round trips of 500 ms once, then of 50, ten in a second. From a clock at 1000 s: after
# 0.1 s moving-average 457.2, ewma 469.9 ms, right. From 0: moving-average 50.0, ewma 0.0 at first and 3.3 after 0.1 s.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund ewma@2.0.1 moving-average@1.0.1
cat >run.js <<'END'
const Ewma = require('ewma')
const MovingAverage = require('moving-average')

/** Averages after each of three round trips in ms, on a clock that begins at `start`, in ms. */
function averages (start) {
  const clock = { now: () => start }
  const [halving, moving] = [new Ewma(1000, undefined, clock), MovingAverage(1000)]
  return [500, 50, 50].map(roundTrip => {
    halving.insert(roundTrip)
    moving.push(clock.now(), roundTrip)
    start += 100
    return [halving.value(), moving.movingAverage()].map(value => value.toFixed(1))
  })
}

for (const start of [1e6, 0]) {
  console.log(`from ${start} ms:`, averages(start).map(([ewma, moving]) => `ewma ${ewma} moving ${moving}`).join(', '))
}
let now = 0
const ewma = new Ewma(5000, undefined, { now: () => now })
const after = [100, 5000].map(time => {
  while (now < time) {
    now += 100
    ewma.insert(600)
  }
  return ewma.value().toFixed(0)
})
console.log(`600 ms, half-life of 5 s: ${after[0]} after 0.1 s, ${after[1]} after 5 s`)
END
node run.js | tee told
cat >expected <<'END'
from 1000000 ms: ewma 500.0 moving 500.0, ewma 469.9 moving 457.2, ewma 441.7 moving 418.4
from 0 ms: ewma 0.0 moving 500.0, ewma 3.3 moving 50.0, ewma 6.5 moving 50.0
600 ms, half-life of 5 s: 8 after 0.1 s, 300 after 5 s
END
diff expected told
