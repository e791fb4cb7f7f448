#!/bin/sh
# pull-ping 2.0.3 (npm), which measures the round trip to a peer and the skew of its clock, keeps the time of its last
# ping in a variable that it does not declare (ts in index.js), so it is one for the whole process. In a node with more
# than one connection each measures from the last ping or answer to anyone. The round trip of a satellite is told as the
# time since the ping to a neighbour, too short by anything up to all of it, and the skew is wrong by half of what is
# missing. Nothing is said; the only connection of a process is measured right. Its documentation says that the numbers
# are of the connection, and its example is a server, which has one for each client.
#
# Seen, a path of 600 ms and clocks that agree: alone 600 ms and 0 ms. With a ping to a neighbour of 20 ms at 500 ms:
# 100 ms and -250 ms; the neighbour 20 ms and 0 ms.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund pull-ping@2.0.3
cat >run.js <<'END'
const ping = require('pull-ping')
const pushable = require('pull-pushable')

let now
Date.now = () => now

/** A connection that pings now; answer() gives it the time that the peer read when the ping arrived. */
function connect () {
  const connection = ping({ serve: true })
  const incoming = pushable()
  connection.sink(incoming)
  return { connection, answer: time => incoming.push(time) }
}

const tell = (name, { connection }) =>
  console.log(`${name}: round trip ${connection.rtt.mean} ms, skew ${connection.skew.mean} ms`)

now = 0
let satellite = connect()
now = 600
satellite.answer(300)
tell('satellite, alone', satellite)

now = 0
satellite = connect()
now = 500
const neighbour = connect()
now = 520
neighbour.answer(510)
now = 600
satellite.answer(300)
tell('satellite', satellite)
tell('neighbour', neighbour)
END
node run.js | tee told
cat >expected <<'END'
satellite, alone: round trip 600 ms, skew 0 ms
satellite: round trip 100 ms, skew -250 ms
neighbour: round trip 20 ms, skew 0 ms
END
diff expected told
