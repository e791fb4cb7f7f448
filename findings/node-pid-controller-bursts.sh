#!/bin/sh
# node-pid-controller 1.0.1 (npm) measures the time between two updates itself unless it is told, "automatically
# calculated". Two updates in one millisecond have no time between them, and no time counts as a whole second (update in
# lib/index.js). So a rate that is controlled by each acknowledgement grows a thousand times too fast where these come
# in bursts, as they do over Wi-Fi with aggregated frames. The first update, which has none before it, counts as a
# second too, and its derivative part as if the error had been 0 a second before. Nothing is said. The integral part of
# a PID controller is the sum of error times time (Astrom and Hagglund, PID Controllers, 1995, ch. 3): of updates at the
# same time only one counts. With "dt", for updates at even times, it is right.
#
# Seen, an error of 1 for 10 s, integral gain 1: an update every 10 ms, 11.0, right 10; two every 20 ms, 511; ten every
# 100 ms, 911. As many updates with dt of 10 ms: 10.0.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true, "type": "module"}' >package.json
npm install --silent --no-audit --no-fund node-pid-controller@1.0.1
cat >run.js <<'END'
import { mock } from 'node:test'
import Controller from 'node-pid-controller'

mock.timers.enable({ apis: ['Date'], now: 1e12 })
const GAP = 10 // ms for each update

/** The integral of an error of 1 over 10 s, with this many updates at a time. */
function integral(burst, options = {}) {
  const controller = new Controller({ k_p: 0, k_i: 1, k_d: 0, ...options })
  controller.setTarget(1)
  let correction
  for (let count = 0; count < 10_000 / GAP; count += burst) {
    for (let number = 0; number < burst; number++) correction = controller.update(0)
    mock.timers.tick(burst * GAP)
  }
  return correction.toFixed(1)
}

for (const burst of [1, 2, 10]) console.log(`${burst} every ${burst * GAP} ms: ${integral(burst)}`)
console.log(`dt of ${GAP} ms: ${integral(1, { dt: GAP / 1000 })}`)
END
node --no-warnings run.js | tee told
cat >expected <<'END'
1 every 10 ms: 11.0
2 every 20 ms: 511.0
10 every 100 ms: 910.9
dt of 10 ms: 10.0
END
diff expected told
