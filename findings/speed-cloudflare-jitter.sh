#!/bin/sh
# Two speed tests of npm, speed-cloudflare-cli 2.0.3 and @push.rocks/smartnetwork 4.5.2, tell the jitter of sorted round
# trips. Both compute the median first, which sorts the measurements where they are (median in stats.js and in
# helpers/stats.js), and then the mean distance of neighbours (jitter), by its own comment "between consecutive latency
# measurements". Of sorted ones this is the range divided by 19, whatever their order was: the 20 that they take never
# have more jitter than that. So a path that goes to and fro by 10 ms has half a millisecond, a twentieth, as a radio
# with grants each 10 ms has it. Nothing is said. Right are differences of neighbours in time (RFC 5481, 4.1; RFC 3550,
# 6.4.1). Minimum, median and average are right.
#
# Seen, 20 answers after 50 and 60 ms in turn: jitter 0.53 ms by both, right is 10; latency 55 ms.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund speed-cloudflare-cli@2.0.3 @push.rocks/smartnetwork@4.5.2
# No server is asked: answers come after given times, by a clock that stands still in between.
cat >answers.js <<'END'
const { EventEmitter } = require('events')
const https = require('https')
const { performance } = require('perf_hooks')

let clock = 0
let probes = 0
performance.now = () => clock

https.request = ({ path }, callback) => {
  const request = new EventEmitter()
  request.write = () => {}
  request.end = () => setImmediate(() => {
    const isProbe = path === '/__down?bytes=1000'
    if (isProbe) clock += probes++ % 2 ? 60 : 50
    const response = new EventEmitter()
    response.headers = { 'server-timing': `cfRequestDuration;dur=${isProbe ? 0 : 10}.0` }
    callback(response)
    response.emit('readable')
    if (path === '/locations') response.emit('data', Buffer.from('[{"iata": "XXX", "city": "City"}]'))
    else if (path === '/cdn-cgi/trace') response.emit('data', Buffer.from('ip=192.0.2.1\nloc=XX\ncolo=XXX\n'))
    else if (!isProbe) clock += 10
    response.emit('end')
  })
  return request
}
require('module').syncBuiltinESMExports()
END
cat >run.mjs <<'END'
import { SmartNetwork } from '@push.rocks/smartnetwork'

const { medianTime, averageTime, jitter } = await new SmartNetwork().getSpeed()
console.log(`smartnetwork: median ${medianTime}, average ${averageTime}, jitter ${jitter.toFixed(2)} ms`)
process.exit()
END
{
    node --require ./answers.js node_modules/speed-cloudflare-cli/cli.js | sed 's/\x1b\[[0-9;]*m//g' |
        grep -E 'Latency|Jitter'
    node --require ./answers.js run.mjs
} | sed 's/^ *//' | tee told
cat >expected <<'END'
Latency: 55.00 ms
Jitter: 0.53 ms
smartnetwork: median 55, average 55, jitter 0.53 ms
END
diff expected told
