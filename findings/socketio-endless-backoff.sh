#!/bin/sh
# socket.io-client 4.8.4 (npm) and the back-offs backo 1.1.0 and backo2 1.0.2, whose code it took over, double the delay
# for each attempt and cut it off at a maximum last (duration in contrib/backo2.js and index.js). The doubled number has
# no limit: about the 1015th is infinite. Its random part is then infinite too, and where that is taken off, the result
# is not a number, which "| 0" makes 0. So with the defaults of Socket.IO every other delay of a long outage is 0
# instead of 5 s. A device out of coverage tries twice at a time, and a server that comes back is met by clients half of
# whom do not wait. It lasts until a connection succeeds. Nothing is said. By its documentation (Manager options,
# reconnectionDelayMax) the delay is 5000 ms from the fourth attempt on. Without a random part it is.
#
# Seen: of the first 1000 delays none is 0, of the 1000 from the 1025th on about half are, and the rest the maximum. By
# then the delays alone add up to 1.4 h.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund socket.io-client@4.8.4 backo@1.1.0 backo2@1.0.2
cat >run.js <<'END'
const { Manager } = require('socket.io-client')

const options = { min: 1000, max: 5000, jitter: 0.5 } // The defaults of Socket.IO.
const cases = {
  'socket.io-client': new Manager('http://127.0.0.1', { autoConnect: false }).backoff,
  backo: new (require('backo'))(options),
  backo2: new (require('backo2'))(options),
  'backo2 without a random part': new (require('backo2'))({ ...options, jitter: 0 })
}
const zeros = delays => delays.filter(delay => delay === 0).length
let changed = false
for (const [name, backoff] of Object.entries(cases)) {
  const delays = Array.from({ length: 2024 }, () => backoff.duration())
  const late = delays.slice(1024)
  const [before, after] = [zeros(delays.slice(0, 1000)), zeros(late)]
  const hours = delays.slice(0, 1024).reduce((sum, delay) => sum + delay, 0) / 3.6e6
  console.log(`${name}: of 1000 delays ${before} are 0; after ${hours.toFixed(1)} h ${after}`)
  const expected = name.includes('without') ? after === 0 : after > 400 && after < 600
  changed ||= before > 0 || !expected || late.some(delay => delay !== 0 && delay !== 5000)
}
process.exit(changed ? 1 : 0)
END
node run.js
