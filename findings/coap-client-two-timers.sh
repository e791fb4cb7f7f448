#!/bin/sh
# node-coap-client 2.1.0 (npm) starts two timers for each retransmission of a confirmable message: doSend sets one
# with the time-out so far, then retransmit doubles the time-out and sets another (CoapClient.js). So the copies do
# not back off, there are five retransmissions instead of four, and the request is given up after 14 to 21 s, as if
# the peer were gone, while an outage of 30 s should do no harm. The error is that of a peer that does not answer.
# RFC 7252, 4.2: the time-out is doubled before each retransmission, at most MAX_RETRANSMIT (4) of them; with its
# time-out T of 2 to 3 s copies go out at 0, T, 3T, 7T and 15T, and 31T, 62 to 93 s, is the end (4.8.2). coap 1.5.0
# sends so.
#
# Seen, copies at 0, T, 2T, 3T, 4T and 6T, given up at 7T; coap 0, T, 3T, 7T and 15T.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund node-coap-client@2.1.0 coap@1.5.0
cat >run.js <<'END'
const SPEED = 5 // of the libraries' clock
const sleep = setTimeout
global.setTimeout = (action, time, ...rest) => sleep(action, time / SPEED, ...rest)

const dgram = require('dgram')
const coap = require('coap')
const { CoapClient } = require('node-coap-client')

const WATCHED = 50000 // ms

/** When copies of a request reach a peer that never answers, and when it is given up, in units of the time-out. */
async function watch (request) {
  const peer = dgram.createSocket('udp4')
  const copies = []
  peer.on('message', () => copies.push(performance.now()))
  await new Promise(resolve => peer.bind(0, '127.0.0.1', resolve))
  let end = NaN
  request(peer.address().port, () => { end = performance.now() })
  await new Promise(resolve => setTimeout(resolve, WATCHED))
  peer.close()
  const timeout = copies[1] - copies[0]
  return [...copies, end].map(time => (time - copies[0]) / timeout)
}

async function main () {
  const told = await watch((port, fail) => CoapClient.request(`coap://127.0.0.1:${port}/`, 'get').catch(fail))
  const right = await watch((port, fail) => coap.request({ host: '127.0.0.1', port }).on('timeout', fail).end())
  const show = times => times.map(time => Number.isNaN(time) ? 'later' : `${time.toFixed(1)}T`).join(', ')
  console.log(`node-coap-client: copies and end at ${show(told)}`)
  console.log(`coap: copies and end at ${show(right)}`)
  const near = (times, expected) => times.length === expected.length &&
    times.every((time, index) => Object.is(time, expected[index]) || Math.abs(time - expected[index]) < 0.5)
  process.exit(near(told, [0, 1, 2, 3, 4, 6, 7]) && near(right, [0, 1, 3, 7, 15, NaN]) ? 0 : 1)
}

main()
END
node run.js
