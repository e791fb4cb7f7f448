#!/bin/sh
# pid-controller 1.0.5 (npm) is "based on the Arduino PID library" 1.0.1, which keeps the integral within the limits of
# the output. This one limits only their sum (compute in lib/index.js). While an output at its limit cannot help, as
# when a rate is controlled and the link is away, the integral grows without end, and afterwards the output stays at the
# limit for as long again. So a minute without coverage is followed by one at full rate into a link that is back. And
# its constants have the wrong sign: setMode takes 0 for automatic and 1 for manual, while PID.AUTOMATIC is 1 and
# PID.MANUAL 0. With setMode(PID.AUTOMATIC), as one writes for Arduino, compute does nothing and returns false. Nothing
# is said. That the integral must be stopped at a limit is as old as the controller (Astrom and Hagglund, PID
# Controllers, 1995, ch. 3, integrator windup).
#
# Seen, both gains 1, limits of 0 and 10, an error of 1 for 60 s, then of -1: the output stays at 10 for 49 s more. With
# an integral of at most 10 it is 9 at once. After setMode(PID.AUTOMATIC) the mode is "Manual".
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true, "type": "module"}' >package.json
npm install --silent --no-audit --no-fund pid-controller@1.0.5
cat >run.js <<'END'
import { mock } from 'node:test'
import PID from 'pid-controller'

mock.timers.enable({ apis: ['Date'], now: 1e12 })
const [LIMIT, STEP] = [10, 100] // Output, and ms between two updates

const controller = new PID(0, 1, 1, 1, 0, 'direct')
controller.setOutputLimits(0, LIMIT)
controller.setMode('auto')

/** One update with this error: the output. */
function update(error) {
  mock.timers.tick(STEP)
  controller.setInput(1 - error)
  controller.compute()
  return controller.getOutput()
}

for (let time = 0; time < 60_000; time += STEP) update(1)
let seconds = 0
while (update(-1) === LIMIT) seconds += STEP / 1000
console.log(`at the limit for ${seconds.toFixed(0)} s more`)

controller.setMode(PID.AUTOMATIC)
console.log(`automatic: ${controller.getMode()}, ${controller.compute()}`)
END
node --no-warnings run.js | tee told
cat >expected <<'END'
at the limit for 49 s more
automatic: Manual, false
END
diff expected told
