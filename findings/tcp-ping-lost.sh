#!/bin/sh
# tcp-ping 0.1.1 (npm), which measures round trips by TCP connections, takes an attempt that failed into its
# statistics, with a time of undefined (tcp-ping.js). So the average is NaN from the first failure on, and minimum and
# maximum start anew after each, because a comparison with undefined is false: they are those of the attempts after the
# last failure, and undefined if the last one failed. A path that loses a connection in a while thus seems to have the
# round trips of its last seconds only; the long ones around an outage are left out. No error is handed over; `results`
# has all the times. A round trip that was lost is undefined, and does not change the minimum of the others (RFC 2681,
# 2.4 and 4.3). By its source @network-utils/tcp-ping 1.2.3 leaves failures out.
#
# Seen, 20, 100, none, 30 and 40 ms: average NaN, minimum 30, maximum 40; right is 47.5, 20 and 100.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts tcp-ping@0.1.1
cat >run.js <<'END'
const { EventEmitter } = require('events')
const net = require('net')

let delays // ms, one for each attempt, null for one without an answer

/** A socket to a path with these delays. */
net.Socket = class extends EventEmitter {
  connect (port, address, connected) {
    const delay = delays.shift()
    if (delay !== null) this.timer = setTimeout(connected, delay)
  }

  setTimeout (time, expired) {
    this.deadline = setTimeout(expired, time)
  }

  destroy () {
    clearTimeout(this.timer)
    clearTimeout(this.deadline)
  }
}
const { ping } = require('tcp-ping')

function measure (path) {
  delays = [...path]
  return new Promise((resolve, reject) => {
    const options = { address: '192.0.2.1', port: 443, attempts: path.length, timeout: 200 }
    ping(options, (error, data) => error ? reject(error) : resolve(data))
  })
}

async function main () {
  const told = []
  for (const path of [[20, 100, 30, 40], [20, 100, null, 30, 40], [20, 100, 30, 40, null]]) {
    const { avg, min, max } = await measure(path)
    const rounded = [avg, min, max].map(time => time === undefined ? time : Math.round(time / 10) * 10)
    console.log(`${path.map(time => time ?? 'lost').join(', ')}: average ${avg}, minimum ${min}, maximum ${max}`)
    told.push(rounded.join(' '))
  }
  process.exit(told.join(', ') === '50 20 100, NaN 30 40, NaN  ' ? 0 : 1)
}

main()
END
node run.js
