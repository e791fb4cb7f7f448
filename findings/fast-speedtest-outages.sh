#!/bin/sh
# fast-speedtest-api 0.3.2 (npm), which measures the speed of a line by downloads from fast.com, leaves out the time in
# which nothing comes. It takes the bytes of each 200 ms, and drops the zeros from their average as if these places of
# its list were not filled yet (average in Api.js; by its comment it removes nulls). So a radio link that is gone for a
# part of the time, by fades or handovers, has the speed that it has in between. And its list has eight places
# (bufferSize), so of the 5 s of a test only the last 1.6 count, which README.md does not say. A link that carries
# nothing for the first 4 s has full speed. No error is told. Capacity over an interval is what arrives in it, divided
# by all of it (RFC 5136, 2.3).
#
# Seen, a line that carries 4 Mbit/s while it is up: up all the time 4.0 Mbit/s; up in the second and the fourth of the
# 5 s also 4.0, right is 1.6; up in the last one 3.2 to 4.0, right is 0.8.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund fast-speedtest-api@0.3.2
cat >run.js <<'END'
const http = require('http')
const FastSpeedtest = require('fast-speedtest-api')

const MBPS = 4

/** The speed told, in Mbit/s, of a line that is up in these of the seconds since the download began. */
async function speed (seconds) {
  const server = http.createServer((request, response) => {
    response.setHeader('content-type', 'application/octet-stream')
    response.flushHeaders()
    const start = Date.now()
    let last = start
    const timer = setInterval(() => {
      const now = Date.now()
      const bytes = Math.round((now - last) * MBPS * 1000 / 8)
      last = now
      if (seconds.includes(Math.floor((now - start) / 1000))) response.write(Buffer.alloc(bytes))
    }, 20)
    response.on('close', () => clearInterval(timer))
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  const test = new FastSpeedtest({ token: 'none', https: false, unit: FastSpeedtest.UNITS.Mbps })
  test.getTargets = async () => [`http://127.0.0.1:${server.address().port}/`]
  const told = await test.getSpeed()
  server.close()
  return told
}

async function main () {
  let same = true
  for (const seconds of [[0, 1, 2, 3, 4, 5], [1, 3], [4, 5]]) {
    const told = await speed(seconds)
    console.log(`up in the seconds ${seconds}: ${told.toFixed(1)} Mbit/s`)
    same &&= told > 2.6 && told < 4.6
  }
  process.exit(same ? 0 : 1)
}
main()
END
node run.js
